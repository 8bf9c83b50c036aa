"""Values of more than 1 MiB: they come in parts and are files of the box; the code gets their names."""
import hashlib
import json

import pytest

from bridge import ADD, ECHO, Bridge, Cells, tool

BIG = tool("db.big", {"kind": "string"}, effect="read", caps={"result_bytes": 16 << 20, "at_once": 64})
TOOLS = [BIG, ECHO, ADD]
ROWS = [{"id": i, "name": f"é{i}", "more": "x" * 80} for i in range(40000)]
VALUES = {"rows": ROWS, "text": "é\n\"\\" * 600000, "small": "x" * 1000, "limit": "x" * ((1 << 20) - 2),
          "over": "x" * ((1 << 20) - 1)}
CODE = "import tools\n"


def answer(call):
    if call["tool"] == "db.big":
        return {"value": VALUES[call["arguments"]["kind"]]}
    return {"value": call["arguments"]["value"]}


@pytest.fixture
def cells(client):
    made = Cells(client, TOOLS)
    yield made
    made.end()


def test_a_large_value_is_a_file_that_cannot_be_written_and_has_it_all(bridge):
    result = bridge.run(CODE + """import json, os, stat
big = tools.db.big("rows")
print(type(big) is tools.ToolLarge, big.size == os.path.getsize(big), oct(stat.S_IMODE(os.stat(big).st_mode)))
print(len(big.json()), json.loads(big.read()) == json.load(open(big)) == json.load(big.open("rb")))
print(big)""", TOOLS, answer)
    size = len(json.dumps(ROWS, ensure_ascii=False, separators=(",", ":")).encode())
    assert result["stdout"].splitlines() == ["True True 0o444", "40000 True",
                                             f"ToolLarge('/tmp/tools/db.big-1', {size} bytes)"], result
    [call] = result["calls"]
    assert call["outcome"] is None and call["outcome_bytes"] == size + len('{"value":}'), call


def test_a_text_is_the_text_itself_and_the_bound_is_exact(bridge):
    result = bridge.run(CODE + """big = tools.db.big("text")
print(big.read() == "é\\n\\"\\\\" * 600000, big.size == len(big.read().encode()))
print(type(tools.db.big("limit")).__name__, type(tools.db.big("over")).__name__)""", TOOLS, answer)
    assert result["stdout"] == "True True\nstr ToolLarge\n", result


@pytest.mark.full
def test_large_and_small_values_at_once_are_their_own_calls(bridge):
    result = bridge.run(CODE + """import asyncio, threading
async def main():
    calls = [tools.aio.db.big(kind) for kind in ["rows", "small", "rows", "text"]]
    return await asyncio.gather(*calls, tools.aio.echo(5))
first, small, second, text, echoed = asyncio.run(main())
print(len(first.json()), len(small), second.read() == first.read(), second.path != first.path, text.size, echoed)
sizes = []
threads = [threading.Thread(target=lambda: sizes.append(len(tools.db.big("rows").json()))) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sizes)""", TOOLS, answer)
    assert result["stdout"] == "40000 1000 True True 3000000 5\n[40000, 40000, 40000, 40000]\n", result


@pytest.mark.full
def test_a_small_answer_overtakes_the_parts_of_a_large_one(client):
    """Both are answered before the code reads the channel: the small one does not wait for 15 MiB."""
    bridge = Bridge(client)
    bridge.start({"code": CODE + """import asyncio, time
order = []
async def call(kind):
    await tools.aio.db.big(kind)
    order.append(kind)
async def main():
    both = [asyncio.create_task(call("large")), asyncio.create_task(call("small"))]
    await asyncio.sleep(0.05)
    time.sleep(1)
    await asyncio.gather(*both)
asyncio.run(main())
print(order)""", "tools": TOOLS, "limits": {"timeout_s": 30}})
    bridge.until("tool_call", lambda call: {"value": "x" * (15 << 20)})
    bridge.until("tool_call", lambda call: {"value": "s"})
    assert bridge.finish()["stdout"] == "['small', 'large']\n"


@pytest.mark.full
def test_a_value_with_files_beside_it(bridge):
    def with_file(call):
        return {"value": ROWS, "files": [{"name": "a.txt", "mime": "text/plain", "base64": "aGk="}]}
    result = bridge.run(CODE + """got = tools.db.big("x")
print(len(got.value.json()), got.files[0].data)""", TOOLS, with_file)
    assert result["stdout"] == "40000 b'hi'\n", result


