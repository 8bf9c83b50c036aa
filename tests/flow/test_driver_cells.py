"""The drivers as a session sees them: started here directly, outside of a box, with pipes as
the channel and as stdio. What an engine would send is sent, and every answer is looked at."""
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

import host

pytestmark = pytest.mark.sample(short=2)
DRIVERS = Path(__file__).resolve().parents[2] / "drivers"
PATIENCE_S = 10   # for what hangs; nothing waits for it otherwise
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
               "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
NODE = ["/usr/bin/node" if os.path.exists("/usr/bin/node") else "node", "--expose-internals",
        "--experimental-vm-modules"]


class Driver:
    """A driver under test, killed and reaped at the end of the block."""

    def __init__(self, command, folder, keep=(), **env):
        self.out, self.err, self.buffer, self.counter, self.ready, self.folder = b"", b"", b"", 0, 0, folder
        self.nonce, self.said = "", set()   # of the question, and of the frames that came since
        self.words, words = os.pipe()
        requests, self.requests = os.pipe()
        home = {"HOME": str(folder), "TMPDIR": str(folder), "MPLCONFIGDIR": str(folder)}

        def arrange():
            os.setsid()
            for fd, place in ((words, 63), (requests, 64), (63, 3), (64, 4)):
                os.dup2(fd, place)
        self.process = subprocess.Popen(command, cwd=folder, env={**ENVIRONMENT, **home, **env}, preexec_fn=arrange,
                                        pass_fds=[3, 4, *keep], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        os.close(words), os.close(requests)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.communicate()
        self.hang_up()
        os.close(self.words)

    def hang_up(self):
        if self.requests >= 0:
            os.close(self.requests)
        self.requests = -1

    def send(self, frame, after=b""):
        raw = (frame if isinstance(frame, bytes) else json.dumps(frame).encode() + b"\n") + after
        while raw:
            raw = raw[os.write(self.requests, raw):]

    def new_nonce(self):
        self.nonce, self.said = os.urandom(16).hex(), set()
        return self.nonce

    def frame(self):
        """The next line from the driver, None at the end; output is read meanwhile."""
        end = time.monotonic() + PATIENCE_S
        while b"\n" not in self.buffer.lstrip(b"\n"):
            assert time.monotonic() < end, (self.buffer[:500], self.out[-500:], self.err[-500:])
            if self.drain(0.02, self.words):
                part = os.read(self.words, 1 << 16)
                if not part:
                    return None
                self.buffer += part.replace(b"\x1e", b"\n")   # as the engine does
        line, _, self.buffer = self.buffer.lstrip(b"\n").partition(b"\n")
        if line != b'{"op":"ready"}':
            frame = json.loads(line)
            self.said.add(frame.pop("nonce", ""))
            return frame
        self.ready += 1
        return self.frame()

    def drain(self, patience=0, *others):
        """Read what the streams have; which of the others can be read."""
        files = [self.process.stdout, self.process.stderr, *others]
        ready = select.select(files, [], [], patience)[0]
        if self.process.stdout in ready:
            self.out += os.read(self.process.stdout.fileno(), 1 << 16)
        if self.process.stderr in ready:
            self.err += os.read(self.process.stderr.fileno(), 1 << 16)
        return [file for file in ready if file in others]

    def answer(self, *last):
        """Frames until one of the given kinds; the output until then."""
        frames = []
        while not frames or frames[-1]["op"] not in last:
            frames.append(self.frame())
            assert frames[-1] is not None, (frames, self.out, self.err, self.process.poll())
        return frames

    def texts(self):
        """What was written since the last time: all of it is there when a cell is done."""
        self.drain()
        self.drain()
        out, err, self.out, self.err = self.out.decode(), self.err.decode(), b"", b""
        return out, err

    def cell(self, code, **fields):
        self.start(code, **fields)
        frames = self.answer("done")
        assert self.said == {self.nonce}
        return Cell(frames, *self.texts())

    def start(self, code, after=b"", **fields):
        self.counter += 1
        self.send({"op": "cell", "nonce": self.new_nonce(), "cell": self.counter, "code": code, "args": [],
                   "call": None, "names": False, **fields}, after)

    def send_interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def interrupt(self):
        """As the engine does it: once more where the cell goes on, which began to wait just then."""
        self.send_interrupt()
        end = time.monotonic() + 1
        while time.monotonic() < end:
            if self.drain(0.1, self.words):
                return
        self.send_interrupt()

    def ask(self, op, **fields):
        self.send({"op": op, "nonce": self.new_nonce(), **fields})
        answer = self.answer(op)[-1]
        assert self.said == {self.nonce}
        return answer

    def names(self):
        return {entry["name"]: entry for entry in self.ask("names")["names"]}

    def complete(self, code):
        answer = self.ask("complete", code=code, cursor=len(code))
        return answer["matches"], answer["start"]

    def end(self, how="end"):
        """The exit status, and what was written at the end."""
        if how == "end":
            self.send({"op": "end"})
        elif how == "close":
            self.hang_up()
        while self.frame() is not None:
            pass
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, (self.out + out).decode(), (self.err + err).decode()


class Cell:
    """What came of one cell."""

    def __init__(self, frames, out, err):
        self.out, self.err, self.done = out, err, frames[-1]
        self.exit_code = self.done["exit_code"]
        self.values = [frame["data"].get("text/plain") for frame in frames if frame["op"] == "result"]
        self.results = [frame["data"] for frame in frames if frame["op"] == "result"]
        self.errors = [frame for frame in frames if frame["op"] == "error"]
        self.fails = [frame for frame in frames if frame["op"] == "fail"]

    @property
    def error(self):
        assert len(self.errors) == 1, (self.errors, self.err)
        return self.errors[0]

    @property
    def value(self):
        assert not self.errors, self.errors
        assert len(self.values) == 1, (self.values, self.out, self.err)
        return self.values[0]


@pytest.fixture
def python(tmp_path):
    with Driver(["/usr/bin/python3", "-S", "-s", str(DRIVERS / "cells.py")], tmp_path) as driver:
        yield driver


class Bash(Driver):
    """The same for Bash, whose messages are lengths and bytes."""

    def __init__(self, folder):
        main = folder / "main.sh"   # beside the driver, as in a box
        main.symlink_to("/proc/self/fd/252")
        for name in ("cells.sh", "driver.sh"):
            (folder / name).symlink_to(DRIVERS / name)
        super().__init__(["/bin/bash", str(main)], folder, BASH_ENV=str(folder / "cells.sh"))

    @staticmethod
    def message(op, code="", stdin="", args=(), env=(), number=0, names=False, nonce="-"):
        fields = [text.encode() for text in (code, stdin, *args,
                                             *[f"{name}={value}" for name, value in dict(env).items()])]
        head = " ".join(map(str, [op, nonce, number, int(names), len(args), *map(len, fields)])) + "\n"
        body = head.encode() + b"".join(fields)
        return b"%015d\n" % len(body) + body

    def start(self, code, names=False, **fields):
        self.counter += 1
        self.send(self.message("cell", code, number=self.counter, names=names, nonce=self.new_nonce(), **fields))

    def send_interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def ask(self, op, code="", cursor=0):
        self.send(self.message(op, code[:cursor], nonce=self.new_nonce()))
        answer = self.answer(op)[-1]
        assert self.said == {self.nonce}
        return answer

    def end(self, how="end"):
        if how == "end":
            self.send(self.message("end"))
            how = "sent"
        return super().end(how)


@pytest.fixture
def javascript(tmp_path):
    with Driver([*NODE, str(DRIVERS / "cells.cjs")], tmp_path) as driver:
        yield driver


@pytest.fixture
def bash(tmp_path):
    with Bash(tmp_path) as driver:
        yield driver


@pytest.fixture(params=["python", "javascript", "bash"])
def driver(request):
    return request.getfixturevalue(request.param)


def language(driver):
    return "bash" if isinstance(driver, Bash) else "python" if "cells.py" in driver.process.args[-1] else "javascript"


def of(driver, python, javascript, bash):
    return {"python": python, "javascript": javascript, "bash": bash}[language(driver)]


def feed(driver, code, text, **fields):
    """A cell with a stdin: bytes after the line for Python, a text in it for the others."""
    if language(driver) != "python":
        return driver.cell(code, stdin=text, **fields)
    raw = text.encode()
    return driver.cell(code, after=raw, stdin_bytes=len(raw), **fields)


# ---- every language ----
def test_it_says_once_that_it_waits(driver):
    for _ in range(2):
        driver.cell("")
    assert driver.ready == 1


def test_state_stays(driver):
    driver.cell(of(driver, "import os\nx = 1\ndef f(): return x\nos.chdir('/')\nos.environ['K'] = 'v'\nfile = "
                   "open('/dev/null')",
                   "let x = 1; const f = () => x; class C {}\nvar v = 2; process.chdir('/'); process.env.K = 'v'",
                   "x=1; f() { echo $x; }; declare -A m=([a]=b); cd /; export K=v; set -f; sleep 100 & job=$!"))
    cell = driver.cell(of(driver, "x = 2\nprint(f(), os.getcwd(), os.popen('echo $K').read().strip(), file.closed)",
                          "x = 2; console.log(f(), process.cwd(), process.env.K, typeof C, v)",
                          "x=2; echo $(f) $PWD $(printenv K) ${m[a]}; jobs -p | grep -c $job; [[ $- == *f* ]] && "
                          "kill $job"))
    assert (cell.out, cell.err, cell.exit_code) == (of(driver, "2 / v False\n", "2 / v function 2\n", "2 / v b\n1\n"),
                                                    "", 0)


def test_an_exit_ends_the_cell_and_keeps_the_session(driver):
    code = of(driver, "x = 5\ndef f():\n    for i in range(3): sys.exit(3)\nimport sys\nf()\nprint('no')",
              "var x = 5; function f() { for (;;) process.exit(3) }\nf(); console.log('no')",
              "x=5; f() { while :; do g; echo no; done; }; g() { exit 3; echo no; }\nf; echo no")
    for _ in range(3):
        cell = driver.cell(code)
        assert (cell.exit_code, cell.out, cell.err, cell.errors) == (3, "", "", [])
    assert driver.cell(of(driver, "print(x)", "console.log(x)",
                          "echo $x; (exit 4); echo $?")).out == of(driver, "5\n", "5\n", "5\n4\n")


def test_an_error_keeps_what_the_cell_did_and_names_the_cells(driver):
    driver.cell(of(driver, "def f(n):\n    return 1 / n\n", "function f(n) {\n  return n.a.b\n}\n",
                   "f() {\n  nothing_here\n}\n"))
    cell = driver.cell(of(driver, "x = 1\nf(0)\nx = 2", "x = 1\nf({})\nx = 2", "x=1\nf\nfalse"))
    assert cell.exit_code == 1
    if language(driver) == "bash":
        assert cell.fails[-1] == {"op": "fail", "line": 3, "code": 1}
        assert cell.fails[0]["line"] == 2 and "nothing_here: command not found" in cell.err
    else:
        assert (cell.error["line"], cell.error["interrupted"], cell.err) == (2, False, "")
        assert cell.error["snippet"] == of(driver, "f(0)", "f({})", None)
        assert of(driver, 'File "<cell 1>", line 2, in f\n    return 1 / n', "<cell-1>:2:14",
                  None) in cell.error["traceback"]
        assert of(driver, 'File "<cell 2>", line 2', "<cell-2>:2:1", None) in cell.error["traceback"]
        assert "cells." not in cell.error["traceback"] and "inspector" not in cell.error["traceback"]
    assert driver.cell(of(driver, "print(x)", "console.log(x)", "echo $x")).out == "1\n"


def test_a_syntax_error_is_told_and_nothing_has_run(driver):
    cell = driver.cell(of(driver, "x = 1\nprint(x)\nif x\n    pass", "var x = 1\nconsole.log(x)\nif (x",
                          "x=1\necho $x\nif true\nfi"))
    assert (cell.error["kind"], cell.error["name"], cell.out) == ("syntax", "SyntaxError", "")
    assert cell.error["line"] == of(driver, 3, 3, 4)
    assert driver.cell(of(driver, "2 + 2", "2 + 2", "exit 0")).exit_code == 0


def test_values(driver):
    if language(driver) == "bash":
        pytest.skip("has none")
    assert driver.cell("6 * 7").value == "42"
    assert driver.cell("41;" if language(driver) == "python" else "void 0").values == []
    assert driver.cell(of(driver, "import asyncio\nawait asyncio.sleep(0, 'slept')",
                          "await new Promise((go) => setTimeout(go, 1, 'slept'))", None)).value == "'slept'"
    cell = driver.cell(of(driver, "def f(a, b=1): return [a, b]", "const f = (a, b) => [a, b.b]", None),
                       call={"function": "f", "args": [1], "kwargs": {"b": 2}})
    assert cell.results[-1]["application/json"] == [1, 2]
    assert "not defined" in driver.cell("1",
                                        call={"function": "g"}).error["message"] or language(driver) == "javascript"


def test_arguments_and_environment(driver):
    show = of(driver, "import os, sys; print(sys.argv[1:], os.environ.get('K'))",
              "console.log(process.argv.slice(2), process.env.K)",
              'echo "$#" "$@" "$K"')
    assert driver.cell(show, args=["a b", "'\"$x\n"], env={"K": "v w"}).out == \
        of(driver, """['a b', '\\'"$x\\n'] v w\n""", "[ 'a b', `'\"$x\\n` ] v w\n", "2 a b '\"$x\n v w\n")
    assert driver.cell(show).out == of(driver, "[] v w\n", "[] v w\n", "0 v w\n")


def test_each_cell_has_its_own_stdin(driver):
    one, all_ = of(driver, ("print(input())", "import sys; print([sys.stdin.read()])"),
                   ("console.log(require('fs').readFileSync(0, 'utf8').split('\\n')[0])",
                    "let text = ''; for await (const part of process.stdin) text += part; console.log(`['${text}']`)"),
                   ("read x; echo $x", "x=$(cat; echo .); echo \"['${x%.}']\""))
    assert feed(driver, one, "a\nb\n").out == "a\n"
    for text in ("c", "", "x" * 70000 + "\n", ""):
        cell = feed(driver, all_, text) if text else driver.cell(all_)
        assert cell.out == of(driver, f"{[text]}\n", f"['{text}']\n", f"['{text}']\n")


def test_an_interrupt_ends_the_cell_and_keeps_the_session(driver):
    loops = of(driver, ["import time\nx = 1\nprint('ready')\nfor _ in range(2000): time.sleep(0.05)",
                        "print('ready')\nwhile True: pass",
                        "import asyncio\nprint('ready')\nawait asyncio.sleep(100)"],
               ["var x = 1; console.log('ready'); while (true);",
                "console.log('ready'); await new Promise((go) => setTimeout(go, 1e6))"],
               ["x=1; echo ready; sleep 100; echo no", "f() { while :; do :; done; }; echo ready; f; echo no"])
    for code in loops:
        driver.start(code)
        end = time.monotonic() + PATIENCE_S
        while b"ready" not in driver.out:
            assert time.monotonic() < end, "the cell never began: was its line lost in an interrupt?"
            driver.drain(0.05)
        time.sleep(0.05)   # node needs it to get from the print to where it can be interrupted
        driver.interrupt()
        cell = Cell(driver.answer("done"), *driver.texts())
        assert (cell.exit_code, cell.error["interrupted"], cell.out) == (130, True, "ready\n")
    driver.interrupt()
    time.sleep(0.05)
    driver.interrupt()
    hush = of(driver, {"hush": True}, {}, {})
    assert driver.cell(of(driver, "print(x)", "console.log(x)", "echo $x"), **hush).out == "1\n"


def test_python_hears_an_interrupt_that_overtakes_its_line(python):
    python.cell("1")
    python.interrupt()
    cell = python.cell("import time\ntime.sleep(100)")
    assert (cell.exit_code, cell.error["interrupted"]) == (130, True)
    assert python.cell("1").value == "1"


def test_the_end_is_that_of_a_program(driver):
    for how in ("end", "close"):
        if how == "close":
            with Bash(make_folder(driver)) if language(driver) == "bash" else Driver(driver.process.args,
                                                                                     driver.folder) as driver:
                check_end(driver, how)
        else:
            check_end(driver, how)


def make_folder(driver):
    folder = driver.folder / "second"
    folder.mkdir()
    return folder


def check_end(driver, how):
    driver.cell(of(driver, "import atexit\natexit.register(print, 'bye')\nfile = open('left', 'w'); file.write('x')",
                   "process.on('exit', () => console.log('bye')); void 0", "trap 'echo bye' EXIT"))
    assert driver.end(how) == (0, "bye\n", "")
    if language(driver) == "python":
        assert (driver.folder / "left").read_text() == "x"


# ---- names ----
def test_names_that_a_cell_adds_changes_and_removes(driver):
    def changed(code):
        names = driver.cell(code, names=True).done["names"]
        return {word: {entry["name"]: entry for entry in names[word]} for word in ("added", "changed", "removed")}
    first = changed(of(driver, "a = [1, 2]\nb = 'text'\n_c = 1\ndef f(x): pass\nimport json",
                       "let a = [1, 2]; var b = 'text'; const _c = 1; function f(x) {}",
                       "a=(1 2); b=text; _c=1; f() { :; }"))
    assert {"a", "b", "f"} <= set(first["added"]) and "_c" not in first["added"]
    assert first["added"]["a"]["type"] == of(driver, "list", "Array", "array") and first["added"]["a"]["length"] == 2
    assert first["added"]["b"]["text"].strip("'") == "text" and first["added"]["f"]["type"] == "function"
    assert changed(of(driver, "1 + 1", "1 + 1", "true")) == {"added": {}, "changed": {}, "removed": {}}
    second = changed(of(driver, "a.append(3)\nb = 1\ndel f", "a.push(3); b = 1", "a+=(3); b=1; unset -f f"))
    assert set(second["changed"]) == {"a", "b"} and second["changed"]["a"]["length"] == 3
    assert set(second["removed"]) == ({"f"} if language(driver) != "javascript" else set())
    listed = driver.names()
    assert {"a", "b"} <= set(listed) and not [name for name in listed if name.startswith("_") or "cupel" in name]


def test_completion(driver):
    driver.cell(of(driver, "class Thing:\n    @property\n    def boom(self): print('called')\n    def grow(self): "
                   "pass\nthing = Thing()\nthing.green = 1",
                   "const thing = { green: 1, get boom() { console.log('called') }, grow() {} }",
                   "thing=1; thing_do() { :; }"))
    matches, start = driver.complete("x = thi" if language(driver) != "bash" else "echo; thi")
    assert "thing" in matches and start == of(driver, 4, 4, 6)
    if language(driver) == "bash":
        assert driver.complete("echo $thi") == (["thing"], 6) and "thing_do" in driver.complete("thin")[0]
    else:
        assert driver.complete("thing.gr") == (["green", "grow"], 6)
        assert driver.complete("thing.boom.x")[0] == [] and driver.complete("nothing.x")[0] == []
    assert len(driver.complete("")[0]) <= 100
    assert driver.texts() == ("", "")


MANY = ("globals().update({f'name_{i:06}_{\"x\" * 90}': i for i in range(100_000)})",
        "for (let i = 0; i < 100000; i++) globalThis[`name_${i}_${'x'.repeat(90)}`] = i",
        "for ((i = 0; i < 3000; i++)); do printf -v name 'name_%06d_%0100d' $i 0; declare -g $name=1; done")


def test_ten_megabytes_of_names_stay_within_the_cap(driver):
    names = driver.cell(of(driver, *MANY), names=True).done["names"]
    assert sum(len(names[word]) for word in ("added", "changed", "removed")) == 200 and names["more"] >= 2800
    answer = driver.ask("names")
    assert len(answer["names"]) == 200 and answer["more"] >= 2800
    long = of(driver, "globals()['n' * 10_000_000] = 1\nx = 'y' * 10_000_000",
              "globalThis['n'.repeat(1e7)] = 1; var x = 'y'.repeat(1e7)",
              "printf -v x '%01000000d' 0")
    driver.cell(long, names=True)
    assert len(json.dumps(driver.ask("names"))) < 1 << 20


# ---- hostile cells ----
def test_a_cell_that_closes_the_channel_ends_the_session(driver):
    driver.start(of(driver, "import os\nos.closerange(3, 1000)",
                    "for (let i = 3; i < 64; i++) try { require('fs').closeSync(i) } catch {}",
                    "exec 250>&-"))
    assert driver.frame() is None
    assert driver.process.wait(PATIENCE_S) is not None


def test_redefined_names_do_not_reach_the_driver(driver):
    driver.cell(of(driver, "import builtins, sys\nfor name in ('len', 'print', 'isinstance', 'open', 'getattr', "
                   "'type'): delattr(builtins, name)\n"
                   "scope = driver = serve = send = receive = None\nsys.stdout = None\n"
                   "del sys.stdin, sys.__stdin__\nsys.argv = None",
                   "var send = null, driver = null, cell = null, names = null; class Map {}; class Promise {}\n"
                   "Object = null; Array = null; setImmediate = null; require = null; process = null; console = "
                   "null; void 0",
                   "read() { echo read; }; printf() { echo printf; }; trap() { echo trap; }; eval() { echo eval; }; "
                   "set -efu; IFS=x; true"))
    cell = driver.cell(of(driver, "sys.stdout = sys.__stdout__\nx = 1\n1 + 1", "1 + 1", "y=2; echo $((1 + 1))"),
                       names=True)
    assert (cell.out if language(driver) == "bash" else cell.value).strip() == "2"
    assert cell.done["names"]["added"] or language(driver) == "javascript"


def test_values_that_do_not_want_to_be_looked_at(driver):
    if language(driver) == "bash":
        pytest.skip("has none")
    cell = driver.cell(of(driver, """
import time
class Meta(type):
    __name__ = property(lambda self: 1 / 0)
    def __getattribute__(self, name): time.sleep(100)
class Loop(metaclass=Meta): pass
class Bad:
    __class__ = property(lambda self: time.sleep(100))
    __dict__ = property(lambda self: time.sleep(100))
    def __repr__(self): time.sleep(100)
    __len__ = __sizeof__ = __hash__ = __eq__ = __bool__ = __getattr__ = __dir__ = __repr__
bad, loop, holder, deep, number = Bad(), object.__new__(Loop), [Bad()], [], 10 ** 100_000
for _ in range(100): deep = [deep]
deep.append(deep)""", """
const forever = () => { for (;;); };
const bad = { get a() { forever() }, get [Symbol.toStringTag]() { forever() }, toJSON: forever, toString: forever,
              [Symbol.for('nodejs.util.inspect.custom')]: forever };
const proxy = new Proxy({}, { get: forever, ownKeys: forever, getPrototypeOf: forever,
    getOwnPropertyDescriptor: forever });
const deep = []; deep.push(deep, bad, proxy); var number = 10n ** 100000n;""", None), names=True)
    assert cell.errors == [] and {"bad", "deep", "number"} <= {entry["name"] for entry in cell.done["names"]["added"]}
    assert all(len(entry["text"]) <= 80 for entry in driver.ask("names")["names"])
    assert driver.complete("bad.")[1] == 4 and driver.complete("holder.x")[1] == 7


# ---- python ----
def test_python_keeps_the_last_value_threads_children_and_tasks(python):
    assert python.cell("[1, 2]").value == "[1, 2]" and python.cell("_ + [3]").value == "[1, 2, 3]"
    assert python.cell("None").values == [] and python.cell("_").value == "[1, 2, 3]"
    python.cell("""
import asyncio, subprocess, threading
done = []
go = threading.Event()
thread = threading.Thread(target=lambda: (go.wait(), done.append('thread')))
thread.start()
child = subprocess.Popen(['sh', '-c', 'sleep 0.1; exit 7'])
async def later():
    await asyncio.sleep(0.01)
    done.append('task')
""")
    python.cell("await asyncio.sleep(0)\ntask = asyncio.create_task(later())")
    cell = python.cell("go.set(); thread.join(); print(child.wait())\nawait task\ndone")
    assert (cell.value, cell.out) == ("['thread', 'task']", "7\n")


def test_python_shows_figures_at_the_end_of_their_cell(python):
    if python.cell("import matplotlib.pyplot as plt").errors:
        pytest.skip("no matplotlib")
    for code, count in (("plt.plot([1, 2]); plt.figure(); plt.plot([3])", 2), ("1;", 0),
                        ("plt.plot([1])\nplt.show()", 1), ("plt.get_fignums()", 0)):
        assert sum("image/png" in result for result in python.cell(code + (";" if count else "")).results) == count


def test_python_exit_codes(python):
    python.cell("import sys")
    for code, status in (("sys.exit()", 0), ("sys.exit('words')", 1), ("exit(4)", 4), ("raise SystemExit(300)", 44),
                         ("1 / 0", 1)):
        assert python.cell(code).exit_code == status, code
    assert feed(python, "print(sys.stdin.read())", "exit() has closed it before").out == "exit() has closed it before\n"
    python.cell("class Bad:\n    def __str__(self): 1 / 0\nsys.stderr = None")
    assert python.cell("sys.exit(Bad())").exit_code == 1 and python.cell("1").value == "1"


def test_python_hears_nothing_between_cells_and_the_codes_own_handler_within(python):
    python.cell("import signal, os\nheard = []\n_ = signal.signal(signal.SIGINT, lambda *a: heard.append(1))")
    python.interrupt()
    assert python.cell("os.kill(os.getpid(), signal.SIGINT)\nheard", hush=True).value == "[1]"
    python.cell("def ring(*a): raise OSError('rung')\n_ = signal.signal(signal.SIGALRM, ring); _ = "
                "signal.setitimer(signal.ITIMER_REAL, 0.05)")
    while b"rung" not in python.err:
        python.drain(0.05)
    assert python.cell("1 + 1").value == "2", "an error between cells is shown, and no more"


def test_python_waits_in_one_system_call_with_nothing_else(python):
    read = {"x86_64": 0, "aarch64": 63}.get(os.uname().machine)
    python.cell("1")
    for _ in range(2):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            call = Path(f"/proc/{python.process.pid}/syscall").read_text().split()
            if call[0] == str(read) and call[1] == "0xfb" or time.monotonic() > deadline:
                break
        assert call[:2] == [str(read), "0xfb"]
        assert os.listdir(f"/proc/{python.process.pid}/task") == [str(python.process.pid)]
        python.send(b'{"op":"cell","cell":9,"co')   # half a line: it goes on waiting there
        time.sleep(0.05)
        python.send(b'de":"6 * 7","args":[],"call":null}\n')
        assert Cell(python.answer("done"), "", "").value == "42"


def test_python_finds_another_channel_under_the_same_number(python):
    """As a copy that was forked from outside does, when it wakes up."""
    for name in ("words", "requests"):
        os.mkfifo(python.folder / name)
    python.cell("import os, threading, time\ndef change():\n    time.sleep(0.2)\n"
                "    words, requests = os.open('words', os.O_RDWR), os.open('requests', os.O_RDWR)\n"
                "    os.dup2(words, 250, inheritable=False), os.dup2(requests, 251, inheritable=False)\n"
                "    os.write(2, b'now')\nthreading.Thread(target=change).start()")
    words, requests = (os.open(python.folder / name, os.O_RDWR) for name in ("words", "requests"))
    while b"now" not in python.err:
        python.drain(0.05)
    python.send({"op": "renew"})   # still heard on the old one, where it waited
    old = python.words, python.requests
    python.words, python.requests = words, requests
    assert python.answer("renewed")
    assert python.cell("1 + 1").value == "2"
    os.close(old[0]), os.close(old[1])


def test_python_renews_what_a_copy_must_have_of_its_own(python):
    python.cell("import random, threading\nrandom.seed(5); state = random.getstate()")
    python.send(b'{"op":"renew"}\n{"op":"cell","cell":7,"code":"state == random.getstate()","args":[],"call":null}\n')
    frames = python.answer("done")
    assert frames[0] == {"op": "renewed"} and frames[1]["data"]["text/plain"] == "False"
    assert python.cell("threading.main_thread().native_id == __import__('os').getpid()").value == "True"


def test_python_children_that_come_back_are_no_driver(python):
    cell = python.cell("import os\npid = os.fork()\nprint('child' if pid == 0 else "
                       "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    assert (cell.out, cell.values) == ("child\n0\n", [])
    assert python.cell("pid > 0").value == "True"


def test_python_describes_what_it_knows(python):
    if python.cell("import numpy as np").errors:
        pytest.skip("no numpy")
    python.cell("a = np.zeros((3, 4)); s = 'x' * 1000; d = {'k': [1, 2.5]}; c = type('C', (), {})")
    names = python.names()
    assert names["a"]["shape"] == [3, 4] and names["a"]["size_bytes"] == 96
    assert names["a"]["text"].startswith("float64 [0.0")
    assert names["s"]["length"] == 1000 and len(names["s"]["text"]) <= 80 and names["d"]["text"] == "{'k': [1, 2.5]}"
    assert python.cell("a[1] = 5", names=True).done["names"]["changed"][0]["name"] == "a"


def test_python_sources_of_cells_are_kept_within_a_cap(python):
    python.cell("def f():\n    raise KeyError('early')\n")
    python.cell("import linecache, inspect\nprint(inspect.getsource(f))")
    for _ in range(3):
        python.cell("#" + "x" * (6 << 20))
    kept = python.cell("sum(len(str(line)) for entry in linecache.cache.values() for line in entry[2])").value
    assert int(kept) < 20_000_000
    assert "early" in python.cell("f()").error["message"]


PREPARED = """
import os, sys
sys.path.insert(0, DRIVERS)
import cells, driver, names
del sys.modules['cells'], sys.modules['driver'], sys.modules['names'], sys.path[0]
cells.names, cells.driver = names, driver
scope = driver.set_world()
if os.fork():
    os.closerange(3, 5)
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
driver.main_pid = os.getpid()
driver.arrive()
cells.serve(scope, cells.receive())"""


def test_a_python_session_in_a_fork_of_a_prepared_interpreter(tmp_path):
    """As the zygote does it: the first line, and what comes with it, is read where all others are."""
    program = PREPARED.replace("DRIVERS", repr(str(DRIVERS)))
    with Driver(["/usr/bin/python3", "-S", "-s", "-c", program, "cells.py"], tmp_path) as driver:
        assert feed(driver, "x = input()\nx", "given").value == "'given'"
        assert driver.cell("x").value == "'given'" and driver.end() == (0, "", "")


def test_a_python_session_that_is_handed_on_in_a_file(tmp_path):
    """With what had come of its stdin; the rest comes as ever."""
    request = {"op": "cell", "cell": 1, "code": "input()", "args": [], "call": None, "stdin_bytes": 9}
    file = os.memfd_create("line")
    os.write(file, json.dumps(request).encode() + b"\nhande")
    os.lseek(file, 0, os.SEEK_SET)
    os.set_inheritable(file, True)
    command = ["/usr/bin/python3", "-S", "-s", str(DRIVERS / "cells.py"), str(file)]
    try:
        with Driver(command, tmp_path, keep=[file]) as driver:
            driver.send(b"d on")
            assert Cell(driver.answer("done"), "", "").value == "'handed on'"
            driver.counter = 1
            assert driver.cell("2").value == "2"
    finally:
        os.close(file)


def test_a_python_program_still_runs_once(tmp_path):
    with Driver(["/usr/bin/python3", "-S", "-s", str(DRIVERS / "driver.py")], tmp_path) as driver:
        driver.send({"op": "run", "code": "def f(): 1 / 0\nprint(__file__)\nf()", "args": [], "call": None,
                     "stdin": False})
        frames = driver.answer("done")
        assert frames[0]["line"] == 1 and 'File "main.py", line 1, in f' in frames[0]["traceback"]
        assert driver.process.wait(PATIENCE_S) == 1


# ---- javascript ----
def test_a_large_cell_shows_only_the_value_of_a_last_expression(javascript):
    """Over 64 KB the driver does not let acorn read it all."""
    many = "\n".join(f"function large{n}(a) {{ return a + {n} }}" for n in range(2500))
    assert len(many) > 64 << 10
    assert javascript.cell(f"{many}\nlarge1(41);\n// end").value == "42"
    assert javascript.cell(f"{many}\nlet exported = 'import'\nfor (const n of [1, 2])\n    large1(n)").values == []
    assert javascript.cell(f"{many}\nimport {{ basename }} from 'node:path'\nbasename('a/b')").value == "'b'"
    assert javascript.cell(f"{many}\n(await import('node:path')).basename('a/c')").value == "'c'"


def test_javascript_declares_again_and_imports(javascript):
    javascript.cell("let a = 1; const b = 1; class C {}")
    assert javascript.cell("const a = 2; const b = 3; class C { x = 1 }\n[a, b, new C().x]").value == "[ 2, 3, 1 ]"
    assert "constant" in javascript.cell("b = 3").error["message"]
    assert javascript.cell("function f() { return 1 }").errors == []
    assert javascript.cell("const f = () => 2; f()").value == "2"
    assert "already been declared" in javascript.cell("let z = 1; let z = 2").error["message"]
    assert javascript.cell("import os, { EOL as end } from 'os'\nimport * as path from 'path'\nexport const q = "
                           "1;\n[typeof os.cpus, end, path.sep, q]").value \
        == "[ 'function', '\\n', '/', 1 ]"
    assert javascript.cell("const fs = require('fs'); (await import('node:fs')).default === fs").value == "true"
    error = javascript.cell("import 'os'\n\nnope()").error
    assert (error["line"], error["column"], error["snippet"]) == (3, 1, "nope()")
    assert javascript.cell("import 'not-there'").error["kind"] == "import"
    assert javascript.cell("JSON.parse('{')").error["kind"] == "exception"
    assert javascript.cell("process.exitCode = 4; 1").exit_code == 4 and javascript.cell("1").exit_code == 0


def test_javascript_errors_between_cells_are_told_with_the_next(javascript):
    javascript.cell("setTimeout(() => { throw new Error('late') }, 1); setTimeout(() => process.exit(3), 1); "
                    "Promise.resolve().then(() => {})")
    time.sleep(0.2 * host.slowness())
    cell = javascript.cell("console.log('on')")
    assert (cell.out, cell.exit_code) == ("on\n", 0)
    assert "Error: late\n    at Timeout._onTimeout (<cell-1>:1" in cell.err
    assert javascript.cell("1").err == ""
    cell = javascript.cell("setTimeout(() => { throw new TypeError('mine') }, 1); await new Promise(() => {})")
    assert (cell.error["message"], cell.exit_code) == ("mine", 1)
    assert javascript.cell("Promise.reject(new Error('unheard')); 1").error["message"] == "unheard"
    javascript.cell("process.removeAllListeners(); setTimeout(() => { throw 1 }, 100); void 0")
    assert javascript.cell("await new Promise((go) => setTimeout(go, 200)); 1").exit_code == 1


# ---- bash ----
def test_bash_leaves_a_cell_by_set_e_and_keeps_the_option(bash):
    cell = bash.cell("set -e; f() { false; echo no; }\nx=1; f; echo no")
    assert (cell.exit_code, cell.out, cell.fails[0]["line"]) == (1, "", 2)
    assert bash.cell("echo $x $-").out.startswith("1 e") and bash.cell("false || echo fine; ! true").out == "fine\n"
    assert bash.cell("set +e; false; echo on").out == "on\n"


def test_bash_goes_on_in_a_fork_where_the_shell_itself_exits(bash):
    first = bash.cell("echo $BASHPID; declare -A m=([k]=v); f() { echo f; }").out
    for code, status in (("set -u; echo $nope; echo no", 1), ("set +u; builtin exit 9", 9),
                         (": ${nope:?gone}; echo no", 1)):
        cell = bash.cell(code)
        assert (cell.exit_code, cell.out) == (status, ""), code
        assert bash.cell("set +u; echo ${m[k]} $(f)").out == "v f\n"
    assert bash.cell("echo $BASHPID").out != first
    bash.start("echo ready; sleep 100")
    while b"ready" not in bash.out:
        bash.drain(0.05)
    bash.interrupt()
    assert Cell(bash.answer("done"), *bash.texts()).exit_code == 130
    assert bash.cell("exit 3").exit_code == 3 and bash.end()[1:] == ("", "")


def test_bash_traps_and_jobs_of_the_code(bash):
    bash.cell("trap 'echo mine' INT; trap 'echo err' ERR; (exit 5) & job=$!")
    assert bash.cell("kill -INT $$; false; wait $job; echo $?").out == "mine\nerr\nerr\n5\n"
    bash.interrupt()
    assert bash.cell("trap - INT ERR; echo fine").out == "fine\n"
    assert bash.cell("set -x\necho traced\nset +x").err.replace("+", "") == " echo traced\n set x\n"
    assert bash.cell("break; echo no").out == "" and bash.cell("continue 3; echo no").out == ""
    assert bash.cell("return 4").exit_code == 4
    assert bash.cell("echo 'ü\t\"\\' $'\\x01'").out == "ü\t\"\\ \x01\n"


SCRIPTS = {
    "arguments": ('echo "$0" $#; for a in "$@"; do echo "<$a>"; done', ["a b", "$x'\"\n", "", "ü"]),
    "places": ("echo $LINENO\n\nnope\nf() { echo $LINENO ${BASH_SOURCE[0]##*/} ${FUNCNAME[@]}; caller; }\nf\necho "
               "${#BASH_SOURCE[@]}", []),
    "an exit": ("trap 'echo bye $?' EXIT; exit 3", []), "set -e": ("set -e\ntrue\nfalse\necho no", []),
    "no syntax": ("echo a\nif true\nfi", []), "no syntax at once": ("if fi", []), "no end": ("echo 'a", []),
    "a return": ("return 3; echo on $?", []), "stdin": ("cat; read x; echo $?", []),
    "a first line": ("#!/bin/bash\necho hi", []),
    "unset": ("set -u; echo $nope", []), "files": ("ls /proc/self/fd | tr '\\n' ' '; ls -A", []), "nothing": ("", []),
    "options": ("echo $-; shopt; trap -p | grep -v fail; set | grep -i cupel; declare -F", []),
    "tracing": ("set -x; echo a", []),
    "an ERR trap": ("f() { false; }; trap 'echo mine' ERR; f", []), "long": ("echo a\n" * 2000 + "echo $LINENO", []),
    "environment": ('echo "$K"; env | grep -c ^K=; echo $LC_ALL', []), "a signal": ("kill -TERM $$", []),
    "all names": ("compgen -v; compgen -A function; compgen -e; echo \"$!\" $? ${#PIPESTATUS[@]}", []),
    "extglob": ("shopt -s extglob\ncase a in !(b)) echo x;; esac", []),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_bash_that_waited_is_as_one_that_was_started_with_the_code(tmp_path, name):
    code, args = SCRIPTS[name]
    work = tmp_path / "work"
    work.mkdir()
    main = tmp_path / "main.sh"

    def finish(driver):
        frames = []
        while (frame := driver.frame()) is not None:
            frames.append(frame)
        out, err = driver.process.communicate(timeout=PATIENCE_S)
        return driver.process.returncode, driver.out + out, driver.err + err, frames
    main.write_text(code)
    with Driver(["/bin/bash", str(main), *args], work, BASH_ENV=str(DRIVERS / "driver.sh"), K="a b") as driver:
        cold = finish(driver)
    main.unlink()
    main.symlink_to("/proc/self/fd/252")
    with Driver(["/bin/bash", str(main)], work, BASH_ENV=str(DRIVERS / "cells.sh")) as driver:
        driver.send(Bash.message("run", code, args=args, env={"K": "a b"}))
        assert finish(driver) == cold
