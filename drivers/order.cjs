// Marks in the output of a JavaScript program at each switch between stdout, stderr and the
// channel (PROTOCOL.md). Runs as the occupant; driver.cjs loads it at the first use of anything
// but stdout.
//
// The stream that was written last writes as usual; the others have a `_write` of their own that
// notices the switch, puts a mark before its data, and removes itself.
'use strict';

const fs = require('node:fs');
const { Buffer, Object, process } = globalThis;

const MARKS_MAX = 1 << 20; // as many as the engine reads
const pipes = [0, 1, 2].map(pipeOf);
let output;          // of driver.cjs: {sign, streams}
let epoch = 0;       // the number of the last mark
let last = 1;        // the last writer: 1, 2; 0: the channel

// The identity of a pipe: a mark must not get into a file of the code.
function pipeOf(fd) {
    try {
        const stat = fs.fstatSync(fd);
        return stat.isFIFO() ? `${stat.dev} ${stat.ino}` : null;
    } catch { return null; }
}

// The mark of a switch to this writer, or ''.
function change(writer) {
    if (!output.sign || last === writer)
        return '';
    last = writer;
    for (const fd of output.streams.keys())
        notice(fd);
    const pipe = writer ? pipeOf(writer) : 'the channel';
    if (epoch === MARKS_MAX || !pipe || (writer && pipe !== pipes[writer]))
        return '';
    epoch++;
    return `\x01${output.sign}${epoch.toString(16).padStart(8, '0')}`;
}

function notice(fd) {
    const stream = output.streams.get(fd);
    const hide = (name, value) => Object.defineProperty(stream, name,
        { value, configurable: true, writable: true });
    delete stream._write;
    delete stream._writev;
    if (fd === last)
        return;
    hide('_write', (data, encoding, done) => {
        const mark = change(fd);
        if (!mark)
            return Object.getPrototypeOf(stream)._write.call(stream, data, encoding, done);
        const bytes = typeof data === 'string' ? Buffer.from(data, encoding) : data;
        return stream._write(Buffer.concat([Buffer.from(mark, 'latin1'), bytes]), 'buffer', done);
    });
    hide('_writev', (chunks, done) => {
        const mark = change(fd);
        if (mark)
            chunks.unshift({ chunk: Buffer.from(mark, 'latin1'), encoding: 'buffer' });
        return Object.getPrototypeOf(stream)._writev.call(stream, chunks, done);
    });
}

module.exports = (given) => {
    output = given;
    return { change, notice, begin: () => { last = 1; [...output.streams.keys()].forEach(notice); } };
};
