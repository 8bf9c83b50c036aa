"""`cupel token`: what a person and a script see, as root and as an ordinary user."""
import hashlib
import json
import os
import re
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

SECRET = re.compile(r"cupel_[A-Za-z0-9_-]{43}\n")


@pytest.fixture
def token(cupel_as, folder):
    """cupel token ARGS, with a state folder of its own."""
    def call(*args, code=0, **options):
        done = cupel_as.run(["token", *args], env={"CUPEL_STATE": str(folder / "state")}, **options)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done
    call.state = folder / "state"
    call.rows = lambda: json.loads(call("ls", "--json").stdout)["tokens"]
    return call


def test_new_prints_only_the_token_and_keeps_only_its_hash(token):
    made = token("new", "ci")
    assert SECRET.fullmatch(made.stdout)
    assert "shown this once" in made.stderr and str(token.state) in made.stderr
    kept = (token.state / "tokens.json").read_text()
    secret = made.stdout.strip()
    assert secret not in kept and secret[6:] not in kept
    assert hashlib.sha256(secret.encode()).hexdigest() in kept
    assert token("new", "other", "-q").stderr == ""


def test_the_files_are_for_the_uid_of_the_service_alone(token, who):
    token("new", "ci", "-q")
    for path in [token.state, *token.state.iterdir()]:
        found = path.stat()
        assert found.st_mode & 0o077 == 0, path
        assert found.st_uid == token.state.stat().st_uid
        assert (found.st_uid != 0) if who == "root" else (found.st_uid != os.getuid() or os.getuid() != 0)
    assert stat.S_IMODE((token.state / "tokens.json").stat().st_mode) == 0o600


def test_ls_shows_the_quota_and_never_the_secret(token):
    assert "no tokens" in token("ls").stderr
    secret = token("new", "ci", "-q", "--expires", "30d", "--runs", "4", "--rate", "60/min", "--cpu-s-a-day", "100",
                   "--sessions", "0", "--stored", "1G", "--limit", "timeout_s=60", "--limit", "memory_bytes=1G",
                   "--profile", "baseline", "--profile", "analysis", "--image", "host", "--tool", "look").stdout.strip()
    token("new", "boss", "-q", "--operator")
    ci, boss = token.rows()
    assert ci["quota"] == {
        "runs_at_once": 4, "runs_a_minute": 60, "cpu_s_a_day": 100, "sessions": 0, "stored_bytes": 1 << 30,
        "limits": {"timeout_s": 60, "memory_bytes": 1 << 30}, "profiles": ["baseline", "analysis"],
        "images": ["host"], "tools": ["look"]}
    made, ends = (datetime.fromisoformat(ci[name].rstrip("Z")) for name in ("created_at", "expires_at"))
    assert ends - made == timedelta(days=30)
    assert re.fullmatch("k_[0-9a-f]{12}", ci["id"]) and not ci["operator"] and ci["last_used_at"] is None
    assert boss["operator"] and boss["expires_at"] is None and boss["quota"] == {}
    text = token("ls").stdout + token("ls", "--json").stdout
    assert secret[6:] not in text and hashlib.sha256(secret.encode()).hexdigest() not in text
    for word in ("ci", ci["id"], "runs_at_once 4", "stored_bytes 1.0 GiB", "limits.timeout_s 60", "never", "operator"):
        assert word in token("ls").stdout, word


def test_rm_takes_names_and_ids_all_or_none(token):
    for name in "abc":
        token("new", name, "-q")
    assert "'nix'" in token("rm", "a", "nix", code=2).stderr
    assert len(token.rows()) == 3
    removed = json.loads(token("rm", "a", token.rows()[1]["id"], "--json").stdout)["removed"]
    assert [row["name"] for row in removed] == ["a", "b"]
    assert [row["name"] for row in token.rows()] == ["c"]
    token("rm", "c")
    assert token.rows() == []


