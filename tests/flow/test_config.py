"""`cupel config`: every value and where it came from; a file with a mistake is refused by name."""
import json
import os
import shutil
import subprocess

import pytest

from host import REPO

SYSTEM = "/etc/cupel/config.json"
# What each key may be set to, and what is not its default.
OTHER = {
    "listen": ["127.0.0.1:8765", "[::1]:0"], "insecure_http": True, "hosts": ["cupel.example.org"],
    "origins": ["https://app.example.org:8443"], "tls.cert": "/a.pem", "tls.key": "/b.pem", "runs": 3, "queue": 7,
    "pool": 0, "profile": "analysis", "image": "data", "model": "ollama/q", "judge": "ollama/j", "planner": "ollama/p",
    "models": ["ollama/a", "ollama/b"], "retention.files_s": 60, "retention.blobs_s": 61,
    "retention.records_s": 62, "retention.records_bytes": 63, "records": False, "durable": True, "cache.ttl_s": 64,
    "tools.folder": "/t/tools", "tools.mcp": "/t/mcp.json", "tools.secrets": "/t/secrets.json",
    "redact": ["acme-[0-9]{8}"], "log": "off",
    "images.registry": "registry.example.org",
    "images.builds": False, "images.packages": ["pip:polars"], "images.pinned": True, "images.hashes": True,
}


def nested(flat):
    whole = {}
    for key, value in flat.items():
        group, _, name = key.rpartition(".")
        (whole.setdefault(group, {}) if group else whole)[name] = value
    return whole


def shown(cupel, *args, env=None):
    done = cupel.run(["config", "--json", *args], env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return {row["key"]: row for row in json.loads(done.stdout)["config"]}


def write(folder, text):
    path = folder / "config.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    path.chmod(0o644)
    return path


def check(cupel, folder, text):
    done = cupel.run(["config", "--json", "--check", write(folder, text)])
    return done.returncode, json.loads(done.stdout)["error"] if done.stdout else None


def test_without_a_file_all_values_are_defaults(cupel):
    rows = shown(cupel, env={"CUPEL_STATE": ""})
    assert {row["from"] for row in rows.values()} == {"default"}
    assert all(row["value"] == row["default"] for row in rows.values())
    assert rows["http.connections"]["value"] == 2000 and rows["profile"]["value"] == "baseline"


def test_every_key_can_be_set_and_says_so(cupel, folder):
    rows = shown(cupel, env={"CUPEL_STATE": ""})
    flat = dict(OTHER)
    for key, row in rows.items():
        if key.startswith("http."):
            flat[key] = row["default"] - 1 if row["default"] > 1024 else row["default"] + 1
        if key.startswith("ceilings."):
            flat[key] = 1 << 24 if key.endswith("y_bytes") or key.endswith("k_bytes") else 2
    assert set(rows) - set(flat) == {"socket", "state"}, "the test names every key of a file"
    path = write(folder, nested(flat))
    rows = shown(cupel, "--config", path, env={"CUPEL_STATE": ""})
    assert {key: rows[key]["value"] for key in flat} == flat
    assert {rows[key]["from"] for key in flat} == {str(path)}
    assert all(rows[key]["value"] != rows[key]["default"] for key in flat)


def test_the_environment_is_over_the_users_file(cupel, folder):
    (folder / "cupel").mkdir()
    path = write(folder / "cupel", {"model": "ollama/file", "runs": 2})
    env = {"XDG_CONFIG_HOME": str(folder), "CUPEL_MODEL": "ollama/env", "CUPEL_SOCKET": "/x/socket"}
    rows = shown(cupel, env=env)
    assert (rows["model"]["value"], rows["model"]["from"]) == ("ollama/env", "environment CUPEL_MODEL")
    assert (rows["runs"]["value"], rows["runs"]["from"]) == (2, str(path))
    assert rows["socket"]["from"] == "environment CUPEL_SOCKET" and rows["state"]["from"] == "environment CUPEL_STATE"
    assert rows["queue"]["from"] == "default"


def test_the_users_file_is_in_the_home_folder(cupel_as, place):
    owner = cupel_as.uid if cupel_as.switch else None
    home = place.fresh("home", 0o755, owner)
    (home / ".config/cupel").mkdir(parents=True)
    path = write(home / ".config/cupel", {"runs": 5})
    assert shown(cupel_as, "runs", env={"HOME": str(home)})["runs"]["from"] == str(path)


@pytest.mark.skipif(os.getuid() != 0, reason="a copy of /etc is mounted over /etc")
def test_the_users_file_is_over_the_systems(cupel, folder):
    (folder / "cupel").mkdir()
    user = write(folder / "cupel", {"runs": 2, "hosts": ["user"]})
    shutil.copytree("/etc/ld.so.conf.d", folder / "etc/ld.so.conf.d")
    shutil.copy("/etc/ld.so.cache", folder / "etc")
    (folder / "etc/cupel").mkdir()
    write(folder / "etc/cupel", {"runs": 9, "queue": 9, "hosts": ["system", "other"]})
    script = f"mount --bind {folder}/etc /etc && exec {cupel.program} config --json"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True,
                          env={**cupel.env, "XDG_CONFIG_HOME": str(folder)})
    rows = {row["key"]: row for row in json.loads(done.stdout)["config"]}
    assert (rows["runs"]["value"], rows["runs"]["from"]) == (2, str(user))
    assert (rows["queue"]["value"], rows["queue"]["from"]) == (9, SYSTEM)
    assert rows["hosts"]["value"] == ["user"], "an array is replaced as a whole"


