# The magics of notebooks, in the cells of a Python session: `!ls`, `%timeit f()`, `%%bash`, `f?`. cells.py loads it
# when a cell is not Python, never before (PROTOCOL.md). Runs as the occupant.
#
# 1. A cell that compiles stays as it is: only a line at which the compiler stops is translated.
# 2. A line becomes one line, so that line numbers stay those of the cell.
# 3. A magic does the same as in IPython, or names the replacement in one line.
import builtins
import posix
import sys

__builtins__ = {**vars(builtins)}
LINES_MAX = 200              # magics in one cell
CALL = "__magic__"           # in builtins: the function that a translated line calls
BASH = "/bin/bash"
AIM_S, AIM_ALL_S = 0.1, 2.0  # %timeit: target time of one round, and of all
NO_NETWORK = "a box has no network, so nothing can be installed in it; 'cupel languages' lists the packages"
INSTALLERS = ("pip", "pip3", "conda", "mamba", "uv", "apt", "apt-get", "npm")
SAY = {"load_ext": "there are no extensions here", "autoreload": "a changed file: importlib.reload(module)",
       "config": "there is nothing to configure here", "debug": "use breakpoint(), or import pdb; pdb.pm()",
       "pdb": "use breakpoint(), or import pdb; pdb.pm()", "store": "names stay in the session by themselves",
       "load": "use open(), or %run", "edit": "there is no editor here", "paste": "paste the code itself",
       "precision": "use numpy.set_printoptions or f'{x:.3f}'", "xmode": "tracebacks have one form here",
       "colors": "there are no colours here", "pylab": "import numpy as np, matplotlib.pyplot as plt",
       "gui": "there are no windows here", "automagic": "a magic needs its % here",
       "js": "use a session of JavaScript", "javascript": "use a session of JavaScript",
       "perl": "use %%bash", "ruby": "there is no Ruby here"}

driver = names = None        # the modules, from cells.py
scope = sources = None       # the session's names; the texts of its cells
at_end = []                  # actions for the end of the cell
before = "/workspace"        # the folder that `%cd -` returns to


# ---- translation ----
def as_python(code, program):
    """The cell as Python; a SyntaxError if it is neither Python nor magics."""
    lines = code.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        return of_cell(lines, first, program)
    for _ in range(LINES_MAX):
        try:
            quietly("\n".join(lines), program)
            break
        except SyntaxError as problem:
            at = (problem.lineno or 0) - 1
            if not 0 <= at < len(lines) or not translate(lines, at, program):
                raise
    builtins.__magic__ = call
    return "\n".join(lines)


def quietly(text, program):
    advice = driver.load("advice")
    advice.names = driver.load("names")
    return advice.compile_quietly(text, program, "exec", driver.ONLY_AST | driver.TOP_LEVEL_AWAIT, True)


def of_cell(lines, first, program):
    """A cell that begins with %%: the rest of it belongs to the magic, or is the code beneath it."""
    name, _, text = lines[first][2:].strip().partition(" ")
    body = "\n".join(lines[first + 1:])
    if name not in CELL and name not in SAY:
        refuse(f"%%{name}", program, first, lines[first])
    builtins.__magic__ = call
    if name in UNDER:
        rest = as_python("\n".join([*[""] * (first + 1), *lines[first + 1:]]), program).split("\n")
        return "\n".join([*[""] * first, f"{CALL}({'%%' + name!r}, {text!r})", *rest[first + 1:]])
    return "\n" * first + f"{CALL}({'%%' + name!r}, {text!r}, {body!r})"


