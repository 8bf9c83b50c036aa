"""Pools of stored images: an image in use gets boxes with waiting interpreters of its own, a few images at one time,
and nothing of them stays when it is removed. An image whose Python is broken costs little and harms no other."""
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import host
from engine import Started
from made_images import open_shop, package
from sessions import Session

JSON = "/usr/lib/python3.11/json/__init__.py"
SETS = 3  # beside the host's
SOON_S = 20


@pytest.fixture(scope="module")
def shops(cold_cupels, place):
    with Started(list(cold_cupels), lambda who: open_shop(cold_cupels[who], place)) as made:
        yield made


@pytest.fixture
def shop(shops, who, client):
    """What a failed test leaves would disturb the next."""
    yield shops[who]
    shops[who].leave(client)


def run(client, image, code="import tiny\nprint(tiny.version)", **fields):
    frame = client.run({"code": code, "image": image, **fields})[1]
    assert "result" in frame, frame
    return frame["result"]


def names_of(client, image):
    """The pools and zygotes of an image."""
    state = client.info()["state"]
    return [row["name"] for row in [*state["pools"], *state["zygotes"]] if row["name"].endswith(f"@{image}")]


def images_of(client):
    return {row["name"].partition("@")[2] for row in client.info()["state"]["pools"]} - {""}


def warm_up(client, image, **fields):
    """Runs until one is served by the image's pool."""
    until = time.monotonic() + SOON_S * max(3, host.slowness())
    while not run(client, image, **fields)["metrics"]["warm"]:
        assert time.monotonic() < until, client.info()["state"]
        time.sleep(0.2)


def remove(shop, client, *images):
    shop.remove(*images)
    assert host.wait_until(lambda: not images_of(client) & set(images), SOON_S), client.info()["state"]


def test_an_image_that_is_used_again_is_served_from_a_pool_of_its_own(shop, client):
    shop.make("data", package("tiny", "1"))
    first = run(client, "data")
    assert first["stdout"] == "1\n"
    warm_up(client, "data")
    result = run(client, "data", "import tiny, sys\nprint(tiny.version, len(sys.argv))", args=["a", "b"])
    assert (result["stdout"], result["isolation"]["image"]) == ("1 3\n", "data")
    assert result["provenance"]["image_digest"] == first["provenance"]["image_digest"]
    assert {"python@data", "box@data"} <= set(names_of(client, "data"))
    for language, code in (("bash", "ls /usr/local/lib/python3.11/dist-packages | head -1"), ("javascript", "1")):
        warm_up(client, "data", code=code, language=language)
    other = run(client, "host", "import tiny")
    assert other["error"]["kind"] == "import" and other["isolation"]["image"] == "host"
    remove(shop, client, "data")
    assert "unknown image" in client.run({"code": "1", "image": "data"})[1]["error"]["message"]


def test_an_image_made_again_is_the_next_runs_and_not_that_of_runs_under_way(shop, engine, client):
    shop.make("moving", package("tiny", "1"))
    warm_up(client, "moving")
    with engine.client() as other:
        other.start("old", {"code": "import time\ntime.sleep(2)\nimport tiny\nprint(tiny.version)", "image": "moving"})
        time.sleep(0.5)
        shop.make("moving", package("tiny", "2"))
        new = run(client, "moving")
        _, frame = other.finish("old")
    assert new["stdout"] == "2\n" and frame["result"]["stdout"] == "1\n"
    assert new["provenance"]["image_digest"] != frame["result"]["provenance"]["image_digest"]
    warm_up(client, "moving")
    assert run(client, "moving")["stdout"] == "2\n"
    remove(shop, client, "moving")


def test_an_image_can_be_removed_and_pruned_while_it_runs(shop, engine, client):
    shop.make("going", package("tiny", "3"))
    warm_up(client, "going")
    with engine.client() as other:
        other.start("old", {"code": "import time\ntime.sleep(3)\nimport tiny\nprint(tiny.version)", "image": "going"})
        time.sleep(0.5)
        remove(shop, client, "going")
        assert shop.cupel.run(["images", "prune"]).returncode == 0
        _, frame = other.finish("old")
    assert frame["result"]["stdout"] == "3\n", frame
    trees = Path(shop.cupel.env["CUPEL_STATE"]) / "images/trees"
    assert host.wait_until(lambda: shop.cupel.run(["images", "prune"]).returncode == 0 and not list(trees.iterdir()),
                           SOON_S)


