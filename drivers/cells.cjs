// The cells of a JavaScript session, with the functions of driver.cjs (PROTOCOL.md). Runs as the
// occupant: node --expose-internals --experimental-vm-modules cells.cjs
//
// V8 itself evaluates a cell in its mode for prompts (the inspector's replMode): let, const and
// class persist and may be declared again, await works at the top, the last value is kept. This
// thread asks its own inspector, which answers with names for values; it calls `hook` with them
// to get the values. node's own acorn rewrites what a prompt cannot hold: import declarations,
// export, and import() (which needs a hook here).
//
// The session lives in node's event loop: timers and servers continue between cells. A cell is
// over when its code and everything that it awaits are over; later failures are reported with the
// next cell, on stderr.
'use strict';

const fs = require('node:fs');
const inspector = require('node:inspector');
const net = require('node:net');
const os = require('node:os');
const util = require('node:util');
const vm = require('node:vm');
const driver = require('./driver.cjs');
const names = require('./names.cjs');
const { Atomics, Buffer, Error, Int32Array, JSON, Math, Number, Object, Promise, SharedArrayBuffer, process,
    setImmediate } = globalThis;

const REQUESTS_FD = 4;
const LATE_MAX = 64 << 10;     // maximum text of failures between cells
const FRAME_MAX = 15 << 20;
const WATCH_MS = 20;           // for V8's watch to tell of an interrupt that came before
const IMPORT = '\u03b9mport';  // as long as `import`, so that columns stay; nobody writes it
const KEY = 'cupel \u03b9';      // the global name of a step during the step

const session = new inspector.Session();
let hook;                      // the inspector's name of the function below
let got;                       // the value that it delivered
let cell = null;               // {number, code, end}: the running cell
let exiting = null;            // an Exit: the cell called process.exit
let late = '';                 // failures between cells
let args = [];
let program;                   // the name in process.argv
let stdin = null;
let tools = null;              // the module, since the first line that had tools
let lastValue;                 // `_`, until the code uses the name itself
const realExit = process.exit;

// ---- evaluation ----

const post = (method, params) => new Promise((resolve, reject) => session.post(method, params,
    (error, answer) => (error ? reject(error) : resolve(answer))));

function postNow(method, params) { // for answers that V8 gives before it returns
    let answer = null;
    session.post(method, params, (error, found) => { answer = error ? null : found; });
    return answer;
}

// The value behind the inspector's name.
function bring(remote) {
    const argument = remote.objectId ? { objectId: remote.objectId }
        : remote.unserializableValue ? { unserializableValue: remote.unserializableValue }
            : remote.type === 'undefined' ? {} : { value: remote.value };
    got = undefined;
    postNow('Runtime.callFunctionOn', { objectId: hook, arguments: [argument],
        functionDeclaration: 'function (value) { this(value); }' });
    const value = got;
    got = undefined;
    return value;
}

const inScript = new vm.Script(`this[${JSON.stringify(KEY)}]()`, { filename: __filename });

// Run a step as its own script, which V8 can interrupt: at SIGINT, or after some time.
function runScript(step, options) {
    Object.defineProperty(globalThis, KEY, { configurable: true, value: step });
    try {
        return inScript.runInThisContext(options);
    } finally {
        delete globalThis[KEY];
    }
}

// Functions that read these names in scope when called.
function look(names) {
    const answer = postNow('Runtime.evaluate', { silent: true, objectGroup: 'cupel',
        expression: `[${names.map((name) => `() => ${name}`).join()}]` });
    return answer && !answer.exceptionDetails ? bring(answer.result) : [];
}

// ---- the code ----

function parse(code) {
    try {
        return driver.acorn().parse(code, { ecmaVersion: 'latest', sourceType: 'script', locations: true,
            allowHashBang: true, allowAwaitOutsideFunction: true, allowImportExportEverywhere: true });
    } catch { return null; } // V8 decides what is valid
}

function importAsConst(node) {
    const load = node.source ? `await ${IMPORT}(${JSON.stringify(node.source.value)})` : '';
    const whole = (node.specifiers || []).find((item) => item.type === 'ImportNamespaceSpecifier');
    const parts = (node.specifiers || []).filter((item) => item !== whole && item.local && item.imported !== null
        && item.type.startsWith('Import')).map((item) => (item.imported
        ? `${item.imported.name ? item.imported.name : JSON.stringify(item.imported.value)}: ${item.local.name}`
        : `default: ${item.local.name}`));
    if (whole && parts.length)
        return `const ${whole.local.name} = ${load}, { ${parts.join(', ')} } = ${whole.local.name};`;
    if (whole)
        return `const ${whole.local.name} = ${load};`;
    return parts.length ? `const { ${parts.join(', ')} } = ${load};` : `${load};`;
}

