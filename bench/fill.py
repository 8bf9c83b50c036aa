"""Fills a state folder with records, as copies of those that a server wrote: their starts and ends, which are all that
a run writes on its path. The server brings its catalog and its words up to date by itself."""
import contextlib
import sqlite3
import time

STEP_MS = 100  # between two runs
OWN = {"n": ":base + k.i", "run": "'r_' || lower(hex(randomblob(12)))", "at_ms": ":from_ms + k.i * :step_ms"}
NUMBERS = "WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < :count)"


def copy(db, table, values):
    """Row i is a copy of the template i modulo their number, with a number, a name and a time of its own."""
    names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    columns = ", ".join(OWN.get(name, f"t.{name}") for name in names)
    db.execute(f"{NUMBERS} INSERT INTO {table} ({', '.join(names)}) SELECT {columns} FROM k "
               f"JOIN template m ON m.rank = k.i % :templates JOIN {table} t ON t.n = m.n", values)


def fill(path, count):
    """So many records more in the database, whose server is not running."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TEMP TABLE template AS SELECT n, row_number() OVER (ORDER BY n) - 1 AS rank FROM ends "
                   "WHERE n NOT IN (SELECT n FROM uses)")
        templates, = db.execute("SELECT count(*) FROM template").fetchone()
        if not templates:
            raise SystemExit("no record to copy")
        base, = db.execute("SELECT max(n) FROM starts").fetchone()
        values = {"base": base, "count": count, "templates": templates, "step_ms": STEP_MS,
                  "from_ms": int(time.time() * 1000) - (count + 1) * STEP_MS}
        copy(db, "starts", values)
        copy(db, "ends", values)
