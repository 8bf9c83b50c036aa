"""`cupel images add` and `lock`: packages of local indexes become images, and what is hostile in them stays out."""
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

import host
import packages

NO_NPM = not shutil.which("npm", path="/usr/local/bin:/usr/bin")
NO_APT = not os.path.exists("/var/lib/dpkg/status")


class Adder:
    """`cupel images` with a state folder and a folder of wheels of its own."""

    def __init__(self, cupel, place):
        self.cupel = cupel
        self.folder = place.fresh("images", 0o755, cupel.uid if cupel.switch else None)
        self.wheels = place.fresh("wheels", 0o755)
        self.state = self.folder / "state"
        self.env = {"CUPEL_STATE": str(self.state), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels),
                    "PIP_CONFIG_FILE": "/dev/null"}

    def __call__(self, *args, code=0, env=None, **options):
        done = self.cupel.run(["images", *args], env={**self.env, **(env or {})}, timeout=120, **options)
        assert done.returncode == code, (args, done.returncode, done.stdout[-2000:], done.stderr[-4000:])
        return done

    def add(self, *args, **options):
        return json.loads(self("add", *args, "--json", **options).stdout)["image"]

    def refused(self, *args, code=2, **options):
        return json.loads(self("add", *args, "--json", code=code, **options).stdout)["error"]

    def tree(self, image):
        return self.state / "images/trees" / image["tree"].partition(":")[2]

    def left(self):
        """What builds leave behind beside whole images."""
        images = self.state / "images"
        return [str(path) for part in ("work", "names", "trees") if (images / part).exists()
                for path in (images / part).iterdir()]


@pytest.fixture
def adder(cupel_as, place):
    return Adder(cupel_as, place)


def site_of(tree):
    return next(tree.glob("usr/local/lib/python3*/*-packages"))


@pytest.mark.both
def test_wheels_and_what_they_need_become_an_image_and_its_lock_makes_it_again(adder):
    packages.wheel(adder.wheels, "tiny-dep", "2.0")
    made = packages.wheel(adder.wheels, "tiny", requires=["tiny-dep>=1"], scripts={"tiny": "tiny:run"})
    image = adder.add("data", "--pip", "Tiny>=1")
    assert image["name"] == "data" and image["base"] == "host"
    assert [(row["name"], row["version"]) for row in image["lock"]["pip"]] == [("tiny", "1.0"), ("tiny-dep", "2.0")]
    assert image["lock"]["pip"][0]["sha256"] == hashlib.sha256(made.read_bytes()).hexdigest()
    tree = adder.tree(image)
    assert (site_of(tree) / "tiny_dep/__init__.py").read_text() == "version = '2.0'\n"
    assert (tree / "usr/local/bin/tiny").read_text().startswith("#!/usr/bin/python3\n")
    assert (tree / "usr/local/bin/tiny").stat().st_mode & 0o777 == 0o555
    names = {path.name for path in tree.rglob("*")}
    assert not names & {"REQUESTED", "direct_url.json"}

    lock = adder.folder / "data.lock"
    lock.write_text(adder("lock", "data").stdout)
    assert json.loads(lock.read_text()) == image["lock"]
    again = adder.add("again", "--lock", lock)
    assert again["digest"] == image["digest"] and again["lock"] == image["lock"]


def test_a_person_sees_steps_and_versions_and_quiet_is_quiet(adder):
    packages.wheel(adder.wheels, "tiny")
    done = adder("add", "data", "--pip", "tiny")
    assert "cupel: installing packages of Python" in done.stderr and "tiny 1.0" in done.stdout
    assert "Successfully installed" not in done.stderr
    assert adder("add", "data", "--pip", "tiny", "-q").stderr == ""
    assert "Successfully installed tiny" in adder("add", "data", "--pip", "tiny", "-v").stderr


def test_a_failed_resolve_shows_pips_own_words_and_leaves_nothing(adder):
    packages.wheel(adder.wheels, "tiny", requires=["tiny-dep>=2"])
    packages.wheel(adder.wheels, "tiny-dep", "1.0")
    error = adder.refused("data", "--pip", "tiny", code=125)
    assert "No matching distribution found for tiny-dep>=2" in error["message"]
    assert "only wheels" in error["hint"] and adder.left() == []


def test_a_source_package_is_refused_and_its_code_does_not_run(adder):
    mark = adder.wheels / "ran"
    packages.source(adder.wheels, "srconly", setup=f"open({str(mark)!r}, 'w')\n")
    error = adder.refused("data", "--pip", "srconly", code=125)
    assert "srconly" in error["message"] and "no code of a package runs" in error["hint"]
    assert not mark.exists() and adder.left() == []


