// Threads that share memory, answer messages, and fail alone.
const { Worker } = require('worker_threads');
const source = `
const { parentPort, workerData } = require('worker_threads');
if (workerData.fail) throw new Error('as asked');
const shared = new Int32Array(workerData.shared);
for (let i = 0; i < 1000; i++) Atomics.add(shared, 0, 1);
parentPort.once('message', n => parentPort.postMessage(n * n));`;
const shared = new SharedArrayBuffer(4);
const one = n => new Promise((resolve, reject) => {
  const worker = new Worker(source, { eval: true, workerData: { shared } });
  worker.once('message', resolve).once('error', reject).postMessage(n);
});
const failing = () => new Promise(resolve => {
  new Worker(source, { eval: true, workerData: { fail: true } }).once('error', e => resolve(e.message));
});
(async () => {
  console.log(await Promise.all([1, 2, 3, 4].map(one)), new Int32Array(shared)[0]);
  console.log(await failing());
})();