@pytest.mark.parametrize("args, words", [
    (["a b"], ["'a b'", "A-Z a-z 0-9 . _ -"]),
    (["x" * 65], ["1 to 64"]),
    (["k_0123456789ab"], ["ids"]),
    ([], ["a name for the token"]),
    (["x", "y"], ["'y'"]),
    (["x", "--runs", "1.5"], ["--runs", "quota.runs_at_once", "1.5", "0 to 100000"]),
    (["x", "--runs", "-1"], ["-1"]),
    (["x", "--rate", "60/h"], ["--rate", "60/h", "60/min"]),
    (["x", "--limit", "timeout_s"], ["NAME=NUMBER"]),
    (["x", "--limit", "timeout=3"], ["quota.limits.timeout", "timeout_s"]),
    (["x", "--limit", "timeout_s=9999"], ["quota.limits.timeout_s", "9999", "3600"]),
    (["x", "--limit", "pids=many"], ["quota.limits.pids", "many", "512"]),
    (["x", "--profile", "none"], ["quota.profiles", "none", "baseline"]),
    (["x", "--expires", "1y"], ["--expires", "1y", "30d"]),
    (["x", "--expires", "0d"], ["--expires", "0d"]),
    (["x", "--expires", "2020-01-01"], ["2020-01-01", "past"]),
    (["x", "--stored", "much"], ["--stored", "much"]),
])
def test_a_refusal_names_the_option_the_value_and_the_bound(token, args, words):
    done = token("new", *args, code=2)
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr, (word, done.stderr)
    assert not (token.state / "tokens.json").exists()


def test_a_refusal_is_json_where_json_was_asked_for(token):
    token("new", "x", "-q")
    error = json.loads(token("new", "x", "--json", code=2).stdout)["error"]
    assert (error["kind"], error["field"], error["value"]) == ("conflict", "name", "x")
    error = json.loads(token("rm", "y", "--json", code=2).stdout)["error"]
    assert error["kind"] == "absent"
    made = json.loads(token("new", "z", "--json").stdout)
    assert SECRET.fullmatch(made["token"] + "\n") and made["name"] == "z"


def test_tokens_made_side_by_side_are_all_kept(token):
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda i: token("new", f"t{i}", "-q").stdout, range(18)))
    assert len(set(made)) == 18
    assert sorted(row["name"] for row in token.rows()) == sorted(f"t{i}" for i in range(18))


def test_a_broken_file_is_named_and_left_alone(token):
    token("new", "a", "-q")
    path = token.state / "tokens.json"
    owner = path.stat()
    text = path.read_text().replace('"operator"', '"operater"')
    path.write_text(text)
    os.chown(path, owner.st_uid, owner.st_gid) if os.getuid() == 0 else None
    for args in (["new", "b"], ["ls"], ["rm", "a"]):
        done = token(*args, code=125)
        assert "tokens.json" in done.stderr and "operater" in done.stderr and "tokens[0]" in done.stderr
    assert path.read_text() == text


def test_a_folder_that_cannot_be_written_is_refused_with_the_fix(cupel_as, folder, who):
    state = folder / "shut"
    state.mkdir(0o755)
    if os.getuid() == 0:
        os.chown(state, 0, 0)
    else:
        state.chmod(0o500)
    done = cupel_as.run(["token", "new", "a"], env={"CUPEL_STATE": str(state)})
    assert done.returncode == 125 and done.stdout == ""
    assert "hint: " in done.stderr and str(state) in done.stderr, done.stderr


def test_the_help_lists_the_commands(token):
    for args in (["--help"], ["new", "--help"], ["ls", "-h"], ["rm", "--help"]):
        assert "usage: cupel token" in token(*args).stdout
    assert "did you mean cupel token new?" in token("nwe", code=2).stderr
    assert "needs a command" in token(code=2).stderr
    assert subprocess.list2cmdline(["--expires"]) in token("new", "--help").stdout
