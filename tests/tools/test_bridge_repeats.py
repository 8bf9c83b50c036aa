"""Cells that were undone and run again: the calls that they make again name the earlier ones, which stay done."""
import pytest

from bridge import Cells, Silent, tool
from engine import Engine, socket_path
from tool_files import Tools

SEND = tool("send", {"to": "string"}, effect="irreversible")
LOOK = tool("look", {"at": "string"}, effect="read")
SLOW = tool("slow", {"to": "string"}, effect="write", caps={"timeout_s": 0.2})
CODE = "import tools\ntools.send('ann')\ntools.look('x')\n1 / 0"


def answer(call):
    if call["tool"] == "slow":
        raise Silent
    return {"value": True}


@pytest.fixture
def cells(client):
    made = Cells(client, [SEND, LOOK, SLOW])
    yield made
    made.end()


def go(cells, code, **fields):
    """The result of a cell that begins from a kept state, and {tool: repeats} of its calls."""
    cells.wait_until_idle()
    result = cells.cell(code, answer, **fields)
    return result, {call["tool"]: call.get("repeats") for call in result["calls"]}


def ids(result):
    return [f"{result['run']}-{call['number']}" for call in result["calls"]]


def undone(cells, code=CODE):
    """A cell that is rolled back; the id of its first call."""
    result, repeats = go(cells, code, on_error="rollback")
    if result["state"] != "rolled_back":
        pytest.skip(result["error"]["hint"])
    assert not any(repeats.values()), repeats
    return ids(result)[0]


def test_a_cell_that_was_rolled_back_and_runs_again_names_its_calls(cells):
    first = undone(cells)
    result, repeats = go(cells, CODE, on_error="rollback")
    assert repeats == {"send": first, "look": None}, result["calls"]
    told = {frame["event"]: frame.get("repeats") for frame in cells.told if frame.get("tool") == "send"}
    assert told == {"tool_call": first, "tool_result": first}, cells.told
    _, again = go(cells, CODE, on_error="rollback")
    assert again["send"] == ids(result)[0], "the third time names the second"


def test_an_undo_leaves_calls_done_too(cells):
    result, _ = go(cells, "import tools; x = tools.send('ann')")
    [first] = ids(result)
    result, repeats = go(cells, "import tools; x = tools.send('ann')")
    assert repeats == {"send": None}, "nothing was undone"
    cells.wait_until_idle()
    if cells.info()["unprotected"]:
        pytest.skip(cells.info()["unprotected"])
    [second] = ids(result)
    cells.ask("undo")
    assert go(cells, "import tools; x = tools.send('ann')")[1] == {"send": second}
    cells.wait_until_idle()
    cells.ask("undo")
    cells.ask("undo")
    assert go(cells, "import tools; x = tools.send('ann')")[1]["send"] == first


@pytest.mark.full
def test_other_code_and_other_arguments_repeat_nothing(cells):
    undone(cells)
    assert not any(go(cells, CODE + " ", on_error="rollback")[1].values())
    undone(cells, CODE.replace("ann", "bob"))
    assert go(cells, CODE)[1]["send"] is not None


@pytest.mark.full
def test_equal_calls_of_one_cell_are_repeated_in_their_order(cells):
    twice = "import tools\nfor _ in range(N): tools.send('ann')\n1 / 0"
    cells.value("N = 2")
    first, _ = go(cells, twice, on_error="rollback")
    if first["state"] != "rolled_back":
        pytest.skip(first["error"]["hint"])
    cells.value("N = 3")
    result, _ = go(cells, twice)
    assert [call.get("repeats") for call in result["calls"]] == [*ids(first), None]


def test_a_call_that_failed_is_not_done_and_a_late_one_may_be(cells):
    code = "import tools\ntry: tools.slow('ann')\nexcept TimeoutError: pass\n"
    result, repeats = go(cells, code + "tools.send(NAME)\n", on_error="rollback")
    if result["state"] != "rolled_back":
        pytest.skip(result["error"]["hint"])
    [late] = ids(result)
    assert go(cells, code + "tools.send(NAME)\n", on_error="rollback")[1] == {"slow": late}

    def fails(call):
        return {"error": {"message": "no"}}
    cells.wait_until_idle()
    for _ in range(2):
        result = cells.cell("import tools\ntools.send('eve')", fails, on_error="rollback")
        assert result["state"] == "rolled_back" and "repeats" not in result["calls"][0], result
        cells.wait_until_idle()


@pytest.mark.full
def test_a_cell_that_was_killed_at_its_limit_leaves_calls_done(cells):
    code = "import tools\ntools.send('ann')\nwhile True: pass"
    cells.wait_until_idle()
    result = cells.cell(code, answer, on_error="rollback", limits={"timeout_s": 0.5})
    if result["state"] != "rolled_back":
        pytest.skip(result["error"]["hint"])
    _, repeats = go(cells, code, on_error="rollback", limits={"timeout_s": 0.5})
    assert repeats == {"send": ids(result)[0]}


@pytest.mark.full
def test_another_session_repeats_nothing(cells, client):
    undone(cells)
    other = Cells(client, [SEND, LOOK])
    assert not any(go(other, CODE)[1].values())
    other.end()


def test_the_person_who_is_asked_sees_the_repetition(client):
    cells = Cells(client, [{**SEND, "policy": "ask"}])
    code = "import tools\ntools.send('ann')\n1 / 0"

    def ask():
        cells.wait_until_idle()
        cells.start({"session": cells.session, "code": code, "on_error": "rollback"}, approve=True)
        asked = cells.until("approval", answer)
        client.send({"op": "approve", "id": cells.id, "call": asked["call"], "allow": True})
        return asked, cells.finish(answer)
    asked, result = ask()
    assert "repeats" not in asked, asked
    if result["state"] != "rolled_back":
        pytest.skip(result["error"]["hint"])
    assert ask()[0]["repeats"] == ids(result)[0]
    cells.end()


@pytest.mark.full
def test_a_tool_that_takes_a_key_gets_the_first_one_again(cupels, place, left_behind):
    cupel = list(cupels.values())[0]
    tools = Tools(cupel, place)
    tools.tool("pay", None, command=["cat"], effect="irreversible", policy="allow", idempotency_key="key",
               input_schema={"type": "object", "properties": {"n": {"type": "integer"}, "key": {"type": "string"}}})
    with Engine(cupel, socket_path(place, cupel), args=tools.options()) as engine, engine.client() as client:
        cells = Cells(client, ["pay"])
        code = "import tools\ntools.pay(n=1)\n1 / 0"
        keys = []
        for _ in range(3):
            cells.wait_until_idle()
            result = cells.cell(code, on_error="rollback")
            if result["state"] != "rolled_back":
                pytest.skip(result["error"]["hint"])
            keys.append(result["calls"][0]["outcome"]["value"]["key"])
        assert keys[0] == keys[1] == keys[2] and keys[0].startswith("r_"), keys
        cells.end()
