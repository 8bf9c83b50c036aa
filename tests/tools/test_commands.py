"""Tool files with a command: calls, refusals, time, output, and what is left behind."""
import json
import os
import shutil
import signal
import time

import pytest

from host import descendants, reap_orphans, wait_until
from tool_files import SECRET, Tools


@pytest.fixture
def tools(cupel_as, place):
    return Tools(cupel_as, place)


def running(word):
    """The processes with that word in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                if word.encode() in line.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def test_a_tool_gets_its_arguments_as_json_and_gives_json(tools):
    tools.tool("echo", "cat")
    given = {"text": "ä\n\u2028\"", "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}}
    assert tools.value("echo", given) == given
    assert tools.value("echo") == {}


def test_nothing_written_is_null_and_text_is_taken_where_the_file_says_so(tools):
    tools.tool("quiet", "true")
    tools.tool("text", "printf 'no {json'", output="text")
    tools.tool("bytes", r"printf 'a\377b'", output="text")
    assert tools.value("quiet") is None
    assert tools.value("text") == "no {json"
    assert tools.value("bytes") == "a\ufffdb"


def test_arguments_that_do_not_fit_the_schema_are_refused_before_anything_runs(tools):
    mark = tools.root / "ran"
    tools.tool("limited", f"touch {mark}", input_schema={
        "type": "object", "properties": {"limit": {"type": "integer", "maximum": 100}},
        "required": ["limit"], "additionalProperties": False})
    error = tools.refusal("limited", {"limit": 500})
    assert (error["field"], error["value"], error["bound"]) == ("limit", 500, "at most 100")
    assert error["message"] == "'limit' is 500, at most 100"
    assert tools.refusal("limited")["message"] == "'limit' is missing, required"
    assert "'x' is 1, not a property; known: limit" in tools.refusal("limited", {"limit": 1, "x": 1})["message"]
    assert not mark.exists()


def test_a_result_that_does_not_fit_its_schema_is_an_error(tools):
    tools.tool("rows", "echo '[{\"n\":1},{\"n\":\"two\"}]'", output_schema={
        "type": "array", "items": {"properties": {"n": {"type": "integer"}}}})
    assert tools.error("rows") == ("the result of tool 'rows' does not fit its output schema: "
                                   "'[1].n' is \"two\", must be an integer")


def test_output_that_is_no_json_is_an_error_that_names_the_way_out(tools):
    tools.tool("odd", "echo hello")
    tools.tool("two", "echo '1 2'")
    tools.tool("deep", "printf '%0100d' 0 | tr 0 '['; printf '%0100d' 0 | tr 0 ']'")
    assert tools.error("odd") == ("tool 'odd' wrote 6 bytes that are not one JSON text; \"output\": \"text\" in its "
                                  "file takes them as a text")
    assert "not one JSON text" in tools.error("two")
    assert "not one JSON text" in tools.error("deep")


def test_a_result_deeper_than_frames_is_an_error_and_the_host_lives(tools):
    tools.tool("deep", "printf '%060d' 0 | tr 0 '['; printf '%060d' 0 | tr 0 ']'")
    assert tools.error("deep") == "the result of tool 'deep' is nested more than 56 deep"


def test_an_exit_code_and_a_signal_are_errors_with_the_end_of_stderr(tools):
    tools.tool("fails", "seq 100000 >&2; echo why >&2; echo 1; exit 3")
    tools.tool("killed", "kill -SEGV $$")
    said = tools.error("fails")
    assert said.startswith("tool 'fails' ended with exit code 3: ") and said.endswith("99999\n100000\nwhy")
    assert len(said) < 900
    assert tools.error("killed") == "tool 'killed' was ended by signal 11 (Segmentation fault)"


def test_a_program_that_cannot_start_says_why(tools):
    tools.tool("absent", command=["/nonexistent/program"])
    tools.tool("folder", command=["sh", "-c", "pwd"], cwd="/nonexistent")
    assert tools.error("absent") == ("tool 'absent': its program '/nonexistent/program' was not started: "
                                     "No such file or directory")
    assert "was not started: No such file or directory" in tools.error("folder")


@pytest.mark.parametrize("spawn", ["sleep 9871", "setsid sleep 9871 & setsid sleep 9871 & sleep 9871",
                                   "(trap '' TERM HUP INT; setsid sh -c 'sleep 9871; true') & wait"],
                         ids=["one", "sessions", "signals"])
def test_a_late_tool_is_ended_with_all_that_it_started(tools, spawn):
    tools.tool("late", spawn, caps={"timeout_s": 0.4})
    code, outcome = tools.call("late")
    assert code == 124
    assert outcome == {"error": {"kind": "timeout", "message": "tool 'late' took longer than 0.4 s, and was ended"}}
    assert not running("9871")


def test_the_callers_time_counts_where_it_is_shorter(tools):
    tools.tool("late", "sleep 9872")
    assert tools.call("late", {}, "--timeout", "0.3")[1]["error"]["message"] == (
        "tool 'late' took longer than 0.3 s, and was ended")


def test_what_a_tool_leaves_in_the_background_ends_with_it(tools):
    tools.tool("leaves", "setsid sleep 9873 >/dev/null 2>&1 & sleep 9873 & echo 5")
    assert tools.value("leaves") == 5
    assert not running("9873")


def test_too_much_output_ends_the_tool(tools):
    tools.tool("flood", "yes", caps={"result_bytes": 100000})
    tools.tool("notes", "head -c 50000000 /dev/zero | tr '\\0' x >&2; echo 1")
    tools.tool("grows", "head -c 900 /dev/zero", output="text", caps={"result_bytes": 1000})
    assert tools.error("flood") == "tool 'flood' wrote more than 100000 bytes (result_bytes), and was ended"
    assert tools.value("notes") == 1
    assert "as JSON; the maximum is 1000 (result_bytes)" in tools.error("grows")


def test_a_flood_of_notes_does_not_outlast_the_time(tools):
    tools.tool("notes", "yes >&2 & yes >&2", caps={"timeout_s": 1})
    code, outcome = tools.call("notes", timeout=60)
    assert code == 124 and outcome["error"]["kind"] == "timeout"


def test_the_environment_is_its_own_and_the_descriptors_are_closed(tools):
    tools.tool("env", "env", output="text", env={"MODE": "x=y"})
    tools.tool("fds", "ls /proc/self/fd", output="text")
    tools.tool("place", command=["sh", "-c", "pwd"], cwd=str(tools.root), output="text")
    done = tools.run("call", "env", env={"HARM": "from-outside", "LC_ALL": "C"})
    lines = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert set(lines) - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "HOME", "LANG", "MODE"}
    assert lines["MODE"] == "x=y"
    assert tools.value("fds").split() == ["0", "1", "2", "3"]  # the last one is ls's own
    assert tools.value("place").strip() == str(tools.root)


def test_a_program_beside_its_file_is_found_from_any_folder(tools):
    path = tools.write("prog", "#!/bin/sh\necho '\"here\"'\n", mode=0o755)
    tools.tool("near", command=["./" + path.name])
    assert tools.value("near") == "here"
    done = tools.cupel.run(["tools", "call", "--tools-dir", "tools", "--json", "near"], cwd=tools.root)
    assert json.loads(done.stdout) == {"value": "here"}


def test_limits_hold(tools):
    tools.tool("files", "ulimit -n", limits={"open_files": 20})
    tools.tool("large", "head -c 5000 /dev/zero >/dev/shm/cupel-tool-$$; r=$?; stat -c %s /dev/shm/cupel-tool-$$; "
                        "rm /dev/shm/cupel-tool-$$", limits={"file_bytes": 1000})
    tools.tool("cpu", "while :; do :; done", limits={"cpu_s": 1})
    assert tools.value("files") == 20
    assert tools.value("large") == 1000
    assert "was ended by signal" in tools.error("cpu")


def test_tools_run_as_the_caller(tools):
    tools.tool("me", "id -u")
    assert tools.value("me") == tools.cupel.uid


def test_a_policy_of_ask_needs_yes_and_deny_is_final(tools):
    rule = [{"when": {"path": "/etc/*"}, "then": "deny"}, "allow"]
    takes_path = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools.tool("writes", "echo 1", effect="write")
    tools.tool("ruled", "echo 2", effect="write", policy=rule, input_schema=takes_path)
    error = tools.refusal("writes")
    assert error["kind"] == "forbidden" and "--yes" in error["hint"]
    assert tools.value("writes", {}, "--yes") == 1
    assert tools.value("ruled", {"path": "/tmp/x"}) == 2
    assert tools.refusal("ruled", {"path": "/etc/x"}, "--yes")["message"] == "the policy of 'ruled' denies this call"


def test_the_list_shows_effect_policy_and_source(tools):
    tools.tool("db.query", "cat", description="Query.", input_schema={
        "type": "object", "properties": {"limit": {"type": "integer", "default": 10}, "sql": {"type": "string"}},
        "required": ["sql"]}, output_schema={"type": "array"}, policy=[{"when": {"sql": "DROP*"}, "then": "deny"}])
    tools.tool("send", "cat", effect="irreversible")
    listed = tools.run("ls").stdout.splitlines()
    assert listed[0].split() == ["NAME", "EFFECT", "POLICY", "SOURCE"]
    assert listed[1].split() == ["db.query", "read", "rules", "command", str(tools.folder / "db.query.json")]
    assert listed[2].split()[:3] == ["send", "irreversible", "ask"]
    shown = tools.run("show", "db.query").stdout
    assert shown.startswith("db.query(sql: str, limit: int = 10) -> list\n\nQuery.\n")
    assert json.loads(tools.run("show", "--json", "db.query").stdout)["policy"]
    assert [one["name"] for one in json.loads(tools.run("ls", "--json").stdout)["tools"]] == ["db.query", "send"]
    done = tools.run("show", "nosuch")
    assert done.returncode == 2 and "there is no tool 'nosuch'" in done.stderr


def test_a_hostile_result_does_not_reach_the_terminal(tools):
    tools.tool("paints", r"printf '\033[2Jx\u202ey'", output="text", description="a\u001b[2Jb")
    for done in (tools.run("call", "paints"), tools.run("show", "paints"), tools.run("ls")):
        assert done.returncode == 0 and "\x1b" not in done.stdout and "\u202e" not in done.stdout


# ---- secrets ----

def test_a_secret_reaches_the_program_and_nothing_else(tools):
    tools.secret(KEY=SECRET, OTHER="another-secret")
    tools.tool("uses", "test \"$TOKEN\" = \"Bearer %s\" && echo true" % SECRET, env={"TOKEN": "Bearer ${secret:KEY}"})
    tools.tool("tells", "echo \"$TOKEN\"; echo \"$TOKEN\" >&2", env={"TOKEN": "${secret:KEY}"}, output="text")
    tools.tool("fails", "echo \"not with $TOKEN\" >&2; exit 1", env={"TOKEN": "${secret:KEY}"})
    tools.tool("odd", "echo \"$TOKEN\"", env={"TOKEN": "${secret:KEY}"})
    tools.tool("keyed", "echo \"{\\\"$TOKEN\\\": [\\\"a$TOKEN\\\"]}\"", env={"TOKEN": "${secret:KEY}"})
    tools.tool("schema", "echo \"[\\\"$TOKEN\\\"]\"", env={"TOKEN": "${secret:KEY}"},
               output_schema={"type": "object"})
    assert tools.value("uses") is True
    assert tools.value("tells") == "[secret KEY]\n"
    assert tools.error("fails") == "tool 'fails' ended with exit code 1: not with [secret KEY]"
    assert tools.value("keyed") == {"[secret KEY]": ["a[secret KEY]"]}
    said = [tools.run(*line) for line in (
        ["ls"], ["ls", "--json"], ["check"], ["check", "--json"], ["show", "tells"], ["show", "--json", "uses"],
        ["call", "tells"], ["call", "fails"], ["call", "odd"], ["call", "--json", "odd"], ["call", "schema"])]
    assert not [done.args for done in said if SECRET in done.stdout + done.stderr]


def test_a_secret_is_in_no_other_process_and_in_no_command_line(tools):
    """While the tool runs: its environment is its own alone."""
    tools.secret(KEY=SECRET)
    tools.tool("waits", "touch ready; sleep 9874", env={"TOKEN": "${secret:KEY}"}, cwd=str(tools.root))
    child = tools.cupel.popen(["tools", "call", *tools.options(), "waits"])
    try:
        assert wait_until((tools.root / "ready").exists, 20)
        below = [row["pid"] for row in descendants(child.pid)]
        assert len(below) >= 4, "guard, host, minder, program"
        program = set(running("9874"))
        for pid in [child.pid, *below]:
            for name in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{name}", "rb") as text:
                    found = SECRET.encode() in text.read()
                assert found == (name == "environ" and pid in program), (pid, name)
    finally:
        child.kill()
        child.communicate()
    assert wait_until(lambda: not running("9874"), 20)


@pytest.mark.parametrize("content, mode, reason", [
    ('{"KEY": "long enough"}', 0o644, "other users may open it (mode 644)"),
    ('{"KEY": "short"}', 0o600, "secret 'KEY' must be a text of 6 to 4096 bytes"),
    ('{"1KEY": "long enough"}', 0o600, "a name of a secret must be"),
    ('{"KEY": "long enough",}', 0o600, "it does not hold one JSON object"),
    ('["long enough"]', 0o600, "it does not hold one JSON object"),
], ids=["open", "short", "name", "cut", "list"])
def test_a_bad_secrets_file_is_a_fault_that_repeats_nothing_of_it(tools, content, mode, reason):
    tools.secrets.write_text(content)
    tools.own(tools.secrets, mode)
    tools.tool("uses", "echo 1", env={"A": "${secret:KEY}"})
    tools.tool("needs", "echo 1")
    first, second = tools.faults()
    assert first["message"].startswith(f"secrets file '{tools.secrets}': ") and reason in first["message"]
    assert second["message"] == "env.A: the secrets file has no secret 'KEY'"
    assert "long enough" not in json.dumps([first, second])
    assert tools.value("needs") == 1


def test_a_secret_in_a_command_line_is_refused(tools):
    tools.secret(KEY=SECRET)
    tools.tool("leaks", command=["curl", "-H", "Authorization: ${secret:KEY}"])
    fault = tools.fault()
    assert fault["field"] == "command" and "without secrets" in fault["message"] and "env" in fault["hint"]


# ---- files ----

BASE = {"name": "t", "description": "d", "input_schema": {"type": "object"}, "command": ["true"]}


@pytest.mark.parametrize("change, field, message", [
    ({"command": "true"}, "command", "field 'command' is \"true\", must be a list of a program and its arguments"),
    ({"command": []}, "command", "field 'command' is [], must be a list of a program and its arguments"),
    ({"command": ["a", 1]}, "command", "field 'command' is [\"a\",1], must be a list of texts"),
    ({"command": None}, "command", "it has no field 'command' or 'http' or 'openapi' or 'mcpServers'"),
    ({"env": {"A": 1}}, "env", "field 'env' is {\"A\":1}, must be an object of names and texts"),
    ({"env": {"A=B": "x"}}, "env", "field 'env' is {\"A=B\":\"x\"}, must be an object of names and texts"),
    ({"env": {"A": "${secret:}"}}, None, "env.A: '${secret:}' has no whole ${secret:NAME}"),
    ({"cwd": ""}, "cwd", "field 'cwd' is \"\", must be the path of a folder"),
    ({"output": "xml"}, "output", "field 'output' is \"xml\", must be \"json\" or \"text\""),
    ({"limits": {"cpu": 1}}, "limits", "field 'limits' is {\"cpu\":1}, must be an object of memory_bytes, cpu_s, "
                                       "open_files, file_bytes"),
    ({"limits": {"cpu_s": 0}}, "limits", "field 'limits' is {\"cpu_s\":0}, must be whole numbers of 1 or more"),
    ({"outptu": "text"}, "outptu", "unknown field 'outptu' in the definition of a tool"),
    ({"caps": {"timeout_s": 0}}, "caps.timeout_s", "field 'caps.timeout_s' is 0, must be a number from 0.01 to 3600"),
    ({"input_schema": {"type": "object", "properties": {"q": {"pattern": "x"}}}}, "input_schema/properties/q/pattern",
     "input_schema: keyword 'pattern' at '/properties/q/pattern' of the schema is not supported"),
], ids=[str(number) for number in range(14)])
def test_a_bad_file_is_named_with_field_and_bound(tools, change, field, message):
    whole = {key: value for key, value in {**BASE, **change}.items() if value is not None}
    path = tools.write("t.json", whole)
    fault = tools.fault()
    assert fault["message"] == message and fault.get("field") in (field, None if field is None else field)
    assert str(path) in fault["source"]
    shown = tools.run("check")
    assert shown.returncode == 1 and f"bad  {fault['source']}: " in shown.stdout and "0 good, 1 bad" in shown.stdout


@pytest.mark.parametrize("content, message", [
    ("{", "not JSON at line 1 column 1: "), ("[]", "it does not hold a JSON object"),
    ('{"name": "a", "name": "b"}', "duplicate key 'name' at line 1"),
    (" " * (1 << 20) + "{} ", "it has more than 1048576 bytes"), ("", "not JSON at line 1 column 0: "),
    ("[" * 100, "the JSON text is nested 100 deep"),
], ids=["cut", "list", "twice", "long", "empty", "deep"])
def test_a_file_that_is_no_tool_is_a_fault_beside_the_others(tools, content, message):
    tools.write("bad.json", content)
    tools.tool("good", "echo 1")
    assert tools.fault()["message"].startswith(message)
    assert tools.value("good") == 1
    assert "1 is left out: 'cupel tools check' says why" in tools.run("ls").stderr


def test_a_file_that_others_may_write_is_refused(tools):
    for mode in (0o664, 0o646, 0o666):
        tools.write("t.json", BASE, mode)
        fault = tools.fault()
        assert fault["message"] == f"other users may write it (mode {mode:o})"
        assert fault["hint"] == "close it: chmod go-w"
    tools.write("t.json", BASE, 0o600)
    assert tools.faults() == []


def test_a_folder_that_others_may_write_is_refused(tools):
    tools.tool("good", "echo 1")
    tools.folder.chmod(0o777)
    fault = tools.fault()
    assert fault["source"] == str(tools.folder) and fault["message"] == "other users may write in it (mode 777)"
    assert tools.refusal("good")["message"] == "there is no tool 'good'"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_refused(tools):
    path = tools.write("t.json", BASE)
    os.chown(path, 54321, 54321)
    assert tools.fault()["message"] == "it belongs to another user (uid 54321)"
    os.chown(path, 0, 0)
    assert tools.faults() == []


def test_symbolic_links_pipes_and_folders_are_refused_and_other_names_are_not_read(tools):
    elsewhere = tools.root / "elsewhere.json"
    elsewhere.write_text(json.dumps(BASE))
    (tools.folder / "link.json").symlink_to(elsewhere)
    os.mkfifo(tools.folder / "pipe.json")
    (tools.folder / "sub.json").mkdir()
    tools.write("notes.txt", "no tool")
    tools.write(".hidden.json", "{")
    said = {os.path.basename(fault["source"]): fault["message"] for fault in tools.faults()}
    assert said == {"link.json": "it is a symbolic link", "pipe.json": "it is not a regular file",
                    "sub.json": "it is not a regular file"}


def test_the_second_tool_of_a_name_is_refused(tools):
    tools.write("a.json", {**BASE, "name": "same"})
    tools.write("b.json", {**BASE, "name": "same"})
    assert tools.fault()["message"] == f"the name 'same' is taken by command {tools.folder}/a.json"


def test_more_files_than_the_maximum_are_a_fault_beside_the_first_ones(tools):
    for number in range(1026):
        tools.write(f"t{number:04}.json", {**BASE, "name": f"t{number}"})
    fault = tools.fault()
    assert fault["source"] == str(tools.folder)
    assert fault["message"] == "it has 1026 tool files; the maximum is 1024"
    assert len(json.loads(tools.run("ls", "--json").stdout)["tools"]) == 1024


def test_without_a_folder_there_is_no_tool(tools):
    shutil.rmtree(tools.folder)
    done = tools.run("ls")
    assert done.returncode == 0 and done.stdout == "" and "there is no tool yet" in done.stderr
    assert tools.faults() == []


def test_the_default_folder_is_below_the_configuration(cupel_as, place):
    if cupel_as.uid == 0:
        pytest.skip("root's folder is /etc/cupel")
    tools = Tools(cupel_as, place)
    tools.tool("near", "echo 1")
    config = tools.root / "cupel"
    config.mkdir()
    tools.own(config, 0o755)
    tools.folder.rename(config / "tools")
    done = cupel_as.run(["tools", "ls", "--json"], env={"XDG_CONFIG_HOME": str(tools.root)})
    assert [one["name"] for one in json.loads(done.stdout)["tools"]] == ["near"]


# ---- death ----

def are_gone(pids):
    reap_orphans()
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def started(tools, name):
    child = tools.cupel.popen(["tools", "call", *tools.options(), name])
    assert wait_until((tools.root / "ready").exists, 20)
    guard, = [row for row in descendants(child.pid) if row["parent"] == child.pid]
    below = descendants(guard["pid"])
    host = next(row for row in below if row["parent"] == guard["pid"])
    return child, {"cupel": child.pid, "guard": guard["pid"], "host": host["pid"],
                   "minder": max(row["pid"] for row in below if row["parent"] == guard["pid"])}


@pytest.mark.parametrize("victim", ["cupel", "guard", "host", "minder"])
def test_whichever_process_is_killed_nothing_is_left(tools, victim):
    word = f"98{['cupel', 'guard', 'host', 'minder'].index(victim)}75"
    tools.tool("waits", f"setsid sleep {word} & (sleep {word} &) ; touch ready; sleep {word}", cwd=str(tools.root))
    child, pids = started(tools, "waits")
    assert len(set(pids.values())) == 4
    os.kill(pids[victim], signal.SIGKILL)
    said = child.communicate(timeout=60)[1].decode()
    assert child.returncode == (-signal.SIGKILL if victim == "cupel" else 1)
    if victim != "cupel":
        assert "was lost" in said or "died during the call" in said
    assert wait_until(lambda: not running(word), 20)
    assert wait_until(lambda: are_gone(pids.values()), 20)


def test_when_all_are_killed_at_once_the_program_ends_too(tools):
    tools.tool("waits", "touch ready; exec sleep 9878", cwd=str(tools.root))
    child, pids = started(tools, "waits")
    assert wait_until(lambda: running("9878"), 20), "the control: it runs"
    for pid in pids.values():
        os.kill(pid, signal.SIGSTOP)  # none has the time to end the program
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    child.communicate(timeout=60)
    assert wait_until(lambda: not running("9878"), 20)


def test_ctrl_c_ends_the_tool_too(tools):
    tools.tool("waits", "setsid sleep 9876 & touch ready; sleep 9876", cwd=str(tools.root))
    child, _ = started(tools, "waits")
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert wait_until(lambda: not running("9876"), 20)


def test_a_fork_bomb_of_a_tool_ends_with_its_time(tools):
    tools.tool("bomb", "for i in $(seq 100); do setsid sleep 9877 & done; wait", caps={"timeout_s": 2})
    began = time.monotonic()
    assert tools.call("bomb")[0] == 124
    assert time.monotonic() - began < 60
    assert not running("9877")
