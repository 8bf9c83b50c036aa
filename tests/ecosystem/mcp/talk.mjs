// What every client of an SDK does: list, run, read a file, see progress, cancel. The SDK checks the answers against
// the tools' output schemas.
import assert from 'node:assert';

export async function talk(client, keeps) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ['run_code', 'session', 'read_file', 'write_file', 'list_files', 'runs']);
  const run = (args, options) => client.callTool({ name: 'run_code', arguments: args }, ...options ?? []);
  const made = await run({ code: "open('a.txt', 'w').write('hello'); 6 * 7", session: 'new' });
  assert.equal(made.structuredContent.value, '42');
  const session = made.structuredContent.session;
  const link = made.content.find((part) => part.type === 'resource_link');
  const read = await client.readResource({ uri: link.uri });
  assert.equal(read.contents[0].text, 'hello');
  assert.equal((await run({ code: "open('a.txt').read()", session })).structuredContent.value, "'hello'");
  const failed = await run({ code: '1/0' });
  assert.ok(failed.isError && failed.structuredContent.error.name === 'ZeroDivisionError');
  if (keeps) {
    await run({ code: 'x = 1' });
    assert.equal((await run({ code: 'x + 1' })).structuredContent.value, '2');
  }
  const drawn = await run({ code: 'import matplotlib.pyplot as p; p.plot([1, 2]); p.show()', session, timeout_s: 60 });
  assert.ok(drawn.content.some((part) => part.type === 'image'));
  assert.ok((await client.callTool({ name: 'session', arguments: { do: 'close', session } })).structuredContent);
  return run;
}

export async function watch(run) {
  let told = 0;
  const onprogress = () => { told += 1; };
  await run({ code: 'import time; time.sleep(2.4)' }, onprogress);
  assert.ok(told >= 1, 'no progress');
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 500);
  await assert.rejects(run({ code: 'import time; time.sleep(25)' }, undefined, stop.signal));
}
