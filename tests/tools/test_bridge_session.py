"""Cells that call tools, and what stays of the calls between cells: nothing."""
import time

import pytest

import bridge as helper
from bridge import ADD, ECHO, SLEEP, Cells, Refused, Silent, tool


@pytest.fixture
def cells(client):
    made = Cells(client)
    yield made
    made.end()


def interrupting(bridge):
    """Answers echo; interrupts the run at the first other call: a second interrupt would kill it."""
    asked = []

    def answer(call):
        if call["tool"] == "echo":
            return {"value": call["arguments"]["value"]}
        if not asked:
            bridge.client.send({"op": "interrupt", "id": bridge.id})
        asked.append(call)
        raise Silent
    return answer


def test_the_tools_of_a_session_are_those_of_its_cells(cells):
    assert cells.value("from tools import echo, math\necho(1)") == "1"
    assert cells.value("echo(2), math.add(3, 4)") == "(2, 7)"
    [call] = cells.cell("\n\necho('x')")["calls"]
    assert call["line"] == 3


def test_a_cell_may_have_other_tools_and_none(cells):
    other = tool("other")
    assert cells.value("import tools; kept = tools.echo; tools.echo(1)") == "1"
    assert cells.value("tools.other()", lambda call: {"value": 5}, tools=[other]) == "5"
    said = "try:\n    kept(1)\nexcept tools.ToolError as e:\n    print(e)"
    assert cells.cell(said, tools=[other])["stdout"] == "echo: this program has no such tool\n"
    result = cells.cell(said, tools=[])
    assert result["stdout"] == "echo: tools can be called only while a program or cell that has them runs\n"
    assert "calls" not in result
    assert cells.cell("import tools as again", tools=[])["error"]["name"] == "ModuleNotFoundError"
    assert cells.value("tools.echo(3), kept(4)") == "(3, 4)"


def test_a_cell_without_events_needs_an_empty_list(cells):
    cells.client.start("q", {"session": cells.session, "code": "1 + 1"})
    assert cells.client.finish("q")[1]["error"]["field"] == "tools"
    cells.client.start("q", {"session": cells.session, "code": "1 + 1", "tools": []})
    assert cells.client.finish("q")[1]["result"]["text"] == "2"


def test_an_interrupt_ends_the_call_and_the_session_goes_on(cells):
    cells.value("import tools; x = 6")
    began = time.monotonic()
    result = cells.cell("tools.never()", interrupting(cells))
    assert (result["status"], result["state"]) == ("interrupted", "kept"), result
    assert result["calls"][0]["outcome"]["error"]["kind"] == "cancelled" and time.monotonic() - began < 20
    assert cells.value("x * 7, tools.echo(8)") == "(42, 8)"


def test_an_interrupt_ends_calls_of_tasks(cells):
    result = cells.cell("""import asyncio, tools
await asyncio.gather(*[tools.aio.never() for _ in range(5)])""", interrupting(cells))
    assert result["status"] == "interrupted" and {one["outcome"]["error"]["kind"] for one in result["calls"]} == {
        "cancelled"}
    assert cells.value("await tools.aio.echo(8)") == "8"


def test_the_end_of_a_cell_takes_back_the_calls_of_its_threads(cells):
    result = cells.cell("""import threading, time, tools
got = []
def call():
    try:
        tools.never()
    except tools.ToolError as e:
        got.append(e.reason)
threads = [threading.Thread(target=call) for _ in range(20)]
[thread.start() for thread in threads]
time.sleep(0.2)
tools.echo("main")""")
    assert result["text"] == "'main'" and len(result["calls"]) == 21, result
    assert cells.value("[thread.join() for thread in threads]; got == ['the code did not wait for the answer'] * 20")


def test_the_end_of_a_cell_takes_back_the_calls_of_its_tasks(cells):
    result = cells.cell("""import asyncio, tools
task = asyncio.create_task(tools.aio.never())
await asyncio.sleep(0.1)""")
    assert result["calls"][0]["outcome"]["error"]["kind"] == "cancelled", result
    result = cells.cell("await asyncio.sleep(0); print(repr(task.exception()))")
    assert result["stdout"] == "ToolError('never: the code did not wait for the answer')\n", result


def test_a_cell_may_be_undone_after_calls(cells):
    cells.value("import tools; x = tools.echo(1)")
    cells.wait_until_idle()
    cells.value("x = tools.echo(2)")
    cells.wait_until_idle()
    info = cells.info()
    if info["unprotected"]:
        pytest.skip(info["unprotected"])
    cells.ask("undo")
    assert cells.value("x, tools.echo(3)") == "(1, 3)"


def test_a_fork_has_the_tools(cells):
    cells.value("import tools; x = tools.echo(1)")
    cells.wait_until_idle()
    try:
        child = cells.ask("fork")["session"]["session"]
    except Refused as refused:
        pytest.skip(str(refused))
    assert cells.value("x = 2; tools.echo(x)") == "2"
    own, cells.session = cells.session, child
    assert cells.value("x, tools.echo(9)") == "(1, 9)"
    cells.end()
    cells.session = own


