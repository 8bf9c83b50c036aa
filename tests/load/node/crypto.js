// Hashes, ciphers, keys, random bytes, the thread pool, WebAssembly, timers and text codecs.
const crypto = require('crypto');
const { promisify } = require('util');
(async () => {
  console.log(crypto.createHash('sha256').update('cupel').digest('hex'));
  console.log(crypto.createHmac('sha512', 'k').update('v').digest('base64'));
  console.log((await promisify(crypto.scrypt)('p', 's', 32)).toString('hex'));
  console.log((await promisify(crypto.pbkdf2)('p', 's', 1000, 16, 'sha1')).toString('hex'));
  const key = Buffer.alloc(32, 1), iv = Buffer.alloc(12, 2);
  const cipher = crypto.createCipheriv('aes-256-gcm', key, iv);
  console.log(Buffer.concat([cipher.update('secret'), cipher.final(), cipher.getAuthTag()]).toString('hex'));
  const pair = await promisify(crypto.generateKeyPair)('ed25519');
  console.log(crypto.verify(null, Buffer.from('m'), pair.publicKey, crypto.sign(null, Buffer.from('m'), pair.privateKey)));
  console.log(new Set([...Array(100)].map(() => crypto.randomUUID())).size, crypto.getRandomValues(new Uint8Array(8)).length);
  const wasm = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3,
    97, 100, 100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11]);
  console.log((await WebAssembly.instantiate(wasm)).instance.exports.add(40, 2));
  console.log(new TextDecoder('shift_jis').decode(new Uint8Array([0x93, 0xfa])), new Intl.NumberFormat('de').format(1234.5));
  const start = Date.now();
  await promisify(setTimeout)(50);
  console.log(Date.now() - start >= 49, process.hrtime.bigint() > 0n, process.memoryUsage().rss > 0);
})();
