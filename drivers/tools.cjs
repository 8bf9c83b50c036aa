// The object `tools` of the user's code: each tool that a request names is a function there, whose call is a line to
// the engine and whose value is a promise (PROTOCOL.md). Runs as the occupant; driver.cjs and cells.cjs load it for a
// line that has tools.
//
// 1. An answer goes to the call of its number. In a run the channel keeps node alive only while a call waits.
// 2. The end of a cell takes back the calls that wait, and waits until the engine has answered every one of them, so
//    that no part of an answer is left in the channel.
// 3. A large value comes in parts, which go to a file as they are read; the code gets its name (ToolLarge).
'use strict';

const fs = require('node:fs');
const net = require('node:net');
const { Array, Buffer, Error, JSON, Map, Object, Promise, Set, String, TypeError, WeakSet } = globalThis;

const OPEN_MAX = 128;      // calls that wait at the engine; further ones wait here
const BYTES_MAX = 1 << 20; // of a call's arguments
const FOLDER = '/tmp/tools'; // of large values

let driver, file;          // functions of driver.cjs; the name of the running code
let number = 0;            // of the last call
let landed = 0;            // large values so far
let going = false;         // a run or cell with tools
let known = new Map();     // definitions by name
let channel = null;        // of a run; a session reads for all
let given = null;          // the global object
let rest = null;           // resolves when nothing waits, at the end of a cell
const waiting = new Map(); // calls by number
const dropped = new Set(); // numbers whose answer nobody wants
const backlog = [];

// ---- errors ----

class ToolError extends Error {
    constructor(tool, reason) {
        super(`${tool}: ${reason}`);
        Object.assign(this, { tool, reason });
        Object.defineProperty(this, 'name', { value: this.constructor.name, configurable: true });
    }
}
class ToolDenied extends ToolError {}
class ToolTimeout extends ToolError {}
const KINDS = { denied: ToolDenied, timeout: ToolTimeout };
const over = new WeakSet();   // errors of calls that the end of a cell took back

// ---- large values ----

// A value of more than 1 MiB, in a file: JSON, or the text if the value is one.
class ToolLarge {
    constructor(path, size) { Object.assign(this, { path, size }); }
    open() { return fs.createReadStream(this.path); }
    read() { return fs.readFileSync(this.path, 'utf8'); }
    json() { return JSON.parse(this.read()); }
}

function landing(tool) {
    fs.mkdirSync(FOLDER, { recursive: true });
    for (;;) {
        const path = `${FOLDER}/${tool}-${++landed}`;
        try {
            return { path, fd: fs.openSync(path, 'wx+', 0o600) };
        } catch (error) {
            if (error.code !== 'EEXIST') throw error;
        }
    }
}

function forget(one) {
    const { file } = one;
    delete one.file;
    if (!file) return;
    fs.closeSync(file.fd);
    fs.rmSync(file.path, { force: true });
}

// A fault of the disk is the call's, when its last line has come.
function takePart(line) {
    const space = line.indexOf(32);
    const one = waiting.get(Number(line.toString('latin1', 1, space)));
    if (!one || one.fault) return;
    try {
        one.file ||= landing(one.tool);
        for (let at = space + 1; at < line.length;) at += fs.writeSync(one.file.fd, line, at);
    } catch (error) {
        one.fault = error;
        forget(one);
    }
}

function land(one, size) {
    try {
        if (one.fault || fs.fstatSync(one.file.fd).size !== size)
            throw one.fault || new Error('a part of it is missing');
        const { path, fd } = one.file;
        const first = Buffer.alloc(1);
        fs.readSync(fd, first, 0, 1, 0);
        if (first[0] === 34) {
            const text = JSON.parse(fs.readFileSync(path, 'utf8'));
            fs.writeFileSync(path, text);
            size = Buffer.byteLength(text);
        }
        fs.fchmodSync(fd, 0o444);
        fs.closeSync(fd);
        return new ToolLarge(path, size);
    } catch (error) {
        forget(one);
        throw new ToolError(one.tool, `its value has ${size} bytes, and the box could not keep it: ${error.message}`);
    }
}

// The value of an answer.
function valueOf(one, frame) {
    const value = 'large' in frame ? land(one, frame.large) : frame.value;
    return !frame.files ? value : { value, files: frame.files.map(({ name, mime, base64 }) =>
        ({ name, mime, data: Buffer.from(base64, 'base64') })) };
}

// ---- calls ----

function lineOf(error) {
    const place = driver.userFrames(error).map((frame) => frame.place).find((spot) => file().includes(spot.file));
    return place ? place.line : null;
}

function call(tool, args, rest_) {
    const at = new Error();
    return new Promise((resolve, reject) => {
        if (rest_.length || args === null || typeof args !== 'object' || Array.isArray(args))
            throw new TypeError(`${tool} takes one object, as in tools.${tool}({...})`);
        const text = driver.toJson(args);
        if (text.length > BYTES_MAX || Buffer.byteLength(text) > BYTES_MAX)
            throw new ToolError(tool, `the arguments have ${Buffer.byteLength(text)} bytes, at most ${BYTES_MAX}`);
        if (!going)
            throw new ToolError(tool, 'tools can be called only while a program or cell that has them runs');
        if (!known.has(tool))
            throw new ToolError(tool, 'this program has no such tool');
        backlog.push({ tool, resolve, reject,
            rest: `"tool":${JSON.stringify(tool)},"args":${text},"line":${lineOf(at)}}` });
        sendMore();
    });
}

