"""A server for each user, which the files of a worker use one after another, and a client that checks every response
against api/openapi.json. This folder is no package: its name is that of Python's own."""
import pytest

import engine
from http_seen import SEEN
from http_contract import CONTRACT
from http_server import LISTEN, Server


LAST = "test_openapi.py"


def pytest_collection_modifyitems(items):
    """The file that counts what the others saw comes after them."""
    items.sort(key=lambda item: item.path.name == LAST)


@pytest.fixture(scope="session")
def contract():
    yield CONTRACT
    if SEEN:
        CONTRACT.keep(SEEN)


@pytest.fixture(scope="module")
def servers(lasting, left_behind, contract):
    """{who: Server}, each lent when a test of the file first asks for it."""
    with lasting.lend_all(LISTEN) as lent:
        yield engine.Started(list(lent), lambda who: Lent(lent, who, contract))


class Lent:
    """A context manager, as engine.Started wants; the lending itself is the fixture's."""

    def __init__(self, lent, who, contract):
        self.lent, self.who, self.contract = lent, who, contract

    def __enter__(self):
        return Server(self.lent[self.who], self.contract)

    def __exit__(self, *_):
        pass


@pytest.fixture
def server(servers, who):
    return servers[who]


@pytest.fixture
def http(server):
    """A client with an ordinary token."""
    with server.client() as one:
        yield one


@pytest.fixture
def operator(server):
    with server.client("boss", "--operator") as one:
        yield one
