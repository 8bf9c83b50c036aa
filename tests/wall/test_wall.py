"""Every hostile program in programs/, in a box as root and as an ordinary user, and
outside as its own positive control: an attack that fails everywhere proves nothing.

The first comment lines of a program say what must happen:
  row        rows of the table of threats that it stands for
  control    who runs it outside: root, user, unshared (root in throw-away namespaces),
             or none and why
  may-lack   probes that some kernels do not offer even outside
  limits     limits of the request, as JSON;  request: further fields
  status     statuses that the run may end in (default ok)
  weak       the same where no cgroup could be had;  weak-leaks: probes that only one stops
  hits       words that must be found in limits_hit (where cgroups count)
  args       host: canary files and the host's name;  listeners: the host's open doors
  as         root: only where root can set the limit
  boxes      every: in boxes of each kind (conftest.py) in the short form too"""
import json
import os
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import host

HERE = Path(__file__).resolve().parent
PRELUDE = (HERE / "probe.py").read_text()
PROGRAMS = sorted(p for p in (HERE / "programs").iterdir() if p.suffix in (".py", ".sh", ".js", ".c"))
LANGUAGE = {".py": "python", ".sh": "bash", ".js": "javascript", ".c": "python"}
EXEC_PROBE = ("import os, shutil\nshutil.copy('/workspace/probe', '/tmp/probe')\n"
              "os.chmod('/tmp/probe', 0o755)\nos.chdir('/tmp')\nos.execv('/tmp/probe', ['probe'])\n")
OUR_KILLS = {"timeout", "cpu_limit", "memory_limit", "output_limit"}


class Program:
    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        self.head = {"status": "ok", "control": "", "may-lack": ""}
        for line in self.text.splitlines():
            match = re.match(r"(?:#|//|/\*| \*) ?([\w-]+): (.*?)(?: \*/)?$", line)
            if match:
                again = self.head.get(match[1]) if match[1] == "may-lack" else ""
                self.head[match[1]] = (again + " " + match[2]).strip()
            elif not re.match(r"#|//|/\*| \*", line):
                break
        self.control = self.head["control"].split(",")[0]

    def words(self, key):
        return self.head.get(key, "").split()

    def code(self):
        return PRELUDE + self.text if self.path.suffix == ".py" else self.text


class Bait:
    """What a hostile program would like to reach on the host."""

    def __init__(self, place):
        self.place = place
        self.files = [place.root / "canary.txt", Path("/var/tmp") / (place.root.name + ".txt")]
        for path in self.files:
            path.write_text(host.CANARY + "\n")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.abstract, self.unix = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self.abstract_name = place.root.name
        self.abstract.bind("\0" + self.abstract_name)
        self.unix_path = place.root / "door"
        self.unix.bind(str(self.unix_path))
        self.unix_path.chmod(0o777)
        self.greeters = []
        for door in (self.tcp, self.abstract, self.unix):
            door.listen()
            self.greeters.append(threading.Thread(target=self.greet, args=(door,), daemon=True))
            self.greeters[-1].start()

    @staticmethod
    def greet(door):
        while True:
            try:
                guest, _ = door.accept()
                guest.sendall(b"welcome")
                guest.close()
            except OSError:
                return

    def args(self, kind):
        return {None: [], "host": [*map(str, self.files), os.uname().nodename],
                "listeners": [str(self.tcp.getsockname()[1]), self.abstract_name,
                              str(self.unix_path)]}[kind]

    def done(self):
        for door, greeter in zip((self.tcp, self.abstract, self.unix), self.greeters):
            door.shutdown(socket.SHUT_RDWR)  # an accept under way would hold a closed door's name
            greeter.join()
            door.close()
        for path in (*self.files, self.unix_path):
            path.unlink()


@pytest.fixture(scope="module")
def bait(place):
    made = Bait(place)
    yield made
    made.done()


def verdicts(text, kind):
    """{name: (word, detail)} of the PROBE or CHECK lines; a bad CHECK is never hidden."""
    found = {}
    for name, word, detail in re.findall(rf"^{kind} (\S+): (\w+) ?(.*)$", text, re.M):
        if found.get(name, ("ok",))[0] in ("ok", "blocked"):
            found[name] = (word, detail)
    return found


def compiled(path, place):
    binary = place.root / ("probe-" + path.stem)
    if not binary.exists():
        subprocess.run(["gcc", "-static", "-O1", "-o", binary, path], check=True, timeout=60)
    return binary


CONTROLS = {}