def test_a_value_over_the_cap_is_an_error(bridge):
    less = {**BIG, "caps": {"result_bytes": 2 << 20}}
    result = bridge.run(CODE + """try:
    tools.db.big("rows")
except tools.ToolError as e:
    print(e.reason)
import os; print(os.path.exists("/tmp/tools"))""", [less], answer)
    assert "at most 2097152 bytes" in result["stdout"] and result["stdout"].endswith("\nFalse\n"), result


def test_a_full_disk_is_an_error_of_the_call_and_leaves_no_part(bridge):
    result = bridge.run(CODE + """import os
def call():
    try:
        print(tools.db.big("rows").size)
    except tools.ToolError as e:
        print(e.reason.rpartition(": ")[2], os.listdir("/tmp/tools"))
with open("/tmp/fill", "wb") as file:
    try:
        while True: file.write(bytes(1 << 16)); file.flush()
    except OSError: pass
call()
os.truncate("/tmp/fill", 0)
print(type(tools.db.big("rows")).__name__)""", TOOLS, answer, limits={"timeout_s": 30, "disk_bytes": 32 << 20})
    assert result["stdout"] == "[Errno 28] No space left on device []\nToolLarge\n", result


@pytest.mark.full
def test_code_that_spoils_the_folder_harms_its_own_calls(bridge):
    result = bridge.run(CODE + """import os
def call():
    try:
        return len(tools.db.big("rows").json())
    except tools.ToolError as e:
        return e.reason.partition(": ")[2]
os.symlink("/etc", "/tmp/tools")
print(call())
os.unlink("/tmp/tools"); open("/tmp/tools", "w").close()
print(call())
os.unlink("/tmp/tools"); os.mkdir("/tmp/tools")
os.symlink("/workspace/stolen", "/tmp/tools/db.big-3"); open("/tmp/tools/db.big-4", "w").close()
print(call(), os.path.exists("/workspace/stolen"), sorted(os.listdir("/tmp/tools")))
print(tools.ToolLarge("/etc/hostname-that-is-not-there", 5).size, tools.echo(1))""", TOOLS, answer)
    lines = result["stdout"].splitlines()
    assert "Not a directory" in lines[1] and "ead-only" in lines[0] or "denied" in lines[0], result
    assert lines[2] == "40000 False ['db.big-3', 'db.big-4', 'db.big-5']" and lines[3] == "5 1", result


def test_a_box_that_dies_between_parts_leaves_the_session_usable(cells):
    cells.value("import tools, os, threading, time", answer)
    cells.wait_until_idle()

    def dies(call):
        return {"value": "x" * (15 << 20)}
    result = cells.cell("threading.Timer(0.05, os._exit, [3]).start()\nwhile True: tools.db.big('x')", dies)
    assert result["state"] in ("rolled_back", "lost"), result
    cells.client.send({"op": "session", "id": "after", "do": "info", "session": cells.session})
    while cells.client.receive().get("id") != "after":   # an answer that came too late was refused
        pass
    cells.wait_until_idle()
    assert cells.value("import tools; len(tools.db.big('rows').json())", answer) == "40000"


@pytest.mark.full
def test_a_handle_is_part_of_the_state(cells):
    cells.value("import tools; big = tools.db.big('rows')", answer)
    cells.wait_until_idle()
    if cells.info()["unprotected"]:
        pytest.skip(cells.info()["unprotected"])
    cells.value("again = tools.db.big('rows'); big = None", answer)
    cells.wait_until_idle()
    cells.ask("undo")
    assert cells.value("len(big.json()), tools.db.big('rows').path", answer) == "(40000, '/tmp/tools/db.big-3')"


def test_an_interrupt_between_parts_takes_the_value_back(cells):
    cells.value("import tools, os")

    def both(call):
        cells.client.send({"op": "interrupt", "id": cells.id})
        return {"value": "x" * (15 << 20)}
    for _ in range(3):
        result = cells.cell("big = None; big = tools.db.big('x')", both)
        assert result["state"] == "kept" and result["status"] in ("ok", "interrupted"), result
    assert cells.value("tools.echo(5)", answer) == "5"
    assert cells.value("len([*os.scandir('/tmp/tools')] if os.path.exists('/tmp/tools') else []) <= 3") == "True"


