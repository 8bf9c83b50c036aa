"""An image that a request pins by its digest is that image, or the request is refused."""
import pytest

from sessions import Refused, Session

OTHER = "sha256:" + "0" * 64


def error_of(client, request):
    return client.run(request)[1]["error"]


def test_a_run_that_pins_another_image_is_refused_and_names_both_digests(client):
    digest = client.run("1")[1]["result"]["provenance"]["image_digest"]
    error = error_of(client, {"code": "1", "image": "host@" + OTHER})
    assert (error["kind"], error["field"]) == ("input", "image")
    assert digest in error["message"] and OTHER in error["message"]
    assert client.run({"code": "1", "image": "host@" + digest})[1]["result"]["status"] == "ok"


def test_a_session_that_pins_another_image_is_refused(client):
    with pytest.raises(Refused) as refused:
        Session(client, request={"image": "host@" + OTHER})
    assert refused.value.error["field"] == "image"


def test_a_cold_run_that_pins_another_image_is_refused(cupel_as):
    said = cupel_as.run(["run", "--cold", "--image", "host@" + OTHER, "1"])
    assert said.returncode == 2 and OTHER in said.stderr
