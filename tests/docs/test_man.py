"""The manual, --help and the completions say the same: options, commands, limits and exit
codes are compared with one another, and the completions are tried in real shells."""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from host import BUILD, PROGRAM, REPO

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
PAGES = {path.stem: path.read_text() for path in sorted((REPO / "man").glob("*.1"))}
SCRIPTS = {"bash": "cupel.bash", "zsh": "_cupel", "fish": "cupel.fish"}
EXIT_CODES = {
    "ok": "own", "error": "own", "timeout": "124", "cpu_limit": "152", "memory_limit": "137",
    "output_limit": "126", "pids_limit": "126", "disk_limit": "126", "denied": "126",
    "killed": "128+signal", "interrupted": "130", "internal": "125"}


def cupel(*args):
    done = subprocess.run([PROGRAM, *args], env=ENV, capture_output=True, text=True, timeout=20,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


COMMANDS = re.findall(r"^  (\w+) {2,}\S", cupel("help").split("\n\ncupel COMMAND")[0], re.M)
WITH_PAGES = [name for name in COMMANDS if f"cupel-{name}" in PAGES]


VERBS = {name: re.findall(r"^  (\w+) {2,}\S", cupel("help", name).split("\n\nOptions")[0], re.M)
         for name in ("session", "runs", "tasks", "images", "token", "tools", "mcp")}


def help_options(*command):
    """{"--timeout": "-t", "--cpus": None, ...} of a command's --help."""
    rows = re.findall(r"^  (?:(-\w), |    )(--[\w-]+)", cupel("help", *command), re.M)
    return {name: letter or None for letter, name in rows}


def all_options(command):
    """Also those of its subcommands."""
    options = help_options(command)
    for verb in VERBS.get(command, []):
        options.update(help_options(command, verb))
    return options


def help_arguments(command):
    """{"--timeout": "S", ...} of the options that take a value."""
    return dict(re.findall(r"^  (?:-\w, |    )(--[\w-]+) (\S+)(?:  |$)", cupel("help", command), re.M))


def flat(options):
    return sorted(word for pair in options.items() for word in pair if word)


def section(page, title):
    return re.search(rf"^\.Sh {title}\n(.*?)(?=^\.Sh |\Z)", PAGES[page], re.M | re.S)[1]


def man_options(page):
    """As help_options, of the items of a page's OPTIONS."""
    found = {}
    for line in re.findall(r"^\.It (Fl .*)$", section(page, "OPTIONS"), re.M):
        flags = ["-" + flag for flag in re.findall(r"\bFl (\S+)", line)]
        found[flags[-1]] = flags[0] if len(flags) == 2 else None
    return found


def script(shell):
    return (REPO / "completions" / SCRIPTS[shell]).read_text()


def test_there_is_a_page_for_the_program_and_every_command_that_works():
    assert set(PAGES) == {"cupel", "cupel-run", "cupel-exec", "cupel-diff", "cupel-apply", "cupel-doctor",
                          "cupel-images", "cupel-languages", "cupel-serve",
                          "cupel-session", "cupel-repl", "cupel-ask", "cupel-chat", "cupel-models",
                          "cupel-config", "cupel-token", "cupel-tools", "cupel-runs", "cupel-tasks", "cupel-mcp"}
    assert set(COMMANDS) - set(WITH_PAGES) == {"completion", "version", "help"}


@pytest.mark.parametrize("command", WITH_PAGES)
def test_the_options_of_a_page_are_those_of_the_help(command):
    options = all_options(command)
    assert "--help" in options and man_options(f"cupel-{command}") == options


def test_the_values_of_options_are_named_as_in_the_help():
    for line in re.findall(r"^\.It (Fl .*)$", section("cupel-run", "OPTIONS"), re.M):
        name = "-" + re.findall(r"\bFl (\S+)", line)[-1]
        spelled = line.split("Ar ", 1)[1] if "Ar " in line else ""
        spelled = re.sub(r"\b(Ns|Ar|Cm)\b", "", spelled).replace("Oo", "[").replace("Oc", "]")
        spelled = re.sub(r"\bOp (.*)", r"[\1]", spelled).replace(" ", "")
        assert spelled.lower() == help_arguments("run").get(name, "").lower(), name


@pytest.mark.parametrize("command", VERBS)
def test_a_page_lists_the_subcommands_in_the_order_of_the_help(command):
    assert re.findall(r"^\.It Cm (\w+)", section(f"cupel-{command}", "DESCRIPTION"), re.M) == VERBS[command]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_names_every_command(page):
    words = set(re.findall(r"[\w-]+", PAGES[page]))
    for command in COMMANDS:
        assert command in words or f"cupel-{command}" in words, command
    for other in PAGES:
        assert other == page or re.search(rf"^\.Xr {other} 1\b", PAGES[page], re.M), other


def test_the_overview_lists_the_commands_in_the_order_of_the_help():
    assert re.findall(r"^\.It Ic (\w+)", section("cupel", "DESCRIPTION"), re.M) == COMMANDS


def test_the_exit_codes_of_the_page_are_those_of_the_contract():
    rows = re.findall(r"^\.It (\S+) Ta (\w+) Ta", section("cupel-run", "EXIT STATUS"), re.M)
    assert {status: code for code, status in rows} == EXIT_CODES
    table = re.findall(r'^ *X\(\w+, "(\w+)", (-?\d+)\)', (REPO / "src/contract/result.h").read_text(), re.M)
    words = {"-1": "own", "-2": "128+signal"}
    assert {status: words.get(code, code) for status, code in table} == EXIT_CODES


def test_the_exit_codes_of_refusals_are_those_of_the_program():
    table = re.findall(r'^ *X\(\w+, "\w+", (\d+), \d+\)', (REPO / "src/base/err.h").read_text(), re.M)
    assert "77" in table, "of refusals of the HTTP door and of a tool's policy"
    table = [code for code in table if code != "77"]
    for page in ("cupel", "cupel-run"):
        listed = re.findall(r"^\.It (\d+)$", section(page, "EXIT STATUS"), re.M)
        assert set(listed) | {"0", "1"} == set(table) | {"1"}, page


def number(text):
    """512M as 536870912; None for a bound that is no number."""
    parts = re.fullmatch(r"([\d.]+)([KMG]?)", text)
    return parts and float(parts[1]) * 1024 ** " KMG".index(parts[2] or " ")


def test_the_limits_of_the_page_are_those_of_the_schema():
    """The schema itself is held equal to the program by tests/unit/test_contract_schema.c."""
    schema = json.loads((REPO / "api/request.schema.json").read_text())["properties"]["limits"]["properties"]
    rows = [row.split(" Ta ") for row in
            re.findall(r"^\.It (\w+ Ta .*)$", section("cupel-run", "LIMITS AND PROFILES"), re.M)]
    assert [row[0] for row in rows] == list(schema)
    for name, option, baseline, _, least, most in rows:
        row = schema[name]
        assert number(baseline) == row.get("default", 6) and number(least) == row["minimum"], name
        assert number(most) == row.get("maximum"), name
        if option.startswith("Fl "):
            assert "-" + option[3:] in help_options("run"), name


def test_the_profiles_of_the_page_are_those_of_the_program():
    """The columns come from the table of profiles, which only the source shows whole."""
    source = (REPO / "src/contract/limits.c").read_text()
    scale = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "1000": 1000}
    rows = [row.split(" Ta ") for row in
            re.findall(r"^\.It (\w+ Ta .*)$", section("cupel-run", "LIMITS AND PROFILES"), re.M)]
    # `strict` has the numbers of `baseline`.
    baseline, first, analysis, strict = source.split(".name = ")
    assert "{ BASELINE }" in first and "{ BASELINE }" in strict
    units = {"timeout_s": 1000, "cpus": 1000}
    names = {"timeout_s": "TIMEOUT", "cpus": "CPUS", "pids": "PIDS", "artifact_files": "ARTIFACT_FILES",
             "artifact_bytes": "ARTIFACT_BYTES"}
    for name, _, first, second, _, _ in rows:
        if name == "cpu_s":
            continue
        key = names.get(name, name.replace("_bytes", "").upper())
        for text, shown in ((baseline, first), (analysis, second)):
            value, times = re.search(rf"\[LIMITS_{key}\] = (\d+)(?: \* (\w+))?", text).groups()
            stored = int(value) * scale.get(times, 1)
            assert number(shown) == stored / units.get(name, 1), f"{name}: {shown}"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("tool", [["groff", "-mdoc", "-Tutf8", "-ww", "-z"],
                                  ["mandoc", "-Tlint", "-W", "warning"]], ids=lambda tool: tool[0])
