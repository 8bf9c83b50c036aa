"""Every status and every error kind of the contract is reached by real code."""
import hashlib
import json

import pytest

import host

RESULT = json.loads((host.REPO / "api/result.schema.json").read_text())
INT80 = """
import ctypes, mmap
code = b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3"
area = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                 prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
area.write(code)
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(area)))())
"""
# (code, language, fields, status, kind, exit code of the command)
CASES = {
    "ok": ("print(1)", "python", {}, "ok", None, 0),
    "exception": ("1/0", "python", {}, "error", "exception", 1),
    "syntax": ("def f(:", "python", {}, "error", "syntax", 1),
    "import": ("import polars_of_nowhere", "python", {}, "error", "import", 1),
    "exit": ("import sys; sys.exit(7)", "python", {}, "error", "exit", 7),
    "js exception": ("throw new TypeError('no')", "javascript", {}, "error", "exception", 1),
    "js syntax": ("let = = 1", "javascript", {}, "error", "syntax", 1),
    "js import": ("require('left-pad-of-nowhere')", "javascript", {}, "error", "import", 1),
    "js exit": ("process.exit(7)", "javascript", {}, "error", "exit", 7),
    "bash exit": ("exit 7", "bash", {}, "error", "exit", 7),
    "bash syntax": ("if then", "bash", {}, "error", "syntax", 2),
    "timeout": ("import time; time.sleep(30)", "python", {"limits": {"timeout_s": 0.5}},
                "timeout", "timeout", 124),
    "js timeout": ("while (true) {}", "javascript", {"limits": {"timeout_s": 1}},
                   "timeout", "timeout", 124),
    "cpu": ("while True: pass", "python", {"limits": {"timeout_s": 20, "cpu_s": 0.5}},
            "cpu_limit", "cpu", 152),
    "memory": ("x = bytearray(b'x') * (400 << 20)", "python",
               {"limits": {"memory_bytes": 128 << 20}}, "memory_limit", "memory", 137),
    "output": ("while True: print('x' * 100)", "python", {"on_output_limit": "stop"},
               "output_limit", "output", 126),
    "stderr": ("import sys\nwhile True: print('x' * 100, file=sys.stderr)", "python",
               {"on_output_limit": "stop"}, "output_limit", "output", 126),
    "disk": ("open('big', 'wb').write(b'x' * (64 << 20))", "python",
             {"limits": {"disk_bytes": 16 << 20}}, "disk_limit", "disk", 126),
    "inodes": ("for i in range(10**6): open(f'f{i}', 'w')", "python",
               {"limits": {"timeout_s": 60}}, "disk_limit", "disk", 126),
    "denied": (INT80, "python", {}, "denied", "denied", 126),
    "signal": ("import os; os.kill(os.getpid(), 11)", "python", {}, "killed", "signal", 139),
    "abort": ("import os; os.abort()", "python", {}, "killed", "signal", 134),
}
NEEDS_ROOT = {"pids": ("import os\nwhile True:\n if os.fork() == 0: os._exit(0)", "python",
                       {"limits": {"pids": 32}}, "pids_limit", "pids", 126)}


@pytest.mark.parametrize("name", [*CASES, *NEEDS_ROOT])
def test_the_code_ends_in_its_status(cupel_as, who, name):
    code, language, fields, status, kind, exit_status = {**CASES, **NEEDS_ROOT}[name]
    result = cupel_as.run_json(code, language, **fields)
    if name in ("memory", "pids") and result.without_cgroups():
        assert result["status"] in (status, "error"), result["error"]
        return
    said = (result["status"], result["error"] and result["error"]["kind"], result.exit_status)
    assert said == (status, kind, exit_status), (result["error"], result["stderr"][-500:])
    assert set(result) - {"stdout_base64", "stderr_base64"} == set(RESULT["required"])
    if kind:
        assert result["error"]["message"]
        assert set(result["error"]) == {"kind", "name", "message", "line", "column", "snippet",
                                        "traceback", "frames", "values", "hint"}
    if status.endswith("limit") or status == "timeout":
        assert result["limits_hit"] and result["error"]["hint"]
    if status in ("timeout", "cpu_limit", "memory_limit", "output_limit", "killed", "denied"):
        assert result["exit_code"] is None
    if name == "signal":
        assert result["signal"] == 11