def test_no_code_of_a_package_runs_in_a_build(adder, place):
    traces = place.fresh("traces")
    ran = f"import os; open({str(traces)!r} + '/' + str(os.getpid()), 'w')\n"
    packages.wheel(adder.wheels, "eager", files={"eager.pth": ran, "eager/__init__.py": ran, "sitecustomize.py": ran,
                                                 "setup.py": ran, "pip/__init__.py": ran, "pip/__main__.py": ran,
                                                 "json/__init__.py": ran, "eager/old.pyc": b"x",
                                                 "eager/__pycache__/__init__.cpython-311.pyc": b"x"})
    packages.wheel(adder.wheels, "tiny")
    image = adder.add("data", "--pip", "eager")
    site = site_of(adder.tree(image))
    assert (site / "eager.pth").exists() and not (site / "eager/old.pyc").exists()
    assert all(path.read_bytes() != b"x" for path in site.rglob("*.pyc"))
    more = adder.add("more", "--from", "data", "--pip", "tiny")
    assert (site_of(adder.tree(more)) / "pip/__main__.py").exists()
    assert list(traces.iterdir()) == []
    subprocess.run(["/usr/bin/python3", "-c", ran], check=True)  # the control
    assert list(traces.iterdir()) != []


HOSTILE = {
    "up": {"../../evil/x": "x"},
    "absolute": {"/tmp/evil-by-wheel": "x"},
    "data": {"bad-1.0.data/data/../../../evil": "x"},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_wheel_that_leads_out_of_its_folder_is_refused(adder, kind):
    packages.wheel(adder.wheels, "bad", files=HOSTILE[kind])
    error = adder.refused("data", "--pip", "bad", code=125)
    assert "outside" in error["message"] or "path" in error["message"], error
    assert adder.left() == [] and not os.path.exists("/tmp/evil-by-wheel")


def test_a_link_in_a_wheel_is_no_link_in_the_image(adder):
    packages.wheel(adder.wheels, "bad", files={"bad/__init__.py": ""}, links={"bad/shadow": "/etc/shadow"})
    image = adder.add("data", "--pip", "bad")
    assert not any(path.is_symlink() for path in adder.tree(image).rglob("*"))


def test_another_file_than_the_locks_is_refused_by_its_name(adder):
    packages.wheel(adder.wheels, "tiny")
    adder.add("data", "--pip", "tiny")
    lock = adder.folder / "data.lock"
    lock.write_text(adder("lock", "data").stdout)
    packages.wheel(adder.wheels, "tiny", files={"tiny/__init__.py": "changed\n"})
    before = adder.left()
    error = adder.refused("again", "--lock", lock, code=125)
    assert "tiny" in error["message"] and "Expected sha256" in error["message"]
    assert adder.left() == before


@pytest.mark.parametrize("edit, field", [
    (lambda lock: lock.update(schema=2), "schema"),
    (lambda lock: lock["pip"][0].update(name="--index-url=x"), "pip"),
    (lambda lock: lock["pip"][0].update(sha256="0"), "pip"),
    (lambda lock: lock.update(python="3.99"), "python"),
    (lambda lock: lock.update(platform="vax-glibc"), "platform"),
    (lambda lock: lock.update(base="sha256:" + "0" * 64), None),
])
def test_a_lock_that_does_not_fit_is_refused_by_its_member(adder, edit, field):
    lock = {"schema": 1, "base": "host", "python": "3.%d" % minor(), "platform": f"{os.uname().machine}-glibc",
            "pip": [{"name": "tiny", "version": "1.0", "sha256": "0" * 64}], "npm": [], "apt": []}
    edit(lock)
    path = adder.folder / "x.lock"
    path.write_text(json.dumps(lock))
    error = adder.refused("data", "--lock", path)
    assert error["kind"] == "input" and (field is None or error["field"] == field)
    assert adder.left() == []


def minor():
    return int(subprocess.check_output(["/usr/bin/python3", "-c", "import sys; print(sys.version_info[1])"]))


def test_files_of_requirements_are_read_as_the_caller_and_hold_names_alone(adder):
    packages.wheel(adder.wheels, "tiny")
    packages.wheel(adder.wheels, "other")
    path = adder.folder / "r.txt"
    path.write_text("# ours\ntiny==1.0  # exact\n\nother\n")
    path.chmod(0o600)
    os.chown(path, adder.cupel.uid, -1)
    image = adder.add("data", "--pip", "-r", path)
    assert [row["name"] for row in image["lock"]["pip"]] == ["other", "tiny"]
    for line in ("-r other.txt", "-e .", "--index-url http://127.0.0.1/", "x @ file:///x.whl"):
        path.write_text(f"tiny\n{line}\n")
        error = adder.refused("data", "-r", path)
        assert error["field"] == "requirements" and "line 2 of" in error["message"]


@pytest.mark.parametrize("args, text", [
    (["data"], "needs a package"), ([], "needs a name"), (["data", "other", "--pip", "a"], "takes one name"),
    (["data", "--pip", "a", "--lock", "/x"], "no package beside it"),
    (["data", "--timeout", "0", "--pip", "a"], "1 to"),
    (["host", "--pip", "a"], "no name for an image"), (["../x", "--pip", "a"], "no name for an image"),
    (["data", "--pip", "./a.whl"], "names no package"), (["data", "--npm", "file:x"], "names no package"),
    (["data", "--apt", "./x.deb"], "names no package"), (["data", "--from", "nothing", "--pip", "a"], "nothing"),
])
def test_what_makes_no_sense_is_refused(adder, args, text):
    error = adder.refused(*args)
    assert text in error["message"] and adder.left() == []


POLICIES = [
    ({"builds": False}, ["--pip", "tiny"], "images.builds"),
    ({"packages": ["pip:other", "npm:*"]}, ["--pip", "tiny"], "pip:other, npm:*"),
    ({"pinned": True}, ["--pip", "tiny"], "NAME==VERSION"),
    ({"hashes": True}, ["--pip", "tiny==1.0"], "--lock"),
    ({"packages": ["gem:tiny"]}, ["--pip", "tiny"], "gem:tiny"),
]


@pytest.mark.parametrize("images, args, text", POLICIES)
def test_the_configuration_says_what_a_build_may_add(adder, images, args, text):
    packages.wheel(adder.wheels, "tiny")
    settings = adder.folder / "config/cupel"
    settings.mkdir(parents=True)
    (settings / "config.json").write_text(json.dumps({"images": images}))
    env = {"XDG_CONFIG_HOME": str(settings.parent)}
    error = adder.refused("data", *args, env=env)
    assert text in json.dumps(error), error
    (settings / "config.json").write_text(json.dumps({"images": {"packages": ["pip:ti*"], "pinned": True}}))
    adder.add("data", "--pip", "tiny==1.0", env=env)


# ---- the child ----

PROBE = """exec 2>&1
echo uid=$(id -u) && grep -E 'CapEff|NoNewPrivs' /proc/self/status
echo secret=$(cat %(folder)s/secret) home=$HOME marker=$MARKER pip=$PIP_FIND_LINKS
touch %(folder)s/written && echo wrote; touch "$HOME/own" && echo wrote-home
ls %(state)s/images/names >/dev/null && echo saw-store
true </dev/tty && echo has-terminal
ls /proc/self/fd | tr '\\n' ' '
"""


@pytest.mark.skipif(NO_APT, reason="no apt here")
@pytest.mark.both
def test_a_program_of_a_build_reaches_its_own_folder_alone(adder, place):
    """apt's hooks are programs that the host's owner configures: one of them looks around."""
    folder = place.fresh("probe", 0o777)
    (folder / "secret").write_text("canary")
    script = place.fresh("apt", 0o755) / "probe.sh"
    script.write_text(PROBE % {"folder": folder, "state": adder.state})
    env = packages.debian(script.parent, "tiny-tool")
    with open(script.parent / "apt.conf", "a") as conf:
        conf.write(f'APT::Update::Pre-Invoke {{ "sh {script}"; }};\n')
    said = adder("add", "data", "--apt", "tiny-tool", "-v", env={**env, "MARKER": "leaks"}).stderr
    uid = int(re.search(r"uid=(\d+)", said)[1])
    assert uid == (adder.cupel.uid if adder.cupel.uid else 0x70000000 + 4095 * 65536), said
    assert re.search(r"CapEff:\s+0+\n", said) and re.search(r"NoNewPrivs:\s+1", said)
    assert "secret= home=" in said and "marker= pip=" in said and "wrote-home" in said
    assert "wrote\n" not in said and "saw-store" not in said and "has-terminal" not in said
    control = subprocess.run(["sh", script], capture_output=True, text=True, env={**os.environ, "HOME": str(folder)})
    assert "secret=canary" in control.stdout and "wrote\n" in control.stdout


class Hanging:
    """An index that accepts and never answers."""

    def __enter__(self):
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.env = {"PIP_NO_INDEX": "", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "600",
                    "PIP_INDEX_URL": f"http://127.0.0.1:{self.sock.getsockname()[1]}/"}
        for key in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
            del self.env[key]
        return self

    def __exit__(self, *_):
        self.sock.close()


def begin(adder, hanging, *args):
    env = {key: value for key, value in adder.env.items() if key not in ("PIP_NO_INDEX", "PIP_FIND_LINKS")}
    child = adder.cupel.popen(["images", "add", "data", "--pip", "tiny", *args], env={**env, **hanging.env})
    hanging.sock.settimeout(30)
    connection, _ = hanging.sock.accept()
    return child, connection, host.descendants(child.pid)


@pytest.mark.both
def test_a_killed_build_leaves_no_process_and_the_next_command_cleans_up(adder):
    packages.wheel(adder.wheels, "tiny")
    with Hanging() as hanging:
        child, connection, below = begin(adder, hanging)
        assert any(row["comm"].startswith("python3") for row in below)
        child.kill()
        child.wait()
        assert host.wait_until(lambda: not host.same_alive(below), 5)
        connection.close()
    assert list((adder.state / "images/work").iterdir()) != []
    adder.add("other", "--pip", "tiny")
    assert list((adder.state / "images/work").iterdir()) == []
    assert [path.name for path in (adder.state / "images/names").iterdir()] == ["other"]


def test_a_killed_minder_ends_the_build(adder):
    with Hanging() as hanging:
        child, connection, below = begin(adder, hanging, "--json")
        minder = next(row for row in below if row["parent"] == child.pid)
        os.kill(minder["pid"], signal.SIGKILL)
        out, _ = child.communicate(timeout=60)
        assert child.returncode == 125 and b"killed" in out
        assert host.wait_until(lambda: not host.same_alive(below), 5)
        connection.close()
    assert adder.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing(adder, number):
    with Hanging() as hanging:
        child, connection, below = begin(adder, hanging, "--json")
        child.send_signal(number)
        out, _ = child.communicate(timeout=60)
        assert child.returncode == 130 and b"interrupted" in out
        assert not host.same_alive(below)
        connection.close()
    assert adder.left() == []


def test_a_late_build_ends_and_leaves_nothing(adder):
    with Hanging() as hanging:
        child, connection, below = begin(adder, hanging, "--json", "--timeout", "2")
        out, _ = child.communicate(timeout=60)
        assert child.returncode == 75 and b"not ready in 2 s" in out
        assert not host.same_alive(below)
        connection.close()
    assert adder.left() == []


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a small file system")
def test_a_full_disk_is_an_error_that_leaves_nothing(cupel, place):
    adder = Adder(cupel, place)
    packages.wheel(adder.wheels, "large", files={"large/__init__.py": "", "large/data": os.urandom(6 << 20)})
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "tests", adder.folder], check=True)
    try:
        error = adder.refused("data", "--pip", "large", code=125)
        assert "No space left" in json.dumps(error)
        assert adder.left() == []
    finally:
        subprocess.run(["umount", adder.folder], check=True)


