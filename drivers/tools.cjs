// The object `tools` of the user's code: each tool that a request names is a function there, whose call is a line to
// the engine and whose value is a promise (PROTOCOL.md). Runs as the occupant; driver.cjs and cells.cjs load it for a
// line that has tools.
//
// 1. An answer goes to the call of its number. In a run the channel keeps node alive only while a call waits.
// 2. The end of a cell takes back the calls that wait, and waits until the engine has answered every one of them, so
//    that no part of an answer is left in the channel.
'use strict';

const net = require('node:net');
const { Array, Buffer, Error, JSON, Map, Object, Promise, Set, String, TypeError, WeakSet } = globalThis;

const OPEN_MAX = 128;      // calls that wait at the engine; further ones wait here
const BYTES_MAX = 1 << 20; // of a call's arguments

let driver, file;          // functions of driver.cjs; the name of the running code
let number = 0;            // of the last call
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

// An answer of the engine.
function take(frame) {
    const one = waiting.get(frame.number);
    waiting.delete(frame.number);
    dropped.delete(frame.number);
    sendMore();
    if (!waiting.size && !dropped.size && rest) rest();
    if (!one)
        return;
    if (frame.error)
        one.reject(new (KINDS[frame.error.kind] || ToolError)(one.tool, String(frame.error.message)));
    else if (frame.files)
        one.resolve({ value: frame.value, files: frame.files.map(({ name, mime, base64 }) =>
            ({ name, mime, data: Buffer.from(base64, 'base64') })) });
    else
        one.resolve(frame.value);
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
    for (const kind of [ToolError, ToolDenied, ToolTimeout])
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
            const text = Buffer.concat([...parts, part.subarray(0, at)]).toString();
            parts = [];
            if (text) take(JSON.parse(text));
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
