"""kill -9 of any of our processes while sessions work: each session goes on or ends, and says which.
Every cell counts one further, in a name and in a file: so a state that was lost or set back without
a word shows in the next answer. Every request is answered or its connection closes, the engine
serves others, and nothing is left."""
import contextlib
import os
import random
import re
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

import engine
import host
import sessions
from selection import LONG

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="only root sees into other users' processes"),
              pytest.mark.sample(short=4)]

ROUNDS = 20 if LONG else 3  # kills of each kind
LANGUAGES = ("python", "python", "python", "bash", "javascript")
SETTLE_S = 20
RESTS_S = 80  # a zygote that dies three times before it is ready rests for a minute, and nothing is kept meanwhile
# What the engine goes on without. Where there are control groups, a janitor sweeps them; an ordinary user has one
# uid only, and a warden in the box.
EVERYWHERE = ("zygote", "init", "live", "keeper", "porter", "parked")
SPARED = {"root": (*EVERYWHERE, "janitor"), "user": (*EVERYWHERE, "warden")}
COUNT = {  # without any child, which might be the one that is killed
    "python": "n = globals().get('n', 0) + 1\nopen('n', 'a').write('+')\nimport os\nprint(n, os.path.getsize('n'))",
    "bash": "n=$((n + 1)); printf + >>n; read -r __seen <n; echo $n ${#__seen}",
    "javascript": "var n = (globalThis.n || 0) + 1; { const fs = require('fs'); fs.appendFileSync('n', '+'); "
                  "console.log(n, fs.statSync('n').size); }",
}
WHERE = {"python": "import os\nprint(os.readlink('/proc/self/ns/pid'))", "bash": "readlink /proc/self/ns/pid",
         "javascript": "console.log(require('fs').readlinkSync('/proc/self/ns/pid'))"}
DIE = {"python": "import os\nos._exit(1)", "bash": "kill -9 $$", "javascript": "process.kill(process.pid, 'SIGKILL')"}


# --- who is who ---