# ---- npm and apt ----

@pytest.mark.skipif(NO_NPM, reason="no npm here")
def test_packages_of_npm_become_an_image_without_their_scripts(adder):
    ran = adder.folder / "ran"
    script = {"scripts": {"install": f"touch {ran}", "postinstall": f"touch {ran}"}}
    with packages.Registry({"tiny": {"1.0.0": {"index.js": "module.exports = 1\n"}},
                            "@s/wide": {"2.0.0": {"index.js": "module.exports = require('tiny')\n"}},
                            "other-os": {"1.0.0": {"index.js": ""}}},
                           {"tiny": script, "other-os": {"os": ["darwin"]},
                            "@s/wide": {"dependencies": {"tiny": "^1.0.0"},
                                        "optionalDependencies": {"other-os": "1.0.0"}}}) as registry:
        image = adder.add("js", "--npm", "@s/wide", env=registry.env)
        assert [row["path"] for row in image["lock"]["npm"]] == ["node_modules/@s/wide", "node_modules/tiny"]
        modules = adder.tree(image) / "usr/local/lib/node_modules"
        assert sorted(path.name for path in modules.iterdir()) == ["@s", "tiny"]
        assert not ran.exists()
        found = subprocess.run(["node", "-p", "require('@s/wide')"], env={**os.environ, "NODE_PATH": str(modules)},
                               capture_output=True, text=True)
        assert found.stdout == "1\n"
        lock = adder.folder / "js.lock"
        lock.write_text(adder("lock", "js").stdout)
        assert adder.add("again", "--lock", lock, env=registry.env)["digest"] == image["digest"]
        wrong = json.loads(lock.read_text())
        wrong["npm"][1]["integrity"] = "sha512-" + "A" * 86 + "=="
        lock.write_text(json.dumps(wrong))
        error = adder.refused("again", "--lock", lock, code=125, env=registry.env)
        assert "EINTEGRITY" in error["message"] or "sha512-AAAA" in error["message"]


