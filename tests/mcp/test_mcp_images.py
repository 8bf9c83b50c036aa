"""Images over MCP: run_code and session take `image` and `packages`, in a fresh box, a new session and the
conversation's own."""
import pytest

import host
from engine import Started
from made_images import open_shop, package
from mcp_client import MODERN, Talk, text

CODE = "import tiny\nprint(tiny.version)"


@pytest.fixture(scope="module")
def shops(cold_cupels, place):
    with Started(list(cold_cupels), lambda who: open_shop(cold_cupels[who], place)) as made:
        yield made


@pytest.fixture
def shop(shops, who, client):
    if "data" not in shops[who].names:
        shops[who].make("data", package("tiny", "1.5"))
        shops[who].make("other", package("rare", "2"))
    yield shops[who]


@pytest.fixture
def talk(shop, engine, cupel_as):
    with Talk(cupel_as, env=engine.use()) as one:
        yield one


def test_a_conversation_is_in_the_image_of_its_first_call(talk):
    first = talk.run(CODE, image="data")
    assert first["structuredContent"]["stdout"] == "1.5\n", first
    assert talk.run(CODE)["structuredContent"]["stdout"] == "1.5\n"
    assert talk.run(CODE, packages=["tiny>=1"])["structuredContent"]["stdout"] == "1.5\n"
    other = talk.run("1", image="other")
    assert other["isError"] and "new session" in text(other)


def test_a_fresh_box_and_a_new_session_are_in_the_image_that_is_named(talk):
    assert talk.run(CODE, session="none", image="data")["structuredContent"]["stdout"] == "1.5\n"
    made = talk.run("import rare\nprint(rare.version)", session="new", packages=["rare"])["structuredContent"]
    assert made["stdout"] == "2\n" and made["session"]
    assert not talk.run("rare.version", session=made["session"])["isError"]
    new = talk.call("session", do="new", image="data")["structuredContent"]["sessions"][0]["session"]
    assert talk.run(CODE, session=new)["structuredContent"]["stdout"] == "1.5\n"
    assert talk.run(CODE, MODERN, image="data")["structuredContent"]["stdout"] == "1.5\n"


@pytest.mark.parametrize("arguments, named", [
    ({"image": "nix", "session": "none"}, "unknown image 'nix'"), ({"image": "Not A Name"}, "image"),
    ({"packages": ["nowhere"], "session": "new"}, "cupel images add NAME --pip nowhere"), ({"image": 5}, "image"),
    ({"packages": "tiny"}, "packages"), ({"packages": ["a; id"], "session": "none"}, "packages"),
])
def test_an_image_that_cannot_be_had_is_named_in_a_result(talk, arguments, named):
    result = talk.call("run_code", code="1", **arguments)
    assert result["isError"] and named in text(result), result


def test_a_missing_import_names_the_image_that_has_it(talk):
    assert "run with --image data" in text(talk.run("import tiny"))


def test_nothing_is_left(shops, who, client):
    """The last one: the engine is lent to other files."""
    names = set(shops[who].names)
    if names:
        shops[who].remove(*names)

    def are_gone():
        return not any(row["name"].partition("@")[2] in names - {""} for row in client.info()["state"]["pools"])
    assert host.wait_until(are_gone, 20), client.info()["state"]["pools"]
