"""`cupel serve` as a service: its options and notes, TLS, reload, drain, --status and --stop. Each test has a server
of its own: they change or end it."""
import http.client
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import time

import pytest

import engine
import host

START_S = 60
TOKEN = {}


class Serving:
    """`cupel serve` with any arguments; what it says, line by line."""

    def __init__(self, cupel, place, *args, env=None, config=None):
        self.cupel, self.env = cupel, {**(env or {})}
        self.path = str(engine.socket_path(place, cupel))
        self.folder = place.fresh("serving", 0o755, cupel.uid if cupel.switch else None)
        self.config = self.folder / "config.json"
        self.write(config or {})
        self.args = ["serve", "--socket", self.path, "--config", self.config, *args]
        self.seen = ""

    def write(self, config):
        """Completely or not at all, as an editor does."""
        text = config if isinstance(config, str) else json.dumps(config)
        (self.folder / "new").write_text(text)
        (self.folder / "new").rename(self.config)

    def __enter__(self):
        self.process = self.cupel.popen(self.args, env=self.env)
        self.wait_for("profile '")
        self.url = next(word for word in self.seen.split() if word.startswith("http"))
        self.address = self.url.split("//")[1].rsplit(":", 1)[0].strip("[]"), int(self.url.rsplit(":", 1)[1])
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.read(START_S)
            self.process.wait(START_S)
        finally:
            self.process.kill()
            self.process.communicate()

    def read(self, seconds):
        """More of what it says; False at its end."""
        ready, _, _ = select.select([self.process.stderr], [], [], seconds)
        part = os.read(self.process.stderr.fileno(), 1 << 16) if ready else b"\0"
        self.seen += part.decode().strip("\0")
        return bool(part)

    def wait_for(self, text):
        until = time.monotonic() + START_S * host.slowness()
        while text not in self.seen:
            assert time.monotonic() < until, f"waited for {text!r}, it said:\n{self.seen}"
            if not self.read(1):
                raise AssertionError(f"it ended before it said {text!r}:\n{self.seen}")

    def log(self, event):
        """The last line of that event."""
        self.wait_for(f'"event":"{event}"')
        lines = [json.loads(line) for line in self.seen.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event][-1]

    def reload(self, config=None, event="reload"):
        if config is not None:
            self.write(config)
        self.seen = ""
        self.process.send_signal(signal.SIGHUP)
        return self.log(event)

    def token(self):
        name = f"t{os.getpid()}"
        if (self.cupel.who, name) not in TOKEN:
            done = self.cupel.run(["token", "new", name])
            assert done.returncode == 0, done.stderr
            TOKEN[self.cupel.who, name] = done.stdout.strip()
        return TOKEN[self.cupel.who, name]

    def ask(self, method, path, body=None, headers=(), tls=None):
        kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
        connection = kind(*self.address, timeout=60, **({"context": tls} if tls else {}))
        try:
            headers = {"Authorization": f"Bearer {self.token()}", **dict(headers)}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def run(self, **request):
        return self.ask("POST", "/v1/run", request)

    def status(self):
        done = self.cupel.run(["serve", "--socket", self.path, "--status", "--json"])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def serving(cupel_as, place, left_behind):
    def make(*args, **more):
        return Serving(cupel_as, place, *(args or ("--listen", "127.0.0.1:0")), **more)
    return make


