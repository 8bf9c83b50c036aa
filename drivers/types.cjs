// TypeScript: turns a program or a cell into JavaScript inside the box, and the positions of
// errors back. driver.cjs and cells.cjs load it for a request with "types" (PROTOCOL.md).
//
// node itself blanks types where it can (22.13 and later): nothing moves then. Syntax that needs
// code (enum, parameter properties), and an older node, take Debian's esbuild, or else TypeScript's own
// compiler, and the source map that comes with the code. Types are removed, never checked.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const Module = require('node:module');
const { Array, Buffer, JSON, Map, Number, SyntaxError } = globalThis;

const ESBUILD = '/usr/bin/esbuild';
const COMPILER = '/usr/share/nodejs/typescript/lib/typescript.js';
const OUTPUT_MAX = 64 << 20;
const MAPS_MAX = 1000; // of the last cells
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

const maps = new Map(); // file: for each line of the JavaScript [[column, line, column], ...], from 0

// The numbers of one segment of a source map: base 64, five bits a digit, the sign in the lowest bit.
function decode(segment) {
    const numbers = [];
    let value = 0;
    let shift = 0;
    for (const digit of segment) {
        const bits = DIGITS.indexOf(digit);
        value += (bits & 31) * 2 ** shift;
        shift += 5;
        if (bits & 32)
            continue;
        numbers.push(value % 2 ? -(value - 1) / 2 : value / 2);
        value = shift = 0;
    }
    return numbers;
}

function readMap(map) {
    let [line, column] = [0, 0];
    return map.mappings.split(';').map((text) => {
        let from = 0;
        return text.split(',').filter((segment) => segment).map((segment) => {
            const [moved, , lines, columns] = decode(segment);
            from += moved;
            line += lines || 0;
            column += columns || 0;
            return [from, line, column];
        });
    });
}

// Replace a position in JavaScript by the one in TypeScript.
function restore(place) {
    const rows = maps.get(place.file);
    const row = rows && rows[place.line - 1];
    let found = null;
    for (const mapped of row || [])
        if (mapped[0] < place.column)
            found = mapped;
    if (!found)
        return place;
    place.line = found[1] + 1;
    place.column = found[2] + place.column - found[0];
    return place;
}

function refuse(message, line, column) {
    const error = new SyntaxError(message);
    error.stack = '';
    error.cupelPlace = line > 0 ? { line, column } : undefined;
    throw error;
}

// ---- the three ways; each returns {code, map}, or null if it is not here ----

function byNode(code, keep) {
    if (typeof Module.stripTypeScriptTypes !== 'function')
        return null;
    const warn = process.emitWarning; // suppress only the warning that it is experimental
    process.emitWarning = () => {};
    try {
        return { code: Module.stripTypeScriptTypes(code, { mode: 'strip' }), map: null };
    } catch (error) {
        if (error.code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
            return byEsbuild(code, keep) || byCompiler(code, keep) || transform(code);
        return refuse(...placeOf(error));
    } finally {
        process.emitWarning = warn;
    }
}

// Message, line and column of node's own error: its text has a frame ",-[2:1]" with the line and a mark below it, or,
// in later versions, its stack begins with "FILE:2", the line and the mark.
function placeOf(error) {
    const text = String(error.message);
    const framed = /\[(\d+):\d+\]/.exec(text);
    const rows = (framed ? text : String(error.stack)).split('\n');
    const mark = rows.find((row) => /^[ :]*\^/.test(row));
    const line = Number(framed ? framed[1] : (/:(\d+)$/.exec(rows[0]) || [])[1]);
    const before = framed ? rows.find((row) => row.includes(' | ')) : null;
    const margin = before ? before.indexOf('| ') + 2 : 0;
    return [text.split('\n').map((row) => row.trim()).find((row) => row).replace(/^x /, ''), line,
        mark ? mark.indexOf('^') - margin + 1 : null];
}

function transform(code) {
    return takeInline(Module.stripTypeScriptTypes(code, { mode: 'transform', sourceMap: true }));
}

function takeInline(text) {
    const at = text.lastIndexOf('\n//# sourceMappingURL=');
    const base64 = text.slice(text.indexOf('base64,', at) + 7).trim();
    return { code: text.slice(0, at), map: JSON.parse(Buffer.from(base64, 'base64').toString()) };
}

function byEsbuild(code, keep) {
    if (!fs.existsSync(ESBUILD))
        return null;
    const options = JSON.stringify({ compilerOptions: { preserveValueImports: keep } });
    const done = spawnSync(ESBUILD, ['--loader=ts', '--sourcemap=inline', '--sources-content=false', '--charset=utf8',
        '--target=esnext', '--color=false', `--tsconfig-raw=${options}`], { input: code, maxBuffer: OUTPUT_MAX,
        env: { GOMAXPROCS: '1' } });
    if (done.status === 0)
        return takeInline(done.stdout.toString());
    const said = String(done.stderr || done.error);
    const [, message] = /\[ERROR\] (.*)/.exec(said) || [null, said.slice(0, 500)];
    const [, line, bytes] = /<stdin>:(\d+):(\d+)/.exec(said) || [];
    const text = Buffer.from(code.split('\n')[line - 1] || '');
    return refuse(message, Number(line), text.subarray(0, Number(bytes)).toString().length + 1);
}

function byCompiler(code, keep) {
    if (!fs.existsSync(COMPILER))
        return null;
    const compiler = require(COMPILER);
    const { ScriptTarget, ModuleKind } = compiler;
    const done = compiler.transpileModule(code, { reportDiagnostics: true, fileName: 'main.ts', compilerOptions: {
        target: ScriptTarget.ESNext, module: ModuleKind.ESNext, sourceMap: true, preserveValueImports: keep } });
    const problem = done.diagnostics.find(({ start }) => start !== undefined);
    if (problem) {
        const before = code.slice(0, problem.start).split('\n');
        refuse(compiler.flattenDiagnosticMessageText(problem.messageText, '\n'), before.length,
            before[before.length - 1].length + 1);
    }
    const at = done.outputText.lastIndexOf('\n//# sourceMappingURL=');
    return { code: at < 0 ? done.outputText : done.outputText.slice(0, at), map: JSON.parse(done.sourceMapText) };
}

// The JavaScript of a program; `keep` unused imports, which later cells may use.
function translate(code, files, keep) {
    const done = byNode(code, keep) || byEsbuild(code, keep) || byCompiler(code, keep);
    if (!done)
        refuse('TypeScript is not installed: apt-get install esbuild on the host');
    for (const file of done.map ? files : [])
        maps.set(file, readMap(done.map));
    for (const file of Array.from(maps.keys()).slice(0, -MAPS_MAX))
        maps.delete(file);
    return done.code;
}

// A whole program; `fail` does not return.
function program(code, fail) {
    try {
        return { code: translate(code, ['main.js', 'main.mjs'], false), restore };
    } catch (error) { return fail(error); }
}

Object.assign(exports, { program, restore, translate });