@pytest.mark.full
def test_the_engine_goes_on_beside_many_large_values(engine, client):
    """Values that a box does not read wait, up to 32 MiB; another client's calls go on meanwhile."""
    bridge = Bridge(client)
    bridge.start({"code": CODE + """import threading
got = []
def call():
    try: got.append(len(tools.db.big("x").read()))
    except tools.ToolError as e: got.append(e.reason[:20])
threads = [threading.Thread(target=call) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(got))""", "tools": TOOLS, "limits": {"timeout_s": 60}})
    with engine.client() as other:
        beside = Bridge(other)
        for _ in range(6):
            bridge.next(lambda call: {"value": "x" * (7 << 20)})
            assert beside.run("import tools; tools.echo(4)", TOOLS, answer)["text"] == "4"
    assert bridge.finish(lambda call: {"value": "x" * (7 << 20)})["stdout"] == "6\n"


JS = """const big = await tools.db.big({kind: "rows"});
console.log(big instanceof tools.ToolLarge, big.size === require("fs").statSync(big.path).size, big.json().length);
const text = await tools.db.big({kind: "text"});
console.log(text.read() === 'é\\n"\\\\'.repeat(600000), typeof await tools.db.big({kind: "limit"}));
let bytes = 0; for await (const part of big.open()) bytes += part.length;
console.log(bytes === big.size, (require("fs").statSync(big.path).mode & 0o777).toString(8));
const all = await Promise.all(["rows", "small", "rows"].map((kind) => tools.db.big({kind})));
console.log(all.map((one) => one.path ? 1 : 0));"""


def test_javascript_gets_a_file_too(bridge):
    result = bridge.run(JS, TOOLS, answer, language="javascript")
    assert result["stdout"].splitlines() == ["true true 40000", "true string", "true 444", "[ 1, 0, 1 ]"], result


@pytest.mark.full
def test_cells_of_javascript_get_files_too(client):
    cells = Cells(client, TOOLS, "javascript")
    cells.cell("const got = await tools.db.big({kind: 'rows'})", answer)
    cells.wait_until_idle()
    result = cells.cell("console.log(got.json().length, (await tools.db.big({kind: 'text'})).size)", answer)
    cells.wait_until_idle()
    assert result["stdout"] == "40000 3000000\n", result

    def both(call):
        client.send({"op": "interrupt", "id": cells.id})
        return {"value": "x" * (15 << 20)}
    cells.cell("await tools.db.big({kind: 'x'})", both)
    assert cells.cell("console.log(await tools.echo({value: 5}))", answer)["stdout"] == "5\n"
    cells.end()


@pytest.mark.full
def test_a_full_disk_in_javascript(bridge):
    result = bridge.run("""const fs = require("fs");
const fd = fs.openSync("/tmp/fill", "w");
try { for (;;) fs.writeSync(fd, Buffer.alloc(65536)); } catch {}
try { await tools.db.big({kind: "rows"}); }
catch (error) { console.log(error.reason.includes("ENOSPC"), fs.readdirSync("/tmp/tools")); }
fs.ftruncateSync(fd, 0);
console.log((await tools.db.big({kind: "rows"})).json().length);""", TOOLS, answer, language="javascript",
                        limits={"timeout_s": 30, "disk_bytes": 32 << 20})
    assert result["stdout"] == "true []\n40000\n", result


def test_bash_prints_a_path_where_it_is_asked_to(bridge):
    result = bridge.run("""path=$(tool --file db.big kind=rows); echo "$path $(stat -c %a "$path") $(wc -c <"$path")"
cat "$(tool --file db.big kind=text)" | md5sum
tool --file db.big kind=small | wc -l
tool --file db.big '{"kind": 5}' 2>&1; echo $?
rm -rf /tmp/tools; touch /tmp/tools; tool --file db.big kind=small 2>&1; echo $?
tool db.big kind=rows | wc -c""", TOOLS, answer, language="bash")
    size = len(json.dumps(ROWS, ensure_ascii=False, separators=(",", ":")).encode())
    assert result["stdout"].splitlines() == [
        f"/tmp/tools/db.big-1 444 {size}", f"{hashlib.md5(VALUES['text'].encode()).hexdigest()}  -", "1",
        "tool: db.big: 'kind' is 5, must be a string", "1",
        "tool: db.big: the box could not keep its value in a file", "1", str(size + 1)], result


@pytest.mark.full
def test_a_full_disk_leaves_no_file_of_bash(bridge):
    result = bridge.run("""cat /dev/zero >/tmp/fill 2>/dev/null
tool --file db.big kind=rows 2>&1; echo "$? $(ls /tmp/tools 2>/dev/null)"
rm /tmp/fill; test -s "$(tool --file db.big kind=rows)" && echo whole""", TOOLS, answer, language="bash",
                        limits={"timeout_s": 30, "disk_bytes": 32 << 20})
    assert result["stdout"].splitlines()[-2:] == ["1 ", "whole"], result
