// The last expression of a large program, for driver.cjs and cells.cjs. acorn finds it in a small
// one, but needs seconds for a megabyte. V8 compiles a megabyte in milliseconds, but tells no
// positions. So this looks for a line where a statement begins, near the end or the start of the
// program, and V8 compiles the text before it. Runs as the occupant.
//
// 1. V8 compiles the text before the line, so the line is in no comment, string or brackets.
// 2. The line begins with something that cannot continue a statement, or follows a semicolon.
'use strict';

const LINES_MAX = 40;
const PART_MAX = 64 << 10;
const NEVER_CONTINUES = /^(?:[\p{ID_Start}$_'"\d~{]|!(?!=))/u;
const DECLARES = /^(?:\{|(?:async|class|function|let)\b)/; // in brackets it would be an expression
const EXPORTS = /^export\s*\{[^{}]*\};?$/;

// Without blanks and lines of comment (a source map's name) at the end.
function endOf(code) {
    let end = code.trimEnd().length;
    for (let line; (line = code.lastIndexOf('\n', end - 1) + 1) && code.startsWith('//', line);)
        end = code.slice(0, line).trimEnd().length;
    return end;
}

// Positions of the last lines, from the end, or of the first ones.
function* lineStarts(code, end, fromEnd) {
    for (let at = fromEnd ? end : 0, count = 0; count < LINES_MAX; count++) {
        const start = fromEnd ? code.lastIndexOf('\n', at - 1) + 1 : at;
        if (start >= end || (fromEnd ? end - start : start) > PART_MAX)
            return;
        yield start + code.slice(start, end).search(/\S/);
        at = fromEnd ? start - 1 : code.indexOf('\n', start) + 1;
        if (at <= 0)
            return;
    }
}

// {known, last}: the last statement if it is an expression, as acorn describes it, else null.
// `read` is acorn; `compiles` says whether V8 takes a text for a program.
module.exports = (code, read, compiles) => {
    const begins = (before, after) => !before || (NEVER_CONTINUES.test(after) && !/\blet$/.test(before))
        || (before.endsWith(';') && !compiles(`${before}\u0001`)); // it compiles in a comment
    const found = (start, { start: from, end: to, loc }) => {
        const lines = code.slice(0, start).split('\n');
        const column = loc.start.column + (loc.start.line === 1 ? lines.at(-1).length : 0);
        return { known: true, last: { start: start + from, end: start + to,
            loc: { start: { line: lines.length + loc.start.line - 1, column } } } };
    };
    const end = endOf(code);
    for (const start of lineStarts(code, end, true)) {
        const [before, after] = [code.slice(0, start).trimEnd(), code.slice(start, end)];
        const last = EXPORTS.test(after) ? { type: 'Export' } : (read(after) || { body: [] }).body.at(-1);
        if (last && begins(before, after) && compiles(before))
            return last.type === 'ExpressionStatement' ? found(start, last) : { known: true, last: null };
    }
    for (const start of lineStarts(code, end, false)) {
        const before = code.slice(0, start).trimEnd();
        const after = code.slice(start, end).replace(/;$/, '');
        if (!DECLARES.test(after) && begins(before, after) && compiles(before)
            && compiles(`async () => (${after}\n)`))
            return found(start, { start: 0, end: after.length, loc: { start: { line: 1, column: 0 } } });
    }
    return { known: false };
};
