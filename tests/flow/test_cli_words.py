"""What the command line says of limits and languages is in its own words, and can be typed."""
import json

import pytest

KEEP = "open('a', 'wb').write(bytes(6 << 20))"
MANY = "for i in range(70): open(f'{i}.txt', 'w').close()"


def said(cupel, *args, code=None):
    done = cupel.run(["run", "--cold", *args])
    assert code is None or done.returncode == code, (done.returncode, done.stderr)
    return done.stderr


def test_a_hint_names_the_flag_and_json_the_field(cupel_as):
    spin = ["-t", "1", "-c", "while True: pass"]
    text = said(cupel_as, *spin, code=124)
    assert "longer than -t allows, 1 s" in text and "set -t above 1" in text and "limits." not in text
    error = json.loads(cupel_as.run(["run", "--cold", "--json", *spin]).stdout)["error"]
    assert "limits.timeout_s" in error["message"] and "limits.timeout_s" in error["hint"]


def test_a_prompt_names_its_command(cupel_as):
    done = cupel_as.run(["repl", "-t", "1"], input="while True: pass\n")
    assert ":set timeout above 1" in done.stderr and "limits." not in done.stderr, done.stderr


def test_a_file_above_the_cap_says_what_takes_it(cupel_as, folder):
    """Under a profile that is named; without one it is shown and not copied: tests/flow/test_dir.py."""
    large = folder / "large.bin"
    with large.open("wb") as file:
        file.truncate(65 << 20)
    text = said(cupel_as, "-f", large, "--profile", "baseline", "-c", "pass", code=2)
    assert "--limit input_bytes" in text and "--profile analysis" in text, text
    code = "import os; print(os.path.getsize('large.bin'))"
    for more in (["--profile", "analysis"], ["--limit", "input_bytes=66M", "-m", "1G"]):
        done = cupel_as.run(["run", "--cold", "-f", large, *more, "-c", code])
        assert done.stdout == f"{65 << 20}\n", done.stderr


@pytest.mark.parametrize("code,limit", [(KEEP, "artifact_bytes=8M"), (MANY, "artifact_files=80")])
def test_a_skipped_file_is_told_with_the_flag_that_keeps_it(cupel_as, folder, code, limit):
    text = said(cupel_as, "-o", folder / "out", "-c", code, code=0)
    name = limit.split("=")[0]
    assert "skipped " in text and f"over --limit {name}" in text and f"--limit {name}=" in text, text
    text = said(cupel_as, "-o", folder / "out2", "--limit", limit, "-c", code, code=0)
    assert "skipped" not in text, text


@pytest.mark.parametrize("limit", ["artifact_byte=1", "artifact_bytes", "artifact_bytes=", "artifact_files=x",
                                   "pids=-1", "=1", ""])
def test_a_limit_that_is_none_is_refused(cupel_as, limit):
    text = said(cupel_as, "--limit", limit, "-c", "pass", code=2)
    assert "--limit" in text, text


def test_jsx_is_refused_and_never_run_as_python(cupel_as, folder):
    script = folder / "t.tsx"
    script.write_text("print(1)\n")
    for name in (script, "nothing.tsx"):
        text = said(cupel_as, name, code=2)
        assert "JSX" in text and "-l typescript" in text, text
    script.write_text("console.log(2)\n")
    assert cupel_as.run(["run", "--cold", "-l", "javascript", script]).stdout == "2\n"


def test_what_could_not_be_saved_is_not_called_saved(cupel_as, folder):
    folder.joinpath("out", "a.txt", "full").mkdir(parents=True)
    folder.joinpath("out").chmod(0o777)
    done = cupel_as.run(["run", "--cold", "-o", folder / "out", "-c",
                         "open('a.txt', 'w').write('1'); open('b.txt', 'w').write('2')"])
    assert done.returncode == 125 and "cupel: save 'a.txt'" in done.stderr, done.stderr
    assert "not saved" in done.stderr and done.stderr.count("saved") == 2, done.stderr
    assert (folder / "out/b.txt").read_text() == "2"
