"""Tests of sessions: engines that are warm before the first session is made, and what the kernel shows of their
processes."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("warm", "wall"))]
import cells  # noqa: E402


@pytest.fixture(scope="module")
def engines(lasting, left_behind):
    """{who: an engine with ready zygotes}."""
    with lasting.lend_all(cells.POOL) as lent:
        yield lent
