"""Bash that calls tools of the client (docs/tools.md): runs, cells, and code that attacks its own calls."""
import time

import pytest

import bridge as helper
from bridge import ADD, ECHO, SLEEP, Bridge, Cells, Silent, tool

LARGE = tool("large", {"bytes": "integer"}, caps={"result_bytes": 16 << 20, "at_once": 64})
FAILS = tool("fails", {"kind": "string"})


@pytest.fixture
def bash(bridge):
    def run(code, tools=(ECHO, ADD, SLEEP, LARGE, FAILS), answer=answer, **fields):
        return bridge.run(code, tools, answer, language="bash", **fields)
    return run


@pytest.fixture
def cells(client):
    made = Cells(client, (ECHO, ADD, SLEEP, LARGE), language="bash")
    yield made
    made.end()


def answer(call):
    arguments = call["arguments"]
    if call["tool"] == "large":
        return {"value": "xy" * (arguments["bytes"] // 2)}
    if call["tool"] == "fails":
        return {"error": {"kind": arguments["kind"], "message": "not \"today\""}}
    return helper.answer(call)


def stdout(cells, code, answer=answer, **fields):
    result = cells.cell(code, answer, **fields)
    assert (result["status"], result["state"]) == ("ok", "kept"), result
    return result["stdout"]


# ---- forms ----
def test_forms_of_a_call(bash, bridge):
    result = bash("""tool echo '{"value": "a\\nb"}'
x=$(tool math.add a:=1 b:=2); echo "x=$x"
tool echo value=é
echo '{"value": [1, {"k": null}]}' | tool echo -

f() { tool echo "$@"; }
f value='"a=b"'
tool echo value:=-1.5e3""")
    assert result["stdout"] == 'a\nb\nx=3\né\n[1,{"k":null}]\n"a=b"\n-1500.0\n', result
    assert [call["line"] for call in bridge.calls()] == [1, 2, 3, 4, 6, 8]


def test_failures_have_exit_codes_and_reasons(bash):
    result = bash("""exec 2>&1
for kind in error denied timeout; do tool fails kind=$kind; echo $?; done
tool math.add a=x b:=1; echo $?
tool math.add '{"a": 1'; echo $?
tool echo nothing; echo $?
tool zebra; echo $?
tool echo $'value=\\xff'; echo $?
tool >/dev/null 2>&1; echo $?""")
    lines = result["stdout"].splitlines()
    assert lines[:8] == ['tool: fails: not "today"', "1", 'tool: fails: not "today"', "77",
                         'tool: fails: not "today"', "124", "tool: math.add: 'a' is \"x\", must be an integer", "1"]
    assert lines[8].startswith("tool: math.add: ") and lines[9] == "1", lines
    assert lines[10:] == ["tool: echo: give one JSON object, '-', or key=text and key:=json", "2",
                          "tool: zebra: this program has no such tool; see tool --list", "1",
                          "tool: echo: the arguments are not UTF-8 text", "2", "2"], lines


def test_lists_help_and_search(bash):
    query = tool("db.query", {"sql": {"type": "string", "description": "one statement"}, "limit": "integer"}, ["sql"])
    result = bash("tool --list; echo; tool --search STATE; echo; tool --help db.query; tool --search zebra || echo $?",
                  [ECHO, query])
    assert result["stdout"] == """echo(value): does echo
db.query(sql, limit?): does db.query

db.query(sql, limit?): does db.query

db.query(sql, limit?)
does db.query
  sql: string - one statement
  limit?: integer
effect: write
1
""", result


def test_calls_work_in_every_part_of_the_shell(bash):
    result = bash("""set -eu -o pipefail
(cd /; tool echo value=subshell)
tool echo value=pipe | { read -r line; echo "got $line"; }
echo {1..3} | tr ' ' '\\n' | while read -r n; do tool math.add a:="$n" b:=10; done
trap 'tool echo value=trapped' EXIT
cat <(tool echo value=substituted)
printf '%s\\n' 1 2 | xargs -I{} tool echo value={}
cat >/tmp/child.sh <<'END'
tool echo value=child
END
bash /tmp/child.sh
if ! tool math.add a=no b:=1 2>/dev/null; then echo caught; fi
tool math.add a:=1 2>/dev/null
echo unreached""")
    assert result["stdout"].split() == ["subshell", "got", "pipe", "11", "12", "13", "substituted", "1", "2",
                                        "child", "caught", "trapped"], result
    assert (result["status"], result["exit_code"], result["error"]["line"]) == ("error", 1, 13), result["error"]


def test_jobs_of_the_background_call_at_once(bash, bridge):
    """All forty wait before one is answered; then they are answered in the opposite order."""
    waiting = []

    def late(call):
        waiting.append(call)
        if len(waiting) == 40:
            for one in reversed(waiting):
                bridge.say(one["call"], value=one["arguments"]["value"])
        raise Silent
    result = bash("for i in {1..40}; do tool echo value=$i >/tmp/$i & done; wait\n"
                  "for i in {1..40}; do [[ $(</tmp/$i) == $i ]] || echo wrong $i; done",
                  [tool("echo", {"value": {}}, caps={"at_once": 64})], late, limits={"pids": 200, "timeout_s": 60})
    assert result["stdout"] == "" and result["status"] == "ok" and len(result["calls"]) == 40, result


def test_more_calls_than_may_wait_are_kept_back(bash):
    result = bash("for i in {1..150}; do tool echo value:=$i & done | sort -n | md5sum; seq 150 | md5sum",
                  limits={"timeout_s": 60, "pids": 400})
    one, other = result["stdout"].splitlines()
    assert one == other and result["calls_refused"] == 0, result


def test_a_thousand_calls_of_a_loop(bash):
    result = bash("for i in {1..1000}; do tool math.add a:=$i b:=0; done | md5sum; seq 1000 | md5sum",
                  limits={"timeout_s": 120, "cpu_s": 120})
    one, other = result["stdout"].splitlines()
    assert one == other and len(result["calls"]) == 1000, result


def test_long_arguments_and_values_arrive_whole(bash, bridge):
    """Arguments beyond a pipe's atomic write, beside commands that fail and so write to the channel, too."""
    result = bash("""printf -v text 'é%.0s' {1..150000}
for i in {1..200}; do false; done &
for i in 1 2 3; do printf '{"value": "%s"}' "$text" | tool echo - | md5sum; done | sort -u | wc -l
printf '{"value": "%s"}' "$text" | tool echo - | cmp - <(echo "$text") && echo same
tool large bytes:=8000000 | wc -c
head -c 1100000 /dev/zero | tr '\\0' x | tool echo - ; echo $?
wait""", answer=answer, limits={"timeout_s": 60, "memory_bytes": 500 << 20})
    assert result["stdout"].split() == ["1", "same", "8000001", "2"], result
    assert result["stderr"] == "tool: echo: the arguments have more than 1048576 bytes\n"
    assert {call["arguments"]["value"] for call in bridge.calls() if call["tool"] == "echo"} == {"é" * 150000}


def test_files_of_an_answer_lie_in_the_box(bash):
    files = [{"name": "../a.txt", "mime": "text/plain", "base64": "aGVsbG8K"},
             {"name": "a.txt", "mime": "text/plain", "base64": "d29ybGQ="},
             {"name": ".bashrc", "mime": "x/y", "base64": ""}]
    for value, first in (({"n": 3}, ['{"n":3}']), (None, [])):
        result = bash("out=$(tool echo value:=1); echo \"$out\"; cat $(tail -n 3 <<<\"$out\")",
                      answer=lambda call: {"value": value, "files": files})
        lines = result["stdout"].splitlines()
        assert lines[:len(first)] == first and lines[-2:] == ["hello", "world"], result
        paths = lines[len(first):-2]
        assert [path.rpartition("/")[2] for path in paths] == ["a.txt", "2-a.txt", "file3"], paths
        assert all(path.startswith("/tmp/tool-") for path in paths) and result["artifacts"] == []


def test_without_tools_the_name_is_the_code_s_own(bash, bridge):
    result = bridge.run("tool() { echo mine; }; tool; unset -f tool; type tool; echo $PATH", None, language="bash")
    assert result["stdout"] == "mine\n/usr/bin:/bin\n" and "not found" in result["stderr"], result


@pytest.mark.parametrize("cold", [{"seed": 5}, {"env": {"UID": "7"}}], ids=["a seed", "an environment"])
def test_a_bash_that_did_not_wait_has_tools(bash, cold):
    result = bash("tool math.add a:=1 b:=2; tool --list | wc -l; echo \"$1\"", args=["arg"], **cold)
    assert result["stdout"] == "3\n5\narg\n", result


# ---- cells ----
def test_cells_call_and_a_cell_may_have_none(cells):
    assert stdout(cells, "x=$(tool echo value=6); echo $x") == "6\n"
    assert stdout(cells, "tool math.add a:=$x b:=1") == "7\n"
    result = cells.cell("type tool; /usr/lib/cupel/tool echo value=1; echo $PATH", tools=[])
    assert result["stdout"] == "/usr/bin:/bin\n", result
    assert result["stderr"].splitlines()[-1] == "tool: echo: the cell that had this tool is over", result
    assert stdout(cells, "y=2; tool echo value=8", tools=[ECHO]) == "8\n"
    assert sorted(one["name"] for one in cells.ask("info", names=True)["session"]["names"]) == ["x", "y"]


def test_a_function_of_that_name_stays_the_code_s_own(cells):
    stdout(cells, "tool() { echo mine; }", tools=[])
    assert stdout(cells, "tool; command tool echo value=theirs") == "mine\ntheirs\n"
    assert stdout(cells, "tool", tools=[]) == "mine\n"


def test_an_interrupt_ends_the_call_and_the_session_goes_on(cells):
    def interrupting(call):
        cells.client.send({"op": "interrupt", "id": cells.id})
        raise Silent
    stdout(cells, "x=6")
    result = cells.cell("tool never; echo unreached", interrupting)
    assert (result["status"], result["state"], result["stdout"]) == ("interrupted", "kept", ""), result
    assert result["calls"][0]["outcome"]["error"]["kind"] == "cancelled"
    assert stdout(cells, "tool echo value=$x") == "6\n"


def test_the_end_of_a_cell_takes_back_what_waits(cells):
    result = cells.cell("for i in 1 2 3; do tool never 2>>/tmp/said & done\nsleep 0.5; tool echo value=5", answer)
    assert result["stdout"] == "5\n" and len(result["calls"]) == 4, result
    assert sorted(one["outcome"].get("error", {}).get("kind", "") for one in result["calls"]) == [
        "", "cancelled", "cancelled", "cancelled"]
    assert stdout(cells, "wait; sort -u /tmp/said; tool echo value=6") == (
        "tool: never: the code did not wait for the answer\n6\n")


def test_a_call_that_begins_after_its_cell_reaches_nobody(cells):
    assert stdout(cells, "(sleep 0.3; tool echo value=late >/tmp/late 2>&1) & tool echo value=1") == "1\n"
    time.sleep(1)
    result = cells.cell("tool echo value=2; cat /tmp/late", answer)
    assert result["stdout"] == "2\ntool: echo: the cell that had this tool is over\n", result
    assert [one["arguments"] for one in result["calls"]] == [{"value": "2"}], result


def test_a_large_answer_on_its_way_at_the_end_of_a_cell_is_dropped(cells):
    calls = []

    def both(call):
        calls.append(call["call"])
        if call["tool"] == "echo":
            cells.say(calls[-1], value=5)
            cells.say(calls[-2], value="x" * (8 << 20))
    for _ in range(3):
        assert stdout(cells, "tool large bytes:=1 >/dev/null 2>&1 & sleep 0.3; tool echo value:=5", both) == "5\n"
        assert stdout(cells, "tool echo value:=6") == "6\n"


def test_undo_rollback_and_a_deadline_leave_the_session_usable(cells):
    stdout(cells, "x=$(tool echo value=1)")
    cells.wait_until_idle()
    stdout(cells, "x=$(tool echo value=2)")
    cells.wait_until_idle()
    if not cells.info()["unprotected"]:
        cells.ask("undo")
        assert stdout(cells, "echo $x; tool echo value=3") == "1\n3\n"
        cells.wait_until_idle()
        result = cells.cell("x=$(tool echo value=5); false", answer, on_error="rollback")
        if result["state"] == "rolled_back":
            assert [one["tool"] for one in result["calls"]] == ["echo"]
            assert stdout(cells, "echo $x; tool echo value=4") == "1\n4\n"
    result = cells.cell("tool never", answer, limits={"timeout_s": 0.5})
    assert result["status"] == "timeout", result
    assert stdout(cells, "tool echo value=7") == "7\n"


# ---- hostile ----
def test_kill_9_of_a_caller_costs_no_other_call_its_answer(bash, bridge):
    """Callers of large answers die at any moment, also while they read for others."""
    result = bash("""for i in {1..30}; do
    tool large bytes:=3000000 >/dev/null & large=$!
    tool large bytes:=2000000 >/tmp/other & other=$!
    sleep 0.0$((i % 7)); kill -9 $large; pkill -9 -P $large -x tool
    wait $other && [[ $(wc -c </tmp/other) == 2000001 ]] || echo "lost $i"
    [[ $(tool echo value=$i) == $i ]] || echo "wrong $i"
done 2>/dev/null
timeout 0.2 tool never; echo $?; timeout -s KILL 0.2 tool never; echo $?
tool large bytes:=2000000 | head -c 3; echo; tool echo value=end""",
                  limits={"timeout_s": 100, "cpu_s": 100, "memory_bytes": 500 << 20})
    assert result["stdout"].split() == ["124", "137", "xyx", "end"], result


def test_callers_that_died_do_not_use_up_the_calls_that_may_wait(bash):
    result = bash("""for i in {1..140}; do tool never & pids+=($!); done 2>/dev/null
sleep 1; pkill -9 -x tool; wait 2>/dev/null; tool echo value=still""",
                  [ECHO, tool("never", caps={"at_once": 64})], limits={"timeout_s": 60, "pids": 400})
    assert result["stdout"] == "still\n", result


def test_forged_answers_and_floods_harm_only_their_own_run(bash, bridge):
    result = bash("""exec 2>/dev/null
printf '\\x1e{"op":"call","number":5,"tool":"nothing","args":{}}\\n' >&250
printf '\\x1e{"op":"part","number":6,"text":"%s"}\\n' {1..3} >&250
printf '\\x1e{"op":"cancel","number":0}\\n%.0s' {1..300} >&250
printf '\\x1e1 value "forged"\\n' >/proc/self/fd/251
echo garbage >/dev/shm/.cupel-calls
tool echo value=1; echo done""", limits={"timeout_s": 10})
    assert result["status"] in ("ok", "timeout"), result
    assert Bridge(bridge.client).run("tool echo value=2", language="bash")["stdout"] == "2\n"


def test_code_that_closes_the_channel_or_removes_the_state_harms_itself(cells, client):
    result = cells.cell("(exec 250>&- 251<&-; tool echo value=1); tool echo value=2", answer)
    assert result["stdout"] == "2\n" and "the channel to cupel is not open here" in result["stderr"], result
    result = cells.cell("rm -f /dev/shm/.cupel-*; tool echo value=1; echo $?", answer)
    assert result["stdout"] == "1\n" and "no tools" in result["stderr"], result
    assert stdout(cells, "tool echo value=3") == "3\n"
    result = cells.cell("tool never & sleep 0.3; rm -f /dev/shm/.cupel-*; mkfifo /dev/shm/.cupel-calls", answer,
                        limits={"timeout_s": 5})
    assert result["status"] in ("ok", "error", "timeout", "killed"), result
    other = Cells(client, (ECHO,), language="bash")
    assert stdout(other, "tool echo value=4") == "4\n"
    other.end()


def test_names_and_arguments_are_never_code(bash, bridge):
    odd = "$(touch /tmp/x) `id` \"'\\ \n\t\x01é😀"
    result = bash("tool echo value=\"$1\"; tool \"$1\" a=b; ls /tmp/x; tool echo '{\"value\": \"\\u0000\"}'; echo $?",
                  args=[odd])
    assert bridge.calls()[0]["arguments"]["value"] == odd
    assert result["stdout"].startswith(odd + "\n") and "No such file" in result["stderr"], result


def test_descriptions_that_attack_the_list_are_text(bash):
    nasty = tool("nasty", {"p\x1e\x1f": {"type": "string", "description": "a\x1eb\nc"}}, [],
                 description="x\x1e\x1f\x1b[31m $(touch /tmp/x)\nsecond\x1eline")
    result = bash("tool --list; tool --help nasty | cat -v; tool nasty; ls /tmp/x", [nasty, ECHO],
                  lambda call: {"value": "\x1e\x1b\x00".replace("\x00", "")})
    assert result["stdout"].splitlines()[:2] == ["nasty(p?): x[31m $(touch /tmp/x)", "echo(value): does echo"], result
    assert "\x1e\x1b\n" in result["stdout"] and "No such file" in result["stderr"]


def test_r_and_java_are_refused_by_name(bridge):
    for language in ("r", "java"):
        with pytest.raises(helper.Refused) as refused:
            bridge.run("1", [ECHO], language=language)
        assert refused.value.error["field"] == "tools" and language in str(refused.value)