// The replacement of an export: only the declaration, with blanks before it.
function withoutExport(node, code) {
    const inner = node.declaration;
    if (!inner)
        return importAsConst(node);
    const named = node.type === 'ExportNamedDeclaration' || inner.id;
    const head = code.slice(node.start, inner.start);
    return (named ? head.replace(/[^\n]/g, ' ') : `void${head.slice(4).replace(/[^\n]/g, ' ')}`)
        + code.slice(inner.start, node.end);
}

// [start, end, text] of each rewriting, in order.
function rewritings(tree, code) {
    const found = [];
    const nodes = [tree];
    for (const node of nodes) {
        const { type } = node;
        if (type === 'ImportExpression')
            found.push([node.start, node.start + 'import'.length, IMPORT]);
        else if (type === 'ImportDeclaration')
            found.push([node.start, node.end, importAsConst(node)]);
        else if (/^Export/.test(type))
            found.push([node.start, node.end, withoutExport(node, code)]);
        if (!/^(Import|Export).*Declaration$/.test(type))
            for (const part of Object.values(node))
                if (part && typeof part === 'object' && part !== node.loc)
                    nodes.push(part);
    }
    return found.sort((a, b) => a[0] - b[0]);
}

// A script holds neither import declarations nor export.
function rewrite(code) {
    const tree = /\bimport\s*\(/.test(code) || (/\b(im|ex)port\b/.test(code) && !driver.compileScript(code))
        ? parse(code) : null;
    let text = '';
    let from = 0;
    for (const [start, end, instead] of tree ? rewritings(tree, code) : []) {
        const lost = code.slice(start, end).split('\n').length - instead.split('\n').length;
        text += code.slice(from, start) + instead + '\n'.repeat(Math.max(lost, 0));
        from = end;
    }
    return text + code.slice(from);
}

// ---- a cell ----

// Put the text over fd 0, in an unnamed file; process.stdin starts anew.
function putStdin(text) {
    let path = '/dev/null';
    if (text) {
        path = `${os.tmpdir()}/.cupel-stdin-${process.pid}`;
        fs.writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
    }
    if (stdin)
        stdin.destroy();
    stdin = null;
    try { fs.closeSync(0); } catch { /* the code closed it */ }
    fs.openSync(path, 'r'); // the lowest free number
    if (text)
        fs.unlinkSync(path);
}

function sendError(kind, error, place) {
    const [file, lines] = [`<cell-${cell.number}>`, cell.code.split('\n')];
    place = place || (driver.isError(error) && driver.userFrames(error).map((frame) => frame.place)
        .find((spot) => spot.file === file)) || {};
    const interrupted = kind === 'interrupt';
    driver.send(driver.toJson({ op: 'error', kind: interrupted ? 'exception' : kind,
        name: driver.isError(error) ? driver.clean(error.name || 'Error', 256) : 'Uncaught',
        message: driver.clean(driver.isError(error) ? driver.messageOf(error) : driver.plain(error)),
        line: place.line || null, column: place.column || null,
        snippet: place.line ? driver.clean((lines[place.line - 1] || '').slice(0, 1000)) : null,
        traceback: driver.clean(driver.describe(error)), interrupted }));
}

function failure(error) {
    if (error instanceof Exit)
        return error.code;
    if (error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED')
        return interrupted();
    sendError(error && driver.NOT_FOUND.includes(error.code) ? 'import' : 'exception', error);
    return 1;
}

function interrupted() {
    const error = new Error('the cell was interrupted');
    error.name = 'Interrupted';
    sendError('interrupt', error);
    return 130;
}

// V8 found no program in it: nothing has run.
function failSyntax(details, error) {
    const lines = cell.code.split('\n');
    const line = Math.min(details.lineNumber + 1, lines.length);
    const column = details.lineNumber < lines.length ? details.columnNumber + 1 : lines[line - 1].length + 1;
    if (driver.isError(error))
        error.stack = '';
    sendError('syntax', error, driver.restored({ file: `<cell-${cell.number}>`, line, column }));
    return 1;
}

// The error is in the text of the cell, which has not run; not in a text that the cell itself
// parses.
const isSyntax = ({ scriptId, exception }, error) => scriptId && exception.className === 'SyntaxError'
    && !driver.userFrames(error).some(({ place }) => place.file.startsWith('<cell-'));

const evaluateText = (text, number) => runScript(() => post('Runtime.evaluate', { replMode: true,
    objectGroup: 'cupel', expression: `${text}\n//# sourceURL=<cell-${number}>` }), { breakOnSigint: true });

// V8 accepts a name again only as its old kind: rewrite the refused declaration to that kind.
function redeclare(text, name) {
    const kind = Object.hasOwn(globalThis, name) ? 'var  ' : 'let  ';
    for (const node of (parse(text) || { body: [] }).body)
        if (node.type === 'VariableDeclaration' && node.declarations.some(({ id }) =>
            text.slice(id.start, id.end).split(/[^\p{ID_Continue}$]+/u).includes(name)))
            text = text.slice(0, node.start) + kind.slice(0, node.kind.length)
                + text.slice(node.start + node.kind.length);
    return text;
}

// A cell of TypeScript becomes one of JavaScript; false: it does not parse.
function toJavaScript(request) {
    const types = require('./types.cjs');
    driver.restoreBy(types.restore);
    try {
        request.code = types.translate(request.code, [`<cell-${request.cell}>`], true);
        return true;
    } catch (error) {
        sendError('syntax', error, error.cupelPlace);
        return false;
    }
}

async function evaluate(request, mine) {
    begin(request);
    if (request.types && !toJavaScript(request))
        return 1;
    let answer;
    for (let text = rewrite(request.code), last; text !== last;) {
        answer = await evaluateText(last = text, request.cell);
        const refused = answer.exceptionDetails
            && /^SyntaxError: Identifier '(.+)' has already been declared/.exec(answer.result.description);
        text = refused ? redeclare(text, refused[1]) : text;
    }
    if (answer.exceptionDetails) {
        const error = bring(answer.exceptionDetails.exception);
        if (mine === cell && isSyntax(answer.exceptionDetails, error))
            return failSyntax(answer.exceptionDetails, error);
        throw error;
    }
    let value = bring(answer.result);
    if (value !== undefined && driver.lastOf(request.code, parse, driver.compileProgram) === null)
        value = undefined;
    if (util.types.isPromise(value))
        value = await value;
    if (mine !== cell) // it was left meanwhile
        return 0;
    driver.show(value);
    if (value !== undefined)
        lastValue = value;
    return request.call ? call(request.call) : 0;
}

async function call({ function: name, args: given, kwargs }) {
    const [found] = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name)
        ? look([`typeof ${name} === 'function' ? ${name} : undefined`]) : [];
    const wanted = found && found();
    if (!wanted)
        throw new globalThis.ReferenceError(`${name} is not a function that the code defines`);
    const answer = await wanted(...(given || []), ...(Object.keys(kwargs || {}).length ? [kwargs] : []));
    const [text, json] = [driver.toJson(driver.plain(answer)), driver.toJson(answer)];
    if (json.length > FRAME_MAX)
        throw new Error(`'${name}' returned ${json.length} bytes of JSON, the maximum is ${FRAME_MAX}`);
    driver.send(`{"op":"result","data":{"text/plain":${text},"application/json":${json}},"main":true}`);
    return 0;
}

// Interrupts that were meant for the last cell. Node tells its listeners of one after the line that
// woke it, and of one that came while V8's watch ended at the start of the next watch: that is here.
async function forgetInterrupts() {
    await new Promise((resolve) => setImmediate(resolve));
    try {
        runScript(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WATCH_MS), { breakOnSigint: true });
    } catch { /* there was one */ }
}

