"""Every fuzz target eats its whole corpus without a crash."""
import subprocess

import pytest

from host import BUILD, REPO

TARGETS = sorted(p.stem[len("fuzz_"):] for p in (REPO / "tests/fuzz").glob("fuzz_*.c"))


def test_every_parser_of_outside_bytes_has_a_target():
    assert {"request", "driver", "path", "frame"} <= set(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_the_target_replays_its_corpus(target):
    corpus = sorted((REPO / "tests/fuzz/corpus" / target).glob("*"))
    assert corpus, f"tests/fuzz/corpus/{target} is empty"
    done = subprocess.run([BUILD / "replay" / target, *corpus], capture_output=True,
                          encoding="utf-8", errors="replace", timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
