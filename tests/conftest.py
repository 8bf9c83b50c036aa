"""What every test stands on: cupel as a callable, as root and as an ordinary user,
and a guard that fails a test file which leaves anything behind on the host.

The helpers live in tests/host.py; the fixtures here only hand them out."""
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import host  # noqa: E402

# CUPEL_WHO=user leaves root's half out.
WHO = [who for who in ("root", "user") if who in os.environ.get("CUPEL_WHO", "root user").split()
       and (who == "user" or os.getuid() == 0)]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: the long form, run with CUPEL_LONG=1")
    host.become_subreaper()


def pytest_collection_modifyitems(items):
    if os.environ.get("CUPEL_LONG") == "1":
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="long form: set CUPEL_LONG=1"))


@pytest.fixture(scope="session")
def place():
    """A folder outside pytest's private ones, which an ordinary user can reach."""
    with host.Place() as made:
        yield made


@pytest.fixture(scope="session")
def cupels(place):
    if not host.PROGRAM.exists():
        pytest.fail(f"'{host.PROGRAM}' is not built: run make", pytrace=False)
    return {who: host.Cupel(who, place) for who in WHO}


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


@pytest.fixture(autouse=True, scope="module")
def left_behind(request):
    """No process, mount, cgroup, network namespace or file outlives a test file."""
    before = host.footprint()
    yield
    host.wait_until(lambda: not host.growth(before), 3)
    grown = host.growth(before)
    assert not grown, f"left behind by {request.node.name}: {grown}"
