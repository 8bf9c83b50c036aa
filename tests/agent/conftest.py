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
from engine import Started  # noqa: E402


@pytest.fixture(autouse=True, scope="package")
def left_behind():
    """As in all other folders, but of the folder as a whole: the engines live as long."""
    with host.nothing_left_by("the tests of the agent"):
        yield


@pytest.fixture(scope="package")
def askers(cupels, place, left_behind):
    """{who: an asker}, whose engine is started when the first test wants it."""
    with cells.engines(cupels, place) as running:
        yield Started(cupels, lambda who: contextlib.nullcontext(asking.Asker(running[who], place)))


@pytest.fixture(autouse=True, scope="module")
def sessions_end(askers):
    """No session outlives the tasks of a test file."""
    yield
    for who, asker in askers.made.items():
        assert host.wait_until(lambda: not asker.sessions(), 5), f"sessions are left by tasks of {who}"


@pytest.fixture
def ask(askers):
    """A task as whoever runs the tests."""
    return askers.first()


@pytest.fixture
def ask_as(askers, who):
    """A task once as root and once as an ordinary user."""
    return askers[who]