# What is refused: text, key, value as JSON ("": none), a word of the bound, message or hint.

MISTAKES = [
    ('{"listn": []}', "listn", "[]", "did you mean 'listen'?"),
    ('{"http": {"conections": 5}}', "http.conections", "5", "did you mean 'http.connections'?"),
    ('{"http.connections": 5}', "http.connections", "5", "unknown key"),
    ('{"http": 5}', "http", "5", "an object"),
    ('{"http": {"head_s": {"x": 1}}}', "http.head_s", '{"x":1}', "not a number"),
    ('{"runs": 1, "runs": 2}', "runs", "", "each key once"),
    ('{"http": {"head_s": 1, "head_s": 2}}', "head_s", "", "each key once"),
    ('{"runs": 0}', "runs", "0", "1 to 4096"),
    ('{"runs": 4097}', "runs", "4097", "1 to 4096"),
    ('{"runs": "4"}', "runs", '"4"', "not a number"),
    ('{"runs": 1.5}', "runs", "1.5", "not an integer"),
    ('{"runs": null}', "runs", "null", "not a number"),
    ('{"pool": 25}', "pool", "25", "0 to 24"),
    ('{"http": {"head_s": 1e400}}', "", "", ""),
    ('{"ceilings": {"timeout_s": 3601}}', "ceilings.timeout_s", "3601", "0.01 to 3600"),
    ('{"ceilings": {"memory_bytes": 1024}}', "ceilings.memory_bytes", "1024", "at least 16777216"),
    ('{"ceilings": {"pids": 2.5}}', "ceilings.pids", "2.5", "not an integer"),
    ('{"profile": "strictest"}', "profile", '"strictest"', "baseline, analysis"),
    ('{"log": "syslog"}', "log", '"syslog"', "stderr|journal|off"),
    ('{"insecure_http": 1}', "insecure_http", "1", "true or false"),
    ('{"listen": "127.0.0.1:1"}', "listen", '"127.0.0.1:1"', "an array"),
    ('{"listen": ["127.0.0.1"]}', "listen", '"127.0.0.1"', "port 0 picks a free one"),
    ('{"listen": ["example.org:80"]}', "listen", '"example.org:80"', "not an address"),
    ('{"listen": ["127.0.0.1:65536"]}', "listen", '"127.0.0.1:65536"', "not an address"),
    ('{"listen": ["[::1:80"]}', "listen", '"[::1:80"', "not an address"),
    ('{"listen": [":80"]}', "listen", '":80"', "not an address"),
    ('{"hosts": ["a b"]}', "hosts", '"a b"', "not a name"),
    ('{"hosts": ["http://a"]}', "hosts", '"http://a"', "not a name"),
    ('{"origins": ["app.example.org"]}', "origins", '"app.example.org"', "not an origin"),
    ('{"origins": ["https://a/path"]}', "origins", '"https://a/path"', "not an origin"),
    ('{"origins": ["*"]}', "origins", '"*"', "not an origin"),
    ('{"models": [7]}', "models", "7", "no text"),
    ('{"models": [' + ",".join(['"x"'] * 65) + "]}", "models", "", "too long"),
    ('{"model": ""}', "model", '""', "not a text"),
    ('{"tls": {"cert": "cert.pem", "key": "/k"}}', "tls.cert", '"cert.pem"', "not absolute"),
    ('{"tls": {"cert": "/c"}}', "tls.key", "", "TLS needs both"),
    ('{"socket": "/x"}', "socket", "", "set CUPEL_SOCKET"),
    ("[]", "", "", "no JSON object"),
    ("", "", "", ""),
    ('{"runs": 1} x', "", "", ""),
    ('{"a": ' + "[" * 100 + "]" * 100 + "}", "", "", ""),
]


