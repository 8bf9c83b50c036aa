"""What is parked is out of a cell's reach: it cannot be killed, stopped, traced, starved, written to
or spoken for. Each attack is a cell, or is left behind by one; after it the session's names, files and
the kernel's facts of every parked copy are as before, and its undo levels are there. The aimed ones
have a positive control: the same code outside, against a victim that nothing protects."""
import os
import subprocess
import time

import attacks
import cells
import facts
import kernel
import pytest

import host
from sessions import Session

pytestmark = [pytest.mark.sample(of="user", full=6),
              pytest.mark.sample(short=4)]
PYTHON = ["/usr/bin/python3", "-I", "-S", "-c"]
VICTIM_UID, HOLDER_UID = 23457, 23458  # of nobody else: some attacks are aimed at all of a uid
SETUP = "import ctypes, os, resource\nctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)\nparent = os.getpid()\n" \
        "word = ctypes.create_string_buffer(b'as before', 64)\nx = []\n"
STEP = "x.append({n})\nopen('kept', 'w').write('{n}')"
FACTS = "(x, word.value, open('kept').read(), os.listdir(), os.nice(0), os.sched_getscheduler(0), " \
        "sorted(os.sched_getaffinity(0)), open('/proc/self/oom_score_adj').read(), " \
        "resource.getrlimit(resource.RLIMIT_NOFILE), os.getresuid())"


class Held:
    """A session with three states that are kept, each one copy that is known."""

    def __init__(self, engine, client, name):
        self.engine, self.name, self.session = engine, name, Session(client)
        self.session.run(SETUP.format(name=name))
        for n in (1, 2, 3):
            self.session.run(STEP.format(n=n))
            self.session.wait_until_idle()
        self.protected = self.session.info()["protected"]
        self.before = self.peek()
        self.word_at = int(self.peek("ctypes.addressof(word)"))
        if self.protected:
            # What was undone is dropped a little later.
            assert host.wait_until(lambda: len(kernel.Family(engine, name).parked) == 3, 5)
            self.parked = kernel.Family(engine, name).parked
            self.looks = {row["pid"]: kernel.look(row["pid"], self.word_at) for row in self.parked}

    def peek(self, code=FACTS):
        """The value of a cell, which is then undone."""
        result = self.session.run(code)
        self.session.wait_until_idle()
        if self.protected and result["state"] == "kept":
            self.session.undo()
            self.session.wait_until_idle()
        return result["results"][-1]["text/plain"] if result["results"] else result

    def attack(self, code, limits=None):
        result = self.session.run(attacks.PRELUDE + code, limits={"timeout_s": 10, **(limits or {})})
        self.session.wait_until_idle()
        return result

    def check_copies(self):
        alive = host.same_alive(self.parked)
        assert len(alive) == len(self.parked), f"of {self.parked} only {alive} live"
        for row in alive:
            changed = facts.difference(self.looks[row["pid"]], kernel.look(row["pid"], self.word_at))
            assert row["state"] == "t" and not changed, (row, changed)

    def check_levels(self, kept):
        """Back to the state before the attack, and to those before that."""
        if kept:
            assert self.session.undo()["state"] == "restored"
        assert self.peek() == self.before
        assert self.session.undo()["state"] == self.session.undo()["state"] == "restored"
        assert self.peek() == self.before.replace("[1, 2, 3]", "[1]").replace("'3'", "'1'")

    def check(self, result):
        if not self.protected:
            assert result["state"] in ("kept", "lost"), result
            return
        assert result["state"] in ("kept", "rolled_back"), result
        self.check_copies()
        self.check_levels(result["state"] == "kept")

    def name_it(self):
        """For attacks that go on for several cells, of which not all may be kept."""
        if self.protected:
            self.session.ask("checkpoint", name="clean")

    def check_named(self):
        assert self.session.undo(to="clean")["state"] == "restored"
        assert self.peek() == self.before


