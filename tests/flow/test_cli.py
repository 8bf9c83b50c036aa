"""The command line: ways in, what is shown, exit codes, help."""
import json
import os
import pty
import re
import subprocess

import pytest

COMMANDS = ["run", "doctor", "languages", "images"]


def test_code_a_script_and_standard_input_are_ways_in(cupel_as, folder):
    script = folder / "script.py"
    script.write_text("import sys\nprint('script', sys.argv[1:])\n")
    assert cupel_as.run(["run", "print(1+1)"]).stdout == "2\n"
    assert cupel_as.run(["run", script, "a", "b"]).stdout == "script ['a', 'b']\n"
    assert cupel_as.run(["run", "-"], input="print('from stdin')").stdout == "from stdin\n"
    assert cupel_as.run(["run", "-c", "import sys; print(sys.argv[1:])", "x"]).stdout == "['x']\n"


@pytest.mark.parametrize("name,code", [("a.js", "console.log(1)"), ("a.mjs", "console.log(1)"),
                                       ("a.sh", "echo 1"), ("a.py", "print(1)")])
def test_the_language_is_told_by_the_ending(cupel, folder, name, code):
    (folder / name).write_text(code)
    assert cupel.run(["run", folder / name]).stdout == "1\n"


@pytest.mark.parametrize("language,code", [("js", "console.log(1)"), ("bash", "echo 1"),
                                           ("python", "print(1)")])
def test_the_language_can_be_given(cupel, language, code):
    assert cupel.run(["run", "-l", language, code]).stdout == "1\n"
    assert cupel.run(["run", f"--language={language}", code]).stdout == "1\n"


def test_a_last_value_is_shown(cupel):
    assert cupel.run(["run", "6 * 7"]).stdout == "42\n"


def test_an_error_is_shown_as_a_person_would_like_it(cupel):
    done = cupel.run(["run", "-c", "x = 1\nx / 0"])
    assert done.returncode == 1 and done.stdout == ""
    assert "ZeroDivisionError: division by zero" in done.stderr and "line 2" in done.stderr
    assert done.stderr.count("division by zero") == 1


EXITS = [("import sys; sys.exit(3)", [], 3), ("1/0", [], 1), ("pass", [], 0),
         ("import time; time.sleep(9)", ["-t", "0.5"], 124),
         ("import os; os.kill(os.getpid(), 11)", [], 139), ("def", [], 1),
         ("open('x','wb').write(b'x'*(40<<20))", ["--disk", "8M"], 126)]


@pytest.mark.parametrize("code,flags,expected", EXITS)
def test_exit_codes(cupel_as, code, flags, expected):
    assert cupel_as.run(["run", *flags, "-c", code]).returncode == expected


def test_memory_and_cpu_have_their_exit_codes(cupels):
    cupel = cupels["root"] if "root" in cupels else pytest.skip("needs cgroups that only root has")
    done = cupel.run(["run", "-m", "128M", "-c", "x = b'x' * (400 << 20)"])
    assert done.returncode == 137, done.stderr
    done = cupel.run(["run", "--request", "-"], input=json.dumps(
        {"code": "while True: pass", "limits": {"cpu_s": 0.5, "timeout_s": 20}}))
    assert done.returncode == 152


def test_limits_given_as_flags_are_the_limits_of_the_run(cupel):
    done = cupel.run(["run", "--json", "-t", "7", "-m", "256M", "--cpus", "0.5", "--disk", "64M",
                      "--pids", "20", "pass"])
    limits = json.loads(done.stdout)["provenance"]["limits"]
    assert (limits["timeout_s"], limits["memory_bytes"], limits["cpus"], limits["disk_bytes"],
            limits["pids"]) == (7, 256 << 20, 0.5, 64 << 20, 20)


def test_json_is_the_only_thing_on_stdout(cupel_as):
    done = cupel_as.run(["run", "--json", "-c", "import sys\nprint('out')\nprint('e', file=sys.stderr)"])
    result = json.loads(done.stdout)
    assert result["stdout"] == "out\n" and result["stderr"] == "e\n" and done.stderr == ""
    done = cupel_as.run(["run", "--json", "-c", "1/0"])
    assert json.loads(done.stdout)["error"]["name"] == "ZeroDivisionError" and done.returncode == 1


