"""The table of system calls: what every number from 0 to 600 meets, and each rule on arguments
with its neighbours and with upper bits set. syscalls.golden is the table as a person reads it;
it is compared with the compiled filters, by a small BPF machine, and with a real box.

  tests/wall/test_syscalls.py        run as a program, prints the table of the present build"""
import difflib
import errno
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import host  # noqa: E402

GOLDEN = HERE / "syscalls.golden"
REWRITE = "/usr/bin/python3 tests/wall/test_syscalls.py > tests/wall/syscalls.golden"
LAST = 600
POLICIES = ("occupant", "init", "porter", "uncounted")
ARCH_X86_64, ALL_ONES, INT = 0xc000003e, 2 ** 64 - 1, 0xffffffff
BAD = ALL_ONES - 4095  # no address, no descriptor, no pid, no size
ALLOW, LOUD, KILL, ERRNO = 0x7fff0000, 0x7fc00000, 0x80000000, 0x00050000
LOUD_IN_A_BOX = 14  # the listener is closed at 16
# Other arguments of calls that have rules, such that what is allowed does no harm.
BESIDE = {"socket": {1: 1}, "ioctl": {0: ALL_ONES}, "fcntl": {0: ALL_ONES}, "seccomp": {0: 99}}
HEAD = """\
# What the system calls 0 to 600 meet in a box: the occupant, init, and the porter.
#   allow        the kernel's own answer       quiet ERRNO   that error
#   loud ERRNO   that error, and a report      kill          the end of the process
#   skip         0; the call is not made
# Where arguments decide, each rule follows with its neighbours and with upper bits set.
# Written by: """ + REWRITE + "\n"

# Allowed calls that are not made, neither in the box nor outside.
NOT_MADE = {
    "fork": "the copy would report as well; every program proves it",
    "vfork": "borrows the caller's stack; every program proves it",
    "clone": "threads on the caller's stack; every program proves it",
}
# Where a box may answer otherwise than the host does to an ordinary user: {call: answers}.
NO_SUCH_ID = {"EINVAL"}  # the id is not one of the box's user namespace
OWN_ID = {"ok"}  # the rule allows the box's own id
OTHERWISE = {
    "setuid": OWN_ID, "setgid": OWN_ID, "setreuid": OWN_ID, "setregid": OWN_ID,
    "setresuid": NO_SUCH_ID, "setresgid": NO_SUCH_ID,
    "landlock_restrict_self": {"EINVAL", "EBADF"},  # the box may: it has no_new_privs
    "fadvise64": {"ok", "EINVAL"},  # descriptor 0 is a file in a session's cell, a pipe elsewhere
}
# Numbers that the kernel keeps from every filter, and what it says to a call from elsewhere than
# its own trampolines: uretprobe (kernel 6.14 on) and uprobe (6.18 on).
UNFILTERED = {335: {"signal 4"}, 336: {"ENXIO"}}


