"""Right answers, recorded (right/*.txt), in many styles: each is computed at the first try, with no judge."""
import json

import pytest

import recorded

CASES = recorded.load("right")


def test_there_are_many_styles():
    assert len(CASES) >= 110 and len({case.kind for case in CASES}) >= 15


@pytest.mark.sample(short=8)
@pytest.mark.parametrize("case", CASES, ids=recorded.name_of)
def test_it_is_computed_at_the_first_try(ask, case):
    report = ask(case["ask"], case.told, case.files, args=["--judge", "off"])
    story = json.dumps({key: report.get(key) for key in ("status", "reason", "checks", "answer")}, indent=1)
    assert report["status"] == case.get("status", "computed"), story
    assert report["cost"]["requests"] == len(case.told), "it was repaired"
    for text in case["text"]:
        assert text in report["answer"], story
    assert {row["path"] for row in report["artifacts"]} >= set(case["made"]), story