def test_files_go_in_by_flag(cupel_as, folder):
    (folder / "a.txt").write_text("A")
    (folder / "b.bin").write_bytes(bytes(range(256)))
    code = "print(open('a.txt').read(), len(open('d/b.bin', 'rb').read()))\n" \
           "try: open('a.txt', 'w')\nexcept OSError: print('ro')"
    done = cupel_as.run(["run", "-f", f"{folder}/a.txt:ro", "-f", f"{folder}/b.bin:d/b.bin", "-c", code])
    assert done.stdout == "A 256\nro\n", done.stderr
    done = cupel_as.run(["run", "-f", f"{folder}/a.txt:x.txt:ro", "-c", "print(open('x.txt').read())"])
    assert done.stdout == "A\n", done.stderr


def test_environment_and_standard_input_go_in_by_flag(cupel_as, folder):
    (folder / "in").write_text("from file")
    code = "import os, sys; print(os.environ['K'], sys.stdin.read())"
    done = cupel_as.run(["run", "-e", "K=v=1", "--stdin", folder / "in", "-c", code])
    assert done.stdout == "v=1 from file\n", done.stderr
    done = cupel_as.run(["run", "-e", "K=v", "--stdin", "-", "-c", code], input="piped")
    assert done.stdout == "v piped\n", done.stderr


def test_artifacts_and_pictures_go_to_the_out_folder(cupel_as, folder):
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nopen('t.csv', 'w').write('a')"
    out = folder / "new"
    done = cupel_as.run(["run", "-t", "30", "-o", out, "-c", code])
    assert done.returncode == 0, done.stderr
    names = sorted(os.listdir(out))
    pictures = [name for name in names if name.endswith(".png")]
    assert "t.csv" in names and len(pictures) == 1, names
    assert (out / pictures[0]).read_bytes().startswith(b"\x89PNG")
    assert str(out / "t.csv") in done.stderr and pictures[0] in done.stderr
    assert (out / "t.csv").stat().st_uid == cupel_as.uid


def test_an_out_folder_that_cannot_be_written_is_refused_before_the_run(cupels, folder):
    cupel = cupels["user"]
    closed = folder / "closed"
    closed.mkdir(mode=0o755)
    if os.getuid() != 0:
        closed.chmod(0o555)
    done = cupel.run(["run", "-o", closed / "x", "print('ran')"])
    assert done.returncode in (2, 125) and "ran\n" not in done.stdout and "closed" in done.stderr


def test_files_that_the_caller_may_not_read_are_refused(cupels, folder):
    if os.getuid() != 0:
        pytest.skip("needs root to make a file that is not ours")
    secret = folder / "secret"
    secret.write_text("s")
    secret.chmod(0o600)
    done = cupels["user"].run(["run", "-f", secret, "print('ran')"])
    assert done.returncode == 2 and "ran\n" not in done.stdout and "secret" in done.stderr


NASTY = r"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b]0;title\x07\x9b31m\x08\r\x7f"


def test_control_characters_cannot_drive_the_terminal(cupel_as):
    code = f"import sys\nfor s in (sys.stdout, sys.stderr): s.buffer.write(b'a{NASTY}b\\n')"
    done = cupel_as.run(["run", "-c", code], text=False)
    for text in (done.stdout, done.stderr):
        assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", text), text
        assert b"\x9b" not in text or b"\xc2\x9b" not in text
        assert b"a" in text and b"]52;c;" in text


def test_c1_controls_in_utf8_are_escaped_and_text_is_not(cupel):
    done = cupel.run(["run", "-c", "print('日本\\u009b31m\\u202eé\\tx')"], text=False)
    assert "日本".encode() in done.stdout and "é\tx".encode() in done.stdout
    assert "\u009b".encode() not in done.stdout


def test_raw_passes_control_characters(cupel):
    done = cupel.run(["run", "--raw", "-c", "print('\\x1b[31mred')"], text=False)
    assert done.stdout == b"\x1b[31mred\n"