def translate(lines, at, program):
    """Translate one line if it is a magic; lines joined to it by a backslash become empty."""
    line = lines[at]
    indent, text = line[: len(line) - len(line.lstrip())], line.strip()
    target, equals, right = [part.strip() for part in text.partition("=")]
    to = ""
    if equals and right[:1] in ("!", "%") and is_target(target):
        to, text = f"{target} = ", right
    if text[:1] in ("!", "%"):
        more = at
        while text.endswith("\\") and more + 1 < len(lines):
            more += 1
            text = text[:-1] + lines[more].strip()
            lines[more] = ""
    told = of_line(text, bool(to), program, at, line)
    if told:
        lines[at] = f"{indent}{to}{CALL}({', '.join([repr(part) for part in told])})"
    return bool(told)


def of_line(text, captured, program, at, line):
    """The arguments of a magic's call; None: it is no magic."""
    if text.startswith("!!"):
        return "!!", text[2:].strip()
    if text.startswith("!") and text[1:2] not in ("", "="):
        return "!!" if captured else "!", text[1:].strip()
    if text.startswith("%%"):
        raise SyntaxError("a magic with %% must be on the first line of its cell", (program, at + 1, 1, line)) from None
    name, _, rest = text[1:].partition(" ")
    if text.startswith("%") and name.isidentifier():
        if name not in LINE and name not in SAY:
            refuse(f"%{name}", program, at, line)
        return "%" + name, rest.strip()
    asked = text.strip("?").strip()
    words = asked.removeprefix("%").split(".")
    if "?" in text and len(text) - len(asked) <= 4 and all([word.isidentifier() for word in words]):
        return "??" if "??" in text else "?", asked
    return None


def refuse(name, program, at, line):
    raise SyntaxError(f"there is no magic {name} here; %lsmagic lists them", (program, at + 1, 1, line)) from None


def is_target(text):
    try:
        compile(f"{text} = 0", "", "exec")
        return True
    except (SyntaxError, ValueError):
        return False


def call(name, text="", *body):
    word = name.lstrip("%")
    if name[:1] != "%":
        return SIGNS[name](text)
    if word in SAY:
        return note(f"{name}: {SAY[word]}")
    return (CELL if name[:2] == "%%" else LINE)[word](text, *body)


def note(text):
    print(text, file=sys.stderr)


# ---- programs ----
def expand(text):
    """Expand {expression} and $name of the session, if they exist; all else is the shell's."""
    parts, at = [], 0
    while at < len(text):
        end = at + 1
        if text[at] == "$":
            while end < len(text) and ("x" + text[end]).isidentifier():
                end += 1
            name = text[at + 1: end]
            parts.append(str(scope[name]) if name in scope else text[at:end])
        elif text[at] == "{" and text[at - 1: at] != "$" and "}" in text[at:]:
            end = text.index("}", at) + 1
            try:
                parts.append(str(eval(text[at + 1: end - 1], scope)))
            except Exception:
                parts.append(text[at:end])
        else:
            parts.append(text[at])
        at = end
    return "".join(parts)


def installs(text):
    """Answer a wish to install here: without a network the program would only waste time."""
    words = text.split()
    if words[:2] and words[0].startswith("python") and words[1:2] == ["-m"]:
        words = words[2:]
    if words[:1] == ["sudo"]:
        words = words[1:]
    if len(words) < 2 or words[0] not in INSTALLERS or "install" not in words[1:3]:
        return False
    wanted = [word for word in words[words.index("install") + 1:] if word[0] != "-"]
    for word in wanted:
        name = word[: next((at for at, char in enumerate(word) if char in "=<>~![; "), len(word))]
        version = words[0] in ("pip", "pip3", "uv") and version_of(name)
        note(f"{name}{version} is here already" if version else f"{name}: {NO_NETWORK}")
    if not wanted:
        note(NO_NETWORK)
    return True


def version_of(name):
    """' 1.5', or '' without the package."""
    from importlib import metadata, util
    try:
        return f" {metadata.version(name)}"
    except Exception:
        found = name.isidentifier() and util.find_spec(name)
        return " (a package of the image)" if found else ""


def shell(text, **how):
    sys.stdout.flush()
    done = __import__("subprocess").run([BASH, "-c", text], **how)
    scope["_exit_code"] = done.returncode
    return done