def run_outside(program, bait):
    """Output of the program as its control, run once."""
    if program.path in CONTROLS:
        return CONTROLS[program.path]
    if os.getuid() != 0 and program.control != "user":
        pytest.skip(f"the control needs {program.control}")
    owner = host.ORDINARY if program.control == "user" and os.getuid() == 0 else None
    folder = bait.place.fresh("control", 0o755, owner)
    if program.path.suffix == ".c":
        command = [compiled(program.path, bait.place)]
    else:
        script = folder / ("program" + program.path.suffix)
        script.write_text(program.code())
        tool = {".py": "/usr/bin/python3", ".sh": "bash", ".js": "node"}[program.path.suffix]
        command = [tool, script, *bait.args(program.head.get("args"))]
    if program.control == "unshared":
        command = ["unshare", "-m", "-p", "-f", "-i", "-u", "-n", "--mount-proc",
                   "--propagation", "private", "sh", "-c", '"$@"; exit $?', "sh", *command]
    identity = {"user": owner, "group": owner, "extra_groups": []} if owner else {}
    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             start_new_session=True, **identity,
                             env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                                  "CUPEL_WALL_CANARY": host.CANARY, "CUPEL_OUTSIDE": "1"})
    try:
        output, _ = child.communicate(timeout=host.WATCHDOG_S)
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    CONTROLS[program.path] = output
    return output


def run_boxed(program, cupel, bait):
    fields = {"limits": json.loads(program.head.get("limits", "{}")),
              **json.loads(program.head.get("request", "{}"))}
    code, files = program.code(), []
    if program.path.suffix == ".c":
        binary = compiled(program.path, bait.place)
        code, files = EXEC_PROBE, [host.binary_file("probe", binary.read_bytes(), readonly=True)]
    args = bait.args(program.head.get("args"))
    return cupel.run_json(code, LANGUAGE[program.path.suffix], args=args, files=files,
                          options={"env": {"CUPEL_TRACE": "1"}}, **fields)




def marks(program):
    return [mark for key, mark in (("as", pytest.mark.both), ("boxes", pytest.mark.every_box)) if program.head.get(key)]


ALL = [pytest.param(program, id=program.path.name, marks=marks(program)) for program in map(Program, PROGRAMS)]
CONTROLLED = [p for p in ALL if p.values[0].control != "none"]


@pytest.mark.parametrize("program", CONTROLLED)
def test_the_attack_succeeds_outside_the_box(program, bait):
    output = run_outside(program, bait)
    probes = verdicts(output, "PROBE")
    failed = {name: detail for name, (word, detail) in probes.items() if word != "reached"}
    lacking = set(program.words("may-lack"))
    assert probes, f"the program says nothing outside: {output[-2000:]}"
    assert set(failed) <= lacking, f"these probes prove nothing: {failed}\n{output[-1000:]}"


@pytest.mark.parametrize("program", ALL)
def test_the_box_holds(program, cupel_as, who, bait):
    if program.head.get("as") == "root" and who != "root":
        pytest.skip("needs cgroups that only root has")
    result = run_boxed(program, cupel_as, bait)
    output = result["stdout"]
    story = f"status {result['status']}, error {result['error']}, " \
            f"stdout {output[-1500:]}, stderr {result['stderr'][-1500:]}"
    weak = result.without_cgroups()
    expected = program.words("weak" if weak and "weak" in program.head else "status")
    reached = {n: d for n, (word, d) in verdicts(output, "PROBE").items() if word != "blocked"}
    bad = {n: d for n, (word, d) in verdicts(output, "CHECK").items() if word != "ok"}
    if weak:
        reached = {n: d for n, d in reached.items() if n not in program.words("weak-leaks")}
    assert not reached, f"the box leaks: {reached}; {story}"
    assert not bad, f"{bad}; {story}"
    assert result["status"] in expected, story
    if result["status"] == "ok" and program.control not in ("none", ""):
        assert set(verdicts(output, "PROBE")) == set(verdicts(run_outside(program, bait), "PROBE"))
    if not weak:
        for word in program.words("hits"):
            assert any(word in hit for hit in result["limits_hit"]), (word, result["limits_hit"])
    if result["status"] in OUR_KILLS:
        assert result.kill_ms, "no trace of the kill: " + result.process.stderr[-500:]
    assert all(ms <= host.KILL_TO_EMPTY_MS * host.slowness() for ms in result.kill_ms), result.kill_ms


def test_every_program_says_which_row_it_stands_for():
    for param in ALL:
        program = param.values[0]
        assert program.words("row") and program.head.get("about") and program.control, program.path
        assert program.control in ("root", "user", "unshared", "none"), program.path
        assert program.control != "none" or "," in program.head["control"], "say why there is none"
