"""Seeded runs: the same random numbers, orders and clock in every run (docs/decisions/036-seed-and-clock.md)."""
import json
import os
import time

import pytest

from sessions import Refused, Session

START = 1735689600   # 2025-01-01T00:00:00Z
AT_START = "2025-01-01"

# name: (language, code that prints what a seed fixes)
FIXED = {
    "random": ("python", "import random; print([random.random(), random.choice(range(10**9)), random.gauss(0, 1)])"),
    "a generator without a seed": ("python", "import random; print(random.Random().random())"),
    "random, seeded by nothing": ("python", "import random; random.seed(); print(random.random())"),
    "a forked child": ("python", "import os, random\nfor _ in range(2):\n    if not (pid := os.fork()):\n"
                                 "        print(random.random(), flush=True); os._exit(0)\n    os.waitpid(pid, 0)"),
    "numpy's global generator": ("python", "import numpy as np; print(np.random.rand(3), np.random.randn())"),
    "numpy's default_rng": ("python", "import numpy as np; print(np.random.default_rng().random(3), "
                                      "np.random.default_rng().random())"),
    "numpy, seeded by nothing": ("python", "import numpy as np; np.random.seed(); print(np.random.rand())"),
    "pandas": ("python", "import pandas as pd; print(pd.Series(range(1000)).sample(5).tolist())"),
    "temporary names": ("python", "import tempfile; print(tempfile.mkdtemp())"),
    "the order of a set": ("python", "print({str(n) for n in range(50)}, hash('a'))"),
    "Math.random": ("javascript", "console.log([1, 2, 3].map(Math.random))"),
    "Math.random in TypeScript": ("typescript", "const a: number[] = [Math.random()]; console.log(a)"),
    "RANDOM": ("bash", "echo $RANDOM $RANDOM"),
}
ARCHIVES = {
    "a workbook": "import openpyxl; book = openpyxl.Workbook(); book.active['A1'] = 1; book.save('out')",
    "a table as a workbook": "import pandas as pd; pd.DataFrame({'a': [1]}).to_excel('out.xlsx')",
    "a zip file": "import shutil; open('a', 'w').close(); shutil.make_archive('/tmp/out', 'zip', '.'); "
                  "shutil.move('/tmp/out.zip', 'out')",
    "a tar file": "import tarfile; open('a', 'w').close(); tarfile.open('out', 'w:gz').add('a')",
    "a PDF": "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('out.pdf'); plt.close()",
    "a pickle": "import pickle, random; pickle.dump([random.random()], open('out', 'wb'))",
}
CLOCKS = {
    "time.time": ("python", "import time; print(time.time(), time.time_ns(), time.ctime())"),
    "datetime": ("python", "import datetime; print(datetime.datetime.now(), datetime.date.today())"),
    "pandas": ("python", "import pandas as pd; print(pd.Timestamp.now(), pd.Timestamp.utcnow())"),
    "numpy": ("python", "import numpy as np; print(np.datetime64('now'), np.datetime64('today'))"),
    "a child": ("python", "import subprocess; print(subprocess.check_output(['date', '+%F %T.%N']))"),
    "a child without environment": ("python", "import subprocess; print(subprocess.check_output("
                                              "['/bin/date', '+%F %T.%N'], env={}))"),
    "Date": ("javascript", "console.log(Date.now(), new Date().toISOString())"),
    "date": ("bash", "date -u '+%F %T.%N'; printf '%(%F %T)T\\n'; echo $EPOCHREALTIME"),
}


def output(client, code, language="python", **more):
    result = client.run({"language": language, "code": code, **more})[1]["result"]
    assert result["status"] == "ok", result["error"] or result["stderr"]
    assert result["provenance"]["seed"] == more.get("seed")
    return result["stdout"]


@pytest.mark.parametrize("name", FIXED)
def test_random_numbers_and_orders_follow_from_the_seed(client, name):
    language, code = FIXED[name]
    first = output(client, code, language, seed=7)
    assert first == output(client, code, language, seed=7)
    assert first != output(client, code, language, seed=8)