class Filter:
    """The generated header: programs, names, rules, errors of loud calls."""

    def __init__(self, path):
        text = path.read_text()
        self.code = {policy: self.numbers(self.block(text, f"box_filter_{policy}"), 4)
                     for policy in POLICIES}
        names = re.findall(r'\{ (\d+), "(\w+)" \}', self.block(text, "box_filter_names"))
        self.names = {int(number): name for number, name in names}
        loud = self.numbers(self.block(text, "box_filter_loud"), 2)
        self.errors = {number: errno.errorcode[code] for number, code in loud}
        self.rules = {}
        for row in re.findall(r'\{ "occupant", (\d+), \w+, \d, \{ (.*) \} \}',
                              self.block(text, "box_filter_rules")):
            tests = [tuple(int(word, 0) for word in re.findall(r"0x[0-9a-f]+|\d+", test))
                     for test in re.findall(r"\{(.*?)\}", row[1])]
            self.rules.setdefault(int(row[0]), []).append(tests)

    @staticmethod
    def block(text, name):
        return re.search(rf"{name}\[\] = \{{\n(.*?)\n\}};", text, re.S)[1]

    @staticmethod
    def numbers(block, width):
        rows = [[int(word, 0) for word in re.findall(r"0x[0-9a-f]+|\d+", line)]
                for line in block.splitlines()]
        assert all(len(row) == width for row in rows), rows[0]
        return rows

    def run(self, policy, number, args, arch=ARCH_X86_64):
        """The machine: words of the call's data, four instructions and the verdict."""
        words = [number & INT, arch, 0, 0]
        for arg in args:
            words += [arg & INT, arg >> 32]
        at, a = 0, 0
        while True:
            code, true, false, k = self.code[policy][at]
            at += 1
            if code == 0x06:
                return k
            if code == 0x20:
                a = words[k // 4]
            elif code == 0x54:
                a &= k
            elif code == 0x05:
                at += k
            else:
                holds = {0x15: a == k, 0x35: a >= k}[code]
                at += true if holds else false

    def verdict(self, policy, number, args=(0,) * 6):
        action = self.run(policy, number, args)
        if action == ERRNO:
            return "skip"
        if action & 0xffff0000 == ERRNO:
            return "quiet " + errno.errorcode[action & 0xffff]
        return {ALLOW: "allow", KILL: "kill",
                LOUD: "loud " + self.errors.get(number, "?")}[action]


def built():
    """The header of the build under test; a program that was copied elsewhere has none."""
    paths = [folder / "gen/box/wall/filter.h" for folder in (host.BUILD, host.REPO / "build")]
    found = next((path for path in paths if path.exists()), None)
    assert found, f"no filter was generated: {paths[0]} is missing, run make"
    return Filter(found)


def words_of_the_policy():
    """{call: [[the word that a rule compares with, for each of its tests]]}"""
    found = {}
    for line in (host.REPO / "policy/occupant.policy").read_text().splitlines():
        match = re.match(r"\w+ (?:E\w+ )?(\w+) if ([^#]*)#", line)
        if match:
            found.setdefault(match[1], []).append(re.findall(r"== (\w+)", match[2]))
    return found


def neighbours(word, mask, value):
    """(label, value) of what an attacker would try around a value that a rule names."""
    yield word, value
    yield f"{word}+1", (value + 1) & ALL_ONES
    yield f"{word}-1", (value - 1) & ALL_ONES
    for bit in (31, 32, 63):
        yield f"{word}^1<<{bit}", value ^ 1 << bit
    if mask < INT:
        yield f"{word}|~mask", value | INT & ~mask
        yield f"{word}|~mask|1<<32", value | INT & ~mask | 1 << 32


def plain(name, fill=0):
    args = [fill] * 6
    for place, value in BESIDE.get(name, {}).items():
        args[place] = value
    return args


def variants(table, number):
    """[(label, args)] for a call with rules: every value named, its neighbours, the extremes."""
    name, found = table.names[number], {}
    rules, words = table.rules[number], words_of_the_policy().get(name, [])
    if [len(rule) for rule in rules] != [len(rule) for rule in words]:
        words = [[f"{test[2]:#x}" for test in rule] for rule in rules]
    for rule, rule_words in zip(rules, words):
        base = plain(name)
        for place, _, value in rule:
            base[place] = value
        for at, (place, mask, value) in enumerate(rule):
            for label, other in neighbours(rule_words[at], mask, value):
                args = list(base)
                args[place] = other
                parts = [f"a{p}={label if p == place else w}"
                         for (p, _, _), w in zip(rule, rule_words)]
                found.setdefault(tuple(args), " ".join(parts))
    for label, fill in (("all 0", 0), ("all ones", ALL_ONES)):
        found.setdefault(tuple(plain(name, fill)), label)
    return [(label, list(args)) for args, label in found.items()]


def lines(table):
    """Each line of the table with the call behind it: (text, number, args, verdict)."""
    for number in range(LAST + 1):
        name = table.names.get(number, "-")
        others = f"{table.verdict('init', number):6} {table.verdict('porter', number)}"
        if number not in table.rules:
            verdict = table.verdict("occupant", number)
            assert verdict == table.verdict("occupant", number, [BAD] * 6)
            yield f"{number:3} {name:24} {verdict:18} {others}", number, [BAD] * 6, verdict
            continue
        yield f"{number:3} {name:24} {'by its arguments':18} {others}", number, None, None
        for label, args in variants(table, number):
            verdict = table.verdict("occupant", number, args)
            yield f"        {label:52} {verdict}", number, args, verdict


def rendered(table):
    return HEAD + "".join(text.rstrip() + "\n" for text, *_ in lines(table))


def test_the_compiled_filter_is_the_golden_one():
    want, got = GOLDEN.read_text(), rendered(built())
    if want == got:
        return
    diff = "\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(), "syscalls.golden",
                                          "the present policy", lineterm="", n=1))
    raise AssertionError(f"the policy has changed:\n{diff}\nIf that is meant: {REWRITE}")


