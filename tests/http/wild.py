"""A service of a test's own, which the test may kill, starve or flood; and clients of it that keep what they see:
a right answer, a clear error, or a connection that ended. Sockets and no library of ours."""
import contextlib
import copy
import http.client
import json
import os
import re
import resource
import socket
import threading
import time

import host
from watched import Watched

ANSWER_S = 60


class Service(Watched):
    """`cupel serve --listen 127.0.0.1:0`, with a token."""

    def __init__(self, cupel, path, args=(), token=None, **more):
        super().__init__(cupel, path, ["--listen", "127.0.0.1:0", *args], **more)
        self.token = token

    def __enter__(self):
        self.token = self.token or self.new_token("load")
        super().__enter__()
        assert host.wait_until(lambda: self.find_port() is not None, 20), self.told()
        self.port = self.find_port()
        return self

    def find_port(self):
        found = re.search(r"127\.0\.0\.1:(\d+)", self.told())
        return int(found[1]) if found else None

    def new_token(self, name, *args):
        done = self.cupel.run(["token", "new", *args, f"{name}-{time.monotonic_ns()}"], env=self.env)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def caller(self, **more):
        return Caller(self.port, more.pop("token", self.token), **more)

    def rss_kib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s*(\d+)", file.read())[1])

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def with_files(cupel, most):
    """The same cupel, which may open so many files."""
    def popen(args, **options):
        return cupel.popen(args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)), **options)
    one = copy.copy(cupel)
    one.popen = popen
    return one


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def error(self):
        """The error of a refusal, which must be one."""
        error = self.json()["error"]
        assert error["kind"] and error["message"], error
        return error

    def __repr__(self):
        return f"<{self.status} {self.body[:400]!r}>"


class Caller:
    """One connection on keep-alive."""

    def __init__(self, port, token, timeout=ANSWER_S):
        self.token, self.link = token, http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.close()

    def start(self, method, path, body=None, headers=()):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        self.link.request(method, path, body, {"Authorization": f"Bearer {self.token}",
                                               **({"Content-Type": "application/json"} if body else {}),
                                               **dict(headers)})
        return self.link.getresponse()

    def ask(self, method, path, body=None, headers=()):
        response = self.start(method, path, body, headers)
        return Answer(response.status, response.headers, response.read())

    def run(self, code, **fields):
        return self.ask("POST", "/v1/run", {"code": code, **fields})

    def begin(self, code, **fields):
        """The id of a run that nobody waits for."""
        said = self.ask("POST", "/v1/run", {"code": code, "wait": False, **fields})
        assert said.status == 202, said
        return said.json()["run"]

    def session(self, **fields):
        said = self.ask("POST", "/v1/sessions", fields)
        assert said.status == 201, said
        return said.json()["session"]

    def follow(self, run, since=1):
        """The events of a run as they come, from one on; ends with `end`, or with an error of the connection."""
        response = self.start("GET", f"/v1/runs/{run}/events?from={since}", headers={"Accept": "application/x-ndjson"})
        if response.status != 200:
            raise Refused(Answer(response.status, response.headers, response.read()))
        while True:
            line = response.readline()
            if not line.endswith(b"\n"):
                raise ConnectionError("the stream was cut")
            event = json.loads(line)
            yield event
            if event["event"] == "end":
                response.read()
                return


class Refused(Exception):
    """An answer that is no success."""


GONE = (ConnectionError, http.client.HTTPException, EOFError, OSError)


class Client(threading.Thread):
    """Asks for one kind of work after another until it is told to stop. `faults` are wrong answers; errors that the
    service explained and connections that ended are counted."""

    def __init__(self, service, number, kinds):
        super().__init__(daemon=True)
        self.service, self.number, self.kinds = service, number, kinds
        self.stop, self.faults, self.ends = threading.Event(), [], {}

    def count(self, what):
        self.ends[what] = self.ends.get(what, 0) + 1

    def run(self):
        turn = 0
        while not self.stop.is_set():
            turn += 1
            work = self.kinds[(self.number + turn) % len(self.kinds)]
            try:
                with self.service.caller() as caller:
                    self.count(work(caller, f"{self.number}.{turn}"))
            except socket.timeout as hang:
                self.faults.append(f"{work.__name__} in turn {turn} was never answered: {hang}")
                return
            except Refused as refusal:
                self.judge(work, refusal.args[0])
            except GONE as end:
                self.count("gone: " + type(end).__name__)
                if self.service.process.poll() is not None or self.stop.wait(0.02):
                    return
            except Exception as wrong:
                self.faults.append(f"{work.__name__} in turn {turn}: {wrong!r}")
                return

    def judge(self, work, answer):
        """An error must be one of those that a service in trouble may give, with words."""
        try:
            error = answer.error()
        except (ValueError, KeyError, TypeError, AssertionError):
            self.faults.append(f"{work.__name__}: no error of ours: {answer!r}")
            return
        if answer.status >= 500 or answer.status in (404, 409, 429) or error["kind"] in ("cancelled", "busy"):
            self.count(f"{answer.status} {error['kind']}")
        else:
            self.faults.append(f"{work.__name__}: refused: {answer!r}")


