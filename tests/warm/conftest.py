"""In this folder `cupel` is warm: every run goes to an engine, and what
may be forked from the zygote must be. The cold one is `cupel.cold`."""
import contextlib
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("wall", "flow", "ecosystem"))]
import watched  # noqa: E402
from engine import Started  # noqa: E402

@pytest.fixture(scope="module")
def cupels(cold_cupels, engines):
    """As above in the tree, but each with an engine that has ready zygotes."""
    def start(who):
        return contextlib.nullcontext(watched.WarmCupel(cold_cupels[who], engines[who]))
    with Started(cold_cupels, start) as warm:
        yield warm


@pytest.fixture
def engine(cupel_as):
    """The engine behind cupel_as."""
    return cupel_as.running