def test_a_changed_file_in_the_store_is_found_and_the_image_refused_while_an_engine_serves_it(shop, client):
    digest = shop.make("bent", package("tiny", "1"))
    warm_up(client, "bent")
    store = Path(shop.cupel.env["CUPEL_STATE"]) / "images"
    file = next((store / "trees" / digest).rglob("tiny/__init__.py"))
    file.chmod(0o644)
    file.write_text("version = 'bent'\n")
    done = shop.cupel.run(["images", "verify", "bent"])
    assert done.returncode == 1 and "tiny/__init__.py" in done.stdout + done.stderr
    error = client.run({"code": "1", "image": "bent"})[1]["error"]
    assert error["field"] == "image" and "tiny/__init__.py" in error["message"]
    assert host.wait_until(lambda: "bent" not in images_of(client), SOON_S)
    remove(shop, client, "bent")


@pytest.mark.full
def test_many_images_in_turn_leave_nothing_behind(shop, engine, client):
    def open_files():
        return len(os.listdir(f"/proc/{engine.process.pid}/fd"))

    def resident_kib():
        status = Path(f"/proc/{engine.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def processes():
        return len(host.descendants(engine.process.pid))
    names = [f"turn{n}" for n in range(20)]
    for name in names:
        shop.make(name, package("tiny", name[4:] + ".0"))
    assert host.wait_until(lambda: engine.spare_boxes() == 0, SOON_S)
    before = open_files(), processes()
    memory = None
    for turn in range(3):
        for name in names:
            for _ in range(2):
                assert run(client, name)["stdout"] == f"{name[4:]}.0\n"
            assert len(images_of(client)) <= SETS
        memory = memory or resident_kib()
    assert open_files() < before[0] + 16 + SETS * 400
    assert resident_kib() < memory + (8 << 10)
    remove(shop, client, *names)
    assert host.wait_until(lambda: open_files() <= before[0] + 12 and processes() <= before[1] + 8, 60, 0.2), (
        before, open_files(), processes(), client.info()["state"])


@pytest.mark.skipif(not os.path.exists(JSON), reason="the host's Python is another")
def test_no_code_of_an_image_runs_with_a_zygotes_rights(shop, client):
    """A module of the standard library and a package that a zygote would import, each of which notes its rights."""
    note = "rights = [line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff')]\n"
    shop.make("bold", {"usr/lib/python3.11/json/__init__.py": note + Path(JSON).read_text(),
                       "usr/local/lib/python3.11/dist-packages/numpy/__init__.py": note})
    shop.make("beside", {"usr/local/lib/python3.11/dist-packages/numpy/__init__.py": note})
    seen = []
    for image, code in (("bold", "import json\nprint(json.rights)"), ("bold", "import numpy\nprint(numpy.rights)"),
                        ("beside", "import numpy\nprint(numpy.rights)")):
        warm_up(client, image, code=code)
        for _ in range(4):
            seen.append(run(client, image, code)["stdout"])
            time.sleep(0.5)
    assert set(seen) == {"['0000000000000000']\n"}, seen
    remove(shop, client, "bold", "beside")


def test_an_image_beside_the_host_has_its_zygote_and_another_has_none(shop, client):
    """The world of a fork is that of an interpreter that is exec'd."""
    shop.make("data", package("tiny", "1"))
    shop.make("more", {**package("tiny", "2"), "usr/share/more": "more", "usr/bin/more": "#!/bin/sh\n",
                       "usr/lib/x86_64-linux-gnu/libnew.so.9": ""})
    shop.make("other", {**package("tiny", "3"), "usr/lib/x86_64-linux-gnu/libbz2.so.1.0": "other"})
    shop.make("own", {**package("tiny", "4"), "usr/lib/python3.11/own.py": ""})
    for image, forked in (("data", True), ("more", True), ("other", False), ("own", False)):
        code = "import os, sys, tiny\nprint(tiny.version, sys.path, sorted(os.environ.items()))"
        cold = run(client, image, code, env={"PYTHONUNBUFFERED": "1"})
        assert not cold["metrics"]["warm"]
        wanted = cold["stdout"].replace("('PYTHONUNBUFFERED', '1'), ", "")
        assert run(client, image, code)["stdout"] == wanted
        warm_up(client, image, code=code)
        assert run(client, image, code)["stdout"] == wanted
        session = Session(client, request={"image": image})
        session.run("x = 1")
        session.wait_until_idle()
        assert session.info()["protected"] == forked, image
        session.end()
        remove(shop, client, image)


def test_the_end_of_the_zygotes_is_mended(shop, engine, client):
    shop.make("data", package("tiny", "1"))
    warm_up(client, "data")
    for _ in range(2):
        for row in host.descendants(engine.process.pid):
            if Path(f"/proc/{row['pid']}/comm").exists() and "zygote" in row["comm"]:
                os.kill(row["pid"], signal.SIGKILL)
        assert run(client, "data")["stdout"] == "1\n"
        warm_up(client, "data")
    assert run(client, "host", "print(1)")["metrics"]["warm"]
    remove(shop, client, "data")


START = "usr/lib/python3.11/encodings/__init__.py"  # every start of Python imports it
LATE = "usr/lib/python3.11/threading.py"
BROKEN = {
    "ends at once": {START: "import posix\nposix._exit(3)\n"},
    "kills itself": {START: "import posix\nposix.kill(posix.getpid(), 11)\n"},
    "ends a zygote": {LATE: "import posix\nposix._exit(0)\n"},
    "is no program": {"usr/bin/python3.11": "#!/nowhere\n"},
    "hangs a zygote": {LATE: "import time\ntime.sleep(1000)\n"},
    "hangs": {START: "import time\ntime.sleep(1000)\n"},
}
RUNS = "ends a zygote", "hangs a zygote"  # what is broken is no part of a small program


@pytest.mark.sample(short=6)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_python_costs_little_and_harms_no_other_image(shop, engine, client, name):
    shop.make("broken", BROKEN[name])
    shop.make("data", package("tiny", "1"))
    warm_up(client, "data")
    began = max(row["generation"] for row in client.info()["state"]["zygotes"])
    for _ in range(3):
        frame = client.run({"code": "print(1)", "image": "broken", "limits": {"timeout_s": 1}})[1]
        status = frame["result"]["status"] if "result" in frame else "refused"
        assert status != "internal" and (status == "ok") == (name in RUNS), (status, frame.get("error"))
        time.sleep(0.5)
    until = time.monotonic() + 6
    while time.monotonic() < until:
        assert run(client, "host", "print(1)")["stdout"] == "1\n" and run(client, "data")["stdout"] == "1\n"
        time.sleep(0.2)
    state = client.info()["state"]
    # Two kinds of zygotes, three times each.
    assert max(row["generation"] for row in state["zygotes"]) <= began + 2 * 3, state
    assert run(client, "data")["metrics"]["warm"]
    remove(shop, client, "broken", "data")


def test_a_hundred_requests_at_once_over_ten_images_get_their_own(shop, engine, client):
    names = [f"crowd{n}" for n in range(10)]
    for name in names:
        shop.make(name, package("tiny", name))
    failed = []

    def ask(n):
        name = names[n % 10]
        try:
            with engine.client() as one:
                one.sock.settimeout(300)
                result = run(one, name)
                if (result["stdout"], result["isolation"]["image"]) != (f"{name}\n", name):
                    failed.append(result)
        except Exception as error:  # told below
            failed.append(error)
    threads = [threading.Thread(target=ask, args=(n,)) for n in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[:3]
    assert len(images_of(client)) <= SETS
    remove(shop, client, *names)
