"""Tests of sessions: engines that are warm before the first session is made, one for each user
and test file, and what the kernel shows of their processes."""
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("warm", "wall"))]
import cells  # noqa: E402
from sessions import Session  # noqa: E402

# In the short form everything is run as root, walls in a cell after a rollback; of these files, one
# test in so many as a user, whose sessions are not protected, and walls in a first cell.
SAMPLED = {"test_session_walls.py": {"user": 10, "first": 10}, "test_session_attacks.py": {"user": 6},
           "test_session_exact.py": {"user": 3}}
# The same caps are tried in warm runs.
LEFT_OUT = {"test_driver_caps__all_lines_together_have_a_cap"}


def sample_of(item):
    """(sample, one in so many), or None: it is always run."""
    if item.path.parent != HERE or item.path.name not in SAMPLED:
        return None
    params = item.callspec.params.values() if getattr(item, "callspec", None) else ()
    return next(((name, every) for name, every in SAMPLED[item.path.name].items() if name in params), None)


def pytest_collection_modifyitems(config, items):
    if os.environ.get("CUPEL_LONG") == "1" or os.getuid() != 0 or config.option.keyword:
        return
    left_out, seen = set(), {}
    for item in filter(lambda one: isinstance(one, pytest.Function), items):
        sample = sample_of(item)
        if sample:
            seen[sample] = seen.get(sample, -1) + 1
        if item.originalname in LEFT_OUT or sample and seen[sample] % sample[1]:
            left_out.add(item)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="module")
def engines(cupels, place, left_behind):
    """{who: an engine that stands ready}."""
    with cells.engines(cupels, place) as running:
        yield running


@pytest.fixture
def engine(engines, who):
    return engines[who]


@pytest.fixture
def client(engine):
    with engine.client() as one:
        yield one


@pytest.fixture
def session(client):
    one = Session(client)
    yield one
    cells.end(one)
