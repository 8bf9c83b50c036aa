"""No stored text keeps a secret: the bytes of the database and of the contents are searched for it. The caller still
gets its own output, and bytes of inputs and artifacts stay as they are."""
import base64
import hashlib
import json
import random
import re
import sqlite3
import string
from pathlib import Path

import pytest

from engine import Engine
from sessions import Session

PASSWORD = "hunter2-of-"


def fresh(prefix="sk" + "-ant-api03-", length=40):
    """A key that nobody has: every call makes another."""
    return prefix + "".join(random.choices(string.ascii_letters + string.digits, k=length)) + "x9Q"


class Store:
    def __init__(self, engine):
        self.engine, self.state = engine, Path(engine.cupel.env["CUPEL_STATE"])

    def files(self):
        yield from (path for path in self.state.glob("store.db*"))
        yield from (path for path in (self.state / "contents").rglob("*") if path.is_file())

    def holds(self, secret):
        """Files that have these bytes, as they are or in base64 at any of its three offsets."""
        data = secret.encode() if isinstance(secret, str) else secret
        forms = [data] + [base64.b64encode(b"\0" * shift + data)[2 * (shift > 0) + 2 * (shift > 1):][:len(data)][:-3]
                          for shift in range(3)]
        return [path.name for path in self.files() if any(form in path.read_bytes() for form in forms)]

    def rows(self, query, *values):
        database = sqlite3.connect(self.state / "store.db", timeout=30)
        try:
            return database.execute(query, values).fetchall()
        finally:
            database.close()

    def run(self, request, **fields):
        with self.engine.client() as client:
            frame = client.run(request, **fields)[1]
        return frame["result"] if "result" in frame else frame["error"]

    def record(self, result):
        done = self.engine.cupel.run(["runs", "show", result["run"], "--json"], env=self.engine.use())
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def store(engine):
    return Store(engine)


def test_the_search_of_this_file_finds_what_is_stored(store):
    word = "plainword" + "".join(random.choices(string.ascii_lowercase, k=20))
    store.run({"code": f"print('{word}')"})
    assert store.holds(word)


# Where a secret may stand: the request, and whether the reply must show it.
FIELDS = {
    "code": lambda secret: ({"code": f"k = '{secret}'"}, False),
    "args": lambda secret: ({"code": "1", "args": ["--verbose", secret]}, False),
    "env": lambda secret: ({"code": "1", "env": {"ACME": secret}}, False),
    "stdin": lambda secret: ({"code": "1", "stdin": f"first\n{secret}\n"}, False),
    "stdout": lambda secret: ({"code": f"import base64; print(base64.b64decode('{coded(secret)}').decode())"}, True),
    "stderr": lambda secret: ({"code": "import base64, sys; sys.stderr.write(base64.b64decode('%s').decode())"
                                       % coded(secret)}, True),
    "bytes": lambda secret: ({"code": "import base64, sys; sys.stdout.buffer.write(b'\\xff' + base64.b64decode('%s'))"
                                      % coded(secret)}, True),
    "result": lambda secret: ({"code": "import base64\n{'a': [base64.b64decode('%s').decode()]}"
                                       % coded(secret)}, True),
    "html": lambda secret: ({"code": "import base64\nclass X:\n def _repr_html_(self): return '<b>' + base64.b64decode("
                                     "'%s').decode()\nX()" % coded(secret)}, True),
    "error": lambda secret: ({"code": "import base64\nraise ValueError(base64.b64decode('%s').decode())"
                                      % coded(secret)}, True),
    "snippet": lambda secret: ({"code": f"x = 1\nint('{secret}')"}, True),
    "syntax": lambda secret: ({"code": f"k = '{secret}' +\n"}, True),
    "call": lambda secret: ({"code": "def f(a, b): return a", "call": {"function": "f", "args": [secret],
                                                                         "kwargs": {"b": secret}}}, True),
    "name": lambda secret: ({"code": "import base64\nopen(base64.b64decode('%s').decode() + '.txt', 'w').write('x')"
                                     % coded(secret)}, True),
    "file": lambda secret: ({"code": "1", "files": [{"path": f"{secret}.txt", "text": "x"}]}, False),
    "javascript": lambda secret: ({"language": "javascript", "code": f"throw new Error('{secret}')"}, True),
    "bash": lambda secret: ({"language": "bash", "code": f"echo {secret}; echo {secret} >&2"}, True),
}


def coded(secret):
    return base64.b64encode(secret.encode()).decode()


@pytest.mark.parametrize("field", FIELDS)
def test_a_secret_of_this_field_is_not_stored(store, field):
    secret = fresh()
    request, shows = FIELDS[field](secret)
    result = store.run(request)
    assert (secret in json.dumps(result)) == shows, "the caller gets its own output"
    record = store.record(result)
    # The code that makes the output has the secret in base64, which nobody can know to be one.
    plain = [path for path in store.files() if secret.encode() in path.read_bytes()]
    assert plain == [], field
    assert record["redacted"] >= 1
    assert "[redacted:model-key:" in json.dumps(record) or field == "stdin", "stdin is a content"


def test_a_password_is_known_by_the_name_of_its_variable(store):
    secrets = [PASSWORD + fresh("", 8) for _ in range(3)]
    result = store.run({"code": "1", "env": {"DB_PASSWORD": secrets[0]}, "args": ["--password", secrets[1]],
                        "call": {"function": "str", "kwargs": {"object": secrets[2], "password": secrets[2]}}})
    assert not store.holds(secrets[0]) and not store.holds(secrets[1]), result