def test_a_failing_run_cannot_pass_for_a_failing_cupel(cupel):
    for code in (124, 125, 126, 137):
        result = cupel.run_json(f"import sys; sys.exit({code})")
        assert (result["status"], result["exit_code"], result.exit_status) == ("error", code, code)


def test_forbidden_calls_are_reported_by_name(cupel_as):
    code = "import ctypes\nc = ctypes.CDLL(None)\nfor n in (101, 165, 321): " \
           "[c.syscall(n, 0, 0, 0, 0, 0) for _ in range(2)]"
    denied = {row["call"]: row["count"] for row in cupel_as.run_json(code)["denied"]}
    assert {"ptrace", "mount", "bpf"} <= set(denied), denied
    assert all(count >= 1 for count in denied.values())


def test_a_flood_of_forbidden_calls_is_cheap_and_counted(cupel_as):
    code = "import ctypes\nc = ctypes.CDLL(None)\nfor _ in range(200000): c.syscall(101, 0, 0, 0, 0)"
    result = cupel_as.run_json(code, limits={"timeout_s": 20})
    assert result["status"] == "ok" and result["denied"][0]["call"] == "ptrace"


def test_everything_in_the_run_dies_at_the_first_oom(cupel_as):
    code = "import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', " \
           "'x = bytearray(b\"x\") * (400 << 20)'])\nprint('outlived', flush=True)\ntime.sleep(20)"
    result = cupel_as.run_json(code, limits={"memory_bytes": 128 << 20, "timeout_s": 5})
    if not result.without_cgroups():
        assert result["status"] == "memory_limit" and "outlived" not in result["stdout"]


def test_a_process_killed_by_its_parent_is_not_the_run(cupel_as):
    result = cupel_as.run_json("sleep 20 & kill -9 $!; wait; echo done", "bash")
    assert result["status"] == "ok" and result["stdout"] == "done\n"


def test_metrics_are_filled_and_sane(cupel_as):
    result = cupel_as.run_json("import time\nt = time.process_time()\n"
                               "while time.process_time() - t < 0.3: pass\nx = bytearray(50 << 20)")
    metrics = result["metrics"]
    assert metrics["wall_ms"] >= 300 and metrics["warm"] is False
    assert 250 <= metrics["cpu_ms"] <= metrics["wall_ms"] * 2 + 500
    assert all(metrics[key] >= 0 for key in ("queue_ms", "start_ms", "collect_ms"))
    if not result.without_cgroups():
        assert 50 << 20 <= metrics["memory_peak_bytes"] <= 512 << 20


def test_provenance_names_code_inputs_image_and_limits(cupel):
    first, again = (cupel.run_json("print(1)", stdin="x") for _ in range(2))
    other = cupel.run_json("print(1)", stdin="y")
    p = first["provenance"]
    assert p["code_sha256"] == hashlib.sha256(b"print(1)").hexdigest()
    assert p == again["provenance"]
    assert p["inputs_sha256"] != other["provenance"]["inputs_sha256"]
    assert p["engine"].startswith("cupel ") and p["image_digest"]
    assert p["limits"]["timeout_s"] == 5 and p["limits"]["cpu_s"] == 6
    assert p["limits"]["memory_bytes"] == 512 << 20 and p["limits"]["disk_bytes"] == 200 << 20
    assert first["run"].startswith("r_") and first["run"] != again["run"]


def test_the_same_request_gives_the_same_result_but_for_times(cupel_as):
    request = {"code": "import random\nprint(hash('a'), sorted({'b', 'c'}))\n[1, 2]", "args": ["x"]}
    answers = [dict(cupel_as.request(request)) for _ in range(2)]
    for answer in answers:
        for key in ("run", "metrics"):
            answer.pop(key)
    assert answers[0] == answers[1]


def test_the_profile_analysis_has_more_room(cupel):
    limits = cupel.run_json("pass", profile="analysis")["provenance"]["limits"]
    assert (limits["cpus"], limits["memory_bytes"], limits["timeout_s"]) == (2, 2 << 30, 120)
    assert limits["disk_bytes"] == 1 << 30


def test_a_small_memory_limit_shrinks_the_disk_to_half(cupel):
    limits = cupel.run_json("pass", limits={"memory_bytes": 100 << 20})["provenance"]["limits"]
    assert limits["disk_bytes"] == 50 << 20
