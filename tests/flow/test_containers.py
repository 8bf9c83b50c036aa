"""cupel inside containers: refused with the exact flags where the container forbids what boxes
are made of, and whole once it is started with them."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import container
import host

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only root starts containers here"),
    pytest.mark.skipif(not container.RUNTIMES, reason="neither runc nor crun is installed"),
    pytest.mark.sample(short=3),
]
NAME = "import os; print(os.uname().nodename)"
PROFILE = "/opt/share/cupel/seccomp.json"


@pytest.fixture(params=container.RUNTIMES)
def runtime(request):
    return request.param


@pytest.fixture(params=[0, 1000], ids=["root", "user"])
def user(request):
    return request.param


@pytest.fixture
def inside(place, cupel, user):
    """Containers of this user."""
    def start(runtime, **settings):
        return container.Container(runtime, place, host.PROGRAM, user=user, **settings)
    return start


def result(done):
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"exit {done.returncode}: {done.stdout}{done.stderr}") from None


def test_dockers_defaults_are_refused_with_the_flags_that_help(inside, runtime):
    docker = inside(runtime, rules=container.docker_rules())
    done = docker.run(["run", "--cold", "1"])
    assert done.returncode == 125 and "create a user namespace" in done.stderr, done.stderr
    assert f"docker run --security-opt seccomp={PROFILE} --security-opt systempaths=unconfined" \
        in done.stderr
    for wrong in ("AppArmor", "sysctl", "the broker is gone", "as root"):
        assert wrong not in done.stderr


def test_with_those_flags_code_runs_behind_every_required_wall(inside, runtime, user):
    fixed = inside(runtime, rules=container.shipped_rules(), masked=False)
    got = result(fixed.run(["run", "--cold", "--json", NAME]))
    assert got["stdout"] == "box\n" and got["status"] == "ok"
    missing = {"memory_limit", "pids_limit", "cpu_limit"}
    missing |= {"private_uid"} if user else set()
    assert set(got["isolation"]["missing"]) == missing


def test_the_doctor_finds_each_cause_and_nothing_else(inside, user):
    runtime = container.RUNTIMES[0]
    def missing(**settings):
        done = inside(runtime, **settings).run(["doctor", "--json"])
        rows = {row["name"]: row for row in result(done)["checks"]}
        return done.returncode, {name: row["fix"] for name, row in rows.items()
                                 if row["verdict"] == "missing"}, rows
    code, gone, rows = missing(rules=container.docker_rules())
    assert code == 1 and set(gone) == {"walls", "overlay", "proc", "a run"}
    assert PROFILE in gone["walls"] and "systempaths=unconfined" in gone["walls"]
    assert "Docker" in rows["container"]["detail"]
    assert not any("run as root" in (row["fix"] or "") for row in rows.values())
    code, gone, _ = missing(rules=container.shipped_rules())
    assert code == 1 and set(gone) == {"proc", "a run"}
    assert gone["proc"] == gone["a run"] and "systempaths=unconfined" in gone["proc"]
    code, gone, _ = missing(rules=None)  # no filter, so none is blamed
    assert code == 1 and "seccomp" not in gone["proc"]
    code, gone, _ = missing(rules=container.shipped_rules(), masked=False)
    assert code == 0 and not gone


@pytest.mark.parametrize("marks, env, flags", [
    ([".dockerenv"], {}, "docker run --security-opt seccomp=/opt/share/cupel/seccomp.json "
                         "--security-opt systempaths=unconfined"),
    ([], {"container": "podman"}, "podman run --security-opt seccomp=/opt/share/cupel/seccomp.json "
                                  "--security-opt unmask=ALL"),
    ([], {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
     "securityContext set seccompProfile: {type: Localhost, localhostProfile: cupel.json} "
     "procMount: Unmasked (and hostUsers: false in the pod)"),
])
def test_each_kind_of_container_is_told_its_own_flags(inside, marks, env, flags):
    done = inside(container.RUNTIMES[0], rules=container.docker_rules(), marks=marks,
                  env=env).run(["run", "--cold", "1"])
    assert done.returncode == 125 and flags in done.stderr, done.stderr


def test_an_engine_that_cannot_build_a_box_is_not_ready(inside, runtime):
    for rules in (container.docker_rules(), container.shipped_rules()):
        done = inside(runtime, rules=rules).run(["serve", "--socket", "/tmp/s"])
        assert done.returncode == 125 and "ready" not in done.stderr
        assert "systempaths=unconfined" in done.stderr


def test_a_filter_that_hides_clone3_or_the_host_name_is_no_obstacle(inside):
    """As in older profiles. What is lost is said."""
    rules = container.without(container.shipped_rules(), "clone3", errno=38)
    rules = container.without(rules, "sethostname")
    got = result(inside(container.RUNTIMES[0], rules=rules, masked=False).run(
        ["run", "--cold", "--json", NAME]))
    assert got["status"] == "ok" and got["stdout"] == "3f2a9c\n"
    assert "private_host_name" in got["isolation"]["missing"]


def test_groups_that_are_writable_are_used(inside, user):
    kinds = {"rw": False, "ro": True}
    for mode, missing in kinds.items():
        got = result(inside("runc" if "runc" in container.RUNTIMES else "crun", cgroups=mode,
                            rules=container.shipped_rules(), masked=False).run(
            ["run", "--cold", "--json", "1"]))
        assert got["status"] == "ok"
        assert ("memory_limit" in got["isolation"]["missing"]) == (missing or user != 0), mode


def test_root_without_the_power_over_uids_runs_no_code_as_root(place, cupel):
    """A box would have root's uid: refused, and said how to go on."""
    settings = {"rules": container.shipped_rules(), "masked": False, "capabilities": []}
    root = container.Container(container.RUNTIMES[0], place, host.PROGRAM, **settings)
    done = root.run(["run", "--cold", "1"])
    assert done.returncode == 125 and "--user 1000" in done.stderr, done.stderr
    user = container.Container(container.RUNTIMES[0], place, host.PROGRAM, user=1000, **settings)
    assert result(user.run(["run", "--cold", "--json", "1"]))["status"] == "ok"


