"""JavaScript and TypeScript that call tools of the client (docs/tools.md)."""
import time

import pytest

from bridge import ADD, ECHO, SLEEP, Cells, Silent, tool

LANGUAGES = pytest.mark.parametrize("language", ["javascript", "typescript"])


@pytest.fixture
def cells(client):
    made = Cells(client, language="javascript", wait=False)
    yield made
    made.end()


@LANGUAGES
def test_a_program_awaits_its_calls(bridge, language):
    result = bridge.run("const x = 1;\nconsole.log(await tools.math.add({a: 1, b: 2}));\n"
                        "await tools.echo({value: [1, null, 'é']})", language=language)
    assert result["stdout"] == "3\n" and result["text"] == "[ 1, null, 'é' ]", result
    assert [(call["tool"], call["line"], call["arguments"]) for call in bridge.calls()] == [
        ("math.add", 2, {"a": 1, "b": 2}), ("echo", 3, {"value": [1, None, "é"]})]


def test_a_script_waits_for_calls_that_it_does_not_await(bridge):
    result = bridge.run("tools.echo({value: 5}).then((value) => console.log('later', value)); console.log('first')",
                        language="javascript")
    assert result["stdout"] == "first\nlater 5\n" and result["status"] == "ok", result


def test_a_program_ends_when_nothing_waits(bridge):
    result = bridge.run("console.log(typeof tools, await tools.echo({value: 1}))", language="javascript")
    assert result["stdout"] == "object 1\n" and result["metrics"]["wall_ms"] < 20000
    assert bridge.run("console.log(typeof tools)", None, language="javascript")["stdout"] == "undefined\n"


def test_many_at_once_get_their_own_answers(bridge):
    many = tool("many", {"i": "integer"}, caps={"at_once": 64})
    result = bridge.run("const got = await Promise.all([...Array(300).keys()].map((i) => tools.many({i})));\n"
                        "got.every((value, i) => value === 2 * i)", [many],
                        lambda call: {"value": call["arguments"]["i"] * 2}, language="javascript")
    assert result["text"] == "true" and len(result["calls"]) == 300, result


def test_lists_help_and_search(bridge):
    query = tool("db.query", {"sql": {"type": "string", "description": "one statement"}, "limit": "integer"}, ["sql"])
    result = bridge.run("""console.log(tools.list(), tools.search('statement'), tools.search('zebra'));
console.log(tools.help('db.query')); console.log(String(tools.db.query) === tools.help(tools.db.query));
console.log(await tools.get('db.query')({sql: 'x'}), await tools.get_item({}), await tools['get-item']({}))""",
                        [ECHO, query, tool("get-item")], lambda call: {"value": call["tool"]}, language="javascript")
    assert result["stdout"].splitlines() == [
        "[ 'echo', 'db.query', 'get-item' ] [ 'db.query' ] []", "db.query({sql, limit})", "does db.query",
        "  sql: string - one statement", "  limit?: integer", "true", "db.query get-item get-item"], result


def test_a_tool_may_have_the_name_of_a_helper_or_a_space(bridge):
    result = bridge.run("""console.log(await tools.search({q: 'a'}), await tools.db({q: 'b'}),
await tools.db.query({q: 'c'}), tools.search_('helps').length)""",
                        [tool(name, {"q": "string"}, description="helps") for name in ("db.query", "search", "db")],
                        lambda call: {"value": call["tool"]}, language="javascript")
    assert result["stdout"] == "search db db.query 3\n", result


def test_failures_are_errors_with_tool_and_reason(bridge):
    outcomes = {"a": {"error": {"message": "no luck"}}, "b": {"error": {"kind": "denied", "message": "not you"}},
                "c": {"error": {"kind": "timeout", "message": "slow"}}}
    result = bridge.run("""for (const name of ['a', 'b', 'c', 'wrong'])
  try { await tools.get(name)({}) } catch (e) {
    console.log(e.name, e.tool, e.reason, e instanceof tools.ToolError, e instanceof tools.ToolDenied) }
for (const args of [5, [1], 'x', null]) try { await tools.a(args) } catch (e) { console.log(e.name, e.message) }
try { await tools.a({x: 'y'.repeat(2000000)}) } catch (e) { console.log(e.message) }
await tools.a()""", [tool(name) for name in "abc"], lambda call: outcomes[call["tool"]], language="javascript")
    assert result["stdout"].splitlines() == [
        "ToolError a no luck true false", "ToolDenied b not you true true", "ToolTimeout c slow true false",
        "ToolError wrong this program has no such tool true false",
        *["TypeError a takes one object, as in tools.a({...})"] * 4,
        "a: the arguments have 2000008 bytes, at most 1048576"], result
    assert result["error"]["name"] == "ToolError" and result["error"]["message"] == "a: no luck", result["error"]
    assert "tools.cjs" not in result["error"]["traceback"]


def test_cells_call_and_a_cell_may_have_none(cells):
    assert cells.value("let x = await tools.echo({value: 6}); x") == "6"
    assert cells.value("await tools.math.add({a: x, b: 1})") == "7"
    assert cells.value("typeof tools", tools=[]) == "'undefined'"
    assert cells.value("await tools.echo({value: 8})") == "8"


def test_an_interrupt_ends_the_call_and_the_session_goes_on(cells):
    def interrupting(call):
        cells.client.send({"op": "interrupt", "id": cells.id})
        raise Silent
    cells.value("let y = 1; await tools.echo({value: 1})")
    result = cells.cell("await tools.never()", interrupting)
    assert result["status"] == "interrupted" and result["calls"][0]["outcome"]["error"]["kind"] == "cancelled", result
    time.sleep(0.4)  # node may get the engine's second interrupt, of a slow host, after the cell
    result = cells.cell("y = await tools.echo({value: 2}); y")
    assert (result["text"], result["stderr"], result["state"]) == ("2", "", "kept")


def test_the_end_of_a_cell_takes_back_what_waits(cells):
    result = cells.cell("let p = tools.never(); p.catch(() => {}); await tools.echo({value: 1})")
    assert result["text"] == "1" and len(result["calls"]) == 2, result
    assert cells.value("await p.catch((e) => e.message)") == "'never: the cell ended before the answer'"


def test_a_large_answer_on_its_way_at_the_end_of_a_cell_is_dropped(cells):
    """The answer is longer than the pipe: its rest must not become part of the next line."""
    large = tool("large", caps={"result_bytes": 16 << 20})
    calls = []

    def small_first(call):
        calls.append(call["call"])
        if call["tool"] == "echo":
            cells.say(calls[-1], value=5)
            cells.say(calls[-2], value="x" * (8 << 20))
    for _ in range(3):
        code = "tools.large().catch(() => {}); await tools.echo({value: 5})"
        assert cells.value(code, small_first, tools=[ECHO, large]) == "5"
        assert cells.value("await tools.echo({value: 6})") == "6"


def test_a_node_that_did_not_wait_in_a_pool_has_tools(bridge, client):
    assert bridge.run("await tools.echo({value: 3})", language="javascript", seed=5)["text"] == "3"
    cells = Cells(client, language="typescript", seed=5, wait=False)
    assert cells.value("const n: number = await tools.math.add({a: 1, b: 1}); n") == "2"
    cells.end()


def test_never_is_answered_by_nobody_and_times_out_with_the_run(bridge):
    result = bridge.run("await tools.never()", [SLEEP, ADD], language="javascript", limits={"timeout_s": 1})
    assert result["status"] == "timeout" and result["calls"][0]["outcome"]["error"]["kind"] == "cancelled", result