def test_the_golden_table_has_every_number_once():
    numbers = [int(line.split()[0]) for line in GOLDEN.read_text().splitlines()
               if re.match(r" *\d+ ", line) and not line.startswith(" " * 8)]
    assert numbers == list(range(LAST + 1))


def golden_calls():
    """[(name, number, args, verdict)] with the verdicts of the golden file, not of the build."""
    table, found = built(), []
    golden = [line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
    for text, number, args, _ in lines(table):
        line = golden.pop(0) if golden else ""
        name = table.names.get(number, "-")
        if args is None:
            continue
        assert line[:60].split()[:2] == text[:60].split()[:2], f"out of step at {text!r}: {line!r}"
        words = line[61:] if line.startswith(" " * 8) else line[29:47]
        if not (words.startswith("allow") and name in NOT_MADE):
            found.append((name, number, args, words.strip()))
    return found


def caller(place):
    binary = place.root / "syscalls"
    if not binary.exists():
        subprocess.run(["gcc", "-static", "-O1", "-Wall", "-o", binary, HERE / "syscalls.c"], check=True,
                       timeout=60)
        binary.chmod(0o755)
    return binary


def script(calls):
    return "".join(f"{number} {' '.join(f'{arg:x}' for arg in args)}\n" for _, number, args, _ in calls)


def readable(outcome):
    kind, _, code = outcome.partition(" ")
    return errno.errorcode.get(int(code), code) if kind == "errno" else outcome


def make_in_a_box(cupel, binary, calls):
    """(what came of each, {call: count} of the reports)"""
    code = "import os, shutil\nshutil.copy('calls', '/tmp/calls')\nos.chmod('/tmp/calls', 0o755)\n" \
           "os.execv('/tmp/calls', ['calls'])"
    result = cupel.run_json(code, stdin=script(calls), limits={"timeout_s": 40, "cpu_s": 40},
                            files=[host.binary_file("calls", binary.read_bytes(), readonly=True)])
    found = [readable(line) for line in result["stdout"].splitlines()]
    assert result["status"] == "ok" and len(found) == len(calls), (result["error"], found[-3:])
    return found, {row["call"]: row["count"] for row in result["denied"]}


def make_outside(binary, calls, place):
    identity = {"user": host.ORDINARY, "group": host.ORDINARY, "extra_groups": []}
    done = subprocess.run([binary], input=script(calls), capture_output=True, text=True, timeout=60,
                          cwd=place.fresh("calls"), **(identity if os.getuid() == 0 else {}))
    found = [readable(line) for line in done.stdout.splitlines()]
    assert len(found) == len(calls), done
    return found


def told(call):
    name, number, args, verdict = call
    return f"{number} {name}({', '.join(f'{arg:#x}' for arg in args)}), {verdict}"


def test_the_box_answers_as_the_table_says(cupel_as, place):
    """Refused calls give the error of the table, and loud ones their report; allowed ones give
    what the kernel gives to an ordinary user outside, which is the positive control."""
    binary, calls = caller(place), golden_calls()
    loud = [call for call in calls if call[3].startswith("loud")]
    rest = [call for call in calls if not call[3].startswith("loud")]
    allowed = [call for call in rest if call[3] == "allow"]
    outside = dict(zip(map(told, allowed), make_outside(binary, allowed, place)))
    wrong, weak, table = [], cupel_as.run_json("pass").without_cgroups(), built()
    found, reports = make_in_a_box(cupel_as, binary, rest)
    assert not reports, f"reported although the table says quiet: {reports}"
    for call, outcome in zip(rest, found):
        want = (outside[told(call)] if call[3] == "allow" else
                "ok" if call[3] == "skip" else call[3].split()[1])
        more = table.verdict("uncounted", call[1], call[2])
        if weak and call[3] == "allow" and more != "allow":
            want = more.split()[1]
        also = OTHERWISE.get(call[0], set()) | UNFILTERED.get(call[1], set())
        if outcome != want and outcome not in also:
            wrong.append(f"{told(call)}: {outcome}, not {want}")
    for at in range(0, len(loud), LOUD_IN_A_BOX):
        part = loud[at:at + LOUD_IN_A_BOX]
        found, reports = make_in_a_box(cupel_as, binary, part)
        names = [call[0] for call in part]
        if reports != {name: names.count(name) for name in names}:
            wrong.append(f"reports of {names}: {reports}")
        wrong += [f"{told(call)}: {outcome}" for call, outcome in zip(part, found)
                  if outcome != call[3].split()[1]]
    assert not wrong, "\n" + "\n".join(wrong)


if __name__ == "__main__":
    sys.stdout.write(rendered(built()))
