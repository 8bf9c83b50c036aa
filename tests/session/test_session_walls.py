"""The wall suite once more, against cells of sessions: the same hostile programs, forged frames,
caps and forbidden calls, in a session's first interpreter and in one that was woken after a death.
Its neighbours are in test_session_isolation.py, its artifacts in tests/flow/test_session.py."""
import contextlib

import cells
import pytest
import test_driver_caps
import test_forgery
import test_syscalls
import test_wall
from watched import adopt

from engine import Started
from selection import LONG
from sessions import Session

# Sessions of a user are not protected, and a first cell is most like a run.
pytestmark = [pytest.mark.sample(of="user", full=10), pytest.mark.sample(of="first", full=10),
              pytest.mark.sample(short=6)]
adopt(globals(), test_driver_caps,  # warm runs meet the same cap
      without=[] if LONG else ["test_all_lines_together_have_a_cap"])
adopt(globals(), test_forgery, without=["test_forged_frames_do_not_change_what_the_kernel_saw"])  # below
adopt(globals(), test_syscalls, without=["test_the_compiled_filter_is_the_golden_one",
                                         "test_the_golden_table_has_every_number_once"])
adopt(globals(), test_wall, without=["test_the_attack_succeeds_outside_the_box",
                                     "test_every_program_says_which_row_it_stands_for"])

# Calls that policy/session.policy answers otherwise; the test of its own is below.
OTHERWISE = {"setpriority", "sched_setparam", "sched_setaffinity", "sched_setscheduler"}
PR_SET_DUMPABLE = 4
# The ceiling of CPU time is that of the session's life; the clock of each cell holds its limit.
# Filters of its own are refused to code that can be parked: they could answer the keeper's calls.
REPLACED = {"rlimits.py": ('"CPU": (3600, None)', '"CPU": (30 * 86400, None)'),
            "self_sandbox.py": ('check("seccomp", answer == "works"', 'check("seccomp", answer == "refused"')}


@pytest.fixture(scope="module")
def cupels(cupels, place, left_behind):
    """As above in the tree, but every run is a cell."""
    with cells.engines(cupels, place) as running:
        yield Started(cupels, lambda who: contextlib.nullcontext(cells.CellCupel(cupels[who], running[who])))


@pytest.fixture(autouse=True, params=cells.LIVES)
def life(request, monkeypatch):
    monkeypatch.setattr(cells.CellCupel, "life", request.param)
    program = getattr(request.node, "callspec", None) and request.node.callspec.params.get("program")
    if program and program.path.name in REPLACED:
        old, new = REPLACED[program.path.name]
        assert old in program.text
        monkeypatch.setattr(program, "text", program.text.replace(old, new))
    golden = test_syscalls.golden_calls
    monkeypatch.setattr(test_syscalls, "golden_calls", lambda: [
        (name, number, args, verdict) for name, number, args, verdict in golden()
        if name not in OTHERWISE and not (name == "prctl" and args[0] == PR_SET_DUMPABLE)])
    return request.param


@pytest.mark.parametrize("ending, status, code", [
    ("os._exit(3)", "error", 3), ("os.kill(os.getpid(), 11)", "killed", None),
    ("sys.exit(4)", "error", 4), ("1/0", "error", 1)])  # its own last word comes after half a forged line
def test_forged_frames_do_not_change_what_the_kernel_saw(cupel_as, ending, status, code):
    result = cupel_as.run_json(test_forgery.FORGE + ending)
    assert result["status"] == status, result
    if code is not None:
        assert result["exit_code"] == code


# What the filter of a session says of the other uid and of other processes, which may be parked.
REFUSED = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def of(number, *args):
    ctypes.set_errno(0)
    words = [ctypes.c_ulong(arg & (2 ** 64 - 1)) for arg in args]
    return errno.errorcode.get(ctypes.get_errno(), '') if libc.syscall(ctypes.c_long(number), *words) < 0 else 'done'
H, SAME = 1001, -1
traced = [of(117, H, SAME, SAME), of(117, SAME, H, SAME), of(117, SAME, SAME, H), of(117, H | 1 << 32, H, H),
          of(157, 4, 0), of(157, 4, 1), of(157, 4 | 1 << 32, 1)]
refused = [of(105, H), of(113, H, SAME), of(113, SAME, H), of(122, H), of(105, H | 1 << 32),
           of(203, 1, 8, 0), of(142, 1, 0), of(141, 0, 1, 19), of(141, 1, 1, 19), of(141, 2, 1000, 19),
           of(141, 2, H, 19),
           of(144, 1, 5, 0), of(144, 3, 0, 0)]
print(set(traced), set(refused), of(141, 0, 0, 19), of(117, SAME, SAME, SAME))
"""


def test_the_filter_of_a_session_keeps_the_other_uid(cupel_as):
    with cupel_as.running.client() as client:
        session = Session(client)
        protected = cells.is_protected(session)
        session.end()
    if not protected:
        pytest.skip("nothing can be kept for this user")
    assert cupel_as.run_json(REFUSED)["stdout"] == "{'ENOSYS'} {'EPERM'} done done\n"
