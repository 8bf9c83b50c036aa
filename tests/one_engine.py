"""Fixtures of test files that need one engine, one warm client and one session for all of their tests: a file imports
those that it uses."""
import pytest

from sessions import Session


@pytest.fixture(scope="module")
def engine(engines):
    return engines.first()


@pytest.fixture(scope="module")
def client(engine):
    with engine.client() as one:
        one.wait_until_warm()
        yield one


@pytest.fixture(scope="module")
def session(client):
    return Session(client, request={"limits": {"timeout_s": 30}})
