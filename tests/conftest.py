"""Fixtures for every test: cupel as a callable, as root and as an ordinary user, and a guard that fails a
test file which leaves something of cupel's behind on the host.

The helpers live in tests/host.py, the choice of tests in tests/selection.py."""
import json
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "warm")]
import host  # noqa: E402
import selection  # noqa: E402
import shared as shared_engines  # noqa: E402
from sessions import Session  # noqa: E402

# CUPEL_WHO=user leaves root's half out.
WHO = [who for who in ("root", "user") if who in os.environ.get("CUPEL_WHO", "root user").split()
       and (who == "user" or os.getuid() == 0)]


TIMES = os.environ.get("CUPEL_TEST_TIMES")  # a file, where the runner wants them


def pytest_configure(config):
    for line in selection.MARKERS:
        config.addinivalue_line("markers", line)
    if TIMES and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times())
    host.become_subreaper()


def pytest_collection_modifyitems(config, items):
    selection.select(config, items, WHO)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"CUPEL_SEED={host.SEED} repeats the random choices")


class Times:
    """Notes how long each test took, with its fixtures, and which failed."""

    took, failed = {}, set()

    def pytest_runtest_logreport(self, report):
        self.took[report.nodeid] = self.took.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self):
        Path(TIMES).write_text(json.dumps({"took": self.took, "failed": sorted(self.failed)}))


@pytest.fixture(scope="session")
def place():
    """A folder outside pytest's private ones, which an ordinary user can reach."""
    with host.Place() as made:
        yield made


@pytest.fixture(scope="session")
def cold_cupels(place):
    """{who: cupel}, whatever a folder makes of `cupels`."""
    if not host.PROGRAM.exists():
        pytest.fail(f"'{host.PROGRAM}' is not built: run make", pytrace=False)
    return {who: host.Cupel(who, place) for who in WHO}


@pytest.fixture(scope="session")
def cupels(cold_cupels):
    return cold_cupels


@pytest.fixture
def cupel(cupels):
    """cupel as whoever runs the tests."""
    return cupels[WHO[0]]


@pytest.fixture(params=WHO)
def who(request):
    return request.param


@pytest.fixture
def cupel_as(cupels, who):
    """cupel once as root and once as an ordinary user."""
    return cupels[who]


@pytest.fixture
def folder(place):
    """A fresh folder that anybody may write to."""
    return place.fresh()


@pytest.fixture(scope="session")
def lasting(cold_cupels, place):
    with shared_engines.Shared(cold_cupels, place) as made:
        yield made


@pytest.fixture(scope="module")
def engines(lasting, left_behind):
    """{who: `cupel serve`, warm}, each lent when a test of the file first asks for it."""
    with lasting.lend_all() as lent:
        yield lent


@pytest.fixture
def engine(engines, who):
    return engines[who]


@pytest.fixture
def client(engine):
    with engine.client() as one:
        one.wait_until_warm()
        yield one


@pytest.fixture
def session(client):
    one = Session(client)
    yield one
    if one.info()["status"] != "ended":
        one.end()


@pytest.fixture(autouse=True, scope="module")
def left_behind(request):
    """No process, mount, cgroup, network namespace or file of cupel's outlives a test file."""
    with host.nothing_left_by(request.node.name):
        yield
