// The start of the clock of a seeded run (src/box/seed/seed.c). Runs as the occupant; driver.cjs and
// cells.cjs load it if the request has a seed. Math.random has its seed from node's command line.
'use strict';

const fs = require('node:fs');
const { BigInt, Buffer, Date, Error } = globalThis;

const PAGE = '/dev/shm/.cupel-clock';
// Node counts a timer from before the code that set it began: time waited for timers is rounded to this.
const TIMER_STEP_NS = 500000000n;
const [START_MS, MONTH_MS] = [1735689600000, 30 * 86400000]; // 2025-01-01T00:00:00Z
let checked = false;

// The code's first look at the clock comes next.
module.exports = (cell) => {
    const now = checked ? START_MS : Date.now();
    if (!(now >= START_MS && now < START_MS + MONTH_MS))
        throw new Error('the clock of this box cannot be fixed: its programs do not load seed.so');
    checked = true;
    try {
        const [page, words] = [fs.openSync(PAGE, 'r+'), Buffer.alloc(16)];
        words.writeBigInt64LE(BigInt(cell));
        words.writeBigInt64LE(TIMER_STEP_NS, 8);
        fs.writeSync(page, words, 0, 16, 0);
        fs.closeSync(page);
    } catch { /* the code removed it: the clock goes on */ }
};