def test_the_value_of_a_variable_is_judged_by_its_name(store):
    secret = PASSWORD + fresh("", 8)
    code = f"part = '{secret[::-1]}'\npassword = part[::-1]\npassword[999]"
    result = store.run({"code": code, "cache": {"ttl_s": 600}})
    assert {"name": "password", "text": repr(secret), "type": "str"} in result["error"]["values"]
    assert not store.holds(secret) and store.record(result)["redacted"] >= 1
    assert store.run({"code": code, "cache": {"ttl_s": 600}})["cached"] is False
    with store.engine.client() as client:
        session = Session(client)
        try:
            made = session.run(code.rpartition("\n")[0], names=True)
            assert [one["text"] for one in made["names_added"] if one["name"] == "password"] == [repr(secret)]
            changed = session.run("password = [password]", names=True)
        finally:
            session.ask("end")
    assert [one["text"] for one in changed["names_changed"]] == [f"[{secret!r}]"] and not store.holds(secret)


@pytest.mark.parametrize("at", [49152 - 60, 49152 - 30, 49152 - 10, 49152, 100000, 131072 - 16384 - 20])
def test_no_half_of_a_secret_is_stored_where_output_was_cut(store, at):
    secret = fresh()
    code = "import base64\nprint(('word ' * 40000)[:%d] + ' ' + base64.b64decode('%s').decode(), 'word ' * 40000)"
    store.run({"code": code % (at - 1, coded(secret))})
    body = secret[len("sk-ant-api03-"):].encode()
    for path in store.files():
        data = path.read_bytes()
        assert not any(body[i:i + 14] in data for i in range(len(body) - 13)), path


def test_bytes_of_inputs_and_artifacts_stay_as_they_are(store):
    inside, made = fresh(), fresh()
    code = "import base64\nopen('made.txt', 'w').write(base64.b64decode('%s').decode())"
    result = store.run({"code": code % coded(made), "files": [{"path": "in.txt", "text": inside}]})
    assert store.holds(inside) and store.holds(made)
    sums = {one["path"]: one["sha256"] for one in result["artifacts"]}
    found = store.rows("SELECT 1 FROM contents WHERE sha256 = ?", sums["made.txt"])
    assert len(sums) == 1 and found == [(1,)]


def test_the_same_secret_has_the_same_marker_in_every_record(store):
    secret = fresh()
    records = [store.record(store.run({"code": f"print('{secret}')", "args": ["x"] * n})) for n in range(2)]
    assert records[0]["request"]["code"] == records[1]["request"]["code"] != f"print('{secret}')"


def test_a_run_with_a_secret_is_not_cached_and_one_without_is(store):
    for code, cached in ((f"print('{fresh()}')", False), (f"print('{random.random()}')", True)):
        store.run({"code": code, "cache": {"ttl_s": 600}})
        assert store.run({"code": code, "cache": {"ttl_s": 600}})["cached"] is cached


def test_sums_of_a_request_with_a_secret_are_keyed(store):
    """A plain sum lets anybody try guesses of a short password."""
    code = "password = 'hunter%d'\nprint(1)" % random.randrange(10**6)
    first, second, other = (store.run({"code": one, "args": ["--token", fresh("", 30)]})
                            for one in (code, code, code + "0"))
    sums = [store.record(one)["result"]["provenance"] for one in (first, second, other)]
    assert sums[0]["code_sha256"] == sums[1]["code_sha256"] != sums[2]["code_sha256"]
    for result, kept in zip((first, second, other), sums):
        for name in ("code_sha256", "inputs_sha256"):
            plain = result["provenance"][name]  # the caller's own
            assert re.fullmatch("[0-9a-f]{64}", kept[name]) and kept[name] != plain and not store.holds(plain), name
    assert first["provenance"]["code_sha256"] == hashlib.sha256(code.encode()).hexdigest()
    found = store.engine.cupel.run(["runs", "ls", "--json", "--code-hash", sums[0]["code_sha256"]],
                                   env=store.engine.use())
    assert {json.loads(line)["run"] for line in found.stdout.splitlines()} == {first["run"], second["run"]}
    clean = store.run({"code": "print(2)"})
    assert store.record(clean)["result"]["provenance"] == clean["provenance"]


def test_a_session_and_its_acts_keep_no_secret(store):
    secret, inside = fresh(), fresh()
    with store.engine.client() as client:
        session = Session(client, request={"env": {"ACME": secret}})
        try:
            assert inside in session.run(f"k = '{inside}'; print(k)")["stdout"]
            session.ask("put", files=[{"path": f"{inside}.txt", "text": "x"}])
        finally:
            session.ask("end")
    assert not store.holds(secret) and not store.holds(inside)


def test_patterns_of_the_configuration_are_redacted_in_records(cupel_as, place):
    folder = place.fresh("redact", 0o777)
    config, number = folder / "config.json", str(random.randrange(10**7, 10**8))
    config.write_text(json.dumps({"redact": ["acme-[0-9]{8}"]}))
    config.chmod(0o644)
    with Engine(cupel_as, folder / "socket", ["--config", config]) as one:
        store = Store(one)
        result = store.run({"code": f"print('acme-{number}')"})
        assert f"acme-{number}" in result["stdout"] and not store.holds(f"acme-{number}")


def test_a_pattern_with_a_mistake_stops_the_start(cupel_as, place):
    folder = place.fresh("redact", 0o777)
    (folder / "config.json").write_text(json.dumps({"redact": ["acme-("]}))
    (folder / "config.json").chmod(0o644)
    done = cupel_as.run(["config", "--check", folder / "config.json"])
    assert done.returncode == 2 and '"acme-("' in done.stderr
    done = cupel_as.run(["serve", "--config", folder / "config.json", "--socket", folder / "socket"], timeout=60)
    assert done.returncode == 2 and '"acme-("' in done.stderr and "missing closing parenthesis" in done.stderr
