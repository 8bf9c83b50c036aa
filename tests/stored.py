"""Looks into STATE/store.db from outside, as a test may: the events of a task as they are stored."""
import contextlib
import json
import sqlite3
from pathlib import Path


def rows(state, query, *values):
    database = sqlite3.connect(Path(state) / "store.db", timeout=30)
    try:
        return database.execute(query, values).fetchall()
    finally:
        database.close()


def change(state, query, *values):
    database = sqlite3.connect(Path(state) / "store.db", timeout=30)
    try:
        with database:
            return database.execute(query, values).rowcount
    finally:
        database.close()


@contextlib.contextmanager
def held(state):
    """Nobody else can write."""
    database = sqlite3.connect(Path(state) / "store.db", timeout=30, isolation_level=None)
    try:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("ROLLBACK")
    finally:
        database.close()


def events(state, task):
    """[{"kind", "data"}] of a task, in order."""
    found = rows(state, "SELECT e.kind, e.data FROM task_events e JOIN tasks t ON t.n = e.task WHERE t.id = ? "
                        "ORDER BY e.seq", task)
    return [{"kind": kind, "data": json.loads(data)} for kind, data in found]