def certificate(folder, name):
    """A self-signed one for localhost, whose text differs from every other."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


# What it says.

def test_a_start_says_all_that_a_first_request_needs(serving):
    with serving() as one:
        assert f"ready on {one.path}\n" in one.seen and f"ready on {one.url}\n" in one.seen
        assert "CUPEL_TOKEN=$(cupel token new NAME)" in one.seen
        line = next(row for row in one.seen.splitlines() if "a first request: " in row).split("request: ")[1]
        done = subprocess.run(["sh", "-c", line + " -sS"], capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "CUPEL_TOKEN": one.token()})
        assert json.loads(done.stdout)["stdout"] == "42\n", done.stderr
        missing = one.run(code="1")[1]["isolation"]["missing"]
        said = next(row for row in one.seen.splitlines() if "profile 'baseline' is" in row)
        assert ("fully enforced: every wall stands" in said) == (missing == [])
        assert all(name in said for name in missing)


def test_a_quiet_start_says_nothing(cupel, place):
    path = engine.socket_path(place, cupel)
    child = cupel.popen(["serve", "-q", "--socket", path, "--listen", "127.0.0.1:0"])

    def is_up():
        return cupel.run(["serve", "--status", "--socket", path]).returncode == 0
    assert host.wait_until(is_up, START_S)
    child.send_signal(signal.SIGTERM)
    assert child.communicate(timeout=START_S) == (b"", b"") and child.returncode == 0


@pytest.mark.parametrize("args,word", [
    (["--listen", "0.0.0.0:0"], "--insecure-http"),
    (["--listen", "127.0.0.1:0", "--listen", "[::]:0"], "reverse proxy"),
    (["--listen", "127.0.0.1"], "port 0 picks a free one"),
    (["--listen", "example.org:80"], "not an address"),
    (["--listen", "127.0.0.1:0", "--tls-cert", "/nonexistent"], "TLS needs both"),
    (["--listen", "127.0.0.1:0", "--tls-cert", "/nonexistent", "--tls-key", "/nonexistent"], "No such file"),
    (["--listen", "127.0.0.1:0", "--tls-cert", "/etc/passwd", "--tls-key", "/etc/passwd"], "no certificate in PEM"),
    (["--listen", "127.0.0.1:0", "--host", "a b"], "not a name of a host"),
    (["--listen", "127.0.0.1:0", "--origin", "*"], "not an origin"),
    (["--listen", "127.0.0.1:0", "--config", "/nonexistent"], "No such file"),
    (["--fd", "3", "--listen", "127.0.0.1:0"], "cannot be combined"),
    (["--status", "--stop"], "cannot be combined"),
    (["--json"], "needs '--status'"),
], ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else None)
def test_what_must_not_be_served_is_refused_with_the_fix(cupel, place, args, word):
    done = cupel.run(["serve", "--socket", engine.socket_path(place, cupel), *args])
    assert done.returncode == 2 and word in done.stderr, done.stderr


def test_an_address_in_use_is_named(cupel, place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = cupel.run(["serve", "--socket", engine.socket_path(place, cupel), "--listen", f"127.0.0.1:{port}"])
    assert done.returncode == 125 and f"127.0.0.1:{port}" in done.stderr and "another port" in done.stderr


def test_plain_http_for_others_must_be_asked_for(serving):
    with serving("--listen", "0.0.0.0:0", "--insecure-http") as one:
        assert one.url.startswith("http://127.0.0.1:") and one.run(code="print(1)")[1]["stdout"] == "1\n"


def test_a_service_without_a_place_for_tokens_is_refused(cupel, place):
    env = {"CUPEL_STATE": "/proc/nowhere"}
    done = cupel.run(["serve", "--socket", engine.socket_path(place, cupel), "--listen", "127.0.0.1:0"], env=env)
    assert done.returncode == 125 and "CUPEL_STATE" in done.stderr


def test_it_listens_on_all_its_addresses(serving):
    with serving("--listen", "[::1]:0", "--listen", "127.0.0.1:0") as one:
        urls = one.status()["listen"]
        assert urls[0].startswith("http://[::1]:") and urls[1].startswith("http://127.0.0.1:")
        for one.address in (("::1", int(urls[0].rsplit(":")[-1])), ("127.0.0.1", int(urls[1].rsplit(":")[-1]))):
            assert one.run(code="print(1)")[1]["stdout"] == "1\n"


# --status and --stop.

def test_status_tells_of_the_engine(serving):
    with serving() as one:
        info = one.status()
        assert info["pid"] == one.process.pid and info["listen"] == [one.url] and info["state"]["runs"] == 0
        text = one.cupel.run(["serve", "--socket", one.path, "--status"]).stdout
        assert f"process {one.process.pid}" in text and one.url in text


def test_stop_waits_for_the_orderly_end(serving):
    with serving() as one:
        done = one.cupel.run(["serve", "--socket", one.path, "--stop"])
        assert done.returncode == 0 and f"process {one.process.pid} has ended" in done.stderr
        assert one.process.poll() is not None or one.process.wait(1) is not None
        assert one.process.returncode == 0 and not os.path.exists(one.path)


def test_without_an_engine_status_and_stop_say_so(cupel, place):
    for what in ("--status", "--stop"):
        done = cupel.run(["serve", what, "--socket", place.fresh() / "socket"])
        assert done.returncode == 2 and "no engine of this user runs there" in done.stderr


# The configuration.

def test_the_configuration_sets_listeners_ceilings_and_the_profile(serving):
    config = {"listen": ["127.0.0.1:0"], "ceilings": {"timeout_s": 2}, "profile": "analysis", "runs": 3}
    with serving("--pool", "1", config=config) as one:
        status, answer = one.run(code="1", limits={"timeout_s": 3})
        assert status == 400 and answer["error"]["field"] == "limits.timeout_s" and "to 2" in answer["error"]["bound"]
        status, answer = one.run(code="1")
        limits = answer["provenance"]["limits"]
        assert status == 200 and limits["timeout_s"] == 2 and limits["pids"] == 256, "analysis, below the ceiling"


def test_an_engine_for_one_program_opens_no_listener(cupel, place):
    """libcupel and the agent start engines, which must not take the service's port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        folder = place.fresh("xdg")
        (folder / "cupel").mkdir()
        (folder / "cupel/config.json").write_text(json.dumps({"listen": [f"127.0.0.1:{taken.getsockname()[1]}"]}))
        env = {"XDG_CONFIG_HOME": str(folder)}
        assert cupel.run(["serve", "--socket", engine.socket_path(place, cupel)], env=env).returncode == 125
        ours, theirs = socket.socketpair()
        with ours, theirs:
            child = cupel.popen(["serve", "-q", "--fd", str(theirs.fileno())], env=env, pass_fds=[theirs.fileno()])
            theirs.close()
            with engine.Client(sock=ours) as client:
                assert client.info()["listen"] == []
        assert child.wait(START_S) == 0