function sendMore() {
    while (backlog.length && waiting.size + dropped.size < OPEN_MAX) {
        const next = backlog.shift();
        waiting.set(++number, next);
        driver.send(`{"op":"call","number":${number},${next.rest}`);
    }
    if (channel)
        waiting.size ? channel.ref() : channel.unref();
}

// A line of the engine. Its frame where it is no answer; else null.
function take(line) {
    const frame = line[0] === 43 ? takePart(line) : JSON.parse(line.toString());
    if (!frame || frame.op !== 'return')
        return frame || null;
    answer(frame);
    return null;
}

function answer(frame) {
    const one = waiting.get(frame.number);
    waiting.delete(frame.number);
    dropped.delete(frame.number);
    sendMore();
    if (!waiting.size && !dropped.size && rest) rest();
    if (!one)
        return;
    if (frame.error) {
        forget(one);
        one.reject(new (KINDS[frame.error.kind] || ToolError)(one.tool, String(frame.error.message)));
        return;
    }
    try {
        one.resolve(valueOf(one, frame));
    } catch (error) {
        one.reject(error);
    }
}

// ---- functions ----

function help(tool) {
    const about = known.get(typeof tool === 'string' ? tool : tool && tool.tool);
    if (!about) return 'no such tool';
    const { properties = {}, required = [] } = about.input_schema;
    const lines = Object.entries(properties).map(([name, { type = 'any', description }]) =>
        `  ${name}${required.includes(name) ? '' : '?'}: ${[type].flat().join(' or ')}`
        + (description ? ` - ${description}` : ''));
    return [`${about.name}({${Object.keys(properties).join(', ')}})`, about.description, ...lines].join('\n');
}

const wordsOf = (text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

function search(text) {
    const points = (about) => {
        const [name, all] = [wordsOf(about.name), wordsOf(help(about.name))];
        return wordsOf(text).reduce((sum, word) => sum + 9 * name.filter((one) => one.startsWith(word)).length
            + all.some((one) => one.startsWith(word)), 0);
    };
    return [...known.values()].filter(points).sort((a, b) => points(b) - points(a)).map(({ name }) => name);
}

const put = (object, name, value) => Object.defineProperty(object, name,
    { value, enumerable: true, configurable: true, writable: true });

function functionOf(about) {
    const made = { [about.name]: (args = {}, ...more) => call(about.name, args, more) }[about.name];
    put(made, 'tool', about.name);
    put(made, 'toString', () => help(about.name));
    return made;
}

function build(definitions) {
    known = new Map(definitions.map((about) => [about.name, about]));
    const top = {};
    for (const about of [...definitions].sort((a, b) => a.name.split('.').length - b.name.split('.').length)) {
        const parts = about.name.split('.');
        const last = parts.pop();
        let at = top;
        for (const part of parts)
            at = Object.hasOwn(at, part) ? at[part] : put(at, part, {})[part];
        put(at, last, functionOf(about));
        if (last.includes('-') && !Object.hasOwn(at, last.replaceAll('-', '_')))
            put(at, last.replaceAll('-', '_'), at[last]);
    }
    const get = (name) => functionOf(known.get(name) || { name });
    for (const [name, helper] of Object.entries({ list: () => [...known.keys()], search, help, get })) {
        Object.defineProperty(top, `${name}_`, { value: helper });
        if (!Object.hasOwn(top, name)) Object.defineProperty(top, name, { value: helper });
    }
    for (const kind of [ToolError, ToolDenied, ToolTimeout, ToolLarge])
        Object.defineProperty(top, kind.name, { value: kind });
    return top;
}

// ---- runs and cells ----

function begin(definitions, functions, names) {
    [driver, file, going] = [functions, names, true];
    given = build(definitions);
    driver.setHidden(globalThis, 'tools', given);
}

// A run reads the channel itself.
function run(definitions, functions, fd) {
    begin(definitions, functions, () => ['main.js', 'main.mjs']);
    channel = new net.Socket({ fd, readable: true, writable: false });
    let parts = [];
    channel.on('data', (part) => {
        for (let at; (at = part.indexOf(10)) >= 0; part = part.subarray(at + 1)) {
            const line = Buffer.concat([...parts, part.subarray(0, at)]);
            parts = [];
            if (line.length) take(line);
        }
        parts.push(part);
    });
    channel.on('error', () => {});
    channel.unref();
}

// The cell is over.
async function end() {
    if (!going)
        return;
    going = false;
    if (globalThis.tools === given) delete globalThis.tools;
    for (const one of [...backlog.splice(0), ...waiting.values()]) {
        const error = new ToolError(one.tool, 'the cell ended before the answer');
        forget(one);
        over.add(error);
        one.reject(error);
    }
    for (const one of waiting.keys()) {
        dropped.add(one);
        driver.send(`{"op":"cancel","number":${one}}`);
    }
    waiting.clear();
    if (dropped.size)
        await new Promise((resolve) => { rest = resolve; });
    rest = null;
}

module.exports = { begin, run, end, take, isOver: (error) => over.has(error) };