@pytest.mark.parametrize("name", [name for name in FIXED if name != "the order of a set"])
@pytest.mark.full
def test_without_a_seed_they_differ(client, name):
    """The positive control: what a seed fixes is not fixed by itself."""
    language, code = FIXED[name]
    assert output(client, code, language) != output(client, code, language)


def test_seeds_are_those_of_the_languages_themselves(client):
    ours = output(client, "import random, numpy as np; print(random.random(), np.random.rand())", seed=7)
    own = output(client, "import random, numpy as np; random.seed(7); np.random.seed(7)\n"
                        "print(random.random(), np.random.rand())")
    assert ours == own


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.full
def test_files_that_code_makes_are_the_same(client, name):
    sums = []
    for seed in (7, 7, None):
        request = {"code": ARCHIVES[name], **({} if seed is None else {"seed": seed})}
        result = client.run(request)[1]["result"]
        assert result["status"] == "ok", result["error"]
        sums.append([(one["path"], one["sha256"]) for one in result["artifacts"] if one["path"].startswith("out")])
        time.sleep(2.1 if seed else 0)   # zip counts in steps of two seconds
    assert len(sums[0]) == 1 and sums[0] == sums[1] != sums[2]


@pytest.mark.parametrize("seed", [0, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1])
def test_every_seed_works(client, seed):
    for language, code in (FIXED["random"], FIXED["numpy's global generator"], FIXED["the order of a set"],
                           FIXED["Math.random"], FIXED["RANDOM"]):
        assert output(client, code, language, seed=seed) == output(client, code, language, seed=seed)


@pytest.mark.parametrize("name", CLOCKS)
def test_the_clock_starts_at_the_same_time(client, name):
    language, code = CLOCKS[name]
    first = output(client, code, language, seed=1)
    assert AT_START in first or f"{START}" in first, first
    assert first == output(client, code, language, seed=2)


@pytest.mark.parametrize("name", CLOCKS)
def test_without_a_seed_the_clock_is_true(client, name):
    """The positive control."""
    language, code = CLOCKS[name]
    assert AT_START not in output(client, code, language)


@pytest.mark.full
@pytest.mark.skipif(not os.path.exists("/usr/bin/javac"), reason="no Java on this host")
def test_java_has_the_clock(client):
    code = ("public class Main { public static void main(String[] all) throws Exception {\n"
            "long began = System.currentTimeMillis(); Thread.sleep(2100);\n"
            "System.out.println(java.time.LocalDate.now() + \" \" + (System.currentTimeMillis() - began) / 1000); } }")
    more = {"limits": {"timeout_s": 60, "memory_bytes": 1 << 30}}
    day, passed = output(client, code, "java", seed=1, **more).split()
    assert day == AT_START and int(passed) >= 2, "whole seconds, counted from the start of the virtual machine"
    assert AT_START not in output(client, code, "java", **more)


def test_without_a_seed_nothing_is_loaded(client):
    code = "print([line for line in open('/proc/self/maps') if 'seed' in line])\nimport os\n" \
           "print(os.path.exists('/etc/ld.so.preload'), os.path.exists('/usr/lib/cupel/seed.so'))"
    assert output(client, code) == "[]\nFalse False\n"
    assert output(client, code, seed=1).endswith("True True\n")


def test_the_clock_advances_at_each_look(client):
    times = json.loads(output(client, "import time; print([time.time_ns() for _ in range(5)])", seed=1))
    assert times == [START * 10 ** 9 + 1000 * n for n in range(1, 6)]


def test_the_clock_advances_by_sleeps_and_by_waits(client):
    code = ("import subprocess, time\na = time.time()\ntime.sleep(0.5)\nb = time.time()\n"
            "subprocess.run(['sleep', '1'])\nc = time.time()\nprint(round(b - a, 3), round(c - b, 3))")
    assert output(client, code, seed=1) == "0.5 1.0\n"
    timer = "const a = Date.now(); setTimeout(() => console.log(Date.now() - a), 1000); 0;"
    assert output(client, timer, "javascript", seed=1) == "1000\n"