@pytest.fixture(scope="module")
def bystanders(engines):
    """{who: another session of the same engine}: nothing may happen to it."""
    found = {}
    for who, engine in engines.items():
        client = engine.client().__enter__()
        found[who] = Session(client)
        found[who].run("mine = ['untouched']\nimport os\nopen('mine', 'w').write('mine')")
    yield found
    for one in found.values():
        one.end()
        one.client.sock.close()


@pytest.fixture
def held(engine, client, who, bystanders, request):
    name = f"held{abs(hash(request.node.name)) % 10 ** 8}"
    one = Held(engine, client, name)
    assert one.protected or who == "user" or os.getuid() != 0, one.session.info()["unprotected"]
    yield one
    assert bystanders[who].value("mine, open('mine').read()") == "(['untouched'], 'mine')"
    assert engine.process.poll() is None
    cells.end(one.session)


# ---- attacks with an aim ----
VICTIM = """
import ctypes, os, sys, time
if len(sys.argv) > 1:
    holder, own = map(int, sys.argv[1:])
    os.setgroups([]), os.setresgid(own, own, own), os.setresuid(holder, own, holder)
os.setpgid(0, 0)
word = ctypes.create_string_buffer(b'as before', 64)
print(ctypes.addressof(word), flush=True)
time.sleep(60)
"""
ATTACKER = f"import os\nos.setpgid(0, 0), os.setgroups([]), os.setresgid(*[{VICTIM_UID}] * 3)\n" \
           f"os.setresuid({VICTIM_UID}, {VICTIM_UID}, {HOLDER_UID})\nword = None\n"


def victim(pipe, as_parked):
    who = {} if as_parked else {"user": VICTIM_UID, "group": VICTIM_UID, "extra_groups": []}
    args = [str(HOLDER_UID), str(VICTIM_UID)] if as_parked else []
    return subprocess.Popen([*PYTHON, VICTIM, *args], stdout=subprocess.PIPE, pass_fds=[pipe], cwd="/", **who)


