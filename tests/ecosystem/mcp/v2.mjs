// The TypeScript SDK v2: stdio PROGRAM, or http URL TOKEN; in the legacy, the automatic and the modern mode.
import assert from 'node:assert';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { talk, watch } from './talk.mjs';

const [kind, where, token] = process.argv.slice(2);
for (const [mode, era] of [['legacy', 'legacy'], ['auto', 'modern'], [{ pin: '2026-07-28' }, 'modern']]) {
  const transport = kind === 'stdio'
    ? new StdioClientTransport({ command: where, args: ['mcp'], env: process.env })
    : new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
  const client = new Client({ name: 'ecosystem', version: '2' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  assert.equal(client.getProtocolEra(), era);
  await talk(client, era === 'legacy');
  await watch((args, onprogress, signal) => client.callTool({ name: 'run_code', arguments: args }, { onprogress, signal }));
  await client.close();
  console.log(`SDK v2, ${era}, over ${kind}: good`);
}