@pytest.mark.parametrize("wait", ["asyncio.run(asyncio.sleep(0.3))", "threading.Event().wait(0.3)",
                                  "select.select([], [], [], 0.3)", "subprocess.run(['sleep', '0.3'])",
                                  "subprocess.run(['bash', '-c', 'read -t 0.3 <> <(:)'])"])
def test_waits_with_a_timeout_advance_the_clock_by_it(client, wait):
    code = f"import asyncio, select, subprocess, threading, time\na = time.time()\n{wait}\nprint(time.time() - a)"
    assert 0.3 <= float(output(client, code, seed=1)) < 0.302


def test_sleeps_of_threads_pass_at_the_same_time(client):
    code = ("import threading, time\na = time.time()\n"
            "all = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(5)]\n"
            "[one.start() for one in all], [one.join() for one in all]\nprint(round(time.time() - a, 2))")
    assert output(client, code, seed=1) == "0.3\n"


@pytest.mark.full
def test_a_loop_that_waits_for_a_time_ends(client):
    code = "import time\nend = time.time() + 1\nwhile time.time() < end: sum(range(10000))\nprint('over')"
    assert output(client, code, seed=1) == "over\n"


def test_deadlines_of_locks_are_true(client):
    """The kernel waits by the true clock: a deadline in the shown time would be over at once."""
    code = ("import multiprocessing, time\nlock = multiprocessing.Lock()\nlock.acquire()\nbegan = time.monotonic()\n"
            "print(lock.acquire(timeout=0.4), 0.3 < time.monotonic() - began < 3)")
    assert output(client, code, seed=1) == "False True\n"


def test_monotonic_clocks_stay_true(client):
    code = "import time\na = time.monotonic()\ntime.sleep(0.2)\nprint(0.2 <= time.monotonic() - a < 5)"
    assert output(client, code, seed=1) == "True\n"


def test_keys_stay_random(client):
    code = "import os, secrets, uuid; print(os.urandom(8), secrets.token_hex(), uuid.uuid4())"
    assert output(client, code, seed=7) != output(client, code, seed=7)


def test_the_environment_of_the_request_is_kept(client):
    code = ("import os, time; print(hash('a'), time.time(), os.environ.get('LD_PRELOAD'), "
            "os.environ['PYTHONHASHSEED'])")
    env = {"LD_PRELOAD": "/usr/lib/nowhere.so", "PYTHONHASHSEED": "3"}
    result = client.run({"code": code, "seed": 7, "env": env})[1]["result"]
    assert f"{START}.000001 /usr/lib/nowhere.so 3" in result["stdout"]
    assert "nowhere.so" in result["stderr"], "the loader's own complaint, as without a seed"
    assert result["stdout"].split()[0] == output(client, code, env={"PYTHONHASHSEED": "3", "LD_PRELOAD": ""}).split()[0]


