// fs.watch, streams, promises, links, times, and many files at once.
const fs = require('fs');
const { pipeline } = require('stream/promises');
const zlib = require('zlib');
const { Transform } = require('stream');
(async () => {
  fs.mkdirSync('w');
  const seen = new Promise(resolve => {
    const watcher = fs.watch('w', (kind, name) => { watcher.close(); resolve([kind, name]); });
  });
  fs.writeFileSync('w/new', 'text');
  console.log(await seen);
  fs.writeFileSync('plain', 'abc\n'.repeat(100000));
  await pipeline(fs.createReadStream('plain'), zlib.createGzip(), fs.createWriteStream('packed'));
  const upper = new Transform({ transform(part, _, done) { done(null, String(part).toUpperCase()); } });
  await pipeline(fs.createReadStream('packed'), zlib.createGunzip(), upper, fs.createWriteStream('again'));
  console.log(fs.statSync('again').size, fs.readFileSync('again', 'utf8').slice(0, 4));
  fs.symlinkSync('plain', 'link');
  fs.linkSync('plain', 'hard');
  console.log(fs.readlinkSync('link'), fs.statSync('hard').nlink, fs.realpathSync('link').endsWith('/plain'));
  fs.utimesSync('plain', 1, 2);
  console.log(fs.statSync('plain').mtimeMs);
  fs.copyFileSync('plain', 'copy');
  fs.chmodSync('copy', 0o400);
  console.log((fs.statSync('copy').mode & 0o777).toString(8), fs.readdirSync('.').includes('hard'));
  await Promise.all([...Array(200).keys()].map(i => fs.promises.writeFile(`w/${i}`, String(i))));
  console.log(fs.readdirSync('w').length);
  fs.rmSync('w', { recursive: true });
  console.log(fs.existsSync('w'));
})();