def test_a_rollback_keeps_what_tools_did_in_the_list(cells):
    cells.value("import tools; x = 1")
    cells.wait_until_idle()
    result = cells.cell("x = tools.echo(5)\n1 / 0", on_error="rollback")
    if result["state"] != "rolled_back":
        pytest.skip(result["error"]["hint"])
    assert [one["tool"] for one in result["calls"]] == ["echo"]
    assert cells.value("x, tools.echo(2)") == "(1, 2)"


def test_a_deadline_ends_a_call_and_keeps_the_session(cells):
    result = cells.cell("import tools; x = 3; tools.never()", limits={"timeout_s": 0.5})
    assert (result["status"], result["state"]) == ("timeout", "kept"), result
    assert cells.value("x, tools.echo(4)") == "(3, 4)"


def test_a_client_that_goes_ends_its_calls(cells, engine):
    cells.value("import tools; x = 5")
    with engine.client() as other:
        bridge = helper.Bridge(other)
        bridge.start({"session": cells.session, "code": "tools.never()"})
        bridge.until("tool_call")
    cells.wait_until_idle()
    assert cells.value("x, tools.echo(6)") == "(5, 6)"


def test_large_answers_in_a_row_arrive_whole(cells):
    large = tool("large", caps={"result_bytes": 16 << 20})
    code = "import tools; [len(tools.large().read()) for _ in range(3)]"
    assert cells.value(code, lambda call: {"value": "é" * (4 << 20)}, tools=[large]) == "[4194304, 4194304, 4194304]"


def test_an_answer_on_its_way_at_an_interrupt_is_read_and_dropped(cells):
    """The answer is longer than the pipe when the interrupt comes: the rest must not become part of the next line."""
    large = tool("large", caps={"result_bytes": 16 << 20})
    cells.value("import tools")

    def both(call):
        cells.client.send({"op": "interrupt", "id": cells.id})
        return {"value": "x" * (8 << 20)}
    for _ in range(3):
        result = cells.cell("tools.large()", both, tools=[large])
        assert result["state"] == "kept" and result["status"] in ("ok", "interrupted"), result
        assert cells.value("tools.echo(5)") == "5"


@pytest.mark.parametrize("secret", [False, True])
def test_a_question_to_the_person_waits_beside_calls_of_threads(cells, secret):
    ask = "__import__('getpass').getpass()" if secret else "input()"
    cells.start({"session": cells.session, "code": f"""import threading, tools
got = []
thread = threading.Thread(target=lambda: got.append(tools.echo(1)))
thread.start()
line = {ask}
thread.join()
line, got, tools.echo(2)"""}, input=True)
    first = {}
    while len(first) < 2:
        frame = cells.next(lambda frame: None)
        assert "event" in frame, frame
        if frame["event"] in ("tool_call", "input"):
            first[frame["event"]] = frame
    cells.say(first["tool_call"]["call"], value=1)
    cells.client.send({"op": "input", "id": cells.id, "text": "typed\n"})
    assert cells.finish()["text"] == "('typed', [1], 2)"


@pytest.mark.parametrize("cold", [{"seed": 5}, {"limits": {"memory_bytes": 500 << 20}}], ids=["executed", "on demand"])
def test_an_interpreter_that_did_not_wait_in_a_pool_has_tools(client, cold):
    cells = Cells(client, **cold)
    assert cells.value("import tools; tools.echo(1)") == "1"
    cells.end()
    assert helper.Bridge(client).run("import tools; tools.math.add(1, 2)", **cold)["text"] == "3"


def test_every_definition_of_a_long_list_is_there(client):
    tools = [tool(f"group{i % 8}.tool{i}", {"x": "integer", "text": "string"}, ["x"]) for i in range(125)]
    cells = Cells(client, [ECHO, ADD, SLEEP, *tools])
    code = "import tools; len(tools.list()), tools.get('group3.tool3')(1), tools.group4.tool124(x=2, text='a')"
    assert cells.value(code, lambda call: {"value": call["tool"]}) == "(128, 'group3.tool3', 'group4.tool124')"
    cells.end()


def test_long_lines_of_threads_do_not_mix(cells):
    """A line beyond the size that a pipe takes at once: values of the cell beside calls of threads."""
    result = cells.cell("""import threading, tools
def call(text):
    for _ in range(5):
        assert tools.echo(text) == text
threads = [threading.Thread(target=call, args=(letter * 100000,)) for letter in "abcd"]
[thread.start() for thread in threads]
for n in range(20):
    display("x" * 50000)
[thread.join() for thread in threads];""")
    assert result["status"] == "ok" and len(result["calls"]) == 20 and len(result["results"]) == 20, result["error"]
    assert result["calls_refused"] == 0