def test_values_errors_and_names_are_escaped_too(cupel):
    code = "class R:\n def __repr__(self): return '\\x1b[2Jv'\nopen('\\x1b[2Jname', 'w').write('x')\n"
    done = cupel.run(["run", "-c", code + "R()"], text=False)
    assert b"\x1b" not in done.stdout + done.stderr
    done = cupel.run(["run", "-c", "raise ValueError('\\x1b[2Jmessage')"], text=False)
    assert b"\x1b" not in done.stdout + done.stderr and b"message" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(cupel, command):
    done = cupel.run([command, "--help"])
    assert done.returncode == 0 and f"cupel {command}" in done.stdout and done.stderr == ""
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_help_lists_every_command_and_version(cupel):
    done = cupel.run(["--help"])
    assert done.returncode == 0 and all(command in done.stdout for command in COMMANDS)
    assert re.match(r"cupel \d+\.\d+\.\d+", cupel.run(["--version"]).stdout)


def test_help_of_run_lists_every_flag(cupel):
    text = cupel.run(["run", "--help"]).stdout
    for flag in ("-l", "--language", "-c", "-f", "--file", "-o", "--out", "-t", "--timeout", "-m",
                 "--memory", "--cpus", "--disk", "--pids", "-e", "--stdin", "--profile", "--image",
                 "--json", "--request", "--raw"):
        assert flag in text, flag


@pytest.mark.parametrize("args", [[], ["unknown"], ["run"], ["run", "--request", "-", "x"]])
def test_a_wrong_command_line_is_refused_with_a_way_on(cupel, args):
    done = cupel.run(args, input="")
    assert done.returncode == 2 and done.stderr, done


def test_languages_and_images_show_what_works(cupel_as):
    done = cupel_as.run(["languages"])
    assert done.returncode == 0, done.stderr
    for word in ("python", "javascript", "bash", "3.", "pandas", "numpy"):
        assert word in done.stdout, word
    done = cupel_as.run(["images"])
    assert done.returncode == 0 and "host" in done.stdout and "sha256:" in done.stdout, done.stdout


def test_the_doctor_says_one_line_for_each_thing(cupel_as):
    done = cupel_as.run(["doctor"])
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout.lower()
    for word in ("user namespace", "cgroup", "seccomp", "landlock", "overlay", "python", "clock",
                 "space", "core", "smt", "ksm"):
        assert word in text, (word, text)


def test_the_doctor_fails_where_the_default_profile_cannot_run(cupels):
    script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""
    done = cupels["user"].run(["doctor"], before=["unshare", "-U", "-c", "--keep-caps", "sh", "-c",
                                                  script, "sh"])
    assert done.returncode == 1 and "namespace" in done.stdout.lower()


def test_no_colour_without_a_terminal_and_with_no_color(cupel):
    assert b"\x1b" not in cupel.run(["run", "1/0"], text=False).stderr
    master, slave = pty.openpty()
    child = cupel.popen(["run", "1/0"], env={"NO_COLOR": "1", "TERM": "xterm"}, stdin=slave,
                        stdout=slave, stderr=slave)
    child.wait(timeout=30)
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(master)
    assert b"ZeroDivisionError" in text and b"\x1b" not in text


def test_quiet_says_nothing_but_the_output(cupel):
    done = cupel.run(["run", "-q", "-c", "open('a', 'w').write('x'); print(1)"])
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_script_that_looks_like_a_flag_and_one_that_is_not_there(cupel, folder):
    done = cupel.run(["run", "absent.py"])
    assert done.returncode == 2 and "absent.py" in done.stderr
    (folder / "-x.py").write_text("print('dash')")
    assert cupel.run(["run", "--", "-x.py"], cwd=folder).stdout == "dash\n"


def test_it_works_from_a_folder_that_is_gone(cupel, folder):
    gone = folder / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    done = subprocess.run(["sh", "-c", script, "sh", gone, cupel.program, "run", "print(1)"],
                          capture_output=True, text=True, timeout=60, env=cupel.env,
                          **cupel.identity())
    assert done.stdout == "1\n", done.stderr


def test_it_works_without_a_home_or_any_variable(cupel_as):
    done = subprocess.run([cupel_as.program, "run", "print(1)"], capture_output=True, text=True,
                          timeout=60, env={}, cwd="/", **cupel_as.identity())
    assert done.stdout == "1\n", done.stderr