@pytest.mark.parametrize("text,key,value,word", MISTAKES, ids=[row[0][:40] for row in MISTAKES])
def test_a_mistake_is_named(cupel, folder, text, key, value, word):
    code, error = check(cupel, folder, text)
    assert code == 2 and error["kind"] == "input", error
    assert (error.get("field") or "") == key
    assert not value or error["value"] in (value, json.loads(value)), error
    assert word in json.dumps(error, ensure_ascii=False).replace('\\"', '"'), error
    if "TLS needs both" not in word:
        assert str(folder) in error["message"], "the file is named"


def test_a_valid_file_passes(cupel, folder):
    assert check(cupel, folder, nested(OTHER)) == (0, None)
    assert check(cupel, folder, {}) == (0, None)


def test_a_broken_file_is_refused_where_it_would_be_used(cupel, folder):
    (folder / "cupel").mkdir()
    path = write(folder / "cupel", {"runs": "many"})
    done = cupel.run(["config"], env={"XDG_CONFIG_HOME": str(folder)})
    assert done.returncode == 2 and not done.stdout
    assert str(path) in done.stderr and "'runs'" in done.stderr and "1 to 4096" in done.stderr


@pytest.mark.parametrize("make,word", [(lambda p: p.mkdir(), "not a file"), (lambda p: None, "No such file"),
                                       (lambda p: p.write_bytes(b" " * ((1 << 20) + 1)), "larger than"),
                                       (os.mkfifo, "not a file")], ids=["folder", "missing", "large", "fifo"])
def test_a_path_that_is_no_small_file_is_refused(cupel, folder, make, word):
    make(folder / "x")
    done = cupel.run(["config", "--check", folder / "x"])
    assert done.returncode in (2, 125) and word in done.stderr


def test_one_key_says_what_it_means(cupel):
    done = cupel.run(["config", "http.head_s"])
    assert "http.head_s" in done.stdout and "10" in done.stdout and "1 to 3600" in done.stdout \
        and "SIGHUP changes it" in done.stdout and "seconds for the head" in done.stdout
    assert "next start" in cupel.run(["config", "listen"]).stdout
    group = cupel.run(["config", "tls"]).stdout.splitlines()
    assert [line.split()[0] for line in group] == ["tls.cert", "tls.key"]


def test_an_unknown_key_is_refused(cupel):
    done = cupel.run(["config", "http.hed_s"])
    assert done.returncode == 2 and "did you mean 'http.head_s'?" in done.stderr
    assert cupel.run(["config", "runs", "pool"]).returncode == 2


def test_the_configured_model_is_the_default_of_questions(cupel, folder):
    (folder / "cupel").mkdir()
    write(folder / "cupel", {"model": "ollama/of-the-file"})

    def chosen(**env):
        done = cupel.run(["models", "--json"], env={"XDG_CONFIG_HOME": str(folder), **env})
        return [row["model"] for row in json.loads(done.stdout)["models"] if row["chosen"]]
    assert chosen() == ["ollama/of-the-file"] and chosen(CUPEL_MODEL="ollama/other") == ["ollama/other"]
    write(folder / "cupel", {"model": "nosuch/model"})
    done = cupel.run(["ask", "why?"], env={"XDG_CONFIG_HOME": str(folder)})
    assert done.returncode == 2 and "nosuch" in done.stderr


# docs/operating.md has the tables.

def page_rows(title):
    """The cells of the first table of a section."""
    text = (REPO / "docs/operating.md").read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_has_every_maximum_of_the_http_door(cupel):
    rows = {key[5:]: row for key, row in shown(cupel).items() if key.startswith("http.")}
    page = page_rows("Limits")
    assert [row[0].strip("`") for row in page] == list(rows)
    for name, default, least, most, about in page:
        row = rows[name.strip("`")]
        assert int(default) == row["default"] and about == row["about"], name
        assert row["allowed"] == f"an integer, {least} to {most}", name


def test_the_page_has_every_other_key(cupel):
    rows = {key: row for key, row in shown(cupel).items()
            if not key.startswith(("http.", "ceilings.")) and key not in ("socket", "state")}
    page = page_rows("Configuration")
    assert [row[0].strip("`") for row in page] == list(rows)
    for name, default, allowed, reloads, about in page:
        row = rows[name.strip("`")]
        assert json.loads(default.strip("`")) == row["default"] and about == row["about"], name
        assert allowed == row["allowed"].replace("|", ", ") and (reloads == "yes") == row["reloads"], name