async function perform(request) {
    if (request.hush)
        await forgetInterrupts();
    const before = request.names ? names.marks() : null;
    const code = await new Promise((resolve) => {
        const mine = cell = { number: request.cell, code: request.code, end: resolve };
        driver.output.sign = request.sign || '';
        driver.order().begin(request.cell, () => evaluate(request, mine))
            .catch((error) => (mine === cell ? failure(error) : onUncaught(error)))
            .then((code) => setImmediate(() => mine === cell && leave(code)));
    });
    const status = exiting ? exiting.code : Number(process.exitCode || code) & 255;
    exiting = null;
    await (tools && tools.end());
    process.exitCode = undefined;
    driver.output.sign = ''; // later output has no place in a cell's order
    postNow('Runtime.releaseObjectGroup', { objectGroup: 'cupel' });
    const changes = before ? `,"names":${driver.toJson(names.changes(before))}` : '';
    driver.send(`{"op":"done","exit_code":${status}${changes}}`);
}

// The cell is over: its later effects belong to no cell.
function leave(code) {
    const { end } = cell;
    cell = null;
    driver.order().leave();
    end(code);
}

function begin(request) {
    watch();
    putStdin(request.stdin);
    if (late)
        process.stderr.write(late);
    late = '';
    Object.assign(process.env, request.env);
    if (JSON.stringify(args) !== JSON.stringify(request.args || []))
        process.argv = [process.execPath, program, ...request.args];
    args = request.args || [];
    if ('seed' in request) require('./seed.cjs')(request.cell);
    if (request.tools)
        (tools ||= driver.tools()).begin(request.tools, driver, () => [`<cell-${request.cell}>`]);
}

