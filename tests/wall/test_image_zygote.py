"""A zygote has a power over boxes, and the files of a stored image are anybody's: an engine runs them inside boxes
alone. The image's `statistics` and `numpy`, which zygotes import, note what the process may do that imports them."""
import io
import json
import tarfile
import time

import boxes
import engine
import pytest

NOTE = """
import ctypes, os
NOTED = {line.split(":")[0]: line.split()[1] for line in open("/proc/self/status")
         if line.startswith(("CapEff", "CapPrm", "Seccomp:", "NoNewPrivs"))}
NOTED["mount"] = ctypes.CDLL(None).mount(b"x", b"/tmp", b"tmpfs", 0, None) == 0
NOTED["processes"] = len([name for name in os.listdir("/proc") if name.isdigit()])
"""
SHOW = "import json, numpy, statistics\nprint(json.dumps([numpy.NOTED, statistics.NOTED]))"


@pytest.fixture(scope="module")
def noting(place):
    """A tar of the wall tests' image, with these modules in it."""
    top = "usr/lib/" + boxes.VERSION
    tar = boxes.pack(place.root / "noting.tar", [boxes.VERSION, "bash", "dash"])
    with tarfile.open(tar, "a") as archive:
        for name in ("statistics.py", "numpy/__init__.py"):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size, info.mtime = len(NOTE), time.time()
            archive.addfile(info, io.BytesIO(NOTE.encode()))
    return tar


@pytest.mark.boxes("host", why="it names the image itself")
def test_no_file_of_an_image_is_run_outside_a_box(cupel_as, place, noting):
    done = cupel_as.run(["images", "import", "--name", "noting", noting])
    assert done.returncode == 0, done.stderr
    with engine.Engine(cupel_as, engine.socket_path(place, cupel_as)) as running, running.client() as client:
        warm = 0
        for _ in range(40):
            result = client.run({"code": SHOW, "image": "noting"})[1]["result"]
            assert result["status"] == "ok", result
            for noted in json.loads(result["stdout"]):
                assert int(noted["CapEff"], 16) == int(noted["CapPrm"], 16) == 0, noted
                assert noted["Seccomp"] == "2" and noted["NoNewPrivs"] == "1" and not noted["mount"], noted
                assert noted["processes"] <= 2, noted
            warm += result["metrics"]["warm"]
            if warm >= 3:
                break
            time.sleep(0.5)
        assert warm >= 3, "the image was never served from a pool"
        assert not [row for row in client.info()["state"]["zygotes"] if "@" in row.get("name", "")]
