"""A service on a host that has no more to give: no room for its state, a state that may not be written, 64 open files,
a wall clock that jumps. Clear errors, never a crash or a hang; and all is well when the cause is gone."""
import calendar
import contextlib
import os
import resource
import socket
import subprocess
import time
from pathlib import Path

import pytest
import wild
from shims import Clock, small_state

import host
from engine import socket_path

pytestmark = [pytest.mark.skipif(os.getuid() != 0, reason="only root can mount and set limits"),
              pytest.mark.skipif(host.SANITIZED, reason="the sanitizer has appetites of its own")]
MIB = 1 << 20
DAY_S = 86400
FILES_LEAST = 2048  # of src/cli/serve/cmd_serve.c


def fill(folder):
    path = folder / "fill"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    return path


def blob(caller, data):
    return caller.ask("PUT", "/v1/blobs", data)


def check_in_want(service, why):
    """What needs the state is refused with words, as every run that is to be recorded; all else goes on."""
    with service.caller() as caller:
        for refused in (blob(caller, os.urandom(MIB)), caller.run("print(1)")):
            assert refused.status >= 400 and refused.error()["kind"], (why, refused)
            assert "assert" not in refused.error()["message"]
        assert wild.look(caller, "want") == "ok", why
        assert caller.ask("GET", "/v1/health").status in (200, 503)
    assert service.process.poll() is None


