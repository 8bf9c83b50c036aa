"""Images at the HTTP door, beside the socket and the command line: one request gives one result or one refusal, a token
has the images that it may, and a stored result is of one digest alone."""
import contextlib

import pytest

from engine import Started
from made_images import open_shop, package

from test_same_result import by_command, by_http, by_socket, by_stream, same

NO = "sha256:" + "0" * 64
DOORS = by_command, by_socket, by_http, by_stream


@contextlib.contextmanager
def stocked(cupel, place):
    with open_shop(cupel, place) as shop:
        shop.make("data", package("tiny", "1.5"))
        shop.make("other", package("rare", "2.0"))
        yield shop


@pytest.fixture(scope="module")
def shops(servers, place):
    """{who: a shop with the images `data` and `other`, in the state folder of that server}."""
    with Started(list(servers), lambda who: stocked(servers[who].cupel, place)) as made:
        yield made


@pytest.fixture
def shop(shops, who):
    return shops[who]


def shown(http, name):
    return next(row for row in http.get("/v1/images").json["images"] if row["name"] == name)


REQUESTS = {
    "by name": ({"code": "import tiny\nprint(tiny.version)", "image": "data"}, "data", "1.5\n"),
    "by packages": ({"code": "import rare\nprint(rare.version)", "packages": ["rare>=1.9"]}, "other", "2.0\n"),
    "by both": ({"code": "import tiny\nprint(tiny.version)", "image": "data", "packages": ["tiny==1.5"]}, "data",
                "1.5\n"),
    "packages of the host": ({"code": "print(1)", "packages": []}, "host", "1\n"),
    "bash": ({"code": "ls /usr/local/lib/python3.11/dist-packages", "language": "bash", "image": "other"}, "other",
             "rare\nrare-2.0.dist-info\n"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_in_an_image_gives_one_result_through_every_door(server, shop, http, name):
    request, image, stdout = REQUESTS[name]
    told = {door.__name__: same(door(server, request)) for door in DOORS}
    for door, result in told.items():
        assert result == told["by_command"], door
    result = told["by_command"]
    assert (result["status"], result["stdout"]) == ("ok", stdout), result["error"]
    assert result["isolation"]["image"] == image
    assert result["provenance"]["image_digest"] == shown(http, image)["digest"]


def test_a_request_may_insist_on_a_digest(server, shop, http):
    digest = shown(http, "data")["digest"]
    for image in (f"data@{digest}", digest):
        for door in DOORS:
            result = door(server, {"code": "import tiny", "image": image})
            assert result["status"] == "ok" and result["provenance"]["image_digest"] == digest


REFUSED = {
    "unknown": ({"code": "1", "image": "dta"}, "image", "dta", "did you mean"),
    "another digest": ({"code": "1", "image": "data@" + NO}, "image", NO, "images show data"),
    "no such digest": ({"code": "1", "image": NO}, "image", NO, "cupel images"),
    "a package": ({"code": "1", "packages": ["nowhere>=2"]}, "packages", "nowhere>=2",
                  'cupel images add NAME --pip "nowhere>=2"'),
    "two packages": ({"code": "1", "packages": ["tiny", "rare"]}, "packages", "tiny",
                     "'cupel images add NAME --pip tiny --pip rare'"),
    "a version": ({"code": "1", "packages": ["tiny>=1.6"]}, "packages", "tiny>=1.6", "images add"),
    "of that image": ({"code": "1", "image": "data", "packages": ["rare"]}, "packages", "rare", "image other has it"),
    "strict on the host": ({"code": "1", "image": "data", "profile": "strict"}, "image", "data", "stands alone"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_image_that_cannot_be_had_is_one_refusal_at_every_door(server, shop, http, name):
    request, field, value, words = REFUSED[name]
    told = dict(server.cupel.request(request, env=server.engine.use()))
    answer = http.post("/v1/run", request)
    assert answer.status == 400 and answer.json == told
    with server.engine.client() as client:
        assert client.run(request)[1]["error"] == told["error"]
    error = told["error"]
    assert (error["kind"], error["field"], error["value"]) == ("input", field, value)
    assert words in error["message"] + error["hint"] + error["bound"], error


def test_the_images_and_their_languages_are_told(server, shop, http):
    row = shown(http, "data")
    assert row["base"] == "host" and row["digest"].startswith("sha256:")
    told = http.get("/v1/languages?image=data").json
    assert told["image"] == "data" and "python" in {one["name"] for one in told["languages"]}
    assert http.get("/v1/languages?image=dta").status == 400


def test_a_token_has_the_images_that_it_names(server, shop, http):
    digest = shown(http, "data")["digest"]
    with server.client("only-data", "--image", "data") as one:
        assert one.run({"code": "import tiny", "image": "data"})["status"] == "ok"
        assert one.run({"code": "import tiny", "image": f"data@{digest}", "packages": ["tiny"]})["status"] == "ok"
        for request in ({"code": "1"}, {"code": "1", "image": "other"}, {"code": "1", "image": digest}):
            answer = one.post("/v1/run", request)
            assert answer.status == 403 and answer.error["field"] == "image", answer
        for packages in (["rare"], ["tiny"], ["numpy"]):  # the engine would look into all images
            answer = one.post("/v1/run", {"code": "1", "packages": packages})
            assert answer.status == 403 and answer.error["field"] == "packages" and "data" in answer.error["hint"]
            answer = one.post("/v1/sessions", {"packages": packages})
            assert answer.status == 403 and answer.error["field"] == "packages"
    with server.client("only-that", "--image", f"data@{digest}") as one:
        assert one.run({"code": "import tiny", "image": f"data@{digest}"})["status"] == "ok"
        assert one.post("/v1/run", {"code": "1", "image": "data"}).status == 403


def test_a_session_is_of_its_image(server, shop, http):
    session = http.session(packages=["rare"])
    result = http.cell(session, "import rare\nrare.version")
    assert result["results"][0]["text/plain"] == "'2.0'" and result["isolation"]["image"] == "other"
    answer = http.post(f"/v1/sessions/{session}/run", {"code": "1", "image": "data"})
    assert answer.status == 400 and answer.error["field"] == "image" and "new session" in answer.error["hint"]
    answer = http.post(f"/v1/sessions/{session}/run", {"code": "1", "packages": ["tiny"]})
    assert answer.status == 400 and answer.error["field"] == "packages"
    http.delete(f"/v1/sessions/{session}")


def test_a_cached_result_is_of_one_digest_alone(server, shop, http):
    request = {"code": "import tiny\nprint(tiny.version, 'cached')", "image": "moving", "cache": {"ttl_s": 600}}
    shop.make("moving", package("tiny", "1"))
    first, again = http.run(request), http.run(request)
    assert not first["cached"] and again["cached"] and again["stdout"] == "1 cached\n"
    shop.make("moving", package("tiny", "2"))
    other = http.run(request)
    assert not other["cached"] and other["stdout"] == "2 cached\n"
    shop.make("moving", package("tiny", "1"))  # the same content: the same digest
    back = http.run(request)
    assert back["cached"] and back["stdout"] == "1 cached\n"
    shop.remove("moving")
    assert http.post("/v1/run", request).status == 400


def test_a_replay_insists_on_the_image_and_says_what_to_do_without(server, shop, http):
    shop.make("short", package("tiny", "7"))
    run = http.run({"code": "import tiny\nprint(tiny.version)", "image": "short"})
    assert http.post(f"/v1/runs/{run['run']}/replay", {"wait": True}).json["same"]
    shop.make("short", package("tiny", "8"))
    answer = http.post(f"/v1/runs/{run['run']}/replay", {"wait": True})
    assert answer.status == 409 and answer.error["field"] == "image" and "any_image" in answer.error["hint"]
    told = http.post(f"/v1/runs/{run['run']}/replay", {"wait": True, "any_image": True}).json
    assert {"image", "stdout"} <= {row["field"] for row in told["differences"]}
    shop.remove("short")
    answer = http.post(f"/v1/runs/{run['run']}/replay", {"wait": True})
    assert answer.status == 409 and answer.error["field"] == "image" and answer.error["value"] == "short"
    assert run["provenance"]["image_digest"] in answer.error["message"] and "--lock" in answer.error["hint"]
    shop.make("short", package("tiny", "7"))
    assert http.post(f"/v1/runs/{run['run']}/replay", {"wait": True}).json["same"]