// ---- events outside a cell's own flow ----

class Exit {
    constructor(code) { this.code = code; }
}

// exit cannot return: it throws, so that `finally` and `catch` see it.
function exit(code) {
    const leaving = new Exit(Number(code ?? process.exitCode ?? 0) & 255);
    exiting = cell ? exiting || leaving : null;
    throw leaving;
}

// An uncaught failure ends the cell, unless it clearly comes from an earlier one.
function onUncaught(error) {
    if (error instanceof Exit && !cell || tools && tools.isOver(error)) // no cell to end
        return;
    if (process.listenerCount('uncaughtException') > 1)
        return; // the code's own handler has it
    const places = driver.isError(error) ? driver.userFrames(error).map(({ place }) => place.file) : [];
    if (cell && (error instanceof Exit || !places.length || places.includes(`<cell-${cell.number}>`)))
        return leave(failure(error));
    const text = `Uncaught from an earlier cell: ${driver.describe(error)}\n`;
    if (cell)
        process.stderr.write(driver.clean(text));
    else
        late = driver.clean(late + text, LATE_MAX);
}

function onInterrupt() {
    if (process.listenerCount('SIGINT') === 1 && cell)
        leave(interrupted());
}

// The code may have removed the listeners.
function watch() {
    for (const [event, listener] of [['uncaughtException', onUncaught], ['SIGINT', onInterrupt]])
        if (!process.listeners(event).includes(listener))
            process.on(event, listener);
}

// ---- the session ----

const ops = { cell: perform, names: () => driver.send(driver.toJson(names.list())),
    complete: (request) => driver.send(driver.toJson(names.complete(request))),
    end: () => realExit.call(process) };

// Serve lines as they arrive, each answered before the next.
function serve() {
    const channel = new net.Socket({ fd: REQUESTS_FD, readable: true, writable: false });
    let parts = [];
    let turn = Promise.resolve();
    channel.on('data', (part) => {
        for (let at; (at = part.indexOf(10)) >= 0; part = part.subarray(at + 1)) {
            const line = Buffer.concat([...parts, part.subarray(0, at)]);
            parts = [];
            const request = tools ? tools.take(line) : JSON.parse(line.toString());
            if (request && Object.hasOwn(ops, request.op))
                turn = turn.then(() => { driver.answer(request.nonce); return ops[request.op](request); });
        }
        parts.push(part);
    });
    channel.on('end', () => { turn = turn.then(() => ops.end()); });
    channel.on('error', () => ops.end());
}

function main() {
    driver.setWorld();
    driver.ourFiles.push(__filename, 'evalmachine.<anonymous>');
    program = globalThis.__filename;
    process.argv = [process.execPath, program];
    process.exit = exit;
    Object.defineProperty(process, 'stdin', { configurable: true, enumerable: true,
        get: () => (stdin = stdin || new fs.ReadStream(null, { fd: 0, autoClose: false })) });
    driver.setHidden(globalThis, IMPORT, (name) => driver.importModuleDynamically(name));
    Object.defineProperty(globalThis, '_', { configurable: true, get: () => lastValue,
        set: (value) => Object.defineProperty(globalThis, '_',
            { configurable: true, enumerable: true, writable: true, value }) });
    names.use({ driver, look, runScript, hidden: IMPORT,
        declared: () => (postNow('Runtime.globalLexicalScopeNames', {}) || { names: [] }).names });
    session.connect();
    Object.defineProperty(globalThis, KEY, { configurable: true, value: (value) => { got = value; } });
    hook = postNow('Runtime.evaluate', { expression: `this[${JSON.stringify(KEY)}]` }).result.objectId;
    delete globalThis[KEY];
    watch();
    driver.send('{"op":"ready"}');
    serve();
}
main();