def system(text):
    text = expand(text)
    if not installs(text):
        shell(text)


def captured(text):
    text = expand(text)
    if installs(text):
        return []
    return shell(text, stdout=-1, stderr=-2).stdout.decode("utf-8", "replace").splitlines()


def bash(text, body):
    done = shell(body)
    if done.returncode:
        raise __import__("subprocess").CalledProcessError(done.returncode, "bash")


# ---- time ----
def span(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


class Clock:
    def __init__(self):
        self.wall, self.cpu = __import__("time").perf_counter(), posix.times()

    def tell(self):
        wall, cpu = __import__("time").perf_counter() - self.wall, posix.times()
        user, system = cpu.user - self.cpu.user, cpu.system - self.cpu.system
        print(f"CPU times: user {span(user)}, sys: {span(system)}, total: {span(user + system)}")
        print(f"Wall time: {span(wall)}")


def time_line(text):
    flags = driver.TOP_LEVEL_AWAIT
    try:
        code = compile(text, "<%time>", "eval", flags, True)
    except SyntaxError:
        code = compile(text, "<%time>", "exec", flags, True)
    if code.co_flags & driver.CO_COROUTINE:
        raise SyntaxError("%time cannot await: use %%time")
    clock = Clock()
    value = eval(code, scope)
    clock.tell()
    return value


def timeit(text, body=None):
    options, words = {"-n": 0, "-r": 0}, text.split(" ")
    while words and words[0][:2] in options:
        word = words.pop(0)
        options[word[:2]] = int(word[2:] or words.pop(0))
    rest = " ".join(words)
    given = (body, rest or "pass") if body is not None else (rest, "pass")
    timer = __import__("timeit").Timer(*given, globals=scope)
    number, taken = options["-n"] or 1, timer.timeit(options["-n"] or 1)
    while not options["-n"] and taken < AIM_S and number < 10 ** 9:
        number = number * 10 if taken * 10 < AIM_S else number * 2
        taken = timer.timeit(number)
    rounds = options["-r"] or max(1, min(7, int(AIM_ALL_S / max(taken, 1e-9))))
    times = [one / number for one in timer.repeat(rounds, number)]
    mean = sum(times) / rounds
    spread = (sum([(one - mean) ** 2 for one in times]) / rounds) ** 0.5
    print(f"{span(mean)} ± {span(spread)} per loop (mean ± std. dev. of {rounds} run{'s' * (rounds > 1)}, "
          f"{number:,} loop{'s' * (number > 1)} each)")


def profile(text, body=None):
    __import__("cProfile").runctx(body if body is not None else text, scope, scope, sort="tottime")


class Captured:
    """The captured output of %%capture, with IPython's attribute names."""

    def __init__(self):
        self.streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self.held = [__import__("io").StringIO() for _ in range(2)]

    def end(self):
        sys.stdout, sys.stderr = self.streams
        self.stdout, self.stderr = [one.getvalue() for one in self.held]


def capture(text):
    one = Captured()
    at_end.append(one.end)
    name = next((word for word in text.split() if word.isidentifier()), None)
    if name:
        scope[name] = one


# ---- names and folders ----
def look(text, whole=False):
    """`name?`"""
    if text.startswith("%"):
        function = {**LINE, **CELL}.get(text.lstrip("%"))
        return print((function and function.__doc__) or SAY.get(text.lstrip("%")) or f"{text}: a magic")
    try:
        value = eval(text, scope)
    except Exception:
        return print(f"Object `{text}` not found.")
    inspect, rows = __import__("inspect"), [("Type", type(value).__name__)]
    steps = (("Signature", lambda: f"{text}{inspect.signature(value)}" if callable(value) else None),
             ("String form", lambda: None if callable(value) else driver.load("show").plain(value)[:2000]),
             ("Length", lambda: len(value)), ("File", lambda: inspect.getfile(value)),
             ("Source", lambda: "\n" + inspect.getsource(value) if whole else None),
             ("Docstring", lambda: inspect.getdoc(value) or "<no docstring>"))
    for title, step in steps:
        try:
            found = step()
        except Exception:   # it has none
            continue
        rows += [(title, found)] if found is not None else []
    print("\n".join([f"{title + ':':<13}{found}" for title, found in rows]))


def who(text):
    print("  ".join(names.user_names()[0]) or "There are no names yet.")


def whos(text):
    rows = [names.describe(*item) for item in names.user_names()[0].items()]
    for row in rows:
        print(f"{row['name']:<16} {row['type']:<12} {row['text']}")


def reset(text):
    for name in names.user_names()[0]:
        scope.pop(name, None)


def cd(text):
    global before
    to = before if text == "-" else text.strip("'\"") or "/workspace"
    before = posix.getcwd()
    posix.chdir(__import__("os").path.expanduser(expand(to)))
    print(posix.getcwd())


def environment(text):
    environ = __import__("os").environ
    name, sign, value = [part.strip() for part in text.replace(" ", "=", "=" not in text).partition("=")]
    if sign:
        environ[name] = expand(value)
        return print(f"env: {name}={environ[name]}")
    return environ[name] if name else dict(environ)


def matplotlib(text):
    if text not in ("", "inline", "agg", "notebook", "widget"):
        note("%matplotlib: there are no windows here; figures are shown by themselves")


def run_file(text):
    path, *arguments = __import__("shlex").split(text)
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec", 0, True)
    kept, sys.argv = sys.argv, [path, *arguments]
    try:
        exec(code, scope)
    finally:
        sys.argv = kept


def write_file(text, body):
    mode, path = ("a", text[3:].strip()) if text.startswith("-a ") else ("w", text)
    there = posix.access(path, posix.F_OK)
    with open(path, mode, encoding="utf-8") as file:
        file.write(body if body.endswith("\n") else body + "\n")
    print(f"{'Appending to' if mode == 'a' else 'Overwriting' if there else 'Writing'} {path}")


def history(text):
    print("\n".join(sources.values()))


def shown_as(mime):
    def show(text, body):
        form = type("Form", (), {"_repr_mimebundle_": lambda self, **_: {mime: body}, "__repr__": lambda self: body})
        driver.display(form())
    return show


def list_magics(text):
    print("line:  " + "  ".join([f"%{name}" for name in sorted(LINE)]) + "  !command  name?")
    print("cell:  " + "  ".join([f"%%{name}" for name in sorted(CELL)]))


def install(name):
    return lambda text: system(f"{name} {text}")


LINE = {"time": time_line, "timeit": timeit, "prun": profile, "pwd": lambda text: posix.getcwd(), "cd": cd,
        "ls": lambda text: system(f"ls {text}"), "cat": lambda text: system(f"cat {text}"), "who": who, "whos": whos,
        "reset": reset, "matplotlib": matplotlib, "env": environment, "set_env": environment, "run": run_file,
        "pip": install("pip"), "conda": install("conda"), "history": history, "hist": history,
        "lsmagic": list_magics, "system": captured, "sx": captured}
CELL = {"time": lambda text: at_end.append(Clock().tell), "timeit": timeit, "prun": profile, "capture": capture,
        "bash": bash, "sh": bash, "script": bash, "writefile": write_file, "file": write_file,
        "html": shown_as("text/html"), "markdown": shown_as("text/markdown"), "latex": shown_as("text/latex"),
        "svg": shown_as("image/svg+xml")}
UNDER = ("time", "capture")   # these run the cell beneath them unchanged
SIGNS = {"!": system, "!!": captured, "?": look, "??": lambda text: look(text, True)}


def over():
    """The cell has ended, in any way."""
    while at_end:
        at_end.pop()()
