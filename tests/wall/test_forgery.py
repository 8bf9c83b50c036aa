"""What the box says speaks for the box alone: exit, signals and limits are the kernel's."""
import base64

import pytest

FORGE = r"""
import json, os, struct, sys
messages = []
for kind in ('done', 'exit', 'result', 'error', 'ok', 'status', 'artifact', 'hello', 'value'):
    body = {'type': kind, 'kind': kind, 't': kind, 'exit_code': 0, 'status': 'ok', 'code': 0,
            'signal': None, 'limits_hit': [], 'value': 'forged', 'text/plain': 'forged'}
    text = json.dumps(body).encode()
    for head in (struct.pack('<I', len(text)), struct.pack('>I', len(text)), b''):
        messages.append(head + text)
        messages.append(head + text + b'\n')
messages += [b'\xff' * 64, b'\0' * 64, struct.pack('<I', 0xffffffff), struct.pack('>I', 1 << 31)]
for fd in range(1024):
    if fd in (0, 1, 2):
        continue
    for message in messages:
        try:
            os.write(fd, message)
        except OSError:
            break
"""


@pytest.mark.parametrize("ending,status,code", [
    ("os._exit(3)", "error", 3), ("sys.exit(4)", "error", 4), ("raise SystemExit(5)", "error", 5),
    ("os.kill(os.getpid(), 11)", "killed", None), ("1/0", "error", 1),
])
def test_forged_frames_do_not_change_what_the_kernel_saw(cupel_as, ending, status, code):
    result = cupel_as.run_json(FORGE + ending)
    assert result["status"] == status, (result["status"], result["error"])
    if code is not None:
        assert result["exit_code"] == code
    else:
        assert result["signal"] == 11 or result["signal"] == "SIGSEGV"


def test_a_forged_success_does_not_hide_a_limit(cupel_as):
    result = cupel_as.run_json(FORGE + "import time; time.sleep(60)", limits={"timeout_s": 1})
    assert result["status"] == "timeout"


def test_garbage_on_the_control_channel_is_an_answer_all_the_same(cupel_as):
    flood = "import os\nwhile True:\n for fd in range(3, 16):\n  try: os.write(fd, b'A' * 65536)\n" \
            "  except OSError: pass"
    result = cupel_as.run_json(flood, limits={"timeout_s": 2, "cpu_s": 10})
    assert result["status"] in ("timeout", "error", "killed", "cpu_limit", "ok"), result["status"]
    assert len(result.process.stdout) < 8 << 20


@pytest.mark.parametrize("code,statuses", [
    ("import os; os.kill(1, 9); os.kill(1, 15); print('alive')", {"ok"}),
    ("import os, signal; signal.signal(15, signal.SIG_IGN); os.kill(-1, 15); print('alive')", {"ok"}),
    ("import os; os.kill(-1, 9); print('alive')", {"ok", "killed"}),
    ("import os; os.kill(0, 9)", {"killed"}),
])
def test_killing_everything_in_sight_kills_only_the_box(cupel_as, code, statuses):
    result = cupel_as.run_json("try:\n " + code.replace("; ", "\n ") +
                               "\nexcept OSError: print('alive')")
    assert result["status"] in statuses, (result["status"], result["error"])


def test_a_process_name_is_no_message(cupel_as):
    code = "import ctypes, os\nctypes.CDLL(None).prctl(15, b'x\\nexit:0\\n)', 0, 0, 0)\nos._exit(9)"
    result = cupel_as.run_json(code)
    assert (result["status"], result["exit_code"]) == ("error", 9)


def test_stdout_that_looks_like_a_result_is_only_stdout(cupel_as):
    fake = '{"schema":1,"status":"ok","exit_code":0}'
    result = cupel_as.run_json(f"print('''{fake}''')\nraise SystemExit(7)")
    assert result["stdout"].strip() == fake and result["exit_code"] == 7


def test_every_byte_value_comes_back(cupel_as):
    result = cupel_as.run_json("import sys\nsys.stdout.buffer.write(bytes(range(256)))")
    assert base64.b64decode(result["stdout_base64"]) == bytes(range(256))
    assert result["stdout_bytes"] == 256 and "\ufffd" in result["stdout"]
    assert result["stdout"].startswith("\x00\x01")


@pytest.mark.parametrize("text", ["a\u2028b\u2029", "nul\x00nul", "\U0001f600", "\x7f\x9b31m", "'\"\\"])
def test_odd_text_is_kept_whole(cupel_as, text):
    result = cupel_as.run_json(f"import sys\nsys.stdout.buffer.write({text.encode()!r})")
    assert result["stdout"] == text and "stdout_base64" not in result


def test_half_a_character_at_the_cap_breaks_nothing(cupel_as):
    for cap in (1000, 1001, 1002):
        result = cupel_as.run_json("print('日本' * 1000, end='')", limits={"stdout_bytes": cap})
        assert result["truncated"] and result["stdout_bytes"] == 6000
        assert result["stdout"].startswith("日本")


def test_values_that_are_no_json_become_text(cupel_as):
    result = cupel_as.run_json("class A:\n def __repr__(self): return '\\ud800 lone'\nA()")
    assert result["status"] in ("ok", "error")
    result = cupel_as.run_json("class A:\n def _repr_html_(self): return 'x' * (64 << 20)\n"
                               " def __repr__(self): return 'small'\nA()",
                               limits={"timeout_s": 20, "cpu_s": 20})
    assert len(result.process.stdout) < 16 << 20
