"""In this folder `cupel` is warm: every run goes to an engine of the test file's own, and what
may be forked from the zygote must be. The cold one is `cupel.cold`."""
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("wall", "flow", "ecosystem"))]
import watched  # noqa: E402

# In the short form everything is run as root, and of these files one test in three as a user too.
SAMPLED = {f"test_warm_{name}.py" for name in "walls flow same admission chaos".split()}


def pytest_collection_modifyitems(config, items):
    if os.environ.get("CUPEL_LONG") == "1" or os.getuid() != 0 or config.option.keyword:
        return
    users = [item for item in items if item.path.parent == HERE and item.path.name in SAMPLED
             and getattr(item, "callspec", None) and item.callspec.params.get("who") == "user"]
    left_out = {item for number, item in enumerate(users) if number % 3}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="module")
def cupels(cupels, place):
    """As above in the tree, but each with an engine that stands ready."""
    warm, running = {}, []
    try:
        for who, cold in cupels.items():
            running.append(watched.Watched(cold, watched.socket_path(place, cold)).__enter__())
            warm[who] = watched.WarmCupel(cold, running[-1])
        yield warm
    finally:
        for engine in running:
            engine.__exit__(None)


@pytest.fixture
def engine(cupel_as):
    """The engine behind cupel_as."""
    return cupel_as.running
