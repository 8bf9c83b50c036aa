// The rehearsal of a waiting node: it loads now what node loads at first use, and V8 compiles it,
// on the same path that the request will take. It writes nothing and leaves nothing that a
// program could see.
'use strict';

const fs = require('fs');

const ROUNDS = 20;

module.exports = ({ parse, perform, plain, readLine, toJson }) => {
    const streams = [process.stdout, process.stderr];
    const { argv } = process;
    parse('let a = await 1; a', 'module');
    streams.forEach((stream) => { stream.write(''); stream.write = () => true; });
    for (let i = 0; i < ROUNDS; i++) {
        const line = fs.openSync('/proc/self/comm'); // a line, like the channel's
        readLine(line);
        fs.closeSync(line);
        const code = `console.log(${i}, [{a: 1}]); console.error('b')`;
        perform(JSON.stringify({ code, args: [], call: null }));
        toJson({ lines: code.split('\n'), plain: plain([i, new Map([[1, new Error('x')]])]) });
        process.emit('beforeExit', 0);
        process.emit('exit', 0);
    }
    streams.forEach((stream) => delete stream.write);
    process.argv = argv;
};
