"""Records written by a test's hand into the store of a state folder: starts and ends as the engine writes them, for
texts and numbers of records that no engine would make in reasonable time. The program makes the tables itself."""
import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
import time

RESULT = {
    "schema": 1, "run": "", "status": "ok", "exit_code": 0, "signal": None, "limits_hit": [], "stdout": "",
    "stderr": "", "stdout_bytes": 0, "stderr_bytes": 0, "truncated": False, "results": [], "text": None, "outputs": [],
    "error": None, "denied": [], "artifacts": [], "skipped": [], "session": None, "cell": None, "state": "none",
    "metrics": {"queue_ms": 0, "start_ms": 1, "wall_ms": 12.5, "collect_ms": 0, "cpu_ms": 10,
                "memory_peak_bytes": 4423680, "warm": True},
    "isolation": {"tier": "native", "image": "host", "walls": ["user_namespace", "landlock"], "missing": []},
    "network": [],
    "provenance": {"code_sha256": "", "inputs_sha256": "0" * 64, "image_digest": "sha256:" + "1" * 64,
                   "limits": {"timeout_s": 5, "cpu_s": 6, "memory_bytes": 536870912, "disk_bytes": 209715200,
                              "pids": 64, "cpus": 1, "input_bytes": 67108864, "stdout_bytes": 65536,
                              "stderr_bytes": 65536, "artifact_bytes": 5242880, "artifact_files": 64},
                   "seed": None, "engine": "cupel 0.1.0"},
    "cached": False, "cached_age_s": None}


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


class Store:
    """`call` starts cupel runs with the state folder `state`."""

    def __init__(self, state, call):
        self.state, self.n, self.rows = state, 0, {"starts": [], "ends": [], "uses": [], "contents": [], "acts": []}
        call("ls")  # makes the folder for the right uid
        self.path = state / "store.db"
        self.path.touch(mode=0o600)
        owner = state.stat()
        os.chown(self.path, owner.st_uid, owner.st_gid)
        call("ls")  # makes the tables
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            db.execute("INSERT INTO engines VALUES (1, 'hand', '0.1.0', 0, 0)")

    def insert(self, table, **values):
        self.rows[table].append(values)

    def content(self, data):
        if not any(row["sha256"] == sum_of(data) for row in self.rows["contents"]):
            self.insert("contents", sha256=sum_of(data), size_bytes=len(data), bytes=data)
        return sum_of(data)

    def use(self, kind, path, data, mime=None):
        self.insert("uses", n=self.n, kind=kind, path=path, sha256=self.content(data), size_bytes=len(data), mime=mime,
                    readonly=0)

    def add(self, code="1 + 1", language="python", status="ok", ago_s=60, owner="", task=None, step=None, session=None,
            cell=None, stdout="", stderr="", artifacts=(), request=None, redacted=0, wall_ms=12.5, ends=True, **result):
        """A run; further members replace those of its result. Returns its id."""
        self.n += 1
        run, at_ms = "r_" + secrets.token_hex(12), int((time.time() - ago_s) * 1000)
        given = {"language": language, "files": [], "args": [], "env": {}, "stdin": None, **(request or {})}
        self.insert("starts", n=self.n, run=run, engine=1, at_ms=at_ms, owner=owner, door="cli", task=task, step=step,
                    replay_of=None, session=session, language=language, code_sha256=sum_of(code.encode()),
                    redacted=redacted, bytes=len(code), code=code, request=json.dumps(given))
        made = {**RESULT, "run": run, "status": status, "session": session, "cell": cell, "stdout": stdout,
                "stderr": stderr, "stdout_bytes": len(stdout.encode()), "stderr_bytes": len(stderr.encode()), **result}
        made["metrics"] = {**RESULT["metrics"], "wall_ms": wall_ms}
        made["provenance"] = {**RESULT["provenance"], "code_sha256": sum_of(code.encode())}
        made["outputs"] = result.get("outputs") or [
            *({"type": name, "text": text} for name, text in (("stdout", stdout), ("stderr", stderr)) if text),
            *({"type": "result", "index": i, "main": True} for i, _ in enumerate(made["results"])),
            *([{"type": "error", "kind": made["error"]["kind"], "name": made["error"].get("name"),
                "message": made["error"]["message"]}] if made["error"] else [])]
        for path, data in artifacts:
            self.use("artifact", path, data, "text/plain")
        made["artifacts"] = [{"path": path.decode(errors="replace"), "size_bytes": len(data), "sha256": sum_of(data),
                              "mime": "text/plain"} for path, data in artifacts]
        if ends:
            self.insert("ends", n=self.n, at_ms=at_ms + int(wall_ms), status=status, exit_code=made["exit_code"],
                        wall_ms=wall_ms, cpu_ms=10, memory_peak_bytes=4423680, cell=cell, artifacts=len(artifacts),
                        redacted=0, bytes=len(json.dumps(made)), result=json.dumps(made), result_sha256=None,
                        brief=None, error=None)
        return run

    def act(self, kind, session, **detail):
        """An act on a session after the runs so far."""
        self.insert("acts", engine=1, at_ms=int(time.time() * 1000), after_n=self.n, session=session, owner="",
                    kind=kind, detail=json.dumps(detail), redacted=0)

    def write(self):
        """All that was added. As root SQLite gives its files to the owner of the database."""
        with contextlib.closing(sqlite3.connect(self.path)) as db, db:
            for table, rows in self.rows.items():
                for row in rows:
                    db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                               [*row.values()])
                rows.clear()
