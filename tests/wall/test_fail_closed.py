"""A host that lacks what a wall needs gets a refusal, never a run without the wall."""
import json
import resource
import subprocess

import pytest

import host

MARK = "ran-without-walls"
MAY_LACK = {"landlock", "private_uid", "no_groups", "private_host_name", "private_files",
            "memory_limit", "pids_limit", "cpu_limit"}


def shim(place):
    """A launcher that makes one system call fail for everything it starts."""
    source = host.REPO / "tests/wall/deny.c"
    binary = place.root / "deny"
    if not binary.exists():
        subprocess.run(["gcc", "-O1", "-o", binary, source], check=True, timeout=60)
        binary.chmod(0o755)
    return str(binary)


NEEDED = "unshare mount pivot_root seccomp capset umount2 move_mount fsopen open_tree " \
         "setresuid sethostname close_range openat2 landlock_create_ruleset clone3 setsid".split()


@pytest.mark.parametrize("call", NEEDED)
@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_a_host_that_refuses_a_call_gets_all_walls_or_no_run(cupel_as, place, call, error, boxed):
    usual = set(cupel_as.run_json("pass")["isolation"]["walls"])
    done = cupel_as.run(["run", "--json", f"print('{MARK}')"], before=[shim(place), call, error], timeout=15)
    assert done.returncode != 99, "the launcher itself failed: " + done.stderr
    if MARK not in done.stdout:
        assert done.returncode == 125, (done.returncode, done.stdout, done.stderr)
        assert done.stdout.strip() or done.stderr.strip(), "refused without a word"
        return
    isolation = json.loads(done.stdout)["isolation"]
    lost = usual - set(isolation["walls"])
    assert lost <= (set() if boxed == "strict" else MAY_LACK) and lost <= set(isolation["missing"]), lost


NO_NAMESPACES = ["unshare", "-U", "-c", "--keep-caps", "sh", "-c",
                 "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"", "sh"]


def test_without_user_namespaces_the_refusal_names_the_fix(cupels):
    done = cupels["user"].run(["run", f"print('{MARK}')"], before=NO_NAMESPACES)
    assert done.returncode == 125 and MARK not in done.stdout
    assert "namespace" in done.stderr.lower() and "max_user_namespaces" in done.stderr, done.stderr
    as_json = cupels["user"].run(["run", "--json", f"print('{MARK}')"], before=NO_NAMESPACES)
    assert as_json.returncode == 125 and MARK not in as_json.stdout
    assert json.loads(as_json.stdout)["error"]["kind"] == "host"


@pytest.mark.boxes("host", why="images and changes are kept in a state folder")
def test_root_of_a_user_namespace_with_one_uid_is_an_ordinary_user(cupel_as):
    # Without the state folder of the tests: as root that belongs to the doors' private uid.
    before = ["env", "-u", "CUPEL_STATE", "HOME=/nowhere", "unshare", "-U", "-r"]
    done = cupel_as.run(["run", "--json", "print(1)"], before=before)
    assert done.returncode == 0 and json.loads(done.stdout)["stdout"] == "1\n", done


@pytest.mark.parametrize("field", ["sandbox", "isolation", "unsafe", "privileged", "walls", "user",
                                   "seccomp", "no_sandbox", "root", "mounts", "capabilities"])
def test_no_field_turns_a_wall_off(cupel, field):
    for value in (False, True, "none", {}):
        error = cupel.refusal({"code": "1", field: value})
        assert field in error["field"]


@pytest.mark.parametrize("flag", ["--no-sandbox", "--unsafe", "--privileged", "--no-seccomp"])
def test_no_flag_turns_a_wall_off(cupel, flag):
    done = cupel.run(["run", flag, f"print('{MARK}')"])
    assert done.returncode == 2 and MARK not in done.stdout


def test_no_variable_turns_a_wall_off(cupel):
    names = ("CUPEL_UNSAFE", "CUPEL_NO_SANDBOX", "CUPEL_DEBUG", "CUPEL_FAULT", "LD_PRELOAD")
    usual = cupel.run_json("pass")["isolation"]
    odd = cupel.run_json("pass", options={"env": {name: "1" for name in names}})["isolation"]
    assert odd == usual


def test_a_profile_that_is_not_there_is_refused_with_those_that_are(cupel_as):
    answer = cupel_as.request({"code": f"print('{MARK}')", "profile": "loose"})
    assert MARK not in answer.process.stdout and answer.exit_status == 2
    assert "baseline, analysis or strict" in json.dumps(answer["error"])


def test_a_full_descriptor_table_is_a_clear_error(cupel_as):
    for limit in (4, 8, 12, 16, 24):
        done = cupel_as.run(["run", f"print('{MARK}')"], preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (limit, limit)))
        ran = done.returncode == 0 and MARK in done.stdout
        assert ran or (done.returncode in (125, 127) and MARK not in done.stdout), (limit, done)


def test_a_mount_table_is_the_same_before_and_after(cupel_as):
    before = host.mounts()
    cupel_as.run_json("pass")
    assert host.mounts() - before == set()
