// What a program asks of the system it runs on: signals, streams, exits, errors nobody caught.
const os = require('os');
const dns = require('dns').promises;
(async () => {
  const alive = setInterval(() => {}, 10); // a handler of a signal does not keep node waiting
  const heard = new Promise(done => process.on('SIGUSR2', () => done(console.log('signal'))));
  process.kill(process.pid, 'SIGUSR2');
  await heard;
  clearInterval(alive);
  console.log(os.platform(), os.arch(), os.EOL === '\n', os.tmpdir(), os.totalmem() > 0, os.freemem() > 0);
  console.log(os.availableParallelism() > 0, (await dns.lookup('localhost')).address, typeof os.hostname());
  process.on('unhandledRejection', e => console.log('rejected', e.message));
  Promise.reject(new Error('late'));
  await new Promise(done => setImmediate(done));
  process.on('exit', code => console.log('exit', code));
  process.stderr.write('to stderr\n');
  process.exitCode = 5;
})();