@pytest.mark.skipif(NO_APT, reason="no apt here")
def test_packages_of_debian_become_an_image_without_their_scripts(adder, place):
    folder = place.fresh("apt", 0o755)
    ran = place.fresh("ran") / "ran"
    env = packages.debian(folder, "tiny-tool", scripts={"postinst": f"#!/bin/sh\ntouch {ran}\n",
                                                        "preinst": f"#!/bin/sh\ntouch {ran}\n"},
                          files={"usr/bin/tiny-tool": "#!/bin/sh\necho tiny\n", "lib/tiny/x": "x", "etc/tiny": "x"})
    image = adder.add("tool", "--apt", "tiny-tool", env=env)
    tree = adder.tree(image)
    assert sorted(path.name for path in tree.iterdir()) == ["usr"]
    assert (tree / "usr/bin/tiny-tool").exists() and (tree / "usr/lib/tiny/x").exists() and not ran.exists()
    lock = adder.folder / "tool.lock"
    lock.write_text(adder("lock", "tool").stdout)
    assert adder.add("again", "--lock", lock, env=env)["digest"] == image["digest"]
    wrong = json.loads(lock.read_text())
    wrong["apt"][0]["sha256"] = "0" * 64
    lock.write_text(json.dumps(wrong))
    error = adder.refused("again", "--lock", lock, env=env)
    assert "tiny-tool" in error["message"] and image["lock"]["apt"][0]["sha256"] in error["message"]


