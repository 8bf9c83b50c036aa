"""What README and docs say is true: every command in a `console` block is run and its output
compared, every file that is named exists, and every promise names what holds it.

In a console block, lines that start with `$ ` are commands (a line ending in a backslash goes
on), the rest is what they print, stdout and stderr together. `export NAME=VALUE` holds for the
page. `…` stands for any text in a line; a line of `…` alone for any number of lines. A last line
`[exit N]` is the exit code, 0 where there is none. Blocks of one file
run in order, in one fresh folder that holds examples/. 127.0.0.1:8765, where pages let the service
listen, is another port of 127.0.0.1 here."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

import packages
from host import PROGRAM, REPO, SANITIZED

PAGES = sorted([REPO / name for name in ("README.md", "HACKING.md", "SECURITY.md")]
               + list((REPO / "docs").rglob("*.md")))
FOLDERS = "src tests bench docs drivers policy api examples dev include .ci".split()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
CODE_SPAN = re.compile(r"`([^`\n]+)`")


PORT = "127.0.0.1:8765"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def name_of(page):
    return str(page.relative_to(REPO))


def sessions(page):
    """[(command, [line expected, ...], exit code), ...] of a page's console blocks."""
    found = []
    for kind, text in BLOCK.findall(page.read_text()):
        if kind != "console":
            continue
        lines = iter(text.splitlines())
        for line in lines:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = command[:-1] + next(lines).strip()
                found.append([command, [], 0])
            elif exit_code := re.fullmatch(r"\[exit (\d+)\]", line):
                found[-1][2] = int(exit_code[1])
            else:
                found[-1][1].append(line)
    return found


def pattern(lines):
    """The expected lines as one regular expression."""
    parts = []
    for line in lines:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(map(re.escape, line.rstrip().split("…"))) + r"[ ]*\n")
    return re.compile("".join(parts))


@pytest.mark.sample(short=4)
@pytest.mark.skipif(SANITIZED, reason="times and sizes are others under the sanitizer")
@pytest.mark.parametrize("page", [p for p in PAGES if "```console" in p.read_text()], ids=name_of)
def test_every_command_prints_what_the_page_says(page, tmp_path, place):
    shutil.copytree(REPO / "examples", tmp_path / "examples")
    env = {"PATH": f"{PROGRAM.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8",
           "CUPEL_STATE": str(tmp_path / "state")}
    if "cupel images add" not in page.read_text():
        return run_in_place(page, tmp_path, env)
    env["CUPEL_STATE"] = str(place.fresh("state", 0o777))  # pip, npm and apt open it by its path, without rights
    with indexes(place) as found:
        run_in_place(page, tmp_path, {**env, **found})


@contextlib.contextmanager
def indexes(place):
    """Indexes of this host, with the packages that pages add: small ones of the same names."""
    wheels = place.fresh("wheels", 0o755)
    packages.wheel(wheels, "polars", "1.9.0", files={"polars/__init__.py": "__version__ = '1.9.0'\n"})
    apt = packages.debian(place.fresh("apt", 0o755), "ripgrep",
                          files={"usr/bin/rg": "#!/bin/sh\necho ripgrep 1.0\necho more\n"})
    zod = "exports.z = { string: () => ({ parse: (text) => text }) }\n"
    with packages.Registry({"zod": {"4.0.0": {"index.js": zod}}}) as registry:
        yield {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": "/dev/null", **registry.env,
               **apt}


def run_in_place(page, tmp_path, env):
    port = f"127.0.0.1:{free_port()}"
    groups = []
    try:
        run_page(page, tmp_path, env, port, groups)
    except BaseException:  # a page that fails has not come to the end of its servers
        for group in groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        raise


