"""The wall suite once more, against warm boxes: the same hostile programs, forged frames, caps,
forbidden calls, artifact traps and neighbours, in occupants that were forked from the zygote."""
import pytest

import test_artifact_walls
import test_between_boxes
import test_driver_caps
import test_forgery
import test_syscalls
import test_wall
from watched import adopt

pytestmark = [pytest.mark.sample(of="user", full=3),
              pytest.mark.sample(short=6)]
adopt(globals(), test_artifact_walls)
adopt(globals(), test_between_boxes, without=[
    "test_processes_of_one_box_are_invisible_in_another",  # looks for any process of ours
    "test_a_watcher_outside_sees_and_holds_everything"])   # the control; once is enough
adopt(globals(), test_driver_caps)
adopt(globals(), test_forgery)
adopt(globals(), test_syscalls, without=["test_the_compiled_filter_is_the_golden_one",
                                         "test_the_golden_table_has_every_number_once"])
adopt(globals(), test_wall, without=["test_the_attack_succeeds_outside_the_box",
                                     "test_every_program_says_which_row_it_stands_for"])

# RLIMIT_CPU of one that waited is the engine's ceiling, for its request was not known; the CPU
# clock holds the limit. Another memory limit makes it a fork on demand, which knows.
ON_DEMAND = {"rlimits.py": '{"memory_bytes": 500000000}'}


@pytest.fixture(autouse=True)
def on_demand(request, monkeypatch):
    program = getattr(request.node, "callspec", None) and request.node.callspec.params.get("program")
    if program and program.path.name in ON_DEMAND:
        monkeypatch.setitem(program.head, "limits", ON_DEMAND[program.path.name])
