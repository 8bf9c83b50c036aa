"""Tests of the agent: engines that are warm before the first task, one for each user and all files of this
folder, because starting them costs more than most tests here."""
import contextlib
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("session", "warm"))]
import asking  # noqa: E402
import cells  # noqa: E402
import host  # noqa: E402


class Askers:
    """An asker for each user, whose engine is started when the first test wants it."""

    def __init__(self, cupels, place, stack):
        self.cupels, self.place, self.stack, self.made = cupels, place, stack, {}

    def __getitem__(self, who):
        if who not in self.made:
            started = self.stack.enter_context(cells.engines({who: self.cupels[who]}, self.place))
            self.made[who] = asking.Asker(started[who], self.place)
        return self.made[who]


@pytest.fixture(autouse=True, scope="package")
def left_behind():
    """As in all other folders, but of the folder as a whole: the engines live as long."""
    before = host.footprint()
    yield
    host.wait_until(lambda: not host.growth(before), 3)
    grown = host.growth(before)
    assert not grown, f"left behind by the tests of the agent: {grown}"


@pytest.fixture(scope="package")
def askers(cupels, place, left_behind):
    with contextlib.ExitStack() as stack:
        yield Askers(cupels, place, stack)


@pytest.fixture(autouse=True, scope="module")
def sessions_end(askers):
    """No session outlives the tasks of a test file."""
    yield
    for who, asker in askers.made.items():
        assert host.wait_until(lambda: not asker.sessions(), 5), f"sessions are left by tasks of {who}"


@pytest.fixture
def ask(askers, cupels):
    """A task as whoever runs the tests."""
    return askers[next(iter(cupels))]


@pytest.fixture
def ask_as(askers, who):
    """A task once as root and once as an ordinary user."""
    return askers[who]