def test_a_newer_version_takes_the_place_of_the_older_one(adder):
    packages.wheel(adder.wheels, "tiny", "1.0", files={"tiny/__init__.py": "", "tiny/old.py": ""},
                   scripts={"tiny-old": "tiny:run"})
    adder.add("data", "--pip", "tiny")
    packages.wheel(adder.wheels, "tiny", "2.0", files={"tiny/__init__.py": "", "tiny/new.py": ""})
    kept = adder.add("same", "--from", "data", "--pip", "tiny")
    assert kept["lock"]["pip"] == [] and kept["lock"]["base"].startswith("sha256:")
    image = adder.add("newer", "--from", "data", "--pip", "tiny>=2")
    tree = adder.tree(image)
    names = {str(path.relative_to(site_of(tree))) for path in site_of(tree).rglob("*.py")}
    assert names == {"tiny/__init__.py", "tiny/new.py"}
    assert [path.name for path in site_of(tree).glob("*.dist-info")] == ["tiny-2.0.dist-info"]
    assert not (tree / "usr/local/bin/tiny-old").exists()


# ---- the real indexes ----

REAL = [("--pip", "polars>=1", "pip", "polars"), ("--npm", "zod", "npm", "node_modules/zod"),
        ("--apt", "ripgrep", "apt", "ripgrep")]


@pytest.mark.full
@pytest.mark.parametrize("option, name, kind, locked", REAL)
def test_a_package_of_the_real_index_is_locked_and_comes_again(adder, option, name, kind, locked):
    home = os.environ.get("HOME", "/")
    env = {key: value for key, value in os.environ.items()
           if key.startswith(("PIP_", "npm_config", "http", "HTTP", "SSL_", "REQUESTS_", "NODE_EXTRA"))}
    if adder.cupel.uid == 0:
        env["HOME"] = home
    adder.env = {"CUPEL_STATE": str(adder.state)}
    done = adder.cupel.run(["images", "add", "data", option, name, "--json"], env={**adder.env, **env}, timeout=300)
    if done.returncode:
        pytest.skip(f"the index of {kind} cannot be reached: {done.stdout[:300]}")
    image = json.loads(done.stdout)["image"]
    rows = image["lock"][kind]
    if kind == "apt" and not rows:
        pytest.skip("the host has it already")
    assert locked in {row.get("path", row.get("name")) for row in rows}
    lock = adder.folder / "data.lock"
    lock.write_text(adder("lock", "data").stdout)
    assert adder.add("again", "--lock", lock, env=env)["digest"] == image["digest"]