def check_well(service):
    with service.caller() as caller:
        assert host.wait_until(lambda: caller.run("print(1)").status == 200, 20), caller.run("print(1)").body
        data = os.urandom(MIB // 2)
        stored = blob(caller, data)
        assert stored.status in (200, 201), stored
        sha = stored.json()["blob"].removeprefix("sha256:")
        assert caller.ask("GET", f"/v1/blobs/{sha}").body == data
        for kind in wild.KINDS:
            assert kind(caller, "well") in ("ok", "resumed")


@pytest.mark.full
def test_a_full_disk_is_told_and_all_is_well_when_it_has_room(cupel_as, place):
    with small_state(cupel_as, place) as folder:
        env = {"CUPEL_STATE": str(folder)}
        with wild.Service(cupel_as, socket_path(place, cupel_as), env=env) as service:
            path = fill(folder)
            check_in_want(service, "the disk is full")
            done = cupel_as.run(["token", "new", "another"], env=env)
            assert done.returncode == 0 or done.stderr.strip(), done
            path.unlink()
            check_well(service)


@pytest.mark.full
def test_a_read_only_state_is_told_and_all_is_well_when_it_is_writable(cupel_as, place):
    """It is so from the start on: a disk with a file that is open for writing cannot be made read-only by hand."""
    with small_state(cupel_as, place) as folder:
        env, path = {"CUPEL_STATE": str(folder)}, socket_path(place, cupel_as)
        with wild.Service(cupel_as, path, env=env) as service:
            token = service.token
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        try:
            if cupel_as.switch:  # who cannot write to the folder that is named is refused; root's own may be read-only
                done = cupel_as.run(["serve", "--socket", path, "--listen", "127.0.0.1:0"], env=env)
                assert done.returncode == 125 and "make it writable" in done.stderr, done
                subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
                with wild.Service(cupel_as, path, env=env, token=token) as service:
                    check_well(service)
                return
            with wild.Service(cupel_as, path, env=env, token=token) as service:
                check_in_want(service, "the state is read-only")
                done = cupel_as.run(["token", "new", "another"], env=env)
                assert done.returncode != 0 and "ead-only" in done.stderr, done
                subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
                check_well(service)
        finally:
            subprocess.run(["mount", "-o", "remount,rw", folder], check=True)


@pytest.mark.full
def test_a_start_on_a_full_disk_serves(cupel_as, place):
    """A token that was made before opens the door."""
    with small_state(cupel_as, place) as folder:
        env, path = {"CUPEL_STATE": str(folder)}, socket_path(place, cupel_as)
        with wild.Service(cupel_as, path, env=env) as service:
            token = service.token
        full = fill(folder)
        with wild.Service(cupel_as, path, env=env, token=token) as service:
            check_in_want(service, "the disk was full before")
            full.unlink()
            check_well(service)


# --- descriptors ---

def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.full
def test_more_clients_than_descriptors_take_none_from_the_boxes(cupel_as, place):
    """One descriptor in eight is for connections: more of them wait or are closed. The one that is there is served."""
    with wild.Service(wild.with_files(cupel_as, FILES_LEAST), socket_path(place, cupel_as)) as service, \
            service.caller() as caller:
        assert caller.run("print(1)").json()["stdout"] == "1\n"
        crowd = []
        try:
            for _ in range(FILES_LEAST // 8 + 100):
                crowd.append(socket.create_connection(("127.0.0.1", service.port), timeout=5))
            time.sleep(1)
            used = cpu_s(service.process.pid)
            time.sleep(2)
            used = cpu_s(service.process.pid) - used
            assert used < 1, f"it used {used} s of processor time in 2 s for nothing"
            assert service.open_files() < FILES_LEAST // 2
            assert caller.run("print(2)").json()["stdout"] == "2\n"
        finally:
            for one in crowd:
                one.close()
        assert service.process.poll() is None, service.told()[-2000:]
        assert host.wait_until(lambda: is_served(service), 30), service.told()[-2000:]


def is_served(service):
    try:
        with service.caller(timeout=10) as caller:
            return wild.plain_run(caller, "again") == "ok" and wild.session(caller, "again") == "ok"
    except (wild.Refused, *wild.GONE, AssertionError):
        return False


def test_with_64_open_files_it_says_what_it_needs_and_starts_when_it_has_that(cupel_as, place):
    path = socket_path(place, cupel_as)
    done = cupel_as.run(["serve", "--socket", path, "--listen", "127.0.0.1:0"], preexec_fn=lambda:
                        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    assert done.returncode == 125 and "RLIMIT_NOFILE is 64" in done.stderr, done
    assert f"ulimit -n {FILES_LEAST}'" in done.stderr, done
    with wild.Service(wild.with_files(cupel_as, FILES_LEAST), path) as service:
        assert is_served(service)


# --- the wall clock ---

@pytest.mark.full
def test_a_clock_that_jumps_ends_no_session_and_brings_no_token_back(cupel_as, place):
    clock = Clock(place)
    with wild.Service(cupel_as, socket_path(place, cupel_as), env=clock.env) as service:
        brief = service.new_token("brief", "--expires", "1h")
        with service.caller() as caller, service.caller(token=brief) as guest:
            assert guest.run("print(1)").status == 200
            made = caller.session()
            caller.ask("POST", f"/v1/sessions/{made}/run", {"code": "x = 7"})
            for jump in (2 * 3600, 400 * DAY_S, -400 * DAY_S, 0):
                clock.set(jump)
                check_times(caller, made, jump)
                late = guest.run("print(1)")
                assert late.status == (401 if jump > 3600 else 200), (jump, late)
                assert jump <= 3600 or late.error()["kind"] == "token", late
            assert caller.ask("DELETE", f"/v1/sessions/{made}").status in (200, 204)


def check_times(caller, session, jump):
    """Ages and times to live are of the monotonic clock; only dates follow the jump."""
    told = caller.ask("GET", f"/v1/sessions/{session}").json()
    assert told["status"] != "ended" and 0 <= told["idle_s"] < 600 and 0 <= told["age_s"] < 600, (jump, told)
    cell = caller.ask("POST", f"/v1/sessions/{session}/run", {"code": "print(x)"}).json()
    assert cell["stdout"] == "7\n", (jump, cell)
    result = caller.run("print(3)").json()
    assert result["stdout"] == "3\n" and result["metrics"]["wall_ms"] >= 0, (jump, result)
    new = caller.session()
    at = caller.ask("GET", f"/v1/sessions/{new}").json()["created_at"]
    made = calendar.timegm(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ"))
    assert abs(made - (time.time() + jump)) < 600, (jump, at)
    caller.ask("DELETE", f"/v1/sessions/{new}")
    assert wild.stream(caller, "jump") in ("ok", "resumed")
