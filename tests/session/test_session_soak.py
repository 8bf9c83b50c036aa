"""The short form of bench/soak_sessions.py: random sessions against a model, every answer compared,
and what is ours does not grow. And the control: the model sees what is not so."""
import os
import subprocess
import sys

import pytest

import host

SHORT, LONG = 40, 2000
SEED = os.environ.get("CUPEL_SEED", "1")


@pytest.fixture
def soak_sessions():
    """The program's own parts."""
    sys.path.insert(0, str(host.REPO / "bench"))
    import soak_sessions
    return soak_sessions


def soak(sessions):
    env = {**os.environ, "CUPEL": str(host.PROGRAM), "BENCH_RESULTS": str(host.BUILD / "soak-test.jsonl")}
    if host.SANITIZED:
        env["ASAN_OPTIONS"] = "detect_leaks=0"
    done = subprocess.run([sys.executable, "-B", host.REPO / "bench/soak_sessions.py", "--sessions", str(sessions),
                           "--seed", SEED], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("all answers right") == (2 if os.getuid() == 0 else 1), done.stdout
    assert "things of ours that grew" in done.stdout and "things that are left" in done.stdout


@pytest.mark.full
def test_sessions_are_what_the_model_says():
    soak(SHORT)


@pytest.mark.long
def test_two_thousand_sessions_are_what_the_model_says():
    soak(LONG)


def a_cell(soak_sessions):
    """An actor without an engine that has run one cell, and the answer that is right."""
    model = soak_sessions.Model("python", {}, 3, keeps=True)
    actor = soak_sessions.Actor(None, None, {}, True, model, "s_1")
    model.cells, model.state.names["i0"] = 1, 5
    facts = ["ok", 0, None, model.cell_ended(model.state, False, False, False), 1, "s_1", []]
    view = model.state.view("python")
    result = {"status": "ok", "exit_code": 0, "signal": None, "state": "kept", "cell": 1, "session": "s_1",
              "artifacts": [], "error": None, "stdout": "VIEW" + soak_sessions.json.dumps(view) + "\n"}
    return actor, facts, view, result


@pytest.mark.parametrize("member,wrong", [
    ("status", "error"), ("state", "rolled_back"), ("cell", 2), ("session", "s_2"), ("signal", 9),
    ("artifacts", [{"path": "a"}]), ("error", {"message": "x"}), ("stdout", ""),
    ("stdout", 'VIEW{"names": {"i0": 6}, "cwd": "/workspace", "env": {}, "files": {}}\n'),
    ("stdout", 'VIEW{"names": {"i0": 5}, "cwd": "/tmp", "env": {}, "files": {}}\n'),
    ("stdout", 'VIEW{"names": {"i0": 5}, "cwd": "/workspace", "env": {}, "files": {"a": "644 0"}}\n')])
def test_a_wrong_answer_is_seen(soak_sessions, member, wrong):
    actor, facts, view, result = a_cell(soak_sessions)
    actor.compare(result, facts, view)
    with pytest.raises(soak_sessions.Wrong):
        actor.compare({**result, member: wrong}, facts, view)


def test_the_model_goes_back(soak_sessions):
    """Undo, checkpoint, death, and as many levels as there may be."""
    model = soak_sessions.Model("python", {}, 2, keeps=True)
    for n in range(1, 6):
        model.cells, model.state.names["i0"] = n, n
        assert model.cell_ended(model.state, False, False, False) == "kept"
        if n == 2:
            model.named["two"] = model.stack[-1]
    assert (model.undo_levels(), model.undo_to().state.names["i0"]) == (2, 4)
    after = soak_sessions.copy.deepcopy(model.state)
    after.names["i0"] = 99
    assert model.cell_ended(after, True, True, False) == "rolled_back" and model.state.names["i0"] == 5
    model.be_at(model.undo_to())
    assert (model.state.names["i0"], model.undo_levels()) == (4, 1)
    model.be_at(model.named["two"])
    assert (model.state.names["i0"], model.undo_levels(), model.undo_to()) == (2, 0, None)


def test_the_model_loses_names_where_nothing_is_kept(soak_sessions):
    model = soak_sessions.Model("bash", {"SOAK_S": "1"}, 3, keeps=False)
    model.put("a", b"x")
    model.state.names["i0"], model.state.env["SOAK_A"] = 1, "2"
    assert model.cell_ended(model.state, True, True, False) == "lost"
    assert (model.state.names, model.state.env, list(model.state.files)) == ({}, {"SOAK_S": "1"}, ["a"])
