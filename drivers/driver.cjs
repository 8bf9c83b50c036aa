// The JavaScript driver: runs one program on node inside the box and reports the outcome to the engine (PROTOCOL.md).
// Runs as the occupant, with the same privileges as the user's code beside it. Start: node --expose-internals
// --experimental-vm-modules driver.cjs
//
// V8 decides the kind of a program; the driver never guesses from its text. V8 compiles it as a script; syntax that
// only a module may hold (import, export, top-level await) makes that fail, and V8 then compiles it as a module. A
// script runs unchanged in the global scope with CommonJS's names, so V8 itself gives the last value, `call` finds
// every top-level name, and positions are true. A module has no last value: node's own acorn (hence --expose-
// internals; node's prompt uses it) finds the last expression and passes it to a hook. That moves columns on its
// first line by a known number, which errors subtract.
'use strict';

const fs = require('node:fs');
const vm = require('node:vm');
const path = require('node:path');
const util = require('node:util');
const Module = require('node:module');
const { pathToFileURL } = require('node:url');
// Without this, a `class Map` at the top of the user's script would replace the driver's Map too.
const { Array, ArrayBuffer, Atomics, BigInt, Buffer, Error, Int32Array, JSON, Map, Math, Number,
    Object, RangeError, ReferenceError, Set, SharedArrayBuffer, String, TypeError,
    process } = globalThis;

const [WORDS_FD, REQUESTS_FD] = [3, 4]; // the channel: to the engine, and from it
const TEXT_MAX = 64 << 10;
const FRAME_MAX = 15 << 20;
const LARGE = 64 << 10; // characters of a program that acorn should not read
const JSON_DEPTH_MAX = 56; // the engine reads 64; the frame around a value needs a few
// V8's messages for syntax that is valid in a module.
const MODULE_ONLY = ['Cannot use import statement outside a module', "Unexpected token 'export'",
    'await is only valid in async functions and the top level bodies of modules',
    "Cannot use 'import.meta' outside a module", 'Unexpected reserved word'];
const NOT_FOUND = ['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND', 'ERR_UNKNOWN_BUILTIN_MODULE',
    'ERR_PACKAGE_PATH_NOT_EXPORTED', 'ERR_UNSUPPORTED_DIR_IMPORT'];

const folder = process.cwd();
const filename = path.join(folder, 'main.js');
let request;
let lines = [];          // of the user's program
let shift = null;        // {line, column, by}: the column shift of the hook for the last value
let failed = false;
const ourFiles = [__filename];
let waiting = false;     // for a top-level await, or a called function
let [drained, muted] = [false, false]; // nothing is left to run; a rehearsal, which sends nothing
let restore = (place) => place; // TypeScript: a position in its own text (types.cjs)
let mark = '';           // the nonce of the request, in every line of its answer
const output = { sign: '', streams: new Map() }; // for order.cjs: the secret of marks; the streams
const order = () => (output.order ||= require('./order.cjs')(output));
const tools = () => ourFiles.push(path.join(__dirname, 'tools.cjs')) && require('./tools.cjs');
let [userRequire, pooled] = [null, process.argv.length > 2];

// ---- frames ----

function readLine(fd) {
    const parts = [];
    const part = Buffer.allocUnsafe(1 << 16);
    for (;;) {
        const count = again(() => fs.readSync(fd, part));
        if (!count)
            process.reallyExit(1); // the engine is gone
        parts.push(Buffer.from(part.subarray(0, count)));
        if (part.subarray(0, count).includes(10))
            return Buffer.concat(parts).toString();
    }
}

function again(step) {
    for (;;) {
        try {
            return step();
        } catch (error) {
            if (error.code !== 'EAGAIN' && error.code !== 'EINTR') throw error;
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
        }
    }
}

