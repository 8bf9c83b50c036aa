// Marks in the output of a JavaScript program at each switch between stdout, stderr and the
// channel, and around output of earlier cells (PROTOCOL.md). Runs as the occupant; driver.cjs loads
// it at the first use of anything but stdout.
//
// The stream that was written last writes as usual; the others have a `_write` of their own that
// notices the switch, puts a mark before its data, and removes itself. When a cell of a session has
// left a timer or request behind, all have one: what comes later belongs to the cell that made it,
// by node's AsyncLocalStorage, which makes each await slower and is not used before.
'use strict';

const fs = require('node:fs');
const { Buffer, Object, process } = globalThis;

const MARKS_MAX = (1 << 20) - 1; // the engine reads one more
const pipes = [0, 1, 2].map(pipeOf);
let output;          // of driver.cjs: {sign, streams}
let epoch = 0;       // the number of the last mark
let last = 1;        // the last writer: 1, 2; 0: the channel
let store = null;    // of a session: the cell whose code runs; null until one left something
let leaver = 0;      // the first cell that did: its code has no store
let current = 0;     // the running cell
let secret = '';     // of marks; also between cells

// The identity of a pipe: a mark must not get into a file of the code.
function pipeOf(fd) {
    try {
        const stat = fs.fstatSync(fd);
        return stat.isFIFO() ? `${stat.dev} ${stat.ino}` : null;
    } catch { return null; }
}

const makeMark = (sign, number, cell) =>
    `\x01${sign}${[number, cell].map((one) => one.toString(16).padStart(8, '0')).join('')}`;

// The two marks around output of an earlier cell; null: it is the running one's, or not known.
function piece(fd) {
    const cell = store ? store.getStore() || leaver : 0;
    if (!cell || cell === current || !secret || pipeOf(fd) !== pipes[fd])
        return null;
    return [cell, 0].map((one) => Buffer.from(makeMark(secret, 0, one), 'latin1'));
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
    return makeMark(output.sign, epoch, 0);
}

function notice(fd) {
    const stream = output.streams.get(fd);
    const hide = (name, value) => Object.defineProperty(stream, name,
        { value, configurable: true, writable: true });
    delete stream._write;
    delete stream._writev;
    if (fd === last && !store)
        return;
    const plain = Object.getPrototypeOf(stream);
    const around = () => piece(fd) || [Buffer.from(change(fd), 'latin1'), Buffer.alloc(0)];
    hide('_write', (data, encoding, done) => {
        const [first, end] = around();
        if (!first.length)
            return plain._write.call(stream, data, encoding, done);
        const bytes = typeof data === 'string' ? Buffer.from(data, encoding) : data;
        return plain._write.call(stream, Buffer.concat([first, bytes, end]), 'buffer', done);
    });
    hide('_writev', (chunks, done) => {
        const [first, end] = around().map((chunk) => ({ chunk, encoding: 'buffer' }));
        return plain._writev.call(stream, first.chunk.length ? [first, ...chunks, end] : chunks, done);
    });
}

// What node waits for, but pipes: stdout and stderr are opened at their first use.
const waits = () => process.getActiveResourcesInfo().filter((one) => one !== 'PipeWrap').length;

// Run the code of a cell.
function begin(cell, code) {
    [current, secret, last] = [cell, output.sign, 1];
    [...output.streams.keys()].forEach(notice);
    return store ? store.run(cell, code) : code();
}

// The cell has ended.
function leave() {
    if (!store && waits() > 0) {
        store = new (require('node:async_hooks').AsyncLocalStorage)();
        leaver = current;
        [...output.streams.keys()].forEach(notice);
    }
    current = 0;
}

module.exports = (given) => {
    output = given;
    return { change, notice, begin, leave };
};
