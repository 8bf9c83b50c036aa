// spawn, exec, fork, signals, exit codes, pipes both ways.
const { spawn, exec, execFileSync, fork } = require('child_process');
const fs = require('fs');
const ended = child => new Promise(resolve => child.on('close', (code, signal) => resolve([code, signal])));
(async () => {
  console.log(execFileSync('sh', ['-c', 'echo out; cat'], { input: 'given' }).toString());
  console.log(await ended(spawn('sh', ['-c', 'exit 7'])));
  const sleeper = spawn('sleep', ['30']);
  sleeper.kill('SIGTERM');
  console.log(await ended(sleeper));
  await new Promise(done => exec('echo err >&2; exit 3', (error, out, err) => {
    console.log(error.code, JSON.stringify(out), JSON.stringify(err));
    done();
  }));
  await new Promise(done => spawn('/no/such').on('error', e => { console.log(e.code); done(); }));
  fs.writeFileSync('child.js', 'process.on("message", m => { process.send({ twice: m * 2 }); process.disconnect(); })');
  const child = fork('./child.js');
  child.on('message', m => console.log(m));
  child.send(21);
  console.log(await ended(child));
})();