def expect(answer, *statuses):
    if answer.status not in statuses:
        raise Refused(answer)
    return answer.json() if answer.body else None


DISTURBED = ("internal", "killed", "interrupted")  # how runs end whose processes are shot


def settled(result, stdout):
    """The word for how a run ended: its answer must be right, or say what happened."""
    if result["status"] == "ok":
        assert result["stdout"] == stdout, result
        return "ok"
    assert result["status"] in DISTURBED and result["error"]["message"], result
    return result["status"]


def plain_run(caller, word):
    result = expect(caller.run(f"print('{word}')", limits={"timeout_s": 30}), 200)
    return settled(result, word + "\n")


def slept_run(caller, word):
    result = expect(caller.run(f"import time\ntime.sleep(0.05)\nprint('{word}')", limits={"timeout_s": 30}), 200)
    return settled(result, word + "\n")


def stream(caller, word):
    """A stream that is cut is taken up again, from the event after the last one that came."""
    code = f"import time\nfor i in range(6):\n    print('{word}', i, flush=True)\n    time.sleep(0.02)"
    said = expect(caller.ask("POST", "/v1/run", {"code": code, "wait": False, "limits": {"timeout_s": 30}}), 202)
    seen, text, ends = 0, "", "ok"
    for _ in range(3):
        try:
            with Caller(caller.link.port, caller.token) as other:
                for event in other.follow(said["run"], seen + 1):
                    if "seq" in event and event["event"] != "ping":
                        assert event["seq"] == seen + 1, (event, seen)
                        seen = event["seq"]
                    text += event.get("text", "") if event["event"] == "stdout" else ""
                break
        except socket.timeout:
            raise
        except GONE:
            ends = "resumed"
    else:
        raise ConnectionError("three streams were cut")
    if "result" in event and event["result"]["status"] == "ok":
        assert text == event["result"]["stdout"] == "".join(f"{word} {i}\n" for i in range(6)), (text, event)
        return ends
    why = event.get("error") or event["result"]["error"]
    assert why["message"], event
    return "stream told: " + why["kind"]


def session(caller, word):
    """A value and a file that stay; what is told lost may be gone."""
    made = expect(caller.ask("POST", "/v1/sessions", {"limits": {"timeout_s": 30}}), 201)
    path = f"/v1/sessions/{made['session']}"
    try:
        first = expect(caller.ask("POST", path + "/run", {"code": f"x = '{word}'"}), 200)
        if first["status"] != "ok":
            return settled(first, "")
        expect(caller.ask("PUT", path + "/files/a.txt", word.encode()), 200, 201, 204)
        second = expect(caller.ask("POST", path + "/run", {"code": "print(x, open('a.txt').read())"}), 200)
        if second["status"] == "error":  # the state was lost meanwhile, and the cell before it was told
            assert second["error"]["name"] in ("NameError", "FileNotFoundError"), second
            return "state lost"
        return settled(second, f"{word} {word}\n")
    finally:
        with contextlib.suppress(*GONE):
            caller.ask("DELETE", path)


def upload(caller, word):
    made = expect(caller.ask("POST", "/v1/sessions", {"limits": {"timeout_s": 30}}), 201)
    path = f"/v1/sessions/{made['session']}"
    data = (word * 300000)[:3 << 20].encode()
    try:
        expect(caller.ask("PUT", path + "/files/big.bin", data), 200, 201, 204)
        got = caller.ask("GET", path + "/files/big.bin")
        if got.status != 200:
            raise Refused(got)
        assert got.body == data, f"{len(got.body)} bytes of {len(data)} came back"
        return "ok"
    finally:
        with contextlib.suppress(*GONE):
            caller.ask("DELETE", path)


def look(caller, _):
    """What needs no box."""
    expect(caller.ask("GET", "/v1/health"), 200, 503)
    expect(caller.ask("GET", "/v1/languages"), 200)
    expect(caller.ask("GET", "/v1/sessions"), 200)
    missing = caller.ask("GET", "/v1/runs/r_" + "0" * 24)
    assert missing.status == 404 and missing.error()["kind"] == "absent", missing
    return "ok"


KINDS = [plain_run, stream, session, upload, slept_run, look]


def start_clients(service, count, kinds=None):
    clients = [Client(service, number, kinds or KINDS) for number in range(count)]
    for one in clients:
        one.start()
    return clients


def stop_clients(clients, told):
    """{how they ended: how often}; no client hangs, none saw a wrong answer."""
    for one in clients:
        one.stop.set()
    ends = {}
    for one in clients:
        one.join(timeout=2 * ANSWER_S)
        assert not one.is_alive(), f"{told}: a client hangs"
        assert not one.faults, (told, one.faults[:3])
        for what, times in one.ends.items():
            ends[what] = ends.get(what, 0) + times
    return ends
