"""Bash: checked before it runs, its exit code kept, its last failing line named."""
import pytest


def run(cupel, code, **fields):
    return cupel.run_json(code, "bash", **fields)


def test_a_script_is_checked_before_any_of_it_runs(cupel_as):
    result = run(cupel_as, "echo started\nif true; then\n  echo inside\n")
    assert result["status"] == "error" and result["error"]["kind"] == "syntax"
    assert result["stdout"] == "" and result["error"]["line"] >= 3 and result["error"]["message"]


def test_the_exit_code_and_the_line_of_the_last_failing_command(cupel_as):
    result = run(cupel_as, "echo a\n\nls /absent\n")
    assert result["status"] == "error" and result["exit_code"] == 2 and result["stdout"] == "a\n"
    assert result["error"]["kind"] == "exit" and result["error"]["line"] == 3, result["error"]
    assert "ls /absent" in result["error"]["snippet"]


@pytest.mark.parametrize("code,exit_code,line", [
    ("set -e\ntrue\nfalse\necho never", 1, 3), ("f() {\n  return 9\n}\nf", 9, None),
    ("true\n(exit 5)", 5, 2), ("exit 300", 300 % 256, None), ("nosuchcommand", 127, 1)])
def test_failures_of_many_kinds(cupel, code, exit_code, line):
    result = run(cupel, code)
    assert (result["status"], result["exit_code"]) == ("error", exit_code), result
    assert line is None or result["error"]["line"] == line, result["error"]
    assert "never" not in result["stdout"]


def test_a_command_that_fails_in_the_middle_is_not_the_end(cupel):
    result = run(cupel, "false\necho after")
    assert result["status"] == "ok" and result["stdout"] == "after\n" and result["error"] is None


def test_pipes_jobs_here_documents_and_arrays_work(cupel_as):
    code = "a=(x y z); echo ${#a[@]}\ncat <<E | tr a-z A-Z\nhere\nE\nsleep 0.1 & wait; echo $?\n" \
           "diff <(echo 1) <(echo 1) && echo same\nprintf '%s\\n' $((6*7))"
    assert run(cupel_as, code)["stdout"].split() == ["3", "HERE", "0", "same", "42"]


def test_the_usual_tools_are_there(cupel):
    code = "for t in awk sed grep sort tar gzip find xargs python3 node perl; do command -v $t >/dev/null " \
           "|| echo missing $t; done; echo 'b,2\na,1' | sort | awk -F, '{s+=$2} END {print s}'"
    assert run(cupel, code)["stdout"] == "3\n"


def test_dollar_at_and_zero_and_stdin(cupel):
    result = run(cupel, 'echo "$#:$1:$2"; read -r line; echo "$line"', args=["a b", "c"], stdin="in\n")
    assert result["stdout"] == "2:a b:c\nin\n"


def test_output_of_traps_at_exit_is_kept(cupel):
    assert run(cupel, "trap 'echo bye' EXIT\necho hi")["stdout"] == "hi\nbye\n"
    result = run(cupel, "trap 'echo cleaned' EXIT\nexit 4")
    assert result["stdout"] == "cleaned\n" and result["exit_code"] == 4


def test_unicode_and_odd_quotes_pass_unharmed(cupel):
    assert run(cupel, "echo '日本 \"$x\" \\n'; echo \"it's\"")["stdout"] == "日本 \"$x\" \\n\nit's\n"


def test_streams_by_name(cupel_as):
    result = run(cupel_as, "echo a > /dev/stdout; echo b > /dev/stderr; echo c >&2")
    assert result["stdout"] == "a\n" and result["stderr"].splitlines() == ["b", "c"]