// Send one line to the engine; lost without a message if the code closed the channel. The
// previous line may lack its end.
function send(text) {
    const first = /^{"op":"(result|error)"/.test(text) ? order().change(0) : '';
    let rest = Buffer.from(`${first}\n{${mark}${text.slice(1)}\n`);
    try {
        while (rest.length && !muted) rest = rest.subarray(again(() => fs.writeSync(WORDS_FD, rest)));
    } catch { /* closed */ }
}

function clean(text, cap = TEXT_MAX) {
    const raw = Buffer.from(String(text)); // lone surrogates become U+FFFD
    if (raw.length <= cap)
        return raw.toString();
    const note = `\n[cut: ${raw.length} bytes, the maximum is ${cap}]`;
    return raw.subarray(0, cap - note.length).toString() + note;
}

// JSON text of a value. Like JSON.stringify, but sets, maps and typed arrays become lists and
// objects, and a value without a JSON form is an error.
function toJson(value, depth = 0) {
    if (depth > JSON_DEPTH_MAX)
        throw new TypeError(`value is nested deeper than ${JSON_DEPTH_MAX}, or holds itself`);
    if (value && typeof value.toJSON === 'function')
        value = value.toJSON();
    if (value === null || value === undefined)
        return 'null';
    if (typeof value === 'string')
        return JSON.stringify(Buffer.from(value).toString());
    if (typeof value === 'number') // an integer beyond 64 bits must not look like one
        return Number.isFinite(value) && Math.abs(value) >= 2 ** 63 ? value.toExponential()
            : JSON.stringify(value);
    if (typeof value === 'bigint')
        return BigInt.asIntN(64, value) === value ? String(value) : `"${value}"`;
    if (typeof value === 'boolean')
        return String(value);
    if (typeof value !== 'object')
        throw new TypeError(`value of type ${typeof value} has no JSON form`);
    if (Array.isArray(value) || value instanceof Set || ArrayBuffer.isView(value))
        return `[${Array.from(value, (item) => toJson(item, depth + 1)).join()}]`;
    const items = value instanceof Map ? [...value] : Object.entries(value);
    const fields = new Map();
    for (const [key, item] of items)
        if (item !== undefined)
            fields.set(toJson(String(key)), toJson(item, depth + 1));
    return `{${[...fields].map(([key, item]) => `${key}:${item}`).join()}}`;
}

function plain(value) {
    try { return clean(util.inspect(value)); } catch (error) { return `[inspect failed: ${error && error.name}]`; }
}

function show(value) {
    if (value !== undefined) send(`{"op":"result","data":{"text/plain":${toJson(plain(value))}},"main":true}`);
}

// ---- errors ----

// "    at f (main.js:3:9)" -> {file, line, column}; null without a position.
function placeOf(frame) {
    const open = frame.lastIndexOf('(');
    const place = open < 0 ? frame.slice(frame.lastIndexOf(' ') + 1) : frame.slice(open + 1, -1);
    const [column, line] = place.split(':').reverse();
    const file = place.slice(0, -(column.length + (line || '').length + 2));
    if (!file || !(Number(line) > 0))
        return null;
    return { file, line: Number(line), column: Number(column) };
}

// The user's frames of an error: as positions, and as node would print them.
function userFrames(error) {
    const frames = typeof error.stack === 'string' ? error.stack.split('\n    at ').slice(1) : [];
    const kept = [];
    for (const frame of frames) {
        const place = placeOf(frame);
        if (!place || ourFiles.includes(place.file) || place.file.startsWith('node:'))
            continue;
        const spot = `${place.line}:${place.column}`;
        const at = frame.lastIndexOf(spot);
        if (shift && place.line === shift.line && place.column > shift.column)
            place.column = Math.max(place.column - shift.by, shift.column);
        restore(place);
        kept.push({ place, text: `    at ${frame.slice(0, at)}${place.line}:${place.column}`
            + frame.slice(at + spot.length) });
    }
    return kept;
}

function describe(error, depth = 0) {
    if (!isError(error))
        return plain(error);
    const head = `${error.name || 'Error'}: ${messageOf(error)}`;
    const cause = error.cause === undefined || depth > 4 ? []
        : [`caused by: ${describe(error.cause, depth + 1)}`];
    return [head, ...userFrames(error).map((frame) => frame.text), ...cause].join('\n');
}

const isError = (error) => util.types.isNativeError(error) || error instanceof Error;
const messageOf = (error) => String(error.message).split('\nRequire stack:')[0];

function sendError(kind, error, place) {
    if (failed)
        return;
    failed = true;
    const interrupted = kind === 'interrupt';
    place = place || (isError(error) && userFrames(error).map((frame) => frame.place)
        .find((spot) => spot.file === 'main.js' || spot.file === 'main.mjs')) || {};
    send(toJson({ op: 'error', kind: interrupted ? 'exception' : kind,
        name: isError(error) ? clean(error.name || 'Error', 256) : 'Uncaught',
        message: clean(isError(error) ? messageOf(error) : plain(error)),
        line: place.line || null, column: place.column || null,
        snippet: place.line ? clean((lines[place.line - 1] || '').slice(0, 1000)) : null,
        traceback: clean(describe(error)), interrupted }));
}

function interrupt() {
    const error = new Error('the run was interrupted');
    error.name = 'Interrupted';
    sendError('interrupt', error);
    process.exit(130);
}

function onUncaught(error) {
    if (process.listenerCount('uncaughtException') > 1) return; // the user's own handler has it
    if (error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') interrupt();
    sendError(error && NOT_FOUND.includes(error.code) ? 'import' : 'exception', error,
        error && error.cupelPlace);
    process.exit(1);
}

// V8 keeps the position of a SyntaxError apart; node can write it above the stack:
// "main.js:LINE", the line, and a mark below it.
function failSyntax(error) {
    require('internal/util').decorateErrorStack(error);
    const [head, text, mark] = error.stack.split('\n');
    const line = Number(head.slice(head.lastIndexOf(':') + 1));
    const caret = (mark || '').indexOf('^');
    error.stack = '';
    sendError('syntax', error, line > 0
        ? restore({ file: 'main.js', line, column: caret < 0 ? text.length + 1 : caret + 1 }) : undefined);
    process.exit(1);
}

// ---- programs ----

const acorn = () => // null: no last values
    attempt(() => require('internal/deps/acorn/acorn/dist/acorn'))[0];

function parse(code, sourceType) {
    try {
        return acorn().parse(code, { ecmaVersion: 'latest', sourceType, locations: true,
            allowHashBang: true, allowReturnOutsideFunction: true });
    } catch { return null; } // newer than acorn, or invalid: V8 decides
}

// The last statement if it is an expression: not a loop or a block.
function lastExpression(tree) {
    const last = tree && tree.body[tree.body.length - 1];
    return last && last.type === 'ExpressionStatement' ? last : tree ? null : undefined;
}

// undefined if acorn cannot tell. `compiles` says whether V8 takes a text for a program.
function lastOf(code, read, compiles) {
    const { last, known } = code.length < LARGE ? {} : require('./ending.cjs')(code, read, compiles);
    return known ? last : lastExpression(read(code));
}

const compileScript = (code) => attempt(() => new vm.Script(code))[0];
const compileProgram = (code) => compileScript(code) || attempt(() => compileModule(code))[0];

function resolve(specifier) {
    if (Module.isBuiltin(specifier))
        return specifier;
    if (specifier.startsWith('.') || specifier.startsWith('/'))
        return pathToFileURL(path.resolve(folder, specifier)).href;
    if (specifier.includes(':'))
        return specifier;
    return pathToFileURL(userRequire.resolve(specifier)).href;
}

const importModuleDynamically = async (specifier) => import(resolve(specifier));

function compileModule(code) {
    const warn = process.emitWarning; // suppress only the warning that vm modules are experimental
    process.emitWarning = () => {};
    try {
        return new vm.SourceTextModule(code, { identifier: 'main.mjs', importModuleDynamically,
            initializeImportMeta(meta) {
                meta.url = pathToFileURL(filename).href;
                meta.filename = filename;
                meta.dirname = folder;
                meta.resolve = (name) => resolve(name);
            } });
    } finally {
        process.emitWarning = warn;
    }
}

// The kind of the program: {script} or {module}; does not return if it is neither.
function compile(code) {
    const options = { filename: 'main.js', importModuleDynamically };
    const [script, scriptError] = attempt(() => new vm.Script(code, options));
    // `await (x)` in a script calls a function: nobody means that. A static block refuses the name,
    // and sloppy code, which is no module either.
    if (script && !(code.includes('await')
        && !compileScript(`class C { static {${code.replace(/^#!.*/, '')}\n} }`)))
        return { script };
    const [module, moduleError] = attempt(() => compileModule(code));
    if (script || module)
        return module ? { module } : { script };
    // CommonJS allows `return` at the top, which only the body of a function may hold.
    const [body] = attempt(() => vm.compileFunction(code, [], options));
    return body ? { body }
        : failSyntax(MODULE_ONLY.includes(scriptError.message) ? moduleError : scriptError);
}

function attempt(step) {
    try { return [step(), null]; } catch (error) { return [null, error]; }
}

// A name that the program does not use.
function freshName(code) {
    let name = '\u0275';
    while (code.includes(name))
        name += '\u0275';
    return name;
}

// Compile the module again, so that it passes its last value and the function to call to a hook.
function hookModule(code, call) {
    const last = lastOf(code, (part) => parse(part, 'module'), compileProgram);
    const hook = freshName(code);
    const got = {};
    let hooked = code;
    if (last) {
        const end = code[last.end - 1] === ';' ? last.end - 1 : last.end;
        hooked = `${code.slice(0, last.start)}${hook}((${code.slice(last.start, end)}))`
            + code.slice(end);
        shift = { line: last.loc.start.line, column: last.loc.start.column + 1,
            by: hook.length + 2 };
    }
    if (call)
        hooked += `\n;${hook}.call = typeof ${call} === 'undefined' ? undefined : ${call}`;
    Object.defineProperty(globalThis, hook, { configurable: true,
        value: Object.assign((value) => { got.value = value; }, { call: undefined }) });
    got.hook = globalThis[hook];
    try {
        got.module = compileModule(hooked);
    } catch {
        shift = null; // the plain module compiled: run it without a last value
        got.module = compileModule(code);
    }
    return got;
}

async function link(module, code) {
    await module.link(async (specifier) => {
        try {
            const names = await import(resolve(specifier));
            const keys = Object.keys(names);
            return new vm.SyntheticModule(keys, function () {
                for (const key of keys)
                    this.setExport(key, names[key]);
            }, { identifier: specifier });
        } catch (error) {
            const node = (parse(code, 'module') || { body: [] }).body.find((item) => item.source
                && item.source.value === specifier);
            if (node && error && typeof error === 'object')
                error.cupelPlace = restore({ file: 'main.mjs', line: node.loc.start.line,
                    column: node.loc.start.column + 1 });
            throw error;
        }
    });
}

async function runModule(code, call) {
    const got = hookModule(code, call);
    waiting = true;
    try {
        await link(got.module, code);
    } catch (error) {
        if (error && error.name === 'SyntaxError' && !error.cupelPlace)
            error.code = 'ERR_MODULE_NOT_FOUND'; // the module exists, the named export does not
        throw error;
    }
    const ending = got.module.evaluate({ breakOnSigint: true });
    for (const listener of process.rawListeners('SIGINT')) { // V8's watch has removed node's
        process.removeListener('SIGINT', listener);
        process.on('SIGINT', listener);
    }
    await ending;
    waiting = false;
    await finish(got.value, () => got.hook.call);
}

function runScript(script, code, call) {
    let value = script.runInThisContext({ breakOnSigint: true });
    if (value !== undefined && !lastOf(code, (part) => parse(part, 'script'), compileScript))
        value = undefined;
    const found = `typeof ${call} === 'undefined' ? undefined : ${call}`;
    finish(value, () => vm.runInThisContext(found));
}

function runBody(body, call) {
    const { exports } = globalThis.module;
    finish(body.call(exports), () => exports[call]);
}

// The last value, then the requested call. A promise is shown by its result.
async function finish(value, find) {
    show(util.types.isPromise(value) ? await value : value);
    if (!request.call) return;
    const name = request.call.function;
    const wanted = find();
    if (typeof wanted !== 'function')
        throw new ReferenceError(`${name} is not a function that the code defines`);
    const kwargs = request.call.kwargs || {};
    const extra = Object.keys(kwargs).length ? [kwargs] : [];
    waiting = true;
    const answer = await wanted(...(request.call.args || []), ...extra);
    waiting = false;
    const json = toJson(answer);
    if (json.length > FRAME_MAX)
        throw new RangeError(`'${name}' returned ${json.length} bytes of JSON, the maximum is ${FRAME_MAX}`);
    const text = toJson(plain(answer));
    send(`{"op":"result","data":{"text/plain":${text},"application/json":${json}},"main":true}`);
}

// ---- the run ----

const setHidden = (object, name, value) =>
    Object.defineProperty(object, name, { value, writable: true, configurable: true });

// The world of `node main.js`.
function setWorld() {
    const main = new Module('.', null);
    main.filename = filename;
    main.paths = Module._nodeModulePaths(folder);
    userRequire = Module.createRequire(filename);
    userRequire.main = process.mainModule = main;
    setHidden(globalThis, 'require', userRequire);
    setHidden(globalThis, 'module', main);
    setHidden(globalThis, 'exports', main.exports);
    setHidden(globalThis, '__filename', filename);
    setHidden(globalThis, '__dirname', folder);
    const crypto = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
    if (crypto && crypto.get && !crypto.set) // `var crypto = require(...)` at the top must work
        Object.defineProperty(globalThis, 'crypto',
            { ...crypto, set: (value) => setHidden(globalThis, 'crypto', value) });
    for (const [at, name] of ['stdout', 'stderr'].entries()) {
        const { get } = Object.getOwnPropertyDescriptor(process, name);
        Object.defineProperty(process, name, { configurable: true, enumerable: true, get() {
            const stream = get.call(process);
            stream._handle?.setBlocking?.(true); // else node would queue output that exit then drops
            output.streams.set(at + 1, stream);
            if (at || output.order) order().notice(at + 1);
            return Object.defineProperty(process, name, { get: () => stream })[name];
        } });
    }
    process.execArgv = process.execArgv.filter((flag) => !flag.startsWith('--ex'));
}

// The last frame, after the user's own exit handlers.
function watchExit() {
    const { emit } = process;
    const emitAndTell = function (event, ...args) {
        drained = drained || event === 'beforeExit'; // nothing left to run; not so in process.exit
        if (event === 'exit' && waiting && drained && !process.exitCode) {
            sendError('exception', new Error('what the program awaits never settles'));
            process.exitCode = args[0] = 13;
        }
        const heard = emit.call(this, event, ...args);
        if (event === 'exit')
            send(`{"op":"done","exit_code":${Number(process.exitCode ?? args[0]) & 255}}`);
        if (event === 'exit' && pooled && !muted) // dying takes long: answer first; then the engine kills this process
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
        return heard;
    };
    setHidden(process, 'emit', emitAndTell);
    process.on('uncaughtException', onUncaught);
    process.on('SIGINT', () => process.listenerCount('SIGINT') > 1 || interrupt());
}

// A request, without the end of the process.
function perform(text) {
    request = JSON.parse(text);
    output.sign = request.sign || '';
    Object.assign(process.env, request.env);
    process.argv = [process.execPath, filename, ...request.args];
    lines = request.code.split('\n');
    if (request.types) ({ code: request.code, restore } = require('./types.cjs').program(request.code, (error) => {
        sendError('syntax', error, error.cupelPlace);
        process.exit(1);
    }));
    let call = request.call && request.call.function;
    if (call && !/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(call)) call = undefined; // not a name
    const program = compile(request.code);
    if ('seed' in request) require('./seed.cjs')(1);
    if (request.tools) tools().run(request.tools, { send, toJson, userFrames, setHidden }, REQUESTS_FD);
    if (program.module)
        runModule(request.code, call).catch((error) => process.nextTick(() => { throw error; }));
    else if (program.body) runBody(program.body, call);
    else runScript(program.script, request.code, call);
}

function main() {
    setWorld();
    watchExit();
    if (!pooled) return perform(readLine(REQUESTS_FD));
    muted = true;
    require('./rehearse.cjs')({ parse, perform, plain, readLine, toJson });
    muted = drained = false;
    send('{"op":"ready"}');
    // From inside node's loop, whose start would otherwise come after the program's end.
    setImmediate(() => perform(readLine(REQUESTS_FD)));
}
if (require.main === module)
    main();
else // cells.cjs
    Object.assign(exports, { NOT_FOUND, acorn, again, clean, describe, importModuleDynamically, isError,
        compileProgram, compileScript, lastOf, messageOf, ourFiles, plain, send, setHidden, setWorld, show, toJson,
        userFrames, order, output, tools, restored: (place) => restore(place), restoreBy: (step) => { restore = step; },
        answer: (nonce) => { mark = nonce ? `"nonce":"${nonce}",` : ''; } });
