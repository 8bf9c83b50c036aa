// A server and its clients on the loopback, in one process: http, keep-alive, fetch, unix sockets.
const http = require('http');
const net = require('net');
const server = http.createServer(async (request, response) => {
  let size = 0;
  for await (const part of request) size += part.length;
  response.setHeader('x-path', request.url);
  response.end(`${request.method} ${size}`);
});
const post = (options, body) => new Promise((resolve, reject) => {
  http.request({ method: 'POST', ...options }, async answer => {
    let text = '';
    for await (const part of answer) text += part;
    resolve([answer.statusCode, answer.headers['x-path'], text]);
  }).on('error', reject).end(body);
});
server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address();
  const agent = new http.Agent({ keepAlive: true });
  console.log(await post({ port, path: '/a', agent }, 'x'.repeat(1 << 20)));
  console.log(await Promise.all([...Array(50).keys()].map(i => post({ port, path: `/${i}` }, 'y'))).then(all => all.length));
  const answer = await fetch(`http://localhost:${port}/f`);
  console.log(answer.status, await answer.text());
  agent.destroy();
  server.close();
  server.closeAllConnections();
  const local = net.createServer(guest => guest.pipe(guest)).listen('echo.sock', () => {
    const client = net.connect('echo.sock').on('data', data => { console.log(String(data)); client.end(); local.close(); });
    client.write('through a unix socket');
  });
  await new Promise(done => net.connect(1, '127.0.0.1').on('error', e => { console.log(e.code); done(); }));
});
