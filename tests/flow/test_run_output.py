"""Output is streamed, counted to the last byte, and never lost by being long."""
import base64
import hashlib
import os
import pathlib
import select
import signal
import time

import host


def test_long_output_keeps_head_and_tail_and_spills_the_rest(cupel_as, folder):
    code = "for i in range(50000): print(f'line {i:06}')"
    result = cupel_as.run_json(code, cli=["-o", str(folder)])
    whole = "".join(f"line {i:06}\n" for i in range(50000)).encode()
    assert result["status"] == "ok" and result["truncated"]
    assert result["stdout_bytes"] == len(whole)
    assert result["stdout"].startswith("line 000000\n") and result["stdout"].endswith("line 049999\n")
    assert len(result["stdout"]) < 70000
    assert any("stdout" in hit for hit in result["limits_hit"])
    spilled = {row["path"]: row for row in result["artifacts"]}[".cupel/stdout"]
    assert spilled["size_bytes"] == len(whole)
    assert spilled["sha256"] == hashlib.sha256(whole).hexdigest()
    assert (folder / ".cupel/stdout").read_bytes() == whole


def test_stderr_is_kept_apart_with_its_own_cap(cupel_as):
    code = "import sys\nprint('out')\nsys.stderr.write('e' * 5000)"
    result = cupel_as.run_json(code, limits={"stderr_bytes": 1000})
    assert result["stdout"] == "out\n" and result["stderr_bytes"] == 5000 and result["truncated"]
    assert len(result["stderr"]) < 1500


def test_a_caps_own_length_is_not_truncation(cupel):
    result = cupel.run_json("print('x' * 999)", limits={"stdout_bytes": 1000})
    assert not result["truncated"] and result["limits_hit"] == []
    assert len(result["stdout"]) == 1000


def most_memory_kb(pid):
    """The most that the process held since its exec; rusage would count what forked it, too."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return 0


def test_a_flood_does_not_grow_the_front_process(cupel_as):
    request = '{"language": "bash", "code": "head -c 300000000 /dev/zero; sleep 1", "limits": ' \
              '{"timeout_s": 30, "cpu_s": 30}}'
    child = cupel_as.popen(["run", "--request", "-", "--json"], stdin=-1)
    child.stdin.write(request.encode())
    child.stdin.close()
    most = 0
    while child.poll() is None and not select.select([child.stdout], [], [], 0.05)[0]:
        most = max(most, most_memory_kb(child.pid))
    text = child.stdout.read()
    assert child.wait() == 0 and b'"stdout_bytes":300000000' in text.replace(b" ", b"")
    child.stdout.close(), child.stderr.close()
    assert 0 < most < (1000 if host.SANITIZED else 200) * 1024


# It goes on at our word: a line that came before is not one that came with the end.
UNTIL_INTERRUPTED = "import time\ntry:\n    %s\n    for _ in range(1000): time.sleep(0.05)\n" \
                    "except KeyboardInterrupt: print('two', flush=True)"


def test_output_streams_in_order_as_it_happens(cupel_as):
    child = cupel_as.popen(["run", "-t", "60", "-c", UNTIL_INTERRUPTED % "print('one', flush=True)"], text=True)
    assert child.stdout.readline() == "one\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "two\n"


def test_unfinished_lines_stream_too(cupel_as):
    child = cupel_as.popen(["run", "-t", "60", "-c", UNTIL_INTERRUPTED % "print('ab', end='', flush=True)"])
    assert os.read(child.stdout.fileno(), 10) == b"ab"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == b"two\n"


def test_print_without_flush_is_streamed_line_by_line(cupel):
    child = cupel.popen(["run", "-t", "60", "-c", UNTIL_INTERRUPTED % "print('a')"])
    assert os.read(child.stdout.fileno(), 10) == b"a\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == b"two\n"


def test_a_reader_that_goes_away_ends_the_run(cupel_as):
    child = cupel_as.popen(["run", "-t", "60", "-c", "while True: print('x' * 1000)"])
    child.stdout.read(10)
    child.stdout.close()
    child.wait(timeout=20)
    child.stderr.close()
    assert host.wait_until(lambda: not host.ours(), 3), host.ours()


MORE_THAN_A_PIPE_HOLDS = 1 << 20
THEN_SILENT = f"import time\nprint('x' * {MORE_THAN_A_PIPE_HOLDS}, flush=True)\ntime.sleep(60)"


def test_a_reader_that_fell_behind_gets_the_rest_while_the_code_is_silent(cupel_as):
    child = cupel_as.popen(["run", "-t", "90", "-c", THEN_SILENT])
    child.stdout.read(10)
    time.sleep(1)  # by now all of it has come out of the box
    assert len(child.stdout.read(MORE_THAN_A_PIPE_HOLDS - 10)) == MORE_THAN_A_PIPE_HOLDS - 10
    assert host.holds_for(lambda: child.poll() is None, 0.3), "the rest came with the end"
    child.terminate()
    child.communicate(timeout=20)


def test_a_reader_that_goes_away_ends_silent_code_that_still_has_to_be_read(cupel_as):
    child = cupel_as.popen(["run", "-t", "90", "-c", THEN_SILENT])
    child.stdout.read(10)
    time.sleep(1)
    child.stdout.close()
    child.wait(timeout=20)
    child.stderr.close()


def test_bytes_that_are_no_text_come_beside_as_base64(cupel):
    result = cupel.run_json("import sys\nsys.stderr.buffer.write(b'a\\xffb')")
    assert base64.b64decode(result["stderr_base64"]) == b"a\xffb" and result["stderr"] == "a\ufffdb"


def test_stdin_that_nobody_reads_holds_up_nothing(cupel_as):
    result = cupel_as.run_json("sleep 0.2; echo done", "bash", stdin="x" * (8 << 20))
    assert result["status"] == "ok" and result["stdout"] == "done\n"


def test_stdin_of_megabytes_arrives_whole(cupel_as):
    result = cupel_as.run_json("wc -c", "bash", stdin="x" * (8 << 20))
    assert result["stdout"].strip() == str(8 << 20)


def test_both_streams_at_full_speed_do_not_lock(cupel_as):
    code = "import sys, threading\nt = [threading.Thread(target=lambda s: [s.write('x' * 1000) " \
           "for _ in range(5000)], args=(s,)) for s in (sys.stdout, sys.stderr)]\n" \
           "[x.start() for x in t]; [x.join() for x in t]"
    result = cupel_as.run_json(code, limits={"timeout_s": 30})
    assert (result["stdout_bytes"], result["stderr_bytes"]) == (5000000, 5000000)
