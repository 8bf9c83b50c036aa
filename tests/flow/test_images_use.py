"""Images in use: an image says its languages and how Python starts, a package finds its image, and code that lacks
something is told the image or the command."""
import json
import os
import shutil

import pytest

import packages
from test_images_add import Adder

NO_NPM = not shutil.which("npm", path="/usr/local/bin:/usr/bin")
NO_APT = not os.path.exists("/var/lib/dpkg/status")


@pytest.fixture
def adder(cupel_as, place):
    return Adder(cupel_as, place)


def run(adder, *args, code=0):
    done = adder.cupel.run(["run", *args], env=adder.env, timeout=60)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    return done


@pytest.mark.both
def test_an_image_says_which_languages_work_and_how_python_starts(adder):
    packages.wheel(adder.wheels, "tiny")
    adder.add("data", "--pip", "tiny")
    row = next(row for row in json.loads(adder("ls", "--json").stdout)["images"] if row["name"] == "data")
    assert "python" in [one["name"] for one in row["languages"]], "before anybody looked, files tell"
    image = json.loads(adder("show", "data", "--json").stdout)["image"]
    languages = {one["name"]: one["version"] for one in image["languages"]}
    assert languages["python"].startswith("3.") and languages["bash"] and image["unprobed"] is None
    assert (image["python_start"], image["python_why"]) == ("zygote", None)
    text = adder("show", "data").stdout
    assert f"python {languages['python']}" in text and "from a zygote" in text
    assert f"python {languages['python']}" in adder("ls").stdout, "the look is remembered"
    checks = json.loads(adder.cupel.run(["doctor", "--json"], env=adder.env, timeout=120).stdout)["checks"]
    found = next(check for check in checks if check["name"] == "image data")
    assert found["verdict"] == "ok" and f"python {languages['python']} from a zygote" in found["detail"]


def test_an_image_without_python_says_so(adder):
    root = adder.folder / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy("/bin/true", root / "bin/sh")
    os.chmod(root, 0o755)
    adder("import", "--name", "bare", root)
    image = json.loads(adder("show", "bare", "--json").stdout)["image"]
    assert (image["python_start"], image["python_why"]) == ("none", "it has no Python")
    assert image["languages"] == [] and "lacks     Python: it has no Python" in adder("show", "bare").stdout
    checks = json.loads(adder.cupel.run(["doctor", "--json"], env=adder.env, timeout=120).stdout)["checks"]
    found = next(check for check in checks if check["name"] == "image bare")
    assert found["verdict"] == "weak" and "it has no Python" in found["detail"]


@pytest.mark.both
def test_a_package_finds_the_image_that_has_it_or_the_command_that_makes_one(adder):
    packages.wheel(adder.wheels, "tiny-thing", "1.5")
    code = "import tiny_thing; print(tiny_thing.version)"
    refused = json.loads(run(adder, "--json", "--package", "tiny-thing", code, code=2).stdout)["error"]
    assert refused["field"] == "packages" and "'cupel images add NAME --pip tiny-thing'" in refused["hint"]
    adder.add("data", "--pip", "tiny-thing")
    assert run(adder, "--package", "tiny-thing>=1", "--package", "Tiny_Thing==1.5", code).stdout == "1.5\n"
    run(adder, "--package", "tiny-thing>=2", code, code=2)
    run(adder, "--package", "tiny-thing", "--image", "host", code, code=2)
    run(adder, "--package", "x; rm", code, code=2)
    assert "cannot be combined" in run(adder, "--package", "x", "--request", "-", code=2).stderr


@pytest.mark.skipif(NO_NPM, reason="no npm here")
def test_a_missing_module_of_javascript_is_told_its_image_or_its_command(adder):
    hint = json.loads(run(adder, "--json", "-l", "js", "require('@s/wide/part')", code=1).stdout)["error"]["hint"]
    assert "'@s/wide' is not in image host" in hint and "cupel images add NAME --npm @s/wide'" in hint
    with packages.Registry({"@s/wide": {"2.0.0": {"index.js": "module.exports = 7\n"}}}) as registry:
        adder.add("js", "--npm", "@s/wide", env=registry.env)
    hint = json.loads(run(adder, "--json", "-l", "js", "require('@s/wide')", code=1).stdout)["error"]["hint"]
    assert "image js has @s/wide: run with --image js" in hint
    assert run(adder, "--image", "js", "-l", "js", "require('@s/wide')").stdout == "7\n"
    error = json.loads(run(adder, "--json", "-l", "js", "require('no $(name)')", code=1).stdout)["error"]
    assert "--npm" not in (error["hint"] or ""), "what is no name of a package stands in no command"


@pytest.mark.skipif(NO_APT, reason="no apt here")
def test_a_missing_program_is_told_its_image(adder, place):
    hint = json.loads(run(adder, "--json", "-l", "bash", "tiny-tool", code=127).stdout)["error"]["hint"]
    assert "image" not in hint.replace("the image has", "")
    adder.add("tool", "--apt", "tiny-tool", env=packages.debian(place.fresh("apt", 0o755), "tiny-tool"))
    hint = json.loads(run(adder, "--json", "-l", "bash", "tiny-tool", code=127).stdout)["error"]["hint"]
    assert "image tool has tiny-tool: run with --image tool" in hint
    assert run(adder, "--image", "tool", "-l", "bash", "tiny-tool").stdout == "tiny\n"
