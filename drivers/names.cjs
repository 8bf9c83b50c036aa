// The names of a JavaScript session, a cell's changes to them, and completions (PROTOCOL.md).
// Part of cells.cjs; runs as the occupant.
//
// It calls no getter, proxy or inspection method of the code on purpose; where V8 might still run
// the code's own functions, a time limit interrupts it.
'use strict';

const util = require('node:util');
const { Array, Buffer, JSON, Map, Math, Number, Object, Reflect, Set, String, WeakMap } = globalThis;

const [ENTRIES_MAX, LOOKED_AT_MAX, NAME_MAX, TEXT_MAX, ITEMS_MAX, MATCHES_MAX] = [200, 5000, 200, 80, 64, 100];
const [PATIENCE_MS, LOSSES_MAX] = [200, 4];
const INSPECT = { depth: 1, customInspect: false, getters: false, showProxy: true, maxArrayLength: 6,
    maxStringLength: TEXT_MAX, breakLength: Infinity, compact: true };
const { entries: mapEntries } = Map.prototype;
const { values: setValues } = Set.prototype;

let tools;                     // of cells.cjs
const world = new Set();       // globals before the first cell
const ids = new WeakMap();     // of objects, to recognize them without keeping them alive
let idCount = 0;

function idOf(value) {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function'))
        return typeof value === 'bigint' || typeof value === 'symbol' ? String(value) : value;
    if (!ids.has(value))
        ids.set(value, `#${idCount += 1}`);
    return ids.get(value);
}

function some(iterator) {
    const found = [];
    for (let step = iterator.next(); !step.done && found.length < ITEMS_MAX; step = iterator.next())
        found.push(...(Array.isArray(step.value) ? step.value.slice(0, 2) : [step.value]).map(idOf));
    return found;
}

// Some of the content, without calling a getter.
function inside(value) {
    if (value === null || typeof value !== 'object' || util.types.isProxy(value))
        return [];
    if (util.types.isMap(value) || util.types.isSet(value))
        return [value.size, ...some(util.types.isMap(value) ? mapEntries.call(value) : setValues.call(value))];
    if (util.types.isTypedArray(value))
        return [value.length, value.slice(0, ITEMS_MAX).join()];
    const keys = Array.isArray(value) ? [...Array(Math.min(value.length, ITEMS_MAX)).keys()].map(String)
        : Reflect.ownKeys(value).filter((key) => typeof key === 'string').slice(0, ITEMS_MAX);
    return [value.length, keys.join(), ...keys.map((key) =>
        idOf((Object.getOwnPropertyDescriptor(value, key) || {}).value))];
}

const mark = (value) => JSON.stringify([typeof value, idOf(value), inside(value)].map(
    (part) => (Number.isNaN(part) || part === Infinity ? String(part) : part)));

// The code's names with their values; a declared name without a value is undefined.
function userNames() {
    const lexical = tools.declared();
    const own = Object.getOwnPropertyNames(globalThis).filter((name) => !world.has(name));
    const names = [...new Set([...lexical, ...own])].filter((name) => !name.startsWith('_')
        && name.length <= NAME_MAX && name !== tools.hidden);
    const plain = new Set(lexical);
    const thunks = tools.look(names.slice(0, LOOKED_AT_MAX).filter((name) => plain.has(name)));
    const found = new Map();
    let at = 0;
    for (const name of names.slice(0, LOOKED_AT_MAX)) {
        let value;
        try {
            value = plain.has(name) ? thunks[at++]()
                : (Object.getOwnPropertyDescriptor(globalThis, name) || {}).value;
        } catch { /* its declaration failed */ }
        found.set(name, value);
    }
    return { found, more: Math.max(names.length - LOOKED_AT_MAX, 0) };
}

// Within the time limit: a value that exceeds it is described without looking inside.
function bounded(step, instead) {
    try {
        return tools.runScript(step, { timeout: PATIENCE_MS });
    } catch { return instead; }
}

function marks() {
    const { found } = userNames();
    const made = new Map();
    bounded(() => found.forEach((value, name) => made.set(name, mark(value))));
    return made;
}