@pytest.mark.parametrize("name", attacks.AIMED)
def test_the_attack_succeeds_where_nothing_protects(name):
    if os.getuid() != 0:
        pytest.skip("needs uids of its own")
    code, wanted = attacks.AIMED[name]
    reader, writer = os.pipe()
    aim = victim(writer, name == "set ids")
    attacker = None
    try:
        word_at = int(aim.stdout.readline())
        before = kernel.look(aim.pid, word_at)
        env = {"PATH": "/usr/bin", "CUPEL_VICTIM": str(aim.pid), "CUPEL_WORD": str(word_at),
               "CUPEL_OTHER_UID": str(HOLDER_UID), "CUPEL_PIPE": str(os.fstat(writer).st_ino)}
        os.set_blocking(reader, False)
        attacker = subprocess.Popen([*PYTHON, ATTACKER + attacks.PRELUDE + code], env=env, cwd="/",
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert host.wait_until(lambda: hit(aim, word_at, before, wanted, reader), 10), \
            (attacker.communicate(timeout=10), aim.poll())
    finally:
        for one in (attacker, aim):
            if one:
                one.kill()
                one.communicate()
        os.close(reader)
        os.close(writer)


def hit(aim, word_at, before, wanted, reader):
    if wanted == "gone":
        return aim.poll() is not None
    if wanted in ("stopped", "seen stopped"):
        return host.process(aim.pid)["state"] in "tT"
    if wanted == "written":
        try:
            return b"spoilt" in os.read(reader, 4096)
        except BlockingIOError:
            return False
    return aim.poll() is None and kernel.look(aim.pid, word_at)[wanted] != before[wanted]


@pytest.mark.parametrize("name", attacks.AIMED)
def test_an_attack_reaches_nothing_that_is_parked(held, name):
    result = held.attack(attacks.AIMED[name][0])
    assert "spoilt" not in result["stdout"] and "became" not in result["stdout"], result
    held.check(result)


# ---- attacks on oneself ----
@pytest.mark.parametrize("name", attacks.SELF)
def test_a_cell_that_ruins_itself_ruins_nothing_kept(held, name):
    code, limits, statuses = attacks.SELF[name]
    result = held.attack(code, limits)
    assert statuses is None or result["status"] in statuses, result
    held.check(result)


@pytest.mark.parametrize("language, code", [
    ("python", "import os; os.close(1), os.close(2)"), ("bash", "exec 1>&- 2>&-"),
    ("javascript", "require('fs').closeSync(1); require('fs').closeSync(2)"),
    ("python", "import ctypes\nfor _ in range(40): ctypes.CDLL(None).syscall(101, 0, 0, 0, 0)"),
])
def test_a_cell_that_ends_well_does_not_end_its_session(client, language, code):
    session = Session(client, language)
    assert session.run(code, limits={"timeout_s": 20})["status"] == "ok"
    for _ in range(2):
        result = session.run("x=1" if language == "bash" else "x = 1")
        assert (result["status"], result["state"]) == ("ok", "kept"), result
    session.end()


def test_out_of_memory_again_and_again(held):
    for _ in range(4):
        result = held.attack("hog = bytearray(b'x') * (2 << 30)")
        assert result["status"] == "memory_limit" or "MemoryError" in str(result["error"]), result
        if held.protected and result["state"] == "kept":  # where no group counts, it is refused and goes on
            held.session.undo()
            held.session.wait_until_idle()
            result["state"] = "rolled_back"
    held.check(result)


# ---- what a good cell leaves behind ----
@pytest.mark.parametrize("name", attacks.LEFT_BEHIND)
def test_what_is_left_behind_reaches_nothing_that_is_parked(held, name):
    held.name_it()
    assert held.attack(attacks.LEFT_BEHIND[name])["state"] == "kept"
    for _ in range(2):  # it is at work while these run and are kept
        result = held.session.run("sum(range(100000))")
        held.session.wait_until_idle()
        time.sleep(0.1)
    if not held.protected:
        assert result["state"] in ("kept", "lost"), result
        return
    assert result["state"] in ("kept", "rolled_back"), result
    held.check_named()


# ---- states that are not what they say ----
def test_a_poisoned_state_is_undone(held):
    """It has forged its `done`, and waits where the interpreter would."""
    if not held.protected:
        pytest.skip("nothing can be kept for this user")
    held.name_it()
    assert held.attack(attacks.POISON)["state"] == "kept"
    for _ in range(2):
        held.session.run("1")
        held.session.wait_until_idle()
    held.check_named()


def test_a_state_that_races_with_its_keeper_gets_no_other_uid(held):
    if not held.protected:
        pytest.skip("nothing can be kept for this user")
    assert held.attack(f"SECONDS = 1.0\n{attacks.RACE}")["state"] == "kept"
    time.sleep(1.1)
    live = [status["Uid"] for row, status in kernel.Family(held.engine, held.name).inside
            if row["comm"] == held.name and status["TracerPid"] == ["0"]]
    assert live and all(uids[0] == uids[1] for uids in live), live
    held.check_copies()
    assert held.session.undo()["state"] == "restored"
    assert held.peek() == held.before


def test_text_that_a_third_process_changes_gives_it_no_power(held):
    """The instruction at which the interpreter waits lies in memory that its child can write to."""
    if not held.protected:
        pytest.skip("nothing can be kept for this user")
    held.name_it()
    result = held.attack(attacks.SHARED_TEXT)
    assert result["state"] in ("kept", "rolled_back"), result
    assert result["state"] != "kept" or result["stdout"] == "(True, True)", result
    for _ in range(2):
        held.session.run("1", limits={"timeout_s": 1})
        held.session.wait_until_idle()
    held.check_named()