def test_the_shipped_rules_forbid_what_no_box_needs():
    rules = container.shipped_rules()
    allowed = {name for row in rules["syscalls"] if row["action"] == "SCMP_ACT_ALLOW"
               for name in row["names"]}
    assert container.NOT_BY_DEFAULT <= allowed
    for name in ("init_module", "finit_module", "kexec_load", "bpf", "perf_event_open", "keyctl",
                 "add_key", "open_by_handle_at", "io_uring_setup", "userfaultfd", "reboot", "swapon",
                 "settimeofday", "fspick", "move_pages", "quotactl", "syslog", "iopl"):
        assert name not in allowed
    assert rules["defaultAction"] == "SCMP_ACT_ERRNO"
    assert "archMap" not in rules and "architectures" not in rules  # read by all three


SESSION = """
cd /tmp; mkdir -m 700 sock; export CUPEL_SOCKET=/tmp/sock/s PATH=/opt/bin:$PATH
cupel serve -q & engine=$!
while [ ! -S sock/s ]; do sleep 0.1; done
id=$(cupel session new -q)
cupel session run $id 'x = 6'
cupel session run $id 'x = 7'
cupel session undo $id >&2
cupel session run $id 'x'
cupel run -l bash 'echo $((6 * 7))'
cupel run -l javascript 'console.log(43)'
kill $engine; wait $engine
"""


def test_an_engine_and_its_sessions_work_inside(inside):
    done = inside(container.RUNTIMES[0], rules=container.shipped_rules(),
                  masked=False).shell(SESSION)
    assert done.returncode == 0 and done.stdout.split() == ["6", "42", "43"], done.stdout + done.stderr


def test_root_of_a_user_namespace_is_an_ordinary_user(inside, user):
    """As Kubernetes starts it with `hostUsers: false`."""
    got = result(inside(container.RUNTIMES[0], rules=container.shipped_rules(), masked=False,
                        own_users=True, env={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}).run(
        ["run", "--cold", "--json", NAME]))
    assert got["status"] == "ok" and got["stdout"] == "box\n"
    assert "private_uid" in got["isolation"]["missing"]


@pytest.mark.skipif(not shutil.which("podman"), reason="podman is not installed")
@pytest.mark.parametrize("uid", [0, 1000])
def test_podman_with_the_flags_of_the_manual(place, cupel, uid):
    """The command of docs/containers.md, with the host's root in place of an image."""
    opt = container.Container("runc", place, host.PROGRAM).opt
    base = ["podman", "--runtime", "runc" if "runc" in container.RUNTIMES else "crun", "run", "--rm",
            "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096",
            "--user", str(uid), "-v", f"{opt}:/opt:ro", "--tmpfs", "/tmp:notmpcopyup", "-e", "HOME=/tmp",
            "-e", "CUPEL_STATE=/tmp/state"]
    flags = ["--security-opt", f"seccomp={container.SHIPPED}", "--security-opt", "unmask=ALL"]
    run = ["--rootfs", "/:O", "/opt/bin/cupel", "run", "--cold", "--json", NAME]
    plain = subprocess.run([*base, *run], capture_output=True, text=True, timeout=60)
    if "Error: " in plain.stderr and "cupel" not in plain.stderr:
        pytest.skip(f"podman cannot start a container here: {plain.stderr.strip()[-200:]}")
    assert plain.returncode == 125 and "podman run --security-opt" in plain.stdout + plain.stderr
    fixed = subprocess.run([*base, *flags, *run], capture_output=True, text=True, timeout=60)
    assert result(fixed)["stdout"] == "box\n"
    manual = (Path(host.REPO) / "docs/containers.md").read_text()
    assert "podman run --security-opt seccomp=" in manual and "unmask=ALL" in manual