const typeName = (value) => {
    if (value === null || typeof value !== 'object' || util.types.isProxy(value))
        return value === null ? 'null' : typeof value === 'object' ? 'Proxy' : typeof value;
    const maker = (Object.getOwnPropertyDescriptor(Object.getPrototypeOf(value) || {}, 'constructor') || {}).value;
    const name = typeof maker === 'function' && (Object.getOwnPropertyDescriptor(maker, 'name') || {}).value;
    return typeof name === 'string' && name ? tools.driver.clean(name.slice(0, NAME_MAX)) : 'Object';
};

function describe(name, value) {
    const entry = { name: tools.driver.clean(name), type: typeName(value), text: '' };
    entry.text = tools.driver.clean(util.inspect(value, INSPECT).replace(/\s*\n\s*/g, ' ').slice(0, TEXT_MAX));
    const length = Array.isArray(value) || util.types.isTypedArray(value) || typeof value === 'string'
        ? value.length : util.types.isMap(value) || util.types.isSet(value) ? value.size : undefined;
    if (typeof length === 'number')
        entry.length = length;
    if (util.types.isTypedArray(value) || util.types.isAnyArrayBuffer(value))
        entry.size_bytes = value.byteLength;
    else if (typeof value === 'string')
        entry.size_bytes = Buffer.byteLength(value);
    return entry;
}

// All under one time limit, because each limit costs a thread. A value that uses up the time has
// no text, and after several of those the others have none either.
function describeAll(items) {
    const entries = [];
    for (let losses = 0; entries.length < items.length; losses++) {
        const whole = losses < LOSSES_MAX && bounded(() => {
            while (entries.length < items.length)
                entries.push(describe(...items[entries.length]));
            return true;
        }, false);
        if (!whole)
            entries.push({ name: tools.driver.clean(items[entries.length][0]), type: '?', text: '' });
    }
    return entries;
}

function changes(before) {
    const { found, more } = userNames();
    const after = marks();
    const lists = { added: [], changed: [], removed: [] };
    let room = ENTRIES_MAX;
    let left = more;
    const add = (word, name) => (room-- > 0 ? lists[word].push([name, found.get(name)]) : left++);
    for (const name of found.keys()) {
        if (!before.has(name))
            add('added', name);
        else if (after.has(name) && before.get(name) !== after.get(name))
            add('changed', name);
    }
    for (const name of before.keys())
        if (!found.has(name) && !more)
            add('removed', name);
    return { added: describeAll(lists.added), changed: describeAll(lists.changed),
        removed: lists.removed.map(([name]) => ({ name: tools.driver.clean(name) })),
        ...(left ? { more: left } : {}) };
}

function list() {
    const { found, more } = userNames();
    const names = describeAll([...found].slice(0, ENTRIES_MAX));
    const left = more + found.size - names.length;
    return { op: 'names', names, ...(left ? { more: left } : {}) };
}

// ---- completion ----

function members(value) {
    const found = new Map();
    for (let object = Object(value); object && !util.types.isProxy(object); object = Object.getPrototypeOf(object))
        for (const name of Object.getOwnPropertyNames(object))
            if (!found.has(name))
                found.set(name, (Object.getOwnPropertyDescriptor(object, name) || {}).value);
    return found;
}

function candidates(path) {
    const names = new Map([...members(globalThis), ...userNames().found]);
    let found = names;
    for (const name of path) {
        if (found.get(name) === undefined || found.get(name) === null)
            return [];
        found = members(found.get(name));
    }
    return [...found.keys()];
}

function complete({ code, cursor }) {
    const [text] = /[\p{ID_Continue}$.]*$/u.exec(code.slice(0, Math.max(cursor, 0)));
    const path = text.split('.');
    const prefix = path.pop();
    const matches = bounded(() => candidates(path), []).filter((name) => name.startsWith(prefix)
        && name.length <= NAME_MAX && name !== tools.hidden).sort().slice(0, MATCHES_MAX);
    return { op: 'complete', matches: matches.map((name) => tools.driver.clean(name)),
        start: Math.min(cursor, code.length) - prefix.length };
}

function use(given) {
    tools = given;
    Object.getOwnPropertyNames(globalThis).forEach((name) => world.add(name));
}

module.exports = { changes, complete, list, marks, use };
