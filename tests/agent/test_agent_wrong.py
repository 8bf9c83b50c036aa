"""Wrong answers, recorded (wrong/*.txt): those that construction and slice convict, with no judge at all, and those
that are computed from the data and that a judge must see through. Their request has what convicts."""
import json

import pytest

import recorded
from asking import text_of

CASES = recorded.load("wrong")
BY_CONSTRUCTION = [case for case in CASES if case.kind.startswith("a")]
BY_JUDGE = [case for case in CASES if case.kind.startswith("b")]
PROVEN = {"computed", "verified"}
# The checks that name problems of a kind.
CHECKS = {"typed": {"values"}, "invented": {"values"}, "untraced": {"values"}, "empty": {"values", "selection"},
          "template": {"template"}, "selection": {"selection"}, "file": {"files"}}
KINDS = {"a": 19, "b": 14}
STAYS = "I stay with it."


def story(report):
    return json.dumps({key: report.get(key) for key in ("status", "reason", "checks", "answer")}, indent=1)


def failed(checks):
    return {check["check"]: check["detail"] for check in checks if check["outcome"] == "fail"}


def is_convicted(checks, case):
    """A check that can name one of the case's problems has failed."""
    return bool(set(failed(checks)) & {check for kind in case["problem"] for check in CHECKS[kind]})


def test_every_kind_has_cases():
    for group, count in KINDS.items():
        kinds = [case.kind for case in CASES if case.kind.startswith(group)]
        assert len(set(kinds)) == count and min(kinds.count(kind) for kind in kinds) >= 3
    assert len(BY_CONSTRUCTION) >= 85 and len(CASES) >= 130
    for case in BY_JUDGE:
        assert case["judge"] and case["fail"], recorded.name_of(case)


@pytest.mark.sample(short=8)
@pytest.mark.parametrize("case", BY_CONSTRUCTION, ids=recorded.name_of)
def test_it_is_convicted_without_a_judge(ask, case):
    report = ask(case["ask"], case.told, case.files, args=["--judge", "off"])
    assert report["status"] not in PROVEN, story(report)
    assert report["status"] == case.get("status", "unverified"), story(report)
    assert not case["problem"] or is_convicted(report["checks"], case), story(report)
    assert "error" not in case or case["error"] in report.observation(), report.observation()


@pytest.mark.sample(short=8)
@pytest.mark.parametrize("case", BY_JUDGE, ids=recorded.name_of)
def test_the_judge_sees_what_convicts(ask, case):
    """The slice alone convicts some of them: then the judge is not asked. The model does not mend its answer."""
    folder = ask.folder(case.files)
    judge, seen = ask.model(folder, [f"FAIL {case['fail']}"], "judge")
    report = ask(case["ask"], [*case.told, STAYS], case.files, args=["--judge", judge], folder=folder, watch=True)
    assert report["status"] == "unverified", story(report)
    checks = [event["data"] for event in ask.transcript(report) if event["kind"] == "check"]
    if not seen.exists():
        assert is_convicted(checks, case), checks
        return
    sent = json.loads(seen.read_text().splitlines()[0])
    text = "\n".join(map(text_of, sent["messages"]))
    assert case["ask"] in text
    for convicts in case["judge"]:
        assert convicts in text, text
    proof = text.partition("\nThe answer:\n")[2]
    assert any(convicts in proof for convicts in case["judge"]), "the beginnings of the files alone convict nobody"
    assert failed(checks) == {"judge": case["fail"]}
    assert any(case["fail"] in report.told(turn) for turn in range(len(report.sent))), "the reason did not go back"
