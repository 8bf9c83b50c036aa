// The TypeScript SDK v1: stdio PROGRAM, or http URL TOKEN.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { talk, watch } from './talk.mjs';

const [kind, where, token] = process.argv.slice(2);
const transport = kind === 'stdio'
  ? new StdioClientTransport({ command: where, args: ['mcp'], env: process.env })
  : new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
const client = new Client({ name: 'ecosystem', version: '1' });
await client.connect(transport);
await client.ping();
await talk(client, true);
await watch((args, onprogress, signal) => client.callTool({ name: 'run_code', arguments: args }, undefined, { onprogress, signal }));
await client.close();
console.log(`SDK v1 over ${kind}: good`);
