"""Tests of tools: a client of an engine that answers the calls of its runs (bridge.py)."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("warm", "session", "http"))]
from bridge import Bridge  # noqa: E402


@pytest.fixture(scope="module")
def engine(engines):
    return engines.first()


@pytest.fixture(scope="module")
def client(engine):
    with engine.client() as one:
        one.wait_until_warm()
        yield one


@pytest.fixture
def bridge(client):
    return Bridge(client)
