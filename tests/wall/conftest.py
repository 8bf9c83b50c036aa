"""Every wall test runs in boxes of each kind (tests/boxes.py): on image `host`, on an imported image, on that with
profile `strict`, and with a folder of the caller's. `@pytest.mark.boxes("host", ...)` names the kinds of a test that
cannot run in all, with the reason as `why`."""
import boxes
import pytest
from selection import params_of


def pytest_generate_tests(metafunc):
    if "boxed" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("boxes")
        metafunc.parametrize("boxed", mark.args if mark else boxes.KINDS)


def pytest_collection_modifyitems(items):
    """An ordinary user is refused with profile strict: test_strict.py."""
    items[:] = [item for item in items if not {"strict", "user"} <= set(map(str, params_of(item).values()))]


@pytest.fixture(scope="session")
def all_boxes(cold_cupels, place):
    return boxes.Boxes(cold_cupels, place)


@pytest.fixture
def cupels(all_boxes, boxed):
    return all_boxes.all(boxed)
