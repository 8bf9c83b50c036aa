"""Hints: code that fails for a reason of the box is told the way on, and other code is told nothing."""
import json
import os
import shutil
import subprocess

import pytest

import host

NETWORK = "a box has no network"
STDIN = "the request has no stdin"
OUTSIDE = "only /workspace and /tmp can be written"
ROOT = "a box has no root"
SCREEN = "a box has no screen"
READONLY = [{"path": "data.csv", "text": "a,b\n", "readonly": True}]
FAIL = "import subprocess\nsubprocess.run({!r}, shell=True, check=True)"

# name: (language, code, words of the hint, further fields of the request)
FITS = {
    "a host name": ("python", "import socket\nsocket.create_connection(('example.org', 80))", NETWORK, {}),
    "urllib": ("python", "import urllib.request\nurllib.request.urlopen('http://example.org')", NETWORK, {}),
    "an address": ("python", "import socket\nsocket.create_connection(('192.0.2.1', 80))", NETWORK, {}),
    "a socket in JavaScript": ("javascript", "require('http').get('http://example.org'); 0", NETWORK, {}),
    "fetch": ("javascript", "await fetch('http://example.org')", NETWORK, {}),
    "a program that resolves": ("bash", "echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6",
                                NETWORK, {}),
    "git by subprocess": ("python", FAIL.format("echo 'fatal: Could not resolve host: x' >&2; exit 128"), NETWORK, {}),
    "pip in Bash": ("bash", "pip install polars", "nothing can be installed", {}),
    "input": ("python", "name = input('name? ')", STDIN, {}),
    "input after the end": ("python", "input()\ninput()", "more lines than the request's stdin has",
                            {"stdin": "one\n"}),
    "pandas' optional package": ("python", "raise ImportError(\"Missing optional dependency 'odfpy'. "
                                 "Use pip or conda to install odfpy.\")", "odf", {}),
    "parquet": ("python", "import pandas\npandas.DataFrame({'a': [1]}).to_parquet('x')", "Debian does not package",
                {}),
    "a name of pip's": ("python", "import beautifulsoup4", "imported by the name bs4", {}),
    "a part of a package": ("python", "import pandas.nowhere", "not the part of it", {}),
    "a killed program": ("python", FAIL.format("kill -9 $$"), "set limits.memory_bytes above 536870912", {}),
    "a forbidden call": ("python", FAIL.format("kill -31 $$"), "system call that the box forbids", {}),
    "a read-only input": ("python", "open('data.csv', 'w')", "read-only input", {"files": READONLY}),
    "a read-only input, absolute": ("python", "open('/workspace/data.csv', 'a')", "read-only input",
                                    {"files": READONLY}),
    "a read-only input in JavaScript": ("javascript", "require('fs').writeFileSync('data.csv', '')",
                                        "read-only input", {"files": READONLY}),
    "outside": ("python", "open('/etc/new', 'w')", OUTSIDE, {}),
    "outside in JavaScript": ("javascript", "require('fs').writeFileSync('/usr/new', '')", OUTSIDE, {}),
    "outside in Bash": ("bash", "echo x > /etc/new", OUTSIDE, {}),
    "sudo in Bash": ("bash", "sudo ls", ROOT, {}),
    "sudo by a shell": ("python", FAIL.format("sudo ls"), ROOT, {}),
    "sudo itself": ("python", "import subprocess\nsubprocess.run(['sudo', 'ls'])", ROOT, {}),
    "a large object": ("python", "x = bytearray(1 << 40)", "set limits.memory_bytes above 536870912", {}),
    "a recursion": ("python", "def f(): f()\nf()", "recursion that never ends", {}),
    "a task without a loop": ("python", "import asyncio\nasync def f(): pass\nasyncio.create_task(f())",
                              "write 'await f()' at the top", {}),
    "a debugger": ("python", "breakpoint()", "nobody answers a debugger", {}),
    "a recursion in JavaScript": ("javascript", "function f() { f(); }\nf()", "recursion that never ends", {}),
    "a window": ("python", "import matplotlib\nmatplotlib.use('TkAgg')\nimport matplotlib.pyplot as plt\n"
                 "plt.plot([1])", SCREEN, {}),
    "a spawned process": ("python", "import concurrent.futures as c, multiprocessing as m\ndef f(x): return x\n"
                          "with c.ProcessPoolExecutor(1, mp_context=m.get_context('spawn')) as p:\n"
                          "    print(list(p.map(f, [1])))", "__main__", {}),
    "a time zone": ("python", "import zoneinfo\nzoneinfo.ZoneInfo('Europe/Nowhere')", "time zone", {}),
}

