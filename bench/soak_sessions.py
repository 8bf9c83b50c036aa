#!/usr/bin/python3
"""Many sessions with random cells, interrupts, undos, checkpoints, forks, files and deaths of all
kinds, against a model of what the state must be: every answer is compared. What the engine and the
broker hold is looked at between rounds, when no session lives: nothing may grow. Sessions are
numbered and each depends on the seed and its number alone: `--only N` runs one again."""
import argparse
import base64
import contextlib
import copy
import ctypes
import hashlib
import json
import os
import random
import sys
import threading
import time
from pathlib import Path

import common
import leak
import soak

sys.path.insert(0, str(common.REPO / "tests"))
import engine  # noqa: E402

ROUNDS = 12          # looks at what is held: one after each
QUIET_S = 30         # for the boxes of ended sessions to be gone
SLOW_S = 60          # for a cell that should end by itself
DIES_S = 2.5         # for one that must be ended
PAGE_KIB = 1024      # what an allocator may keep more of in a quiet process
STORE_KIB = 8192     # the pages of the database that the thread of records keeps (src/store/db/db.c)
# What an engine at rest may hold more of at the end than after the first rounds.
AT_REST = {"serve descriptors": 8, "broker descriptors": 16, "processes": 8, "control groups": 16,
           "serve KiB": STORE_KIB + 2 * PAGE_KIB, "broker KiB": PAGE_KIB // 2}

# Cases that are known to be wrong: a line goes when it is mended.
LEFT_OUT = {"interrupts in JavaScript", "an interrupt that is repeated"}

# Runs in the box at the end of each cell, in names of its own.
PROBE = r'''
import hashlib, json, os, random, sys
def show(value):
    kind = type(value).__name__
    if kind in ("int", "list", "dict"): return value
    if kind == "ndarray": return [kind, str(value.dtype), list(value.shape),
                                  value.tolist() if value.size < 100 else int(value.sum())]
    if kind == "DataFrame": return [kind, value.to_dict("list")]
    return [kind, value(7) if kind == "function" else None]
def look(top):
    for folder, folders, names in os.walk(top):
        for name in folders + names:
            path = os.path.join(folder, name)
            if os.path.islink(path): yield os.path.relpath(path, top), "to " + os.readlink(path)
            elif os.path.isdir(path): yield os.path.relpath(path, top), "folder"
            else: yield os.path.relpath(path, top), "%o %s" % (os.stat(path).st_mode & 0o777,
                        hashlib.sha1(open(path, "rb").read()).hexdigest())
state = sys.modules["numpy.random"].get_state() if "numpy.random" in sys.modules else None
print("VIEW" + json.dumps({
    "names": {name: show(value) for name, value in sorted(seen.items())
              if name[0] != "_" and name not in ("In", "Out") and type(value).__name__ != "module"},
    "cwd": os.getcwd(), "env": {name: os.environ[name] for name in os.environ if name.startswith("SOAK_")},
    "files": dict(look("/workspace")), "random": hashlib.sha1(repr(random.getstate()).encode()).hexdigest(),
    "numpy": state and hashlib.sha1(state[1].tobytes() + b"%d" % state[2]).hexdigest()}), flush=True)
'''
PROBES = {
    "python": f"exec({PROBE!r}, {{'seen': globals()}})\n",
    "javascript": "console.log('VIEW' + JSON.stringify({names: Object.fromEntries(['i0', 'i1', 'i2'].filter(n => "
                  "globalThis[n] !== undefined).map(n => [n, globalThis[n]])), cwd: process.cwd(), env: "
                  "Object.fromEntries(Object.entries(process.env).filter(([n]) => n.startsWith('SOAK_')))}))\n",
    "bash": "printf 'VIEW{\"names\":{'; __cupel_c=; for __cupel_n in i0 i1 i2; do [ -n \"${!__cupel_n}\" ] && "
            "printf '%s\"%s\":%s' \"$__cupel_c\" $__cupel_n \"${!__cupel_n}\" && __cupel_c=,; done; "
            "printf '},\"cwd\":\"%s\",\"env\":{' \"$PWD\"; __cupel_c=; for __cupel_n in SOAK_A SOAK_B SOAK_S; do "
            "[ -n \"${!__cupel_n}\" ] && printf '%s\"%s\":\"%s\"' \"$__cupel_c\" $__cupel_n \"${!__cupel_n}\" && "
            "__cupel_c=,; done; echo '}}'\n",
}


class Gone(Exception):
    """The client of a cell leaves."""


class Wrong(Exception):
    """An answer that is not what the model says."""


class State:
    """What a session has at one moment."""

    def __init__(self, env):
        self.born_with, self.files, self.folders = env, {}, set()  # path -> (octal mode, bytes)
        self.lose_names()

    def lose_names(self):
        self.names, self.env, self.cwd = {}, dict(self.born_with), "/workspace"
        self.random = self.numpy = None  # generators, once they are seeded
        self.thread = False

    def view(self, language):
        seen = {"names": self.names, "cwd": self.cwd, "env": self.env}
        if language != "python":
            return seen
        files = {path: f"{mode} {hashlib.sha1(data).hexdigest()}" for path, (mode, data) in self.files.items()}
        seen["files"] = {**files, **{path: "folder" for path in self.folders}}
        if self.random:
            seen["random"] = hashlib.sha1(repr(self.random.getstate()).encode()).hexdigest()
        if self.numpy:
            state = self.numpy.get_state()
            seen["numpy"] = hashlib.sha1(state[1].tobytes() + b"%d" % state[2]).hexdigest()
        return json.loads(json.dumps(seen))

    def write(self, path, data, mode="644"):
        self.files[path] = (mode, data)
        while "/" in path:
            path = path.rpartition("/")[0]
            self.folders.add(path)


class Kept:
    """A state that the engine keeps, and the names that it has as a checkpoint."""

    def __init__(self, state, cell):
        self.state, self.cell, self.named = copy.deepcopy(state), cell, False


# --- what a cell does: each changes the state and gives the code that does the same ---

def set_int(s, r):
    name, n = r.choice(("i0", "i1", "i2")), r.randrange(1, 10 ** 6)
    if name in s.names and r.random() < 0.5:
        s.names[name] += n
        return f"{name} += {n}"
    s.names[name] = n
    return f"{name} = {n}"


def set_list(s, r):
    name, n = r.choice(("l0", "l1")), r.randrange(1000)
    if isinstance(s.names.get(name), list):
        s.names[name] = s.names[name][-20:] + [n]
        return f"{name}.append({n}); del {name}[:-21]"
    s.names[name] = [n]
    return f"{name} = [{n}]"


def set_dict(s, r):
    key, n = r.choice("abcd"), r.randrange(1000)
    s.names.setdefault("d0", {})[key] = n
    return f"d0 = globals().get('d0', {{}}); d0[{key!r}] = {n}"


def set_array(s, r):
    n, factor = r.randrange(1, 30), r.randrange(1, 9)
    if "n0" in s.names and r.random() < 0.5:
        kind, dtype, shape, values = s.names["n0"]
        s.names["n0"] = [kind, dtype, shape, [value * factor for value in values]]
        return f"n0 *= {factor}"
    s.names["n0"] = ["ndarray", "int64", [n], [value * factor for value in range(n)]]
    return f"import numpy as np; n0 = np.arange({n}) * {factor}"


def set_large(s, r):
    n = r.randrange(1, 9)
    s.names["n1"] = ["ndarray", "int64", [1 << 20], n << 20]
    return f"import numpy as np; n1 = np.full({1 << 20}, {n})"


def set_frame(s, r):
    n = r.randrange(1000)
    s.names["p0"] = ["DataFrame", {"a": [n, n + 1], "b": [1, 2]}]
    return f"import pandas as pd; p0 = pd.DataFrame({{'a': [{n}, {n + 1}], 'b': [1, 2]}})"


def set_function(s, r):
    n = r.randrange(1000)
    s.names["f0"] = ["function", 7 * n + 1]
    return f"def f0(x, n={n}): return x * n + 1"


def drop_name(s, r):
    if not s.names:
        return "pass"
    name = r.choice(sorted(s.names))
    del s.names[name]
    return f"del {name}"


def seed(s, r):
    n = r.randrange(10 ** 6)
    s.random = random.Random(n)
    if r.random() < 0.5:
        import numpy
        s.numpy = numpy.random.RandomState(n)
        return f"import random, numpy; random.seed({n}); numpy.random.seed({n})"
    return f"import random; random.seed({n})"


def draw(s, r):
    if s.random:
        s.names["i2"] = s.random.randrange(10 ** 9)
    if s.numpy:
        s.names["i1"] = int(s.numpy.randint(10 ** 6))
    return "; ".join(["import random, numpy"] + ["i2 = random.randrange(10 ** 9)"] * bool(s.random)
                     + ["i1 = int(numpy.random.randint(10 ** 6))"] * bool(s.numpy))


def set_env(s, r):
    name, value = r.choice(("SOAK_A", "SOAK_B")), str(r.randrange(1000))
    if name in s.env and r.random() < 0.3:
        del s.env[name]
        return f"import os; del os.environ[{name!r}]"
    s.env[name] = value
    return f"import os; os.environ[{name!r}] = {value!r}"


def change_folder(s, r):
    s.cwd = r.choice(("/workspace", "/workspace/home0", "/workspace/home1", "/tmp"))
    return f"import os; os.chdir({s.cwd!r})"


def write_file(s, r):
    path, n, times = r.choice(("a", "b", "s/c", "s/t/d")), r.randrange(10 ** 6), r.choice((1, 1, 9, 40000))
    mode = r.choice(("644", "600", "755"))
    s.write(path, b"%d," % n * times, mode)
    s.touched.add(path)
    return f"import os; os.makedirs(os.path.dirname('/workspace/{path}'), exist_ok=True); " \
           f"_h = open('/workspace/{path}', 'wb'); _h.write(b'{n},' * {times}); _h.close(); " \
           f"os.chmod('/workspace/{path}', 0o{mode})"


def append_file(s, r):
    path, n = r.choice(("a", "log")), r.randrange(10 ** 6)
    mode, data = s.files.get(path, ("644", b""))
    s.write(path, data + b"%d\n" % n, mode)
    s.touched.add(path)
    return f"_h = open('/workspace/{path}', 'ab'); _h.write(b'{n}\\n'); _h.close()"


def remove_file(s, r):
    if not s.files:
        return "pass"
    path = r.choice(sorted(s.files))
    del s.files[path]
    s.touched.discard(path)
    return f"import os; os.remove('/workspace/{path}')"


def remove_folder(s, r):
    for path in [path for path in s.files if path.startswith("s/")]:
        del s.files[path]
        s.touched.discard(path)
    s.folders = {path for path in s.folders if path.split("/")[0] != "s"}
    return "import shutil; shutil.rmtree('/workspace/s', ignore_errors=True)"


def start_thread(s, r):
    if s.thread:
        s.thread = False
        return "_e.set(); _t.join()"
    s.thread = True
    return "import threading; _e = threading.Event(); _t = threading.Thread(target=_e.wait, daemon=True); _t.start()"


DEEDS = [(set_int, 4), (set_list, 3), (set_dict, 2), (set_array, 2), (set_large, 0.5), (set_frame, 0.5),
         (set_function, 2), (drop_name, 1.5), (seed, 1), (draw, 2), (set_env, 1.5), (change_folder, 1),
         (write_file, 4), (append_file, 2), (remove_file, 1), (remove_folder, 0.7), (start_thread, 0.4)]


def foreign(s, r, language):
    """The like in JavaScript and Bash: names, environment, folder, files."""
    kind, name, n = r.randrange(4), r.choice(("i0", "i1", "i2")), r.randrange(1, 1000)
    js = language == "javascript"
    if kind == 0:
        s.names[name] = n
        return f"var {name} = {n}" if js else f"{name}={n}"
    if kind == 1:
        s.env["SOAK_A"] = str(n)
        return f"process.env.SOAK_A = '{n}'" if js else f"export SOAK_A={n}"
    if kind == 2:
        s.cwd = r.choice(("/workspace", "/workspace/home0", "/tmp"))
        return f"process.chdir('{s.cwd}')" if js else f"cd {s.cwd}"
    s.write("a", b"%d\n" % n)
    s.touched.add("a")
    return f"require('fs').writeFileSync('/workspace/a', '{n}\\n')" if js else f"echo {n} >/workspace/a"


# --- how a cell ends ---
# name: (code, status, exit code, signal, seconds that it has)
ENDS = {
    "python": {
        "raise": ("raise ValueError('soak')", "error", 1, None, SLOW_S),
        "exit": ("import sys; sys.exit(7)", "error", 7, None, SLOW_S),
    },
    "javascript": {
        "raise": ("throw new Error('soak')", "error", 1, None, SLOW_S),
        "exit": ("process.exit(7)", "error", 7, None, SLOW_S),
    },
    "bash": {
        "raise": ("false", "error", 1, None, SLOW_S),
        "exit": ("exit 7", "error", 7, None, SLOW_S),
    },
}
OVER = {   # over their time: they obey the interrupt, unless a rollback is wanted, which is a death
    "python": {
        "timeout": ("while True: pass", "timeout", 130, None, DIES_S),
        "sleep": ("import time; time.sleep(60)", "timeout", 130, None, DIES_S),
    },
    "javascript": {"timeout": ("while (true);", "timeout", 130, None, DIES_S)},
    "bash": {"timeout": ("while :; do :; done", "timeout", 130, None, DIES_S)},
}
DEATHS = {
    "python": {
        "_exit": ("import os; os._exit(3)", "error", 3, None, SLOW_S),
        "_exit in a thread": ("import os, threading, time\nthreading.Thread(target=os._exit, args=(5,)).start()\n"
                              "time.sleep(60)", "error", 5, None, SLOW_S),
        "exec in a thread": ("import os, threading, time\nthreading.Thread(target=os.execv, args=('/bin/sh', "
                             "['sh', '-c', 'exit 6'])).start()\ntime.sleep(60)", "error", 6, None, SLOW_S),
        "first thread": ("import ctypes, os, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), "
                         "os._exit(8))).start()\nctypes.CDLL(None).syscall(60, 0)  # of x86_64: exit of one thread",
                         "error", 8, None, SLOW_S),
        "kill": ("import os; os.kill(os.getpid(), 9)", "killed", None, 9, SLOW_S),
        "kill all": ("import os, contextlib\nwith contextlib.suppress(OSError): os.kill(-1, 9)\n"
                     "os.kill(os.getpid(), 9)", "killed", None, 9, SLOW_S),
        "segfault": ("import ctypes; ctypes.string_at(0)", "killed", None, 11, SLOW_S),
        "abort": ("import os; os.abort()", "killed", None, 6, SLOW_S),
        "memory": ("import time; _b = b'x' * (300 << 20); time.sleep(60)", "memory_limit", None, 9, SLOW_S),
        "descriptors": ("import os; os.closerange(0, 65536)", "error", 1, None, SLOW_S),
        "channel": ("import os; os.closerange(3, 65536)", "error", 1, None, SLOW_S),
        "stop": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timeout", None, 9, DIES_S),
        "bomb": ("import os, time\nfor _ in range(200):\n    try: os.fork()\n    except OSError: pass\n"
                 "time.sleep(60)", "timeout", None, 9, DIES_S),
    },
    "javascript": {
        "kill": ("process.kill(process.pid, 'SIGKILL')", "killed", None, 9, SLOW_S),
        "abort": ("process.abort()", "killed", None, 6, SLOW_S),
    },
    "bash": {
        "kill": ("kill -9 $$", "killed", None, 9, SLOW_S),
        "kill all": ("kill -9 -1; kill -9 $$", "killed", None, 9, SLOW_S),
    },
}
READY = {"python": "print('ready', flush=True)\n", "javascript": "console.log('ready')\n", "bash": "echo ready\n"}
WAITS = {"python": ("while True: pass", "import time\nwhile True: time.sleep(0.05)"),
         "javascript": ("while (true);", "await new Promise(done => setTimeout(done, 60000))"),
         "bash": ("sleep 60", "while :; do :; done")}


class Talk(engine.Client):
    """One connection on which answers may come in any order."""

    connecting = threading.Lock()  # it is done under the user's uid, which all threads share

    def __init__(self, path, uid):
        with self.connecting:
            super().__init__(path, uid=uid)
        self.__enter__()
        self.count, self.came = 0, {}

    def close(self):
        self.sock.close()

    def post(self, frame, **fields):
        self.count += 1
        self.send({**frame, "id": str(self.count), **fields})
        return str(self.count)

    def wait(self, id, on_event=lambda event: None):
        """(the answer, its events)"""
        while not self.came.get(id) or "event" in self.came[id][-1]:
            frame = self.receive()
            if "id" not in frame and "event" in frame:
                continue  # of a session between its cells: its next answer says it, too
            self.came.setdefault(frame["id"], []).append(frame)
            if frame["id"] == id and "event" in frame:
                on_event(frame)
        *events, answer = self.came.pop(id)
        return answer, events


class Model:
    """What the engine must say of one session."""

    def __init__(self, language, env, most, keeps):
        self.language, self.most, self.keeps = language, most, keeps
        self.state, self.cells, self.since = State(env), 0, 0
        self.stack, self.named, self.protected = [], {}, False
        if keeps:
            self.keep()

    def keep(self):
        self.protected = self.keeps and not self.state.thread
        if self.protected:
            self.stack = self.stack[-self.most:] if self.most else []
            self.stack.append(Kept(self.state, self.cells))
            self.since = 0

    def be_at(self, kept):
        at = next((at for at, level in enumerate(self.stack) if level.cell == kept.cell), 0)
        self.stack = [*self.stack[:at], kept]
        self.state, self.since, self.protected = copy.deepcopy(kept.state), 0, True

    def cell_ended(self, after, died, failed, rollback):
        """The word for what became of the state."""
        if died and self.stack or failed and rollback and self.protected:
            self.be_at(self.stack[-1])
            return "rolled_back"
        self.state = after
        if died:
            self.state.lose_names()
            self.named, self.protected, self.since = {}, False, 0
            return "lost"
        self.since += 1
        self.keep()
        return "kept"

    def undo_to(self):
        """Where an undo leads now, or None."""
        back = 2 if self.protected else 1
        return self.stack[-back] if len(self.stack) >= back and self.since <= 1 else None

    def undo_levels(self):
        steps = len(self.stack) - 1 if self.protected else len(self.stack)
        return max(0, steps) if self.protected or self.since == 1 else 0

    def info(self):
        return {"language": self.language, "status": "idle", "cell": self.cells, "protected": self.protected,
                "undo": {"levels": self.undo_levels(), "most": self.most}, "ended": None,
                "checkpoints": sorted([name, kept.cell] for name, kept in self.named.items())}

    def put(self, path, data):
        self.state.write(path, data)
        if self.protected and self.stack[-1].named:  # a checkpoint stays what it is
            self.stack[-1] = Kept(self.state, self.stack[-1].cell)
        elif self.protected:  # what is put belongs to the state that is kept
            self.stack[-1].state.write(path, data)


def expect(what, got, wanted):
    if got != wanted:
        raise Wrong(f"{what}: it says {got}, the model {wanted}")


class Actor:
    """One session, its model, and the steps that both take."""

    def __init__(self, talk, chance, tally, counted, model=None, id=None):
        """`counted`: control groups count memory and processes; else there is a MemoryError, and no bound."""
        self.talk, self.chance, self.tally, self.counted = talk, chance, tally, counted
        self.unknown, self.log, self.answers = False, [], []  # unknown: what its state is, from here on
        if model:  # a fork
            self.model, self.id, self.small = model, id, False
            return
        language = chance.choices(("python", "javascript", "bash"), (8, 1, 1))[0]
        env = {"SOAK_S": str(chance.randrange(99))} if chance.random() < 0.3 else {}
        most, self.small = chance.choice((3, 3, 0, 1, 6)), language == "python" and chance.random() < 0.25
        files = [{"path": f"home{n}/of", "text": str(n)} for n in range(2)]
        limits = {"memory_bytes": 192 << 20} if self.small else {}
        answer = self.ask("new", undo_levels=most, request={"language": language, "env": env, "files": files,
                                                            "limits": limits})
        self.id = answer["session"]["session"]
        self.model = Model(language, env, most, keeps=False)
        self.model.keeps = self.rest()["protected"]
        if self.model.keeps and language != "python":
            raise Wrong("a session that cannot be copied says that it is protected")
        for file in files:
            self.model.put(file["path"], file["text"].encode())
        if self.model.keeps:
            self.model.keep()

    # --- talking ---

    def count(self, what):
        self.tally[what] = self.tally.get(what, 0) + 1

    def post(self, do, **fields):
        self.log.append((do, fields))
        own = {} if do == "new" else {"session": self.id}
        return self.talk.post({"op": "session", "do": do, **own, **fields})

    def ask(self, do, refused=None, **fields):
        answer, self.events = self.talk.wait(self.post(do, **fields))
        self.log.append(("->", answer))
        if ("error" in answer) != bool(refused) or refused and answer["error"]["kind"] != refused:
            raise Wrong(f"'{do}' was {'not refused' if refused else 'refused'}: {answer}")
        return answer

    def rest(self):
        """INFO once nothing goes on."""
        until = time.monotonic() + QUIET_S
        while (info := self.ask("info")["session"])["status"] in ("busy", "running"):
            del self.log[-2:]
            if time.monotonic() > until:
                raise Wrong(f"it does not come to rest: {info}")
            time.sleep(0.002)
        return info

    # --- cells ---

    def deeds(self, state):
        state.touched = set()
        if self.model.language != "python":
            return [foreign(state, self.chance, self.model.language) for _ in range(self.chance.randint(1, 3))]
        does, weights = zip(*DEEDS)
        return [does(state, self.chance) for does in self.chance.choices(does, weights, k=self.chance.randint(1, 4))]

    def pick_end(self):
        """(name, code, status, exit code, signal, seconds, died)"""
        language, draw = self.model.language, self.chance.random()
        if draw < 0.6:
            return "ok", "", "ok", 0, None, SLOW_S, False
        table = ENDS[language] if draw < 0.72 else OVER[language] if draw < 0.78 else DEATHS[language]
        name = self.chance.choice(sorted(table))
        if name == "memory" and not (self.small and self.counted) or name == "bomb" and self.chance.random() < 0.5:
            name = "kill"
        code, status, exit_code, signal, seconds = table[name]
        if name == "bomb" and not self.counted:
            code = "import os, time\nfor _ in range(30): os.fork() or time.sleep(60)\ntime.sleep(60)"
        return name, code, status, exit_code, signal, seconds, table is DEATHS[language]

    def cell(self):
        """(frame, check): the model is a step further already."""
        model, after = self.model, copy.deepcopy(self.model.state)
        request, name, *ends, _, died = self.cell_request(after)
        wanted, touched = after.view(model.language), sorted(after.touched)
        model.cells += 1
        state = model.cell_ended(after, died, ends[0] != "ok", request.get("on_error") == "rollback")
        facts = [*ends, state, model.cells, self.id, [] if state == "rolled_back" else touched]
        self.count(f"{name}: {state}")

        def check(answer):
            if "result" not in answer:
                raise Wrong(f"a cell was refused: {answer}")
            result = answer["result"]
            known = (ends[0], state, result["state"]) == ("timeout", "rolled_back", "lost")
            if known and "a timeout that loses" in LEFT_OUT:
                self.unknown = True
                self.count("timeout: lost, and should not")
            elif ends == ["timeout", 130, None] and result["state"] != "kept":
                expect("a slow end", [result["status"], result["signal"]], ["timeout", 9])
                self.unknown = True   # a loaded host: the grace was too short
                self.count("timeout: slower than its grace")
            elif ends[0] == result["status"] == "timeout" and "VIEW" not in result["stdout"]:
                self.unknown = self.unknown or state != "rolled_back"  # it had not even begun: its state is not known
                expect("the cell", [result["state"], result["cell"]], [state, facts[4]])
            else:
                self.compare(result, facts, wanted)
        return {"op": "run", "request": request}, check

    def cell_request(self, after):
        """(request, and what pick_end gives): `after` becomes what it leaves."""
        name, code, *ends = self.pick_end()
        request = {"session": self.id, "limits": {"timeout_s": ends[3], "cpu_s": SLOW_S}}
        if self.chance.random() < 0.1:
            request["files"] = [{"path": "given", "text": str(self.chance.randrange(10 ** 6))}]
            after.write("given", request["files"][0]["text"].encode())
        if self.chance.random() < 0.1:
            request["env"] = {"SOAK_B": str(self.chance.randrange(99))}
            after.env.update(request["env"])
        if self.chance.random() < 0.2 or name == "bomb":   # a bomb may or may not end in time
            request["on_error"] = "rollback"
        if "on_error" in request and name in OVER[self.model.language]:
            ends = ["timeout", None, 9, DIES_S, True]
        request["code"] = "\n".join(self.deeds(after)) + "\n" + PROBES[self.model.language] + code
        return request, name, *ends

    def compare(self, result, facts, wanted):
        expect("the cell", [result["status"], result["exit_code"], result["signal"], result["state"], result["cell"],
                            result["session"], sorted(row["path"] for row in result["artifacts"])], facts)
        if (result["error"] is None) != (facts[0] == "ok"):
            raise Wrong(f"an error or none: {result['error']}")
        line = result["stdout"].split("\n")[0]
        if not line.startswith("VIEW"):
            raise Wrong(f"the state was not shown: {result['stdout'][:200]!r}")
        seen = json.loads(line[4:])
        expect("the state", {what: seen[what] for what in wanted}, wanted)

    def run(self, frame, check, **how):
        self.log.append(("cell", frame["request"]))
        answer, _ = self.talk.wait(self.talk.post(frame), **how)
        self.log.append(("->", answer))
        check(answer)

    # --- steps ---

    def one_cell(self):
        self.run(*self.cell())

    def many_at_once(self):
        """They wait in line, and each finds the state that the one before left."""
        kinds = [self.cell if self.chance.random() < 0.7 else self.quick_undo for _ in range(self.chance.randint(2, 4))]
        steps = [kind() for kind in kinds]
        self.log += [("at once", frame) for frame, _ in steps]
        ids = [self.talk.post(frame) for frame, _ in steps]
        for id, (_, check) in zip(ids, steps):
            answer, _ = self.talk.wait(id)
            self.log.append(("->", answer))
            if not self.unknown:
                check(answer)

    def quick_undo(self, to=None):
        model = self.model
        kept = model.named.get(to) if to else model.undo_to()
        if kept:
            model.be_at(kept)
            info = model.info()

        def check(answer):
            if kept is None:
                expect("an undo that leads nowhere", answer.get("error", {}).get("kind"), "absent")
                return
            expect("undo", answer.get("state"), "restored")
            told = answer["session"]
            expect("undo's info", [told["cell"], told["protected"], told["undo"]],
                   [info["cell"], True, info["undo"]])
        self.count("undo" if kept else "undo refused")
        return {"op": "session", "do": "undo", "session": self.id, **({"to": to} if to else {})}, check

    def undo(self):
        frame, check = self.quick_undo(self.chance.choice((None, None, "one", "two")))
        self.log.append(("undo", frame))
        answer, _ = self.talk.wait(self.talk.post(frame))
        check(answer)

    def checkpoint(self):
        model, name = self.model, self.chance.choice(("one", "two", "three"))
        if not model.protected:
            self.ask("checkpoint", name=name, refused="host")
            return
        if model.stack[-1].named not in (False, name) and "a second name" in LEFT_OUT:
            return
        if name in model.named:
            model.named.pop(name).named = False
        model.named[name], model.stack[-1].named = model.stack[-1], name
        self.ask("checkpoint", name=name)

    def put(self):
        model, path = self.model, self.chance.choice(("a", "in", "s/c"))
        if model.protected and model.stack[-1].named and "put after checkpoint" in LEFT_OUT:
            return
        text = str(self.chance.randrange(10 ** 9))
        model.put(path, text.encode())
        self.ask("put", files=[{"path": path, "text": text}])

    def get(self):
        files = self.model.state.files
        if not files or self.chance.random() < 0.1:
            self.ask("get", path="not-there", refused="absent")
            return
        path = self.chance.choice(sorted(files))
        self.ask("get", path=path)
        got = b"".join(base64.b64decode(event["base64"]) for event in self.events)
        expect(f"the file '{path}'", got, files[path][1])

    def list_files(self):
        rows = self.ask("files")["files"]
        got = {row["path"]: row["size_bytes"] if row["type"] == "file" else row["type"] for row in rows}
        state = self.model.state
        expect("the files", got, {**{path: len(data) for path, (_, data) in state.files.items()},
                                  **{path: "directory" for path in state.folders}})

    def look(self):
        told, wanted = self.rest(), self.model.info()
        told["checkpoints"] = sorted([row["name"], row["cell"]] for row in told["checkpoints"])
        expect("info", {what: told[what] for what in wanted}, wanted)
        if (told["unprotected"] is None) != told["protected"]:
            raise Wrong(f"unprotected is {told['unprotected']}")

    def list_names(self):
        self.rest()
        rows = [row for row in self.ask("info", names=True)["session"]["names"] if row["type"] != "module"]
        names = self.model.state.names
        if self.model.language != "python":  # theirs have more than we made
            rows = [row for row in rows if row["name"] in ("i0", "i1", "i2")]
            expect("the names", sorted(row["name"] for row in rows), sorted(names))
            return
        def facts(value):
            if isinstance(value, list) and value and isinstance(value[0], str):
                return [value[0], value[2] if value[0] == "ndarray" else [2, 2] if value[0] == "DataFrame" else None]
            return [type(value).__name__, str(value) if isinstance(value, int) else len(value)]
        got = {row["name"]: [row["type"], row["text"] if row["type"] == "int" else row.get("length", row.get("shape"))]
               for row in rows}
        expect("the names", got, {name: facts(value) for name, value in names.items()})

    def interrupt_idle(self):
        self.rest()
        self.ask("interrupt", refused="absent")

    def interrupted(self):
        """A cell that waits is told to stop, obeys or not; or it is cancelled, or its client goes."""
        model, after = self.model, copy.deepcopy(self.model.state)
        way = self.chance.choice(("interrupt", "interrupt", "cancel", "stubborn", "leave"))
        if model.language != "python" and way in ("stubborn", "leave") or "cancel" in LEFT_OUT \
                and way in ("cancel", "leave"):
            way = "interrupt"
        if model.language == "javascript" and "interrupts in JavaScript" in LEFT_OUT:
            return
        rollback = self.chance.random() < 0.2
        code = "\n".join(self.deeds(after)) + "\n" + PROBES[model.language]
        if way == "stubborn":
            code += "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        code += READY[model.language]
        request = {"session": self.id, "code": code + self.chance.choice(WAITS[model.language]),
                   "limits": {"timeout_s": SLOW_S, "cpu_s": SLOW_S}, **({"on_error": "rollback"} if rollback else {})}
        wanted, model.cells = after.view(model.language), model.cells + 1
        result = self.run_until(request, way)
        if "an interrupt that is repeated" in LEFT_OUT:
            time.sleep(0.1)  # the second one may come late, and meet the next cell
        died = way in ("stubborn", "leave") or way == "cancel" and result["signal"] == 9
        touched, state = sorted(after.touched), model.cell_ended(after, died, True, rollback)
        self.count(f"{way}: {state}")
        if result:
            self.compare(result, ["interrupted", *((None, 9) if died else (130, None)), state, model.cells, self.id,
                                  [] if state == "rolled_back" else touched], wanted)

    def run_until(self, request, way):
        """The result, or None where nobody waited for it."""
        talk = Talk(*self.talk.where) if way == "leave" else self.talk
        id, heard = talk.post({"op": "run", "request": request}, events=True), []
        self.log.append((way, request))

        def act(event):
            heard.append(event.get("text", ""))
            if not "".join(heard).endswith("ready\n"):
                return
            if way == "cancel":
                talk.send({"op": "cancel", "id": id})
            elif way != "leave":
                for _ in range(2 if way == "stubborn" else 1):
                    talk.post({"op": "session", "do": "interrupt", "session": self.id})
            else:
                raise Gone
        try:
            answer, _ = talk.wait(id, act)
        except Gone:
            talk.close()
            return None
        self.log.append(("->", answer))
        if "result" not in answer:
            raise Wrong(f"a cell was refused: {answer}")
        return answer["result"]

    def fork(self):
        """The child goes its own way, and the parent does not see it."""
        first = self.model.stack and self.model.stack[-1].cell == 0
        if first and self.model.state.born_with and "a fork before the first cell" in LEFT_OUT:
            return
        id = self.post("fork")
        answer, _ = self.talk.wait(id)
        if "error" in answer:
            if answer["error"]["kind"] != "host":
                raise Wrong(f"fork: {answer}")
            self.count(f"fork refused ({answer['error']['message']})")
            return
        model = copy.deepcopy(self.model)
        model.cells, model.stack, model.named = answer["session"]["cell"], [], {}
        model.most = answer["session"]["undo"]["most"]
        child = Actor(self.talk, self.chance, self.tally, self.counted, model, answer["session"]["session"])
        model.keeps, model.since = child.rest()["protected"], 0
        model.keep()
        self.count("fork")
        child.log = self.log
        for _ in range(self.chance.randint(1, 3)):
            child.one_cell()
            self.one_cell()
            child.unknown = self.unknown = child.unknown or self.unknown
            if self.unknown:
                break
        child.ask("end")

    STEPS = (one_cell, 10), (many_at_once, 3), (undo, 3), (checkpoint, 2), (put, 1.5), (get, 1), (list_files, 1), \
        (look, 2), (list_names, 1.5), (interrupt_idle, 0.3), (interrupted, 1.5), (fork, 1)

    def live(self):
        """All of it. What went wrong names its steps."""
        steps, weights = zip(*self.STEPS)
        for step in self.chance.choices(steps, weights, k=self.chance.randint(4, 14)):
            step(self)
            if self.unknown:
                break
        else:
            self.look()
        if self.chance.random() < 0.1 and not self.unknown:
            self.die_idle()
        why = self.ask("end")["session"]["ended"]["why"]
        error = self.ask("undo", refused="absent")["error"]["message"]
        if why not in error or " ended at " not in error:
            raise Wrong(f"it does not say when and why it ended: {error}")

    def die_idle(self):
        """The interpreter dies when nobody looks: the next cell finds what was kept, and is told."""
        model = self.model
        if model.language != "python" or not model.protected or model.stack[-1].named:
            return
        killer = "while [ ! -e /workspace/now ]; do sleep 0.02; done; kill -9 %d"
        code = f"import os, subprocess; _p = subprocess.Popen(['sh', '-c', {killer!r} % os.getpid()])"
        model.cells += 1
        self.run({"op": "run", "request": {"session": self.id, "code": code}}, lambda answer: None)
        model.cell_ended(model.state, False, False, False)
        model.put("now", b"")
        self.ask("put", files=[{"path": "now", "text": ""}])
        for _ in range(500):
            model.cells += 1
            request = {"session": self.id, "code": PROBES["python"], "limits": {"timeout_s": SLOW_S}}
            self.run({"op": "run", "request": request}, lambda answer: self.answers.append(answer["result"]))
            result = self.answers.pop()
            if result["state"] == "lost" and "a death while files are collected" in LEFT_OUT:
                return
            if result["state"] == "kept":
                self.compare(result, ["ok", 0, None, "kept", model.cells, self.id, []], model.state.view("python"))
            else:
                end = [result["status"], result["signal"], result["state"]]
                if end != ["ok", None, "rolled_back"]:  # it died just after the last word of the cell
                    expect("its end", end, ["killed", 9, "rolled_back"])
            if result["state"] != "kept" or "between cells" in result["stderr"]:
                self.count("died idle")
                return
            time.sleep(0.02)
        raise Wrong("it did not die")


# --- the whole ---

def worker(numbers, how, found):
    """Sessions one after another until there are no more, or one went wrong."""
    while not found.wrong:
        try:
            number = numbers.pop(0)
        except IndexError:
            return
        actor, tally = None, {}
        try:
            with contextlib.closing(Talk(*how["where"])) as talk:
                talk.where = how["where"]
                actor = Actor(talk, random.Random(f"{how['seed']}:{number}"), tally, how["counted"])
                actor.live()
        except (Wrong, OSError, EOFError, AssertionError, LookupError, TypeError, ValueError) as error:
            found.wrong.append((number, error, actor.log if actor else []))
        found.add(tally, actor.unknown if actor else False)


class Found:
    """What all workers have met."""

    def __init__(self):
        self.lock, self.tally, self.unknown, self.wrong = threading.Lock(), {}, 0, []

    def add(self, tally, unknown):
        with self.lock:
            self.unknown += unknown
            for what, count in tally.items():
                self.tally[what] = self.tally.get(what, 0) + count

    def tell_wrong(self, seed, said):
        number, error, log = self.wrong[0]
        shown = []
        for what, content in log[-30:]:
            for member in ("isolation", "provenance", "metrics", "limits", "network"):
                for part in (content.get("result", {}), content.get("session", {})):
                    isinstance(part, dict) and part.pop(member, None)
            text = json.dumps(content)
            for probe in PROBES.values():
                text = text.replace(json.dumps(probe)[1:-1], "<probe>\\n")
            shown.append(f"    {what} {text[:1500]}")
        raise SystemExit(f"session {number} of seed {seed} went wrong: {error!r}\n" + "\n".join(shown)
                         + f"\n    the engine: {said}")


def at_rest(front, client):
    """A look once the boxes of all sessions are gone and the pools are full."""
    def quiet():
        client.send({"op": "info"})
        state = client.receive()["state"]
        return state["boxes"] == sum(pool["ready"] for pool in state["pools"]) and \
            all(pool["ready"] >= pool["wanted"] and not pool["making"] for pool in state["pools"])
    until = time.monotonic() + QUIET_S
    while not quiet():
        if time.monotonic() > until:
            client.send({"op": "info"})
            raise SystemExit(f"boxes are left: {client.receive()['state']}")
        time.sleep(0.05)
    return soak.look_well(front)


def drive(served, client, options, where, count):
    """(looks, what was met, seconds)"""
    found, looks, started = Found(), [], time.monotonic()
    numbers = [options.only] if options.only is not None else list(range(count))
    with contextlib.closing(Talk(*where)) as talk:
        missing = talk.wait(talk.post({"op": "run", "request": {"code": "1"}}))[0]["result"]["isolation"]["missing"]
    how = {"where": where, "seed": options.seed, "counted": not {"memory_limit", "pids_limit"} & set(missing)}
    size = max(options.at_once, -(-len(numbers) // ROUNDS))
    while numbers and not found.wrong:
        batch, numbers = numbers[:size], numbers[size:]
        crowd = [threading.Thread(target=worker, args=(batch, how, found))
                 for _ in range(options.at_once)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        if not found.wrong:
            looks.append(at_rest(served.process.pid, client))
    if found.wrong:
        time.sleep(0.5)  # an engine that dies says so a little later
        found.tell_wrong(options.seed, f"{served.process.poll()} {Path(where[0] + '.log').read_text()[-1000:]!r}")
    return looks, found, time.monotonic() - started


def judge(figures, title, looks, count):
    if len(looks) < 4:
        return
    third = max(1, len(looks) // 3)
    first, last = looks[1:1 + third], looks[-third:]  # the first round fills pools and caches
    growth = {what: min(one[what] for one in last) - min(one[what] for one in first) for what in looks[0]}
    print("    growth: " + ", ".join(f"{what} {more:+d}" for what, more in growth.items()))
    bounds = {what: AT_REST.get(what, most(count)) for what, most in soak.ALLOWED.items()}
    over = {what: growth[what] for what, most in bounds.items() if growth[what] > most}
    figures.note(title, sessions=count, growth=growth)
    figures.promise(f"things of ours that grew, {title} {over or ''}", len(over), 0, always=True)


def run_as(figures, scratch, options, who, uid, count):
    program, switch = str(scratch.reachable_copy() / "cupel"), uid is not None and not os.getuid()
    owner = uid if switch else None
    path = str(scratch.folder(f"socket-{who}", owner) / "s")
    ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
    before = leak.least(1)
    with soak.Engine(program, scratch.cupel_env(f"home-{who}", owner), ids, path) as served:
        client = soak.Client(path, owner)
        client.wait_until_warm()
        where = (path, owner if switch else os.geteuid())
        looks, found, took = drive(served, client, options, where, count)
        client.sock.close()
    after = leak.least(leak.SETTLE_S, lambda seen: all(seen[what] <= before[what] for what in leak.OURS))
    left = {what: after[what] - before[what] for what in leak.OURS if after[what] > before[what]}
    print(f"  as {who}: {count} sessions, {count / took:.1f} a second, all answers right"
          + (f"; {found.unknown} were left early, their state unknown" if found.unknown else ""))
    print("    " + ", ".join(f"{what} {number}" for what, number in sorted(found.tally.items())))
    judge(figures, f"sessions as {who}", looks, count)
    figures.promise(f"things that are left, as {who} {left or ''}", len(left), 0, always=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one session, by its number")
    parser.add_argument("--who", choices=("root", "user"), help="one of both")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(soak.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    figures = common.Figures("soak_sessions", f"random sessions against a model, {options.at_once} at once, seed "
                             f"{options.seed}; what is held is looked at between {ROUNDS} rounds")
    with common.Scratch() as scratch:
        for who, uid, count in (("root", None, options.sessions), ("user", common.ORDINARY, options.sessions // 5)):
            if (who == "root" and os.getuid()) or options.who not in (None, who):
                continue
            run_as(figures, scratch, options, who, uid, max(count, 1))
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