# SIGHUP.

def test_a_reload_changes_what_can_change_and_names_the_rest(serving):
    with serving() as one:
        assert one.run(code="1", limits={"timeout_s": 30})[0] == 200
        line = one.reload({"ceilings": {"timeout_s": 2}, "http": {"body_bytes": 2048}, "hosts": ["cupel.test"],
                           "runs": 2, "listen": ["127.0.0.1:1"]})
        assert sorted(line["changed"]) == ["ceilings.timeout_s", "hosts", "http.body_bytes"]
        assert line["next_start"] == ["runs"], "--listen is over the file"
        assert line["level"] == "warn"
        assert one.run(code="1", limits={"timeout_s": 30})[0] == 400
        assert one.run(code="#" * 4096)[0] == 413
        assert one.ask("GET", "/v1/health", headers={"Host": "cupel.test"})[0] == 200
        line = one.reload({})
        assert sorted(line["changed"]) == ["ceilings.timeout_s", "hosts", "http.body_bytes"]
        assert line["next_start"] == [] and one.run(code="#" * 4096)[0] == 200
        assert one.ask("GET", "/v1/health", headers={"Host": "cupel.test"})[0] != 200


@pytest.mark.sample(short=3, full=1)
@pytest.mark.parametrize("broken,word", [("{", "config.json"), ({"runs": 0}, "1 to 4096"),
                                         ({"x": 1}, "unknown key 'x'")], ids=["text", "bound", "key"])
def test_a_broken_file_keeps_the_old_values_and_says_why(serving, broken, word):
    with serving(config={"ceilings": {"timeout_s": 2}}) as one:
        line = one.reload(broken, event="reload_failed")
        assert line["level"] == "error" and word in json.dumps(line)
        assert one.run(code="1", limits={"timeout_s": 3})[0] == 400 and one.run(code="1")[0] == 200
        assert one.reload({"ceilings": {"timeout_s": 3}})["changed"] == ["ceilings.timeout_s"]
        assert one.run(code="1", limits={"timeout_s": 3})[0] == 200


def test_a_request_goes_on_over_a_reload(serving):
    with serving() as one:
        connection = http.client.HTTPConnection(*one.address, timeout=60)
        body = json.dumps({"code": "import time\ntime.sleep(2)\nprint('done')", "limits": {"timeout_s": 60}})
        connection.request("POST", "/v1/run", body, {"Authorization": f"Bearer {one.token()}"})
        assert host.wait_until(lambda: one.status()["state"]["runs"] == 1, START_S)
        one.reload({"http": {"body_bytes": 4096}})
        assert json.loads(connection.getresponse().read())["stdout"] == "done\n"
        connection.close()