FITS_NOT = {
    "a closed port of the box": ("python", "import socket\nsocket.create_connection(('127.0.0.1', 9))", {}),
    "the words in another error": ("python", "raise ValueError('Network is unreachable')", {}),
    "the words on stderr": ("python", "import sys\nprint('Could not resolve host: x', file=sys.stderr)\n1 / 0", {}),
    "the words long before": ("bash", "echo 'Could not resolve host' >&2\n"
                              "for i in {1..500}; do echo 0123456789 >&2; done; exit 3", {}),
    "a file that code itself protected": ("python", "import os\nopen('a', 'w').close()\nos.chmod('a', 0o400)\n"
                                          "open('a', 'w')", {}),
    "an input that may be written": ("python", "import os\nos.chmod('data.csv', 0o400)\nopen('data.csv', 'w')",
                                     {"files": [{"path": "data.csv", "text": "a"}]}),
    "a program that fails by itself": ("python", FAIL.format("exit 3"), {}),
    "an EOFError of another kind": ("python", "import pickle, io\npickle.load(io.BytesIO(b''))", {}),
    "a RangeError of another kind": ("javascript", "new Array(-1)", {}),
    "code that only speaks of pip": ("python", "x = 'pip install'\n1 / 0", {}),
    "a RuntimeError of another kind": ("python", "raise RuntimeError('no')", {}),
}


def hint_of(cupel, language, code, fields):
    result = cupel.run_json(code, language, limits={"timeout_s": 30}, **fields)
    assert result["status"] == "error", result
    return result["error"]["hint"]


@pytest.mark.parametrize("name", FITS)
@pytest.mark.sample(short=3, full=1)
def test_a_failure_of_the_box_has_its_hint(cupel, name):
    language, code, words, fields = FITS[name]
    hint = hint_of(cupel, language, code, fields)
    assert words in (hint or ""), hint


@pytest.mark.parametrize("name", FITS_NOT)
@pytest.mark.sample(short=3, full=1)
def test_another_failure_has_none(cupel, name):
    language, code, fields = FITS_NOT[name]
    assert hint_of(cupel, language, code, fields) is None


def extras(cupel):
    done = cupel.run(["images", "extras", "--json"])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-query"), reason="this host has no dpkg")


@needs_dpkg
def test_the_extras_are_those_of_dpkg(cupel_as):
    told = extras(cupel_as)
    names = [row["package"] for row in told["extras"]]
    shown = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n", *names],
                           capture_output=True, text=True).stdout.splitlines()
    versions = {row.split()[0]: row.split()[2] for row in shown if row.split()[1] == "installed"}
    for row in told["extras"]:
        assert row["version"] == versions.get(row["package"]) or row["kind"] == "language", row
    missing = [row["package"] for row in told["extras"] if not row["version"]]
    assert (told["command"] or "").split()[4:] == missing
    text = cupel_as.run(["images", "extras"]).stdout
    assert "python3-seaborn" in text and "numpy" in text and (not missing or told["command"] in text)


@needs_dpkg
def test_a_missing_package_and_program_name_the_command(cupel):
    told = [row for row in extras(cupel)["extras"] if not row["version"]]
    module = next((row for row in told if row["kind"] == "python"), None)
    program = next((row for row in told if row["kind"] == "program"), None)
    if not module and not program:
        pytest.skip("all packages of dev/image-packages are installed")
    if module:
        for language, code in (("python", f"import {module['name']}"),
                               ("bash", f"python3 -c 'import {module['name']}'")):
            assert f"apt-get install {module['package']}" in hint_of(cupel, language, code, {})
    if program:
        assert f"apt-get install {program['package']}" in hint_of(cupel, "bash", program["name"], {})


def test_javascript_is_not_told_of_python_packages(cupel):
    hint = hint_of(cupel, "javascript", "require('yaml')", {})
    assert "yaml" in hint and "python3" not in hint


@pytest.mark.parametrize("word", ["nowhere", "extra"])
def test_an_unknown_verb_of_images_is_refused(cupel, word):
    done = cupel.run(["images", word])
    assert done.returncode == 2 and word in done.stderr


def test_the_list_is_well_formed():
    rows = [line.split() for line in (host.REPO / "dev/image-packages").read_text().splitlines()
            if line and line[0] != "#"]
    assert all(len(row) in (4, 5) and row[0] in ("base", "extra") and row[1] in ("python", "program", "language")
               and all(len(word) < 96 for word in row) for row in rows)
    assert len({(row[1], row[2]) for row in rows}) == len(rows) < 128
    assert os.path.getsize(host.REPO / "dev/image-packages") < 16384
