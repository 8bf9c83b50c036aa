"""Many tasks at once against one engine: each ends rightly, and nothing is left."""
import concurrent.futures
import json

import pytest

import host
import tables
from asking import fence
from tables import FILES, QUESTION
from selection import LONG

AT_ONCE = 200 if LONG else 30
TASKS = AT_ONCE * (3 if AT_ONCE > 30 else 1)
WAIT_S = 60 + 3 * AT_ONCE


def model_of(folder, number):
    """Replies with a total of its own, so that answers cannot be exchanged unseen."""
    code = tables.READ + f"total = sum(rows.values()) + {number}\n{tables.TELL}"
    path = folder / f"r{number}.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n"
                            for text in (fence(code), tables.PASS)))
    path.chmod(0o644)
    return f"replay:{path}"


def one(ask, folder, number):
    done = ask.cupel.run(["ask", "--json", "--model", model_of(folder, number), f"{QUESTION} Add {number}.",
                          folder / "trees.csv"], env=ask.engine.use(), timeout=WAIT_S)
    report = json.loads(done.stdout or "{}")
    said = report.get("status"), report.get("reason"), report.get("error"), report.get("checks"), done.stderr[-500:]
    assert report.get("status") == "verified", said
    assert f"{tables.TOTAL + number:,.3f}" in report["answer"]
    return report["task"]


@pytest.mark.parametrize("at_once", [AT_ONCE])
def test_many_tasks_at_once(ask, at_once):
    folder = ask.folder(FILES)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        tasks = list(pool.map(lambda number: one(ask, folder, number), range(TASKS)))
    assert len(set(tasks)) == TASKS
    assert not ask.sessions()
    assert host.wait_until(lambda: ask.engine.spare_boxes() == 0, 20), ask.engine.state()