def test_a_service_manager_hears_of_a_reload(cupel, place):
    """Also without a listener: its reload must not end the engine."""
    path = str(place.fresh("notify", 0o777) / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        os.chmod(path, 0o777)
        manager.settimeout(START_S * host.slowness())
        with engine.Engine(cupel, engine.socket_path(place, cupel), env={"NOTIFY_SOCKET": path}) as one:
            assert manager.recv(100) == b"READY=1"
            one.process.send_signal(signal.SIGHUP)
            assert [manager.recv(100), manager.recv(100)] == [b"RELOADING=1", b"READY=1"]
            with one.client() as client:
                assert client.run("print(1)")[1]["result"]["stdout"] == "1\n"


@pytest.mark.full
def test_the_log_is_turned_off_by_a_reload(serving):
    with serving() as one:
        assert one.reload({"log": "off"})["changed"] == ["log"]
        one.seen = ""
        one.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        one.read(0.5)
        assert one.seen == "" and one.status()


# TLS.

def test_a_certificate_is_served_and_replaced_by_a_reload(serving, place):
    made = serving("--listen", "127.0.0.1:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    folder = place.fresh("tls", 0o755, made.cupel.uid if made.cupel.switch else None)
    pairs = [certificate(folder, name) for name in ("first", "second")]

    def use(cert, key):
        """Behind symbolic links, as certificates often are."""
        for name, target in (("cert.pem", cert), ("key.pem", key)):
            (folder / "new").symlink_to(target)
            (folder / "new").rename(folder / name)
            if made.cupel.switch:
                os.chown(target, made.cupel.uid, made.cupel.uid)
    use(*pairs[0])
    made.args[made.args.index("cert.pem")] = folder / "cert.pem"
    made.args[made.args.index("key.pem")] = folder / "key.pem"
    with made as one:
        assert one.url.startswith("https://127.0.0.1:")
        assert one.ask("POST", "/v1/run", {"code": "print(1)"},
                       tls=ssl.create_default_context(cafile=str(pairs[0][0])))[1]["stdout"] == "1\n"
        use(*pairs[1])
        assert sorted(one.reload()["changed"]) == ["tls.cert", "tls.key"]
        second = ssl.create_default_context(cafile=str(pairs[1][0]))
        assert one.ask("GET", "/v1/health", tls=second)[0] == 200
        use(pairs[0][0], pairs[1][1])
        line = one.reload(event="reload_failed")
        assert "certificate" in line["message"], "a key that does not fit changes nothing"
        assert one.ask("GET", "/v1/health", tls=second)[0] == 200


def test_a_key_that_everybody_can_read_is_refused(cupel, place, folder):
    cert, key = certificate(folder, "open")
    key.chmod(0o644)
    done = cupel.run(["serve", "--socket", engine.socket_path(place, cupel), "--listen", "127.0.0.1:0",
                      "--tls-cert", cert, "--tls-key", key])
    assert done.returncode == 2 and "chmod o=" in done.stderr


# The end.

def test_a_stop_answers_the_requests_under_way(serving):
    with serving() as one:
        connection = http.client.HTTPConnection(*one.address, timeout=60)
        body = json.dumps({"code": "import time\ntime.sleep(50)", "limits": {"timeout_s": 60}})
        connection.request("POST", "/v1/run", body, {"Authorization": f"Bearer {one.token()}"})
        assert host.wait_until(lambda: one.status()["state"]["runs"] == 1, START_S)
        one.process.send_signal(signal.SIGTERM)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        assert "error" in told or told["status"] in ("interrupted", "killed"), told
        connection.close()
        with pytest.raises(ConnectionError):
            for _ in range(200):
                socket.create_connection(one.address, 5).close()
                time.sleep(0.05)
        assert one.process.wait(START_S) == 0


# cupel run --curl.

CODES = ["print('it\\'s', \"quoted\")", "print('$HOME $(id) `id` \\\\ !! %s')",
         "print('é € 😀')\n# a\ttab\n\nprint(open('in.bin', 'rb').read())",
         "import sys; print(sys.argv, sys.stdin.read())",
         "print(len('''" + "x'\"\\n" * 30000 + "'''))"]


@pytest.mark.parametrize("code", CODES, ids=["quotes", "dollars", "unicode", "arguments", "long"])
def test_the_printed_request_has_the_result_of_the_run(curl_server, folder, code):
    one = curl_server
    (folder / "in.bin").write_bytes(bytes(range(256)))
    (folder / "stdin").write_text("line 'one'\n$two\n")
    script = folder / "code.py"
    script.write_text(code)
    args = ["run", "-f", folder / "in.bin", "--stdin", folder / "stdin", "-t", "20", script, "a 'b'", "$c", "\\d"]
    env = {"CUPEL_SOCKET": one.path}
    printed = one.cupel.run([*args[:1], "--curl", *args[1:]], env=env)
    assert printed.returncode == 0 and one.url in printed.stdout and one.token() not in printed.stdout
    done = subprocess.run(["sh"], input=printed.stdout, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "CUPEL_TOKEN": one.token(), "HOME": "/nonexistent"})
    direct = json.loads(one.cupel.run([*args[:1], "--json", *args[1:]], env=env).stdout)
    told = json.loads(done.stdout)
    assert told["status"] == "ok", told
    for result in (told, direct):
        del result["run"], result["metrics"]
    assert told == direct


@pytest.fixture(scope="module")
def curl_server(cupels, place, left_behind):
    with Serving(next(iter(cupels.values())), place, "--listen", "127.0.0.1:0") as one:
        yield one


def test_without_a_server_the_usual_address_is_printed(cupel, place):
    done = cupel.run(["run", "--curl", "1"], env={"XDG_RUNTIME_DIR": str(place.fresh("none", 0o700)),
                                                 "CUPEL_SOCKET": str(place.fresh() / "none")})
    assert "'http://127.0.0.1:8765/v1/run'" in done.stdout and '"Authorization: Bearer $CUPEL_TOKEN"' in done.stdout


# Ended runs that are kept.

def test_a_token_that_floods_pushes_out_its_own_runs_alone(serving):
    with serving("--pool", "1", config={"listen": ["127.0.0.1:0"], "http": {"kept_runs": 6}}) as one:
        mine = [one.run(code="1")[1]["run"] for _ in range(2)]
        name = f"flood{os.getpid()}"
        other = one.cupel.run(["token", "new", name]).stdout.strip()
        theirs = [one.ask("POST", "/v1/run", {"code": "2"}, {"Authorization": f"Bearer {other}"})[1]["run"]
                  for _ in range(8)]
        one.cupel.run(["token", "rm", name])
        assert [one.ask("GET", f"/v1/runs/{run}")[0] for run in mine] == [200, 200]
        assert one.ask("GET", f"/v1/runs/{theirs[0]}")[0] == 404


# The journal: its socket, in a mount namespace with a /run of its own.

JOURNAL = """
import os, socket, subprocess, sys, time
os.makedirs("/run/systemd/journal")
at = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
at.bind("/run/systemd/journal/socket")
os.chmod("/run/systemd/journal/socket", 0o666)
at.settimeout(60)
err = open("/run/stderr", "wb")
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=err)
while b"profile '" not in open("/run/stderr", "rb").read():
    assert child.poll() is None, open("/run/stderr").read()
    time.sleep(0.05)
child.send_signal(1)
while b"reload" not in (entry := at.recv(1 << 16)):
    print(entry, file=sys.stderr)
sys.stdout.buffer.write(entry)
child.terminate()
sys.exit(child.wait() or b'"event"' in open("/run/stderr", "rb").read())
"""


def journal_fields(entry):
    """{name: value} of the journal's native protocol."""
    found = {}
    while entry:
        line, _, entry = entry.partition(b"\n")
        if b"=" in line:
            name, _, value = line.partition(b"=")
        else:
            name, size = line, int.from_bytes(entry[:8], "little")
            value, entry = entry[8:8 + size], entry[8 + size + 1:]
        found[name.decode()] = value.decode()
    return found


@pytest.mark.skipif(os.getuid() != 0, reason="a file system is mounted over /run")
def test_lines_go_to_the_journal_with_their_fields(cupel, place, folder):
    (folder / "config.json").write_text('{"log": "journal"}')
    command = [cupel.program, "serve", "--socket", "/run/own/socket", "--listen", "127.0.0.1:0", "--config",
               str(folder / "config.json")]
    script = "mount -t tmpfs tmpfs /run && exec \"$@\""
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "/usr/bin/python3", "-c", JOURNAL, *command],
                          env=cupel.env, capture_output=True, timeout=START_S * host.slowness())
    assert done.returncode == 0, done.stderr
    fields = journal_fields(done.stdout)
    assert fields["PRIORITY"] == "6" and fields["SYSLOG_IDENTIFIER"] == "cupel" and fields["CUPEL_EVENT"] == "reload"
    assert json.loads(fields["CUPEL_CHANGED"]) == [] and json.loads(fields["MESSAGE"])["event"] == "reload"


def test_a_journal_that_is_not_there_is_named(cupel, place, folder):
    if os.path.exists("/run/systemd/journal/socket"):
        pytest.skip("this host has a journal")
    (folder / "config.json").write_text('{"log": "journal"}')
    done = cupel.run(["serve", "--socket", engine.socket_path(place, cupel), "--config", folder / "config.json"])
    assert done.returncode == 125 and 'set "log" to "stderr"' in done.stderr