def status(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return {line.split(":")[0]: line.split(":", 1)[1].split() for line in text.splitlines()}


def kind_of(row, front, broker, spaces):
    """What a process is to us, or None."""
    parent, comm = row["parent"], row["comm"]
    if parent == front:
        return {"cupel-broker": "broker", "cupel-janitor": "janitor"}.get(comm)
    if comm == "cupel-keeper":
        return "keeper"
    facts = status(row["pid"])
    if parent == broker and len(facts["NSpid"]) == 2:
        return "zygote" if comm == "python3" else "porter" if comm == "cupel-broker" else None
    if os.readlink(f"/proc/{row['pid']}/ns/pid") not in spaces:
        return None  # of a pool
    names = {"cupel-init": "init", "cupel-warden": "warden"}
    return names.get(comm) or ("live" if facts["TracerPid"] == ["0"] else "parked")


def census(served, spaces):
    """{kind: pids} of the engine's processes; of boxes only those that sessions have."""
    found, rows = {"engine": [served.process.pid]}, host.descendants(served.process.pid)
    broker = next((row["pid"] for row in rows if row["comm"] == "cupel-broker"), None)
    for row in rows:
        try:
            kind = kind_of(row, served.process.pid, broker, spaces)
        except (OSError, KeyError):
            continue  # it ended while it was looked at
        found.setdefault(kind, []).append(row["pid"])
    return found


def kill_one(served, kind, spaces, choose):
    """Kills one of that kind; False where there was none for long. `spaces` tells those of sessions."""
    end = time.monotonic() + RESTS_S
    while time.monotonic() < end:
        found = census(served, spaces()).get(kind)
        try:
            if found:
                os.kill(choose(found), signal.SIGKILL)
                return True
        except ProcessLookupError:
            pass
        time.sleep(0.01)
    return False


# --- what a session must say ---

AFTER = re.compile(r"goes on from the state (?:after cell (\d+)|at the start)")  # the latter is cell 0

class Counter:
    """A session in which every cell counts, and what its next count must be by all that it said."""

    def __init__(self, client, language):
        self.session = sessions.Session(client, language, wait=False)
        self.language, self.names, self.files, self.cells, self.space = language, 0, 0, 0, None
        self.before = {0: (0, 0)}  # cell -> (names, files) after it
        self.log = []

    def heard(self, result):
        """What it says of its own accord: the interpreter died between cells."""
        self.log = self.log[-6:] + [(self.cells, result["status"], result["state"], result["stdout"], result["stderr"],
                                     (result["error"] or {}).get("hint"))]
        stderr = result["stderr"]
        back = AFTER.search(stderr)
        anew = re.search(r"goes on with its files only, after cell (\d+)", stderr)
        if back:
            self.names, self.files = self.before[int(back[1] or 0)]
        elif anew:
            self.names = 0
            self.before[int(anew[1])] = 0, self.before.get(int(anew[1]), (None, None))[1]
        else:
            assert "goes on" not in stderr, stderr

    def went_back(self, result):
        """After a cell that did not end well."""
        hint = result["error"]["hint"] or ""
        if result["state"] == "rolled_back":
            later = AFTER.search(hint)
            assert later and int(later[1] or 0) == result["state_cell"], result
            self.names, self.files = self.before[result["state_cell"]]
        elif result["state"] == "lost":
            assert "names are gone" in hint or "the session ended" in hint, result
            self.names, self.files = 0, None  # as the cell left them: it may have been that far
            self.before[self.cells] = 0, None
        else:
            assert result["state"] == "kept", result
            self.names = self.files = None  # how far it came is not said
            self.before[self.cells] = None, None

    def settle(self):
        """In which pid namespace it is. What else this cell says is as in `count`."""
        result = self.session.run(WHERE[self.language], limits={"timeout_s": 40, "cpu_s": 40})
        self.cells += 1
        self.heard(result)
        self.before[self.cells] = self.names, self.files
        if result["status"] == "ok":
            self.space = result["stdout"].strip()
        elif result["status"] in ("killed", "internal"):
            self.went_back(result)

    def count(self):
        """One cell. A sentence where the answer cannot be, else None."""
        result = self.session.run(COUNT[self.language], limits={"timeout_s": 40, "cpu_s": 40})
        self.cells += 1
        if result["cell"] != self.cells or not result["session"]:
            return f"the cell has the number {result['cell']}, not {self.cells}"
        self.heard(result)
        if result["status"] != "ok":
            if result["status"] not in ("killed", "internal") or not result["error"]["message"]:
                return f"an end that nobody asked for: {result}"
            self.went_back(result)
            return None
        names, files = re.fullmatch(r"(\d+) (\d+)\n", result["stdout"]).groups()
        if self.names is not None and int(names) != self.names + 1 or \
                self.files is not None and int(files) != self.files + 1:
            return f"cell {self.cells} counts {names}, {files} after {self.names}, {self.files}: {self.log}"
        self.names, self.files = self.before[self.cells] = int(names), int(files)
        return None  # should it have died right after, the next one says so

    def die(self):
        """A cell that ends its interpreter. What it says must be true: the next count shows it."""
        result = self.session.run(DIE[self.language])
        self.cells += 1
        self.heard(result)
        if result["status"] not in ("error", "killed", "internal") or result["state"] == "kept":
            return f"a death that is not told: {result}"
        files = self.files
        self.went_back(result)
        if result["state"] == "lost":  # and this one wrote nothing
            self.files = files
            self.before[self.cells] = 0, files
        return None


class Load(threading.Thread):
    """A client that counts in a session, and makes a new one when it has ended."""

    def __init__(self, served, language, seed):
        super().__init__(daemon=True)
        self.client, self.language, self.chance = served.client().__enter__(), language, random.Random(seed)
        self.stop, self.faults, self.gone, self.counter = False, [], None, None
        self.told = {"cells": 0, "sessions": 0, "ended": 0}

    def run(self):
        while not self.stop and not self.faults:
            try:
                self.one()
            except socket.timeout:
                self.faults.append(f"never answered after {self.told}")
            except (EOFError, ConnectionError) as end:
                self.gone = repr(end)
                return
            except sessions.Refused as refused:
                self.refused(refused.error)
            except (AssertionError, AttributeError, KeyError) as error:
                self.faults.append(repr(error))
        self.finish()

    def one(self):
        if not self.counter:
            self.counter = Counter(self.client, self.language)
            self.told["sessions"] += 1
            self.counter.settle()
        fault = self.counter.count() if self.chance.random() < 0.85 else self.counter.die()
        self.told["cells"] += 1
        if fault:
            self.faults.append(fault)
        if self.chance.random() < 0.3:
            time.sleep(self.chance.uniform(0, 0.05))

    def refused(self, error):
        """A session may end; it says when and why, then and later."""
        counter, self.counter = self.counter, None
        self.told["ended"] += 1
        if counter is None:  # a new one could not be made
            if error["kind"] not in ("host", "internal", "busy", "absent") or not error["message"]:
                self.faults.append(f"not made, and no reason: {error}")
            return
        if "ended" not in error["message"] and error["kind"] not in ("internal", "cancelled"):
            self.faults.append(f"refused without an end: {error}")
            return
        try:
            info = counter.session.info()
        except (EOFError, ConnectionError) as end:
            self.gone = repr(end)
            self.stop = True
            return
        except sessions.Refused as refused:  # the engine ends
            if refused.error["kind"] not in ("internal", "cancelled"):
                self.faults.append(f"an ended session that is not known: {refused.error}")
            return
        if info["status"] == "ended" and not (info["ended"]["at"] and info["ended"]["why"]):
            self.faults.append(f"it does not say when and why: {info}")

    def finish(self):
        try:
            if self.counter and not self.faults:
                self.counter.session.end()
        except (sessions.Refused, EOFError, ConnectionError):
            pass
        self.client.sock.close()


def wait_until_warm(served):
    """A session that is made earlier is started for itself alone, and cannot be copied."""
    def warm():
        return [zygote["state"] for zygote in client.info()["state"]["zygotes"]] == ["ready"] * 2
    with served.client() as client:
        assert host.wait_until(warm, 60, 0.1)


def start_load(served):
    wait_until_warm(served)
    load = [Load(served, language, host.SEED + number) for number, language in enumerate(LANGUAGES)]
    for one in load:
        one.start()
    return load


def spaces_of(load):
    return {one.counter.space for one in load if one.counter and one.counter.space}


def join(load, told):
    for one in load:
        one.stop = True
    for one in load:
        one.join(timeout=engine.ANSWER_S + 15)
        assert not one.is_alive(), f"{told}: a client hangs"
        assert not one.faults, (told, one.language, one.faults[:3])


def spare_boxes(served):
    with served.client() as client:
        state = client.info()["state"]
    return state["boxes"] - sum(pool["ready"] + pool["making"] for pool in state["pools"])


def swept(cupel, before, told):
    """Control groups are left where the janitor died as well; the next start takes them away."""
    assert cupel.request({"code": "print(1)"}, ["--cold"])["stdout"] == "1\n"
    host.check_no_growth({"cgroups": before}, told, seconds=5)


@pytest.fixture
def cold(cupel_as):
    """cupel itself, also where this folder's has an engine of its own."""
    return getattr(cupel_as, "cold", cupel_as)


# --- the tests ---

def test_sessions_go_on_or_say_that_they_ended(cold, place):
    chance, groups, hits = random.Random(host.SEED), host.cgroups(), []
    with engine.Engine(cold, engine.socket_path(place, cold)) as served:
        load = start_load(served)
        kinds = [kind for kind in SPARED[cold.who]
                 for _ in range(1 if kind == "janitor" else ROUNDS)]
        for kind in chance.sample(kinds, len(kinds)):
            time.sleep(chance.uniform(0.02, 0.3))
            hits += [kind] * kill_one(served, kind, lambda: spaces_of(load), chance.choice)
            assert served.process.poll() is None, f"seed {host.SEED}: the engine ended after {hits}"
        told = f"seed {host.SEED}, killed {hits}"
        time.sleep(0.3)
        join(load, told)
        assert sorted(hits) == sorted(kinds), told
        assert sum(one.told["cells"] for one in load) > 30, (told, [one.told for one in load])
        with served.client() as client:  # others are served, and new sessions are whole
            assert client.run("print(7)")[1]["result"]["stdout"] == "7\n", told
            fresh = sessions.Session(client)
            assert [fresh.value("a = 1\na"), fresh.value("a + 1")] == ["1", "2"], told
            fresh.end()
        assert host.wait_until(lambda: spare_boxes(served) == 0, SETTLE_S), told
    swept(cold, groups, told)


def cases(kinds, turns):
    """Each kind as root so many times, as a user half as many."""
    return [(who, kind, turn) for who in SPARED for kind in kinds if kind in ("broker", "engine", *SPARED[who])
            for turn in range(turns if who == "root" else turns // 2)]


@pytest.mark.parametrize("who,kind,turn", cases(("broker", "engine"), 16 if LONG else 2))
def test_the_end_of_the_engine_is_told_and_leaves_no_session(cold, place, kind, turn):
    chance, path = random.Random(host.SEED + turn), engine.socket_path(place, cold)
    told = f"seed {host.SEED}, turn {turn}, killed the {kind}"
    groups = host.cgroups()
    with engine.Engine(cold, path, ends_with=125 if kind == "broker" else -signal.SIGKILL) as served:
        load = start_load(served)
        assert host.wait_until(lambda: len(spaces_of(load)) >= 3, SETTLE_S), told
        time.sleep(chance.uniform(0, 0.3))
        everything = host.descendants(served.process.pid)
        assert kill_one(served, kind, set, chance.choice), told
        served.process.wait(timeout=30)
        for one in load:
            one.join(timeout=engine.ANSWER_S + 15)
            assert not one.is_alive() and not one.faults, (told, one.faults[:3])
            assert one.gone, f"{told}: a client was not told"
    others = [row for row in everything if row["comm"] != "cupel-janitor"]  # that one has work yet
    assert host.wait_until(lambda: not host.same_alive(others), 5), (told, host.same_alive(others))
    swept(cold, groups, told)
    assert host.wait_until(lambda: not host.same_alive(everything), 5), (told, host.same_alive(everything))


@pytest.fixture(scope="module")
def quiet(cupels, place, left_behind):
    """Engines whose sessions rest: what one death does is seen alone."""
    @contextlib.contextmanager
    def start(who):
        with engine.Engine(cupels[who], engine.socket_path(place, cupels[who])) as served:
            wait_until_warm(served)
            yield served
    with engine.Started(cupels, start) as running:
        yield running


@pytest.mark.parametrize("who,kind,turn", cases((*EVERYWHERE[1:], "warden"), 10 if LONG else 2))
def test_what_is_said_of_a_resting_session_is_true(quiet, who, kind, turn):
    """`info` may say protected only if a death is rolled back then; an ended session says why."""
    served, chance = quiet[who], random.Random(host.SEED + turn)
    with served.client() as client:
        counter = Counter(client, "python")
        counter.settle()
        faults = [counter.count() for _ in range(2)]
        counter.session.wait_until_idle()
        choose = max if kind == "parked" else chance.choice  # the newest copy is the state
        assert kill_one(served, kind, lambda: {counter.space}, choose), f"there is no {kind}"
        if kind == "parked":  # it is noticed, and made good
            time.sleep(0.5)
            protected, names = counter.session.info()["protected"], counter.names
            faults.append(counter.die())
            assert not protected or counter.names == names, (names, counter.names, counter.log)
        time.sleep(chance.uniform(0, 0.1))
        if kind == "init":
            assert host.wait_until(lambda: counter.session.info()["status"] == "ended", SETTLE_S)
            info = counter.session.info()
            assert info["ended"]["at"] and "died" in info["ended"]["why"], info
            with pytest.raises(sessions.Refused, match=f"ended at .*: {info['ended']['why']}"):
                counter.count()
            return
        faults += [counter.count(), counter.count()]
        counter.session.wait_until_idle()
        protected = counter.session.info()["protected"]
        known = counter.names, counter.files
        faults += [counter.die(), counter.count(), counter.count()]
        assert not any(faults), faults
        assert not protected or counter.names == known[0] + 2, (known, counter.names)
        counter.session.end()


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("who", SPARED)
def test_undo_after_a_copy_died_is_exact_or_refused(quiet, who, which):
    """Never a state further back than the one that is asked for."""
    with quiet[who].client() as client:
        session = sessions.Session(client)
        space = session.run(WHERE["python"])["stdout"].strip()
        for number in range(1, 5):
            session.run(f"n = {number}")
            session.wait_until_idle()
        os.kill(sorted(census(quiet[who], {space})["parked"])[which], signal.SIGKILL)
        time.sleep(0.3)
        undone = []
        with contextlib.suppress(sessions.Refused):
            while len(undone) < 4:
                session.undo()
                undone.append(int(session.value("n")))  # a cell, which is undone as well
                session.wait_until_idle()
                session.undo()
        assert undone == list(range(3, 0, -1))[:len(undone)], undone
        assert undone or which > 0, "those that are newer than the one that died are there"
        session.end()


@pytest.mark.parametrize("who", SPARED)
def test_undo_to_a_copy_that_died_just_now_says_where_it_went(quiet, who):
    """Where it cannot go the session stays as it was, and says so; an older state is better than none."""
    with quiet[who].client() as client:
        session = sessions.Session(client)
        space = session.run(WHERE["python"])["stdout"].strip()
        for number in range(2, 5):  # as cells are numbered
            session.run(f"n = {number}")
            session.wait_until_idle()
        os.kill(sorted(census(quiet[who], {space})["parked"])[-2], signal.SIGKILL)
        expected = "3\n"
        try:
            session.undo()
        except sessions.Refused as refused:
            assert "lost" in refused.error["message"] or "is not kept" in refused.error["message"], refused.error
            expected = "4\n"
        after = session.run("print(globals().get('n', 1))")
        told = re.search(r"undo asked for is lost; .* after cell (\d+)", after["stderr"])
        assert after["stdout"] == (f"{told[1]}\n" if told else expected), after
        session.end()