def run_page(page, tmp_path, env, port, groups):
    for command, lines, code in sessions(page):
        command = command.replace(PORT, port)
        if setting := re.fullmatch(r"export (\w+)=(.*)", command):   # for the commands that follow
            env[setting[1]] = setting[2].replace("$PWD", str(tmp_path))
            continue
        with subprocess.Popen(["bash", "-c", command], cwd=tmp_path, env=env, text=True, start_new_session=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as done:
            groups.append(done.pid)
            said = done.communicate(timeout=60)[0]
        wanted, printed = "\n".join(lines), said.replace(port, PORT)
        assert pattern(lines).fullmatch(printed), f"$ {command}\nprinted:\n{printed}\nthe page says:\n{wanted}"
        assert done.returncode == code, f"$ {command}\nended with {done.returncode}, the page says {code}"


def test_the_comparison_sees_a_difference():
    assert pattern(["a … c", "…", "end"]).fullmatch("a b c\n1\n2\nend\n")
    assert pattern(["…"]).fullmatch("")
    assert not pattern(["a"]).fullmatch("b\n")
    assert not pattern(["a"]).fullmatch("a\nb\n")


def paths_in(text):
    """What is spelled as a path of this repository."""
    for span in CODE_SPAN.findall(text):
        word = span.split()[0].rstrip("/").split("::")[0]
        if word.split("/")[0] in FOLDERS and "/" in word:
            yield word
        elif re.fullmatch(r"[A-Z][A-Z]+(\.md)?|Makefile", word) and (REPO / word).suffix == ".md":
            yield word
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", text):
        yield target


def exists(page, word):
    """As seen from the root or from the page; * and NAME stand for any name."""
    word = word.replace("NAME", "*")
    return any(next(iter(place.glob(word)), None) for place in (REPO, page.parent))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_is_named_exists(page):
    text = BLOCK.sub("", page.read_text())
    missing = sorted({word for word in paths_in(text) if not exists(page, word)})
    assert not missing, missing


def test_every_file_in_the_pictures_of_the_architecture_exists():
    text = (REPO / "docs/architecture.md").read_text()
    files = set(re.findall(r"\b((?:src|drivers|policy|tests)/[\w/.-]+\.\w+)", text))
    assert len(files) > 30, "the page names its files"
    assert not [name for name in files if not (REPO / name).exists()]


def test_every_layer_is_in_the_architectures_table():
    text = (REPO / "docs/architecture.md").read_text()
    layers = [line.split(":")[0] for line in (REPO / "dev/layers.txt").read_text().splitlines()
              if line and not line.startswith("#")]
    assert re.findall(r"^\| `src/([\w/]+)` \|", text, re.M) == layers


def test_the_picture_of_the_processes_is_the_one_that_its_text_gives():
    done = subprocess.run([REPO / "dev/draw", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_picture_of_a_terminal_is_what_the_command_prints(place):
    env = {**os.environ, "CUPEL": str(PROGRAM), "CUPEL_STATE": str(place.fresh("state", 0o777))}
    done = subprocess.run([REPO / "dev/screenshot", "--check"], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def test_the_path_from_main_to_clone3_is_the_one_in_the_sources():
    """Each function on the path calls the next one, but where the page says callback or message."""
    text = " ".join((REPO / "docs/architecture.md").read_text().split())
    path = re.search(r"`main` →.*?`SYS_clone3`", text)[0]
    source = "\n".join(file.read_text() for file in sorted((REPO / "src").rglob("*.c")))
    steps = re.findall(r"`(\w+)`(?: (→|⇢))?", path)
    assert len(steps) > 10
    for (name, kind), (callee, _) in zip(steps, steps[1:]):
        bodies = re.findall(rf"^\w[^\n;{{]*\b{name}\([^;{{]*\)\n\{{\n(.*?)\n\}}", source, re.M | re.S)
        assert bodies, f"no function {name}"
        if kind == "→" and name != "main":  # main finds its commands in a table
            assert any(re.search(rf"\b{callee}\b", body) for body in bodies), f"{name} does not call {callee}"


def promises():
    text = (REPO / "docs/spec.md").read_text()
    found = re.findall(r"^- \*\*P(\d+)\*\* (.*?)(?=^- \*\*P|^#|\Z)", text, re.M | re.S)
    return [(number, " ".join(words.split())) for number, words in found]


def test_the_promises_are_numbered_in_order():
    assert [int(number) for number, _ in promises()] == list(range(1, len(promises()) + 1))


@pytest.mark.parametrize("number,text", promises(), ids=[f"P{n}" for n, _ in promises()])
def test_a_promise_names_what_holds_it(number, text):
    held = text.split("Held by")
    assert len(held) == 2 or "not held yet" in text, f"P{number} names nothing that holds it"
    proofs = [word for word in paths_in(held[-1]) if word.startswith(("tests/", "bench/"))]
    assert proofs or "not held yet" in text, f"P{number} names no test and no bench"
    for file, function in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        assert f"def {function}(" in (REPO / file).read_text(), f"P{number}: {file} has no {function}"


def test_the_readme_names_the_one_command_and_the_proof():
    text = (REPO / "README.md").read_text()
    assert "make run" in text and "make test" in text and "LICENSE" in text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_is_named_exists(page):
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", (REPO / "Makefile").read_text(), re.M))
    named = set(re.findall(r"`make ([a-z][a-z0-9-]*)", page.read_text()))
    assert named <= targets, named - targets


def test_the_readme_speaks_of_nothing_that_is_not_there():
    """No door, flag or command that this version does not have."""
    text = (REPO / "README.md").read_text()
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    known = subprocess.run([PROGRAM, "help"], capture_output=True, text=True, env=env).stdout
    for command, verb, line in re.findall(r"^\$ cupel (\w+)( [a-z]+)?(.*)", text, re.M):
        assert re.search(rf"^  {command}\b", known, re.M), command
        asked = [[PROGRAM, command, *words, "--help"] for words in ([], verb.split())]
        flags = "".join(subprocess.run(words, capture_output=True, text=True, env=env).stdout for words in asked)
        for flag in re.findall(r"(?<![\w-])(--[a-z]+)", line):
            assert flag in flags, flag


def test_no_page_is_left_out_of_the_map():
    """Somebody who starts at the README reaches every page."""
    seen, queue = set(), [REPO / "README.md"]
    while queue:
        page = queue.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        for word in paths_in(page.read_text()):
            for place in (REPO, page.parent):
                queue += [p.resolve() for p in place.glob(word)]
    assert set(map(name_of, PAGES)) <= {name_of(p) for p in seen if p.is_relative_to(REPO)}


@pytest.mark.full
def test_the_tour_behaves_as_promised(tmp_path):
    if SANITIZED:
        pytest.skip("memory figures are others under the sanitizer")
    env = {**os.environ, "HOME": str(tmp_path), "CUPEL_STATE": str(tmp_path / "state"), "NO_COLOR": "1"}
    done = subprocess.run([REPO / "examples/tour.sh", PROGRAM], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("as promised:") == 5 and "NOT as promised" not in done.stdout
    for word in ("Cedar Clinics", "top_customers.png", "cost:", "walls:"):
        assert word in done.stdout, word