HOSTILE = {
    "removed": "import os; os.unlink('/dev/shm/.cupel-clock')",
    "empty": "open('/dev/shm/.cupel-clock', 'r+').write('x' * 7)",
    "a link": "import os; os.unlink('/dev/shm/.cupel-clock'); os.symlink('/etc/passwd', '/dev/shm/.cupel-clock')",
    "a folder": "import os; os.unlink('/dev/shm/.cupel-clock'); os.mkdir('/dev/shm/.cupel-clock')",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_code_that_spoils_its_clock_harms_itself_alone(client, name):
    code = f"{HOSTILE[name]}\nimport time, subprocess; time.time()\nprint(subprocess.run(['date']).returncode)"
    assert output(client, code, seed=1).endswith("0\n")


def test_the_library_cannot_be_written(client):
    code = ("import os\nfor path in ('/usr/lib/cupel/seed.so', '/usr/lib/cupel/preload', '/etc/ld.so.preload'):\n"
            "    for step in (lambda: open(path, 'r+'), lambda: os.unlink(path), lambda: os.chmod(path, 0o777)):\n"
            "        try: step(); print('changed', path)\n        except OSError: pass\n"
            "try: os.symlink('/tmp/x', '/etc/other'); print('made')\nexcept OSError: print('refused')")
    assert output(client, code, seed=1) == "refused\n"
    assert output(client, code) == "refused\n"


def test_a_seeded_run_is_the_same_without_an_engine_and_not_warm_on_one(client, cupel):
    for name in ("random", "Math.random", "RANDOM"):
        language, code = FIXED[name]
        result = client.run({"language": language, "code": code, "seed": 7})[1]["result"]
        assert result["metrics"]["warm"] is False
        assert result["stdout"] == cupel.run_json(code, language, seed=7)["stdout"]
    assert client.run({"code": "1"})[1]["result"]["metrics"]["warm"] is True


CELLS = {
    "python": ["import random, time; print(random.random(), time.time())", "print(random.random(), time.time())",
               "time.sleep(0.2); print(time.time())"],
    "javascript": ["console.log(Math.random(), Date.now())"] * 3,
    "bash": ["echo $RANDOM $EPOCHREALTIME; date +%s.%N"] * 3,
}


@pytest.mark.parametrize("language", CELLS)
@pytest.mark.full
def test_a_seeded_session_repeats_whenever_its_cells_run(client, language):
    told = []
    for pause in (0, 3.3):   # the clock counts true seconds from the third on
        session = Session(client, language=language, request={"seed": 7})
        told.append([])
        for code in CELLS[language]:
            result = session.run(code)
            assert result["status"] == "ok" and result["provenance"]["seed"] == 7
            told[-1].append(result["stdout"])
            time.sleep(pause if len(told[-1]) == 1 else 0)
        session.end()
    assert told[0] == told[1]
    assert f"{START + 60}" in told[0][1] and f"{START + 120}" in told[0][2]


def test_a_cell_cannot_have_another_seed(client):
    session, plain = Session(client, request={"seed": 7}), Session(client)
    assert session.run("1", seed=7)["status"] == "ok"
    for one, seed in ((session, 8), (plain, 7)):
        with pytest.raises(Refused, match="seed"):
            one.run("1", seed=seed)
    session.end()
    plain.end()


def test_a_cell_after_a_long_one_begins_later(client):
    session = Session(client, request={"seed": 7})
    session.run("import time; page = open('/dev/shm/.cupel-clock', 'r+b')")
    first = float(session.run("time.sleep(0); print(time.time() + 0)")["stdout"])
    last = (START + 900) * 10 ** 9
    session.run(f"import struct; page.seek(64); page.write(struct.pack('q', {last})); page.flush()")
    later = float(session.run("print(time.time())")["stdout"])
    session.end()
    assert START + 60 < first < START + 61 and later >= START + 900


def test_a_seeded_session_says_that_it_cannot_be_undone(client):
    """Its interpreter was executed, and can be copied by nobody (docs/sessions.md)."""
    session = Session(client, request={"seed": 7})
    first = session.run("import random; x = random.random(); print(x)")["stdout"]
    session.run("x = 0")
    session.wait_until_idle()
    info = session.info()
    assert info["protected"] is False and "its seed" in info["unprotected"]
    for do in ("undo", "fork"):
        with pytest.raises(Refused, match="its seed"):
            session.ask(do)
    assert session.value("x") == "0"
    assert session.run("import os; os._exit(3)")["state"] == "lost"
    again = session.run("import random, time; print(random.random()); print(time.time())")["stdout"].split()
    assert again[0] == first.strip() and float(again[1]) < START + 3600
    session.end()


def test_the_option_is_the_field(client, cupel):
    done = cupel.run(["run", "--seed", "7", "import random; print(random.random())"])
    assert done.stdout == output(client, "import random; print(random.random())", seed=7)
    refused = cupel.run(["run", "--seed", "1.5", "1"])
    assert refused.returncode == 2 and "seed" in refused.stderr
