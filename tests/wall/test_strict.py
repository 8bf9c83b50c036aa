"""Profile `strict`: with every image but `host`, with all walls or not at all. That its boxes hold, the other files of
this folder try: `strict` is one of their kinds of boxes."""
import json
import os
import shutil
import subprocess

import engine
import host
import pytest

MARK = "ran-without-walls"
RUN = ["run", "--profile", "strict", "--json"]


def refusal(cupel, *words, code):
    done = cupel.run([*RUN, *words, "-c", f"print('{MARK}')"])
    assert done.returncode == code and MARK not in done.stdout, done
    return json.loads(done.stdout)["error"]


@pytest.mark.boxes("host", why="it names the image itself")
def test_an_image_of_the_host_is_refused_with_a_hint(cupel_as, place):
    error = refusal(cupel_as, code=2)
    assert error["kind"] == "input" and error["field"] == "image" and error["value"] == "host", error
    assert "shares no file with the host" in error["message"] and "cupel images import" in error["hint"], error
    tree, maker = place.fresh(), place.fresh() / "image-maker"
    shutil.copy(host.BUILD / "image-maker", maker)
    (tree / "added").write_text("x")
    subprocess.run([maker, "--host", "added", tree], env=cupel_as.env, check=True, stdout=subprocess.DEVNULL,
                   **cupel_as.identity())
    assert refusal(cupel_as, "--image", "added", code=2)["value"] == "added"


@pytest.mark.boxes("image", why="strict needs one")
def test_an_ordinary_user_is_refused_with_the_walls_that_are_missing(cupels):
    missing = cupels["user"].run_json("pass")["isolation"]["missing"]
    error = refusal(cupels["user"], code=125) if missing else None
    if not missing:
        pytest.skip("this user has every wall")
    assert error["kind"] == "host" and error["message"].endswith(": " + ", ".join(missing)), (error, missing)
    assert "cupel doctor" in error["hint"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root has every wall")
@pytest.mark.boxes("image", why="strict needs one")
def test_an_engine_holds_strict_runs_apart_from_others(cupels, place):
    """Cold, then warm where there is a zygote of the image; a baseline run between them takes none of its boxes."""
    with engine.Engine(cupels["root"], place.fresh() / "s") as running, running.client() as client:
        for profile in ("strict", "baseline", "strict", "strict"):
            result = client.run({"code": "print(1)", "image": "walls", "profile": profile})[1]["result"]
            assert result["stdout"] == "1\n" and result["isolation"]["missing"] == [], result
        error = client.run({"code": "1", "profile": "strict"})[1]["error"]
        assert error["field"] == "image", error
