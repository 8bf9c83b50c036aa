"""Fixtures of the tests that ask models: an engine that is ready, so that a task costs only
itself, and one fake of each setup."""
import json
from contextlib import ExitStack

import pytest

from models.asking import SETUPS, Asker, fake_of, python


@pytest.fixture(scope="module")
def ready(engines, place):
    """`cupel serve` for whoever runs the tests."""
    engine, folder = engines.first(), place.fresh("e")
    (folder / "warm").write_text("".join(json.dumps(reply) + "\n" for reply in (python("1"), {"text": "1"})))
    engine.cupel.run(["ask", "--json", "--model", f"replay:{folder}/warm", "?"], env=engine.use())
    return engine


@pytest.fixture(scope="module")
def fakes():
    with ExitStack() as stack:
        yield {setup: stack.enter_context(fake_of(setup)) for setup in SETUPS}


@pytest.fixture
def asker(ready, fakes, setup):
    """Asks cupel, with the setup's fake in its first state."""
    fakes[setup].reset()
    return Asker(ready.cupel, setup, fakes[setup], ready.use())
