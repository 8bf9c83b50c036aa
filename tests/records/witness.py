"""A second reader of STATE/store.db, which shares no code with cupel, and clients that keep what they were answered:
every acknowledged run must be in the store, with the result that its client got."""
import contextlib
import hashlib
import json
import sqlite3
import threading

import wild
from wild import expect, settled


class Store:
    """Reads the database beside a live service; never writes. Its own view of what must hold."""

    def __init__(self, state):
        self.state = state
        self.db = sqlite3.connect(f"file:{state}/store.db?mode=ro", uri=True, timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.db.close()

    def rows(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def count(self, sql, *values):
        return self.rows(sql, *values)[0][0]

    def content(self, sha256):
        """Its bytes, which must have that sum."""
        found = self.rows("SELECT size_bytes, bytes FROM contents WHERE sha256 = ?", sha256)
        assert found, f"content {sha256} is missing"
        size, data = found[0]
        if data is None:
            data = (self.state / "contents" / sha256[:2] / sha256[2:]).read_bytes()
        assert len(data) == size and hashlib.sha256(data).hexdigest() == sha256, sha256
        return data

    def ends(self):
        """{run: (number, status, result JSON or None)}; status "started" where there is no end."""
        found = {}
        for n, run, status, text, sha in self.rows(
                "SELECT s.n, s.run, e.status, e.result, e.result_sha256 FROM starts s LEFT JOIN ends e ON e.n = s.n"):
            found[run] = (n, status or "started", text, sha)
        return found

    def result(self, row):
        _, _, text, sha = row
        return json.loads(self.content(sha) if sha else text)

    def check_whole(self, told, live=False):
        """Nothing corrupt, nothing dangling; without runs under way no start lacks its end."""
        assert self.rows("PRAGMA integrity_check") == [("ok",)], told
        lost = self.rows("SELECT u.n, u.kind, u.path, u.sha256 FROM uses u WHERE u.n IN (SELECT n FROM ends) AND "
                         "NOT EXISTS (SELECT 1 FROM contents c WHERE c.sha256 = u.sha256)")
        assert not lost, (told, lost[:5])
        for sha, in self.rows("SELECT sha256 FROM contents"):
            self.content(sha)
        ended_twice = self.count("SELECT count(*) FROM ends WHERE n NOT IN (SELECT n FROM starts)")
        assert not ended_twice, told
        if not live:
            open_ = self.rows("SELECT run FROM starts WHERE n NOT IN (SELECT n FROM ends)")
            assert not open_, (told, open_[:5])

    def orphans(self):
        """Files of contents that no row names."""
        known = {sha for sha, in self.rows("SELECT sha256 FROM contents WHERE bytes IS NULL")}
        folder = self.state / "contents"
        there = {path.parent.name + path.name for path in folder.glob("*/*")} if folder.exists() else set()
        return there - known


class Witness:
    """What clients were told. Each kind of work keeps the whole result."""

    def __init__(self):
        self.seen, self.lock, self.number = [], threading.Lock(), 0

    def next(self):
        with self.lock:
            self.number += 1
            return self.number

    def keep(self, result, stdout, files=()):
        """A run that was answered; `stdout` is what it prints if it is not disturbed."""
        word = settled(result, stdout)
        with self.lock:
            self.seen.append((result, dict(files)))
        return word

    def square(self, caller, _):
        n = self.next()
        result = expect(caller.run(f"print({n}*{n})", limits={"timeout_s": 30}), 200)
        return self.keep(result, f"{n * n}\n")

    def long_output(self, caller, _):
        n = self.next()
        result = expect(caller.run(f"print('{n} ' * 8000)", limits={"timeout_s": 30}), 200)
        return self.keep(result, f"{n} " * 8000 + "\n")

    def artifact(self, caller, _):
        n = self.next()
        code = f"open('small', 'w').write('{n}')\nopen('large', 'w').write('{n},' * 9000)"
        result = expect(caller.run(code, limits={"timeout_s": 30}), 200)
        return self.keep(result, "", {"small": str(n).encode(), "large": (f"{n}," * 9000).encode()})

    def with_input(self, caller, _):
        n = self.next()
        files = [{"path": "in", "text": f"{n}\n" * 5000}]
        result = expect(caller.run("print(len(open('in').read()))", files=files, limits={"timeout_s": 30}), 200)
        return self.keep(result, f"{len(str(n)) * 5000 + 5000}\n")

    def cells(self, caller, _):
        made = expect(caller.ask("POST", "/v1/sessions", {"limits": {"timeout_s": 30}}), 201)
        path, n = f"/v1/sessions/{made['session']}", self.next()
        try:
            word = self.keep(expect(caller.ask("POST", path + "/run", {"code": f"x = {n}"}), 200), "")
            if word == "ok":
                second = expect(caller.ask("POST", path + "/run", {"code": "print(x * x)"}), 200)
                if second["status"] == "error":  # the state was lost meanwhile
                    self.seen.append((second, {}))
                    return "state lost"
                word = self.keep(second, f"{n * n}\n")
            return word
        finally:
            with contextlib.suppress(*wild.GONE):
                caller.ask("DELETE", path)

    def kinds(self):
        return [self.square, self.long_output, self.artifact, self.square, self.with_input, self.cells]

    def check(self, store, told, only=None):
        """Each acknowledged run is stored as it was acknowledged. `only`: of these runs."""
        ends = store.ends()
        for result, files in self.seen:
            if only is not None and result["run"] not in only:
                continue
            row = ends.get(result["run"])
            assert row, (told, "an acknowledged run is not in the store", result["run"], result["status"])
            if not result["recorded"]:  # its client was told that its end may be missing
                continue
            assert row[1] == result["status"], (told, row[:2], result)
            kept = store.result(row)
            for name in ("status", "exit_code", "stdout", "stderr", "error", "results", "session", "cell"):
                assert kept[name] == result[name], (told, name, kept[name], result[name])
            if result["status"] == "ok" and files:
                stored = {path: sha for path, sha in store.rows(
                    "SELECT path, sha256 FROM uses WHERE n = ? AND kind = 'artifact'", row[0])}
                got = {bytes(path).decode(): store.content(sha) for path, sha in stored.items()}
                assert got == files, (told, result["run"], {path: len(data) for path, data in got.items()})
        return len(self.seen)
