"""Real programs: the reference solutions of HumanEval and MBPP with their own tests,
each in a box of its own, all end ok."""
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from host import REPO

DATA = REPO.parent / "shared/data"


def humaneval():
    with gzip.open(DATA / "humaneval/HumanEval.jsonl.gz", "rt") as file:
        for line in file:
            row = json.loads(line)
            yield row["task_id"], (row["prompt"] + row["canonical_solution"] + "\n" + row["test"]
                                   + "\ncheck(" + row["entry_point"] + ")\n")


def mbpp():
    for row in json.loads((DATA / "mbpp/sanitized-mbpp.json").read_text()):
        yield f"MBPP/{row['task_id']}", "\n".join([*row["test_imports"], row["code"],
                                                   *row["test_list"]])


@pytest.mark.skipif(not DATA.is_dir(), reason=f"'{DATA}' is absent")
@pytest.mark.parametrize("programs,count", [(humaneval, 164), pytest.param(mbpp, 427, marks=pytest.mark.full)])
def test_every_reference_program_ends_ok(cupel, programs, count):
    def one(pair):
        result = cupel.run_json(pair[1], limits={"timeout_s": 60, "cpu_s": 60})
        return pair[0], result["status"], result["error"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(one, programs()))
    assert len(answers) == count
    failed = [answer for answer in answers if answer[1] != "ok"]
    assert not failed, failed[:5]
