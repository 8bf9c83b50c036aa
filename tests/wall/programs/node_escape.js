// row: 1 3 6 17 31
// about: the same walls from another language
// control: unshared
// args: host
const fs = require('fs');
const { spawnSync } = require('child_process');
const probe = (name, reached, detail = '') =>
    console.log(`PROBE ${name}: ${reached ? 'reached' : 'blocked'} ${String(detail).slice(0, 200)}`);
const attempt = (name, action) => {
    try {
        probe(name, true, action());
    } catch (error) {
        probe(name, false, error.message);
    }
};
const secret = Object.values(process.env).filter((v) => /canary-[0-9a-f]{32}/.test(v));
probe('environment', secret.length, secret.length);
attempt('shadow', () => fs.readFileSync('/etc/shadow').length);
attempt('host_file', () => fs.readFileSync(process.argv[2]).length);
probe('mount', spawnSync('mount', ['-t', 'tmpfs', 'none', '/mnt']).status === 0
    && spawnSync('umount', ['/mnt']).status === 0);
probe('unshare', spawnSync('unshare', ['-m', 'true']).status === 0);
probe('folders', ['/root', '/var/log'].some((d) => fs.existsSync(d) && fs.readdirSync(d).length), '');