def test_a_page_renders_without_a_warning(page, tool):
    if not shutil.which(tool[0]):
        pytest.skip(f"{tool[0]} is not installed")
    done = subprocess.run([*tool, REPO / f"man/{page}.1"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and not done.stdout + done.stderr


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_completions_kept_here_are_those_of_the_tables(shell):
    made = subprocess.run([BUILD / "completion", shell], capture_output=True, text=True, check=True).stdout
    assert made == script(shell), "run: make completions"
    assert cupel("completion", shell) == script(shell)


ROWS = [*COMMANDS, *(f"{command} {verb}" for command in VERBS for verb in VERBS[command])]


@pytest.mark.parametrize("command", ROWS)
def test_the_completions_have_the_options_of_the_help(command):
    options = help_options(*command.split())
    name = f"'{command}'" if " " in command else command
    bash = re.search(rf"^    {name}\)\n.*?^        ;;", script("bash"), re.M | re.S)[0]
    listed = re.search(r"options='([^']+)'", bash)
    assert sorted(listed[1].split() if listed else []) == flat(options)
    zsh = re.search(rf"^        {name}\)\n.*?^            ;;|\Z", script("zsh"), re.M | re.S)[0]
    found = re.findall(r"^ +(?:'[^']*'\{(-\w)\+?,|(?:'\*')?')(--[\w-]+)", zsh, re.M)
    assert {name: letter or None for letter, name in found} == options
    fish = re.findall(rf"-n '__cupel_in {command}'(?: -s (\w))? -l ([\w-]+)", script("fish"))
    assert {f"--{name}": letter and f"-{letter}" or None for letter, name in fish} == options


def refused(*args):
    done = subprocess.run([PROGRAM, "completion", *args], env=ENV, capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and not done.stdout
    return done.stderr


def test_a_shell_that_is_not_known_is_refused():
    assert "unknown shell 'fis'" in refused("fis") and "did you mean cupel completion fish?" in refused("fis")
    assert "needs the name of a shell" in refused()
    assert "takes one shell" in refused("bash", "zsh")


# What the shells make of the scripts.

LINES = {
    "cupel rep": ["repl"],
    "cupel run --ti": ["--timeout"],
    "cupel run --profile b": ["baseline"],
    "cupel run -l javas": ["javascript"],
    "cupel run -q -t 3 --language=p": ["python"],
    "cupel help do": ["doctor"],
    "cupel completion z": ["zsh"],
    "cupel config ceilings.t": ["ceilings.timeout_s"],
    "cupel images --j": ["--json"],
    "cupel session che": ["checkpoint"],
    "cupel session new --tt": ["--ttl"],
    "cupel session new -l t": ["typescript"],
    "cupel session run --on-error r": ["rollback"],
    "cupel runs un": ["unpin"],
    "cupel tools che": ["check"],
}
MANY = {
    "cupel ru": ["run", "runs"],
    "cupel ": COMMANDS,
    "cupel help ": COMMANDS,
    "cupel run --profile ": ["baseline", "analysis", "strict"],
    "cupel run --profile=": ["baseline", "analysis", "strict"],
    "cupel run -l ": ["python", "javascript", "bash", "typescript", "r", "java"],
    "cupel run --p": ["--package", "--pids", "--profile"],
    "cupel run --timeout ": [],
    "cupel run -- --ti": [],
    "cupel version ": [],
    "cupel nosuch ": [],
    "cupel session ": VERBS["session"],
    "cupel images e": ["export", "extras"],
    "cupel session --": ["--help"],
    "cupel session fork --": ["--help", "--json", "--quiet"],
    "cupel session nosuch ": [],
}


def bash_replies(line):
    """COMPREPLY for a line whose words readline would break at spaces and "="."""
    words = [word for word in re.split(r" +|(=)", line) if word]
    words += [""] if line.endswith(" ") else []
    program = f"source {REPO}/completions/cupel.bash; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _cupel; " \
              "printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(["bash", "--norc", "-c", program, "bash", *words], env=ENV, capture_output=True,
                          text=True, timeout=20)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


def fish_replies(line):
    program = f"source {REPO}/completions/cupel.fish; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", program], env=ENV,
                          capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return [row.split("\t")[0].split("=")[-1] for row in done.stdout.splitlines()]


@pytest.mark.parametrize("line,want", {**LINES, **MANY}.items(), ids=[*LINES, *MANY])
@pytest.mark.parametrize("shell,replies", {"bash": bash_replies, "fish": fish_replies}.items(),
                         ids=["bash", "fish"])
def test_a_line_is_completed(shell, replies, line, want):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    assert sorted(replies(line)) == sorted(want)


def test_bash_completes_where_an_equals_sign_breaks_no_word():
    program = f"source {REPO}/completions/cupel.bash; COMP_WORDS=(cupel run --profile=b); COMP_CWORD=2; " \
              "_cupel; echo \"${COMPREPLY[@]}\""
    done = subprocess.run(["bash", "--norc", "-c", program], env=ENV, capture_output=True, text=True, timeout=20)
    assert done.stdout == "--profile=baseline\n"


class Terminal:
    """A shell at a terminal, to which lines are typed."""
    SETUP = {
        "bash": (["bash", "--norc", "--noprofile", "-i"], f"source {REPO}/completions/cupel.bash"),
        "zsh": (["zsh", "-f", "-i"], f"fpath=({REPO}/completions $fpath); autoload -U compinit; compinit -u -D"),
    }

    def __init__(self, shell, folder):
        command, setup = self.SETUP[shell]
        self.fd, child = pty.openpty()
        env = {**ENV, "TERM": "dumb", "PS1": "> ", "HOME": str(folder)}
        self.process = subprocess.Popen(command, env=env, cwd=folder, stdin=child, stdout=child,
                                        stderr=child, start_new_session=True)
        os.close(child)
        self.enter(f"{setup}; echo rea''dy", "ready\r\n")

    def enter(self, text, until, timeout_s=20):
        os.write(self.fd, text.encode() + b"\r")
        seen, end = "", time.monotonic() + timeout_s
        while until not in seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"waited for {until!r}, saw {seen!r}"
            seen += os.read(self.fd, 4096).decode(errors="replace")
        return seen

    def completed(self, line):
        """The line after a tab: Ctrl-A, and the whole is printed instead of run."""
        seen = self.enter(f"{line}\t\x01echo lin''e: ", "line: ") + self.enter("echo en''d", "end\r\n")
        return re.search(r"line: (.*?) *\r?\n", seen)[1]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


@pytest.mark.parametrize("shell", Terminal.SETUP)
def test_a_line_is_completed_at_a_terminal(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script.py").touch()
    (tmp_path / "sub").mkdir()
    terminal = Terminal(shell, tmp_path)
    try:
        for line, (word,) in LINES.items():
            start = line.replace("=", " ").rsplit(" ", 1)[0]
            assert terminal.completed(line) == line[:len(start) + 1] + word
        assert terminal.completed("cupel run -v scr") == "cupel run -v script.py"
        assert terminal.completed("cupel run --stdin scr") == "cupel run --stdin script.py"
        assert terminal.completed("cupel run -o s").rstrip("/") == "cupel run -o sub"
        assert terminal.completed("cupel run -t s") == "cupel run -t s"
    finally:
        terminal.close()
