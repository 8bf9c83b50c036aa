"""Many runs at once and one after another: nothing grows."""
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import host


def test_sixteen_at_once_each_get_their_own_answer(cupel_as):
    def one(number):
        return cupel_as.run_json(f"import os, time\nopen('me', 'w').write('{number}')\n"
                                 f"time.sleep(0.3)\nprint(open('me').read(), os.listdir('.'))",
                                 limits={"timeout_s": 60})
    before = host.footprint()
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(one, range(16)))
    for number, result in enumerate(results):
        assert result["status"] == "ok", result["error"]
        assert result["stdout"] == f"{number} ['me']\n"
    assert len({result["run"] for result in results}) == 16
    host.check_no_growth(before)


def test_one_runs_limit_is_not_anothers(cupel_as):
    """A memory bomb, a fork bomb and a flood beside eight quiet runs."""
    bombs = [("x = bytearray(b'x') * (1 << 30)", "python"), ("b() { b | b & }; b; sleep 1", "bash"),
             ("yes", "bash")]

    def bomb(pair):
        return cupel_as.run_json(*pair, limits={"timeout_s": 3}, on_output_limit="stop")

    def quiet(number):
        return cupel_as.run_json(f"print({number})", limits={"timeout_s": 60})
    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(bomb, pair) for pair in bombs]
        answers = list(pool.map(quiet, range(8)))
        for bombed in running:
            assert bombed.result()["status"] != "internal"
    assert [answer["stdout"] for answer in answers] == [f"{n}\n" for n in range(8)]


def kernel_counts():
    """What a leak on the host would move: (open files of the kernel, network namespaces)."""
    files = int(Path("/proc/sys/fs/file-nr").read_text().split()[0])
    try:
        slab = Path("/proc/slabinfo").read_text()
        spaces = int(re.search(r"^net_namespace\s+(\d+)", slab, re.M)[1])
    except (OSError, TypeError):
        spaces = 0
    return files, spaces


@pytest.mark.long
def test_two_thousand_one_after_another_leave_nothing(cupel_as):
    cupel_as.run_json("pass")
    before, counts = host.footprint(), kernel_counts()
    for number in range(2000):
        result = cupel_as.run_json(f"print({number})")
        assert result["stdout"] == f"{number}\n", (number, result["error"])
    host.check_no_growth(before, seconds=5)
    host.wait_until(lambda: kernel_counts()[1] <= counts[1] + 8, 20)
    files, spaces = kernel_counts()
    assert files <= counts[0] + 512 and spaces <= counts[1] + 8, (counts, files, spaces)


def test_fifty_one_after_another_leave_nothing(cupel_as):
    cupel_as.run_json("pass")
    before, files = host.footprint(), host.host_open_files()
    for number in range(50):
        assert cupel_as.run_json("echo $((6 * 7))", "bash")["stdout"] == "42\n"
    host.check_no_growth(before)
    assert host.host_open_files() == files
