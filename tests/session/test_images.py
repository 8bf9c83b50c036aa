"""Sessions in stored images: states are kept and restored as on the host, and a session stays in the image that it
began with, whatever becomes of the name."""
import pytest

from engine import Started
from made_images import open_shop, package
from sessions import Refused, Session

VERSION = "import tiny\ntiny.version"


@pytest.fixture(scope="module")
def shops(cold_cupels, place):
    with Started(list(cold_cupels), lambda who: open_shop(cold_cupels[who], place)) as made:
        yield made


@pytest.fixture
def shop(shops, who, client):
    yield shops[who]
    shops[who].leave(client)


def undone(session):
    """States are kept where a zygote forked the session's interpreter: a new cell is undone."""
    session.run("x = 1")
    session.run("x = 2\nopen('made', 'w').write('x')")
    session.undo()
    assert session.value("x") == "1" and "made" not in session.files()


def test_a_session_in_an_image_is_undone_and_forked(shop, client):
    shop.make("data", package("tiny", "1.5"))
    for _ in range(2):  # the second one is of the image's pool, or of its zygote
        session = Session(client, request={"image": "data"})
        assert session.value(VERSION) == "'1.5'"
        undone(session)
        fork = session.fork()
        assert fork.value("tiny.version, x") == "('1.5', 1)"
        result = fork.run("1")
        assert result["isolation"]["image"] == "data"
        fork.end()
        session.end()


def test_a_session_keeps_its_image_when_the_name_leads_elsewhere(shop, client):
    shop.make("moving", package("tiny", "1"))
    session = Session(client, request={"image": "moving"})
    before = session.run(VERSION)
    shop.make("moving", package("tiny", "2"))
    new = Session(client, request={"image": "moving"})
    assert new.value(VERSION) == "'2'"
    assert shop.cupel.run(["images", "prune"]).returncode == 0
    after = session.run("import importlib, tiny\nimportlib.reload(tiny)\ntiny.version")
    assert after["results"][0]["text/plain"] == "'1'", after["error"]
    assert before["provenance"]["image_digest"] == after["provenance"]["image_digest"]
    assert after["provenance"]["image_digest"] != new.run("1")["provenance"]["image_digest"]
    shop.remove("moving")
    assert shop.cupel.run(["images", "prune"]).returncode == 0
    assert session.value("importlib.reload(tiny).version") == "'1'"
    assert session.fork().value("importlib.reload(tiny).version") == "'1'"  # a fork is of the same image
    with pytest.raises(Refused):
        Session(client, request={"image": "moving"})


def test_a_session_that_cannot_have_its_image_is_refused(shop, client):
    shop.make("data", package("tiny", "1"))
    for request, field in (({"image": "nix"}, "image"), ({"image": "data@sha256:" + "0" * 64}, "image"),
                           ({"packages": ["nowhere"]}, "packages"), ({"image": "data", "profile": "strict"}, "image")):
        with pytest.raises(Refused) as refused:
            Session(client, request=request)
        assert refused.value.error["field"] == field
    session = Session(client, request={"packages": ["tiny"]})
    for cell, field in (({"image": "host"}, "image"), ({"packages": ["tiny>=2"]}, "packages")):
        with pytest.raises(Refused) as refused:
            session.run("1", **cell)
        assert refused.value.error["field"] == field and "new session" in refused.value.error["hint"]
    assert session.run(VERSION, image="data", packages=["tiny"])["status"] == "ok"


def test_a_strict_session_and_run_are_of_an_image_that_stands_alone(shop, client):
    """Where a wall is missing, as for an ordinary user, the refusal names it."""
    shop.make_alone("alone")
    request = {"code": "import os, sys\nprint(os.path.exists('/usr/lib/python3/dist-packages'), sys.version_info[:2])",
               "image": "alone"}
    result = client.run(request)[1]["result"]
    assert (result["status"], result["stdout"]) == ("ok", "False (3, 11)\n"), result["error"]
    frame = client.run({**request, "profile": "strict"})[1]
    if frame.get("error"):
        assert client.run({"code": "1"})[1]["result"]["isolation"]["missing"], frame
        assert frame["error"]["kind"] == "host"
        return
    assert frame["result"]["stdout"] == "False (3, 11)\n" and frame["result"]["isolation"]["missing"] == []
    session = Session(client, request={"image": "alone", "profile": "strict"})
    assert session.run("1")["isolation"]["missing"] == []
    session.run("x = 1")
    assert session.value("x") == "1" and not session.info()["protected"]
    with pytest.raises(Refused) as refused:
        session.undo()
    assert "without a zygote" in refused.value.error["message"]
    session.end()
