# The magics of notebooks: `!ls`, `%timeit f()`, `%%bash`, `f?`. source.py loads it when a program or a cell has one,
# and finds them in the text (PROTOCOL.md). Runs as the occupant.
#
# 1. A magic does the same as in IPython, or names the replacement in one line.
# 2. It reads the names of its caller, and makes names in __main__.
import builtins
import posix
import sys

BASH = "/bin/bash"
AIM_S, AIM_ALL_S = 0.1, 2.0  # %timeit: target time of one round, and of all
NO_NETWORK = "a box has no network, so nothing can be installed in it; 'cupel languages' lists the packages, and on " \
             "the host 'cupel images add NAME --{} {}' makes an image that has it"
INSTALLERS = ("pip", "pip3", "conda", "mamba", "uv", "apt", "apt-get", "npm")
NO_EXTENSION = "there are no extensions here"
NO_DEBUGGER = "nobody is there to ask; print the values, or catch the error"
SAY = {"load_ext": NO_EXTENSION, "reload_ext": NO_EXTENSION, "unload_ext": NO_EXTENSION, "sql": NO_EXTENSION,
       "R": NO_EXTENSION, "cython": NO_EXTENSION, "memit": NO_EXTENSION, "lprun": NO_EXTENSION, "mprun": NO_EXTENSION,
       "tensorboard": NO_EXTENSION, "autoreload": "a changed file: importlib.reload(module)",
       "config": "there is nothing to configure here", "debug": NO_DEBUGGER, "pdb": NO_DEBUGGER,
       "store": "names stay in the session by themselves", "load": "use open(), or %run",
       "edit": "there is no editor here", "paste": "paste the code itself", "cpaste": "paste the code itself",
       "precision": "use numpy.set_printoptions or f'{x:.3f}'", "xmode": "tracebacks have one form here",
       "tb": "tracebacks have one form here", "colors": "there are no colours here",
       "gui": "there are no windows here", "automagic": "a magic needs its % here",
       "js": "there is no browser here; %%script node runs it with node",
       "javascript": "there is no browser here; %%script node runs it with node"}

driver = None                # the module; set by the loader of this file
locals_ = {}                 # names of the caller: those of __main__, or of a function
at_end = []                  # actions for the end of the cell
before = "/workspace"        # the folder that `%cd -` returns to


# ---- calls ----
def call(name, text="", *body):
    """A translated line or cell: its sign or its name with %, the rest of its line, the lines below."""
    global locals_
    frame, kept, word = sys._getframe(1), locals_, name.lstrip("%")
    while frame.f_code.co_filename in driver.our_files and frame.f_back:   # get_ipython() has called
        frame = frame.f_back
    locals_ = frame.f_locals if frame.f_code.co_filename not in driver.our_files else driver.world
    try:
        if name[:1] != "%":
            return SIGNS[name](text)
        if word in SAY:
            return note(f"{name}: {SAY[word]}")
        if name[:2] == "%%" and word in UNDER and body:
            return run_under(word, text, *body)
        return (CELL if name[:2] == "%%" else LINE)[word](text, *body)
    finally:
        locals_ = kept


def run_under(word, text, body):
    """The code below %%time and %%capture, if it comes as a text."""
    CELL[word](text)
    try:
        exec(compile(body, f"<%%{word}>", "exec", 0, True), driver.world)
    finally:
        at_end.pop()()


def note(text):
    print(text, file=sys.stderr)


def our_names():
    names = driver.load("names")
    names.scope = driver.world
    return names


def module(name):
    return __import__("importlib").import_module(name)


def options(text, known):
    """Leading options of a magic: {"-n": "5"}, and the rest. `known` maps each to whether it has a value."""
    found, rest = {}, text.strip()
    while rest[:1] == "-":
        word, _, after = rest.partition(" ")
        name = word if word in known else word[:2]
        if name not in known or word != name and not known[name]:
            break
        if known[name] and word == name:
            value, _, after = after.strip().partition(" ")
        else:
            value = word[len(name):]
        found[name], rest = value, after.strip()
    return found, rest


# ---- programs ----
def expand(text):
    """Expand {expression} and $name of the caller, if they exist; all else is the shell's."""
    parts, at = [], 0
    while at < len(text):
        end = at + 1
        if text[at] == "$":
            while end < len(text) and ("x" + text[end]).isidentifier():
                end += 1
            name, quoted = text[at + 1: end], text[at - 1: at] == "$"   # $$name is the shell's $name
            space = next((space for space in (locals_, driver.world) if name in space and not quoted), None)
            parts[-1:] = parts[-1:] if not (quoted and name) else []
            parts.append(text[at:end] if space is None else str(space[name]))
        elif text[at] == "{" and text[at - 1: at] != "$" and "}" in text[at:]:
            end = text.index("}", at) + 1
            try:
                parts.append(str(eval(text[at + 1: end - 1], driver.world, locals_)))
            except Exception:
                parts.append(text[at:end])
        else:
            parts.append(text[at])
        at = end
    return "".join(parts)


def answered(text):
    """Answer a wish to install here: without a network the program would only waste time. pip without a program of
    that name is the module."""
    words = text.split()
    words = words[words[:1] == ["sudo"]:]
    if words[:1] and words[0].startswith("python") and words[1:2] == ["-m"]:
        words = words[2:]
    if len(words) < 2 or words[0] not in INSTALLERS:
        return text
    if "install" not in words[1:3]:
        there = words[0][:3] != "pip" or text.split()[0] != words[0] or module("shutil").which(words[0])
        return text if there else "python3 -m " + text.replace(words[0], "pip", 1)
    end = next((at for at, word in enumerate(words) if word[0] in "&|;<>" or word[:2] in ("1>", "2>")), None)
    wanted = [word.strip("'\"") for word in words[words.index("install") + 1: end] if word[0] != "-"]
    kind = {"apt": "apt", "apt-get": "apt", "npm": "npm"}.get(words[0], "pip")
    for word in wanted:
        name = word[: next((at for at, char in enumerate(word) if char in "=<>~![; "), len(word))]
        version = words[0] in ("pip", "pip3", "uv", "conda", "mamba") and version_of(name)
        note(f"{name}{version} is here already" if version else f"{name}: {NO_NETWORK.format(kind, name)}")
    wanted or note(NO_NETWORK.format(kind, "PACKAGE"))
    return None


def version_of(name):
    """' 1.5', or '' without the package."""
    from importlib import metadata, util
    try:
        return f" {metadata.version(name)}"
    except Exception:
        found = name.isidentifier() and util.find_spec(name)
        return " (a package of the image)" if found else ""


class Lines(list):
    """What a program printed, as IPython gives it: a list of lines with other forms of the text."""
    n = nlstr = property(lambda self: "\n".join(self))
    s = spstr = property(lambda self: " ".join(self))
    l = list = property(lambda self: self)
    p = paths = property(lambda self: [module("pathlib").Path(line) for line in self])

    def grep(self, pattern, prune=False, field=None):
        search = pattern if callable(pattern) else module("re").compile(pattern, 2).search   # 2: any case
        cells = [line if field is None else (line.split()[field: field + 1] or [""])[0] for line in self]
        return Lines([line for line, cell in zip(self, cells) if bool(search(cell)) != prune])

    def fields(self, *numbers):
        if not numbers:
            return [line.split() for line in self]
        return Lines([" ".join([line.split()[at] for at in numbers if at < len(line.split())]) for line in self])


def start(words, **how):
    sys.stdout.flush(), sys.stderr.flush()
    try:
        done = module("subprocess").run(words, **how)
    except FileNotFoundError:
        raise FileNotFoundError(2, "there is no such program here", words[0]) from None
    driver.world["_exit_code"] = done.returncode
    return done


def system(text):
    text = answered(expand(text))
    if text is not None:
        start([BASH, "-c", text])


def captured(text):
    text = answered(expand(text))
    said = b"" if text is None else start([BASH, "-c", text], stdout=-1, stderr=-2).stdout
    return Lines(said.decode("utf-8", "replace").splitlines())


def script(program):
    """%%bash and others: the lines below are the program's input."""
    def run(text, body):
        known = {"--out": True, "--err": True, "--no-raise-error": False, "--bg": False}
        found, rest = options(expand(text), known)
        words = [*program, *module("shlex").split(rest)]
        if not words:
            raise ValueError("%%script needs the name of a program")
        how = {"input": body.encode()} if words != [BASH] else {}
        done = start(words if how else [BASH, "-c", body], **how, stdout=-1 if "--out" in found else None,
                     stderr=-1 if "--err" in found else None)
        for option, said in (("--out", done.stdout), ("--err", done.stderr)):
            if option in found:
                driver.world[found[option]] = said.decode("utf-8", "replace")
        if done.returncode and "--no-raise-error" not in found:
            raise module("subprocess").CalledProcessError(done.returncode, words[0].rpartition("/")[2])
    return run


# ---- time ----
def span(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


class Clock:
    def __init__(self):
        self.wall, self.cpu = module("time").perf_counter(), module("resource").getrusage(0)

    def tell(self):
        wall, cpu = module("time").perf_counter() - self.wall, module("resource").getrusage(0)
        user, system = cpu.ru_utime - self.cpu.ru_utime, cpu.ru_stime - self.cpu.ru_stime
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
    value = eval(code, driver.world, locals_)
    clock.tell()
    return value


class Timed:
    """The result of %timeit -o, with IPython's attribute names."""

    def __init__(self, loops, times):
        self.loops, self.repeat, self.timings = loops, len(times), times
        self.all_runs = [one * loops for one in times]
        self.best, self.worst, self.average = min(times), max(times), sum(times) / len(times)
        self.stdev = (sum([(one - self.average) ** 2 for one in times]) / len(times)) ** 0.5

    def __repr__(self):
        return f"<TimeitResult : {self}>"

    def __str__(self):
        return (f"{span(self.average)} ± {span(self.stdev)} per loop (mean ± std. dev. of {self.repeat} "
                f"run{'s' * (self.repeat > 1)}, {self.loops:,} loop{'s' * (self.loops > 1)} each)")


def timeit(text, body=None):
    known = {"-n": True, "-r": True, "-p": True, "-o": False, "-q": False, "-t": False, "-c": False, "-v": False}
    found, rest = options(text, known)
    number, rounds = int(found.get("-n", 0)), int(found.get("-r", 0))
    given = (body, rest or "pass") if body is not None else (rest, "pass")
    timer = module("timeit").Timer(*given, globals={**driver.world, **locals_})
    loops, taken = number or 1, timer.timeit(number or 1)
    while not number and taken < AIM_S and loops < 10 ** 9:
        loops = loops * 10 if taken * 10 < AIM_S else loops * 2
        taken = timer.timeit(loops)
    rounds = rounds or max(1, min(7, int(AIM_ALL_S / max(taken, 1e-9))))
    timed = Timed(loops, [one / loops for one in timer.repeat(rounds, loops)])
    "-q" in found or print(timed)
    return timed if "-o" in found else None


def profile(text, body=None):
    module("cProfile").runctx(body if body is not None else text, driver.world, locals_, sort="tottime")


# ---- output ----
class Shown:
    """A value that %%capture kept: display() shows it again."""

    def __init__(self, forms):
        self.data = forms

    def _repr_mimebundle_(self, **_):
        return self.data

    def __repr__(self):
        return self.data.get("text/plain", "")


class Captured:
    """The output of %%capture, with IPython's attribute names."""

    def __init__(self, which):
        self.stdout = self.stderr = ""
        self.outputs, self.which = [], which
        self.kept = sys.stdout, sys.stderr, driver.send
        self.held = [module("io").StringIO() for _ in range(2)]
        if "stdout" in which:
            sys.stdout = self.held[0]
        if "stderr" in which:
            sys.stderr = self.held[1]
        if "display" in which:
            driver.send = self.take

    def take(self, frame):
        if not frame.startswith('{"op":"result"') or frame[23:].startswith('"application/vnd.cupel.'):   # an answer
            return self.kept[2](frame)
        self.outputs.append(Shown(driver.scan(frame, 0)[0]["data"]))

    def end(self):
        sys.stdout, sys.stderr, driver.send = self.kept
        self.stdout, self.stderr = [one.getvalue() for one in self.held]

    def show(self):
        sys.stdout.write(self.stdout), sys.stderr.write(self.stderr)
        driver.display(*self.outputs)

    __call__ = show

    def __str__(self):
        return self.stdout


def capture(text):
    words = text.split()
    one = Captured([kind for kind in ("stdout", "stderr", "display") if f"--no-{kind}" not in words])
    at_end.append(one.end)
    name = next((word for word in words if word.isidentifier()), None)
    if name:
        driver.world[name] = one


def shown_as(mime):
    return lambda text, body: driver.display(Shown({mime: body, "text/plain": body}))


# ---- names ----
def look(text, whole=False):
    """`name?`"""
    if text.startswith("%"):
        function = {**LINE, **CELL}.get(text.lstrip("%"))
        return print((function and function.__doc__) or SAY.get(text.lstrip("%")) or f"{text}: a magic")
    if "*" in text:
        return search(text)
    try:
        value = eval(text, driver.world, locals_)
    except Exception:
        return print(f"Object `{text}` not found.")
    inspect, rows = module("inspect"), [("Type", type(value).__name__)]
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


def search(text):
    """`np.*load*?`: the names that match."""
    path, _, pattern = text.rpartition(".")
    try:
        found = dir(eval(path, driver.world, locals_)) if path else [*driver.world, *vars(builtins)]
    except Exception:
        return print(f"Object `{path}` not found.")
    match = module("fnmatch").fnmatchcase
    print("\n".join([f"{path}.{name}" if path else name for name in found
                     if match(name, pattern) and name[:1] != "_"]))


def who(text):
    print("\t ".join(our_names().user_names()[0]) or "Interactive namespace is empty.")


def whos(text):
    names = our_names()
    rows = [names.describe(*item) for item in names.user_names()[0].items()]
    table = [("Variable", "Type", "Data/Info"), *[(row["name"], row["type"], row["text"]) for row in rows]]
    wide = [max([len(row[at]) for row in table]) + 3 for at in (0, 1)]
    lines = [f"{row[0]:<{wide[0]}}{row[1]:<{wide[1]}}{row[2]}" for row in table]
    print("\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]) if rows else "Interactive namespace is empty.")


def reset(text, *names):
    for name in names or our_names().user_names()[0]:
        driver.world.pop(name, None)


def history(text):
    found = driver.sources or {"<cell 1>": driver.source}
    for name, code in found.items():
        number = name.strip("<>").removeprefix("cell ")
        print(f"{number:>4}: {code}" if "-n" in text.split() else code)


def list_magics(text):
    print("line:  " + "  ".join([f"%{name}" for name in sorted(LINE)]) + "  !command  name?")
    print("cell:  " + "  ".join([f"%%{name}" for name in sorted(CELL)]))


# ---- folders, files, environment ----
def cd(text):
    global before
    to = before if text == "-" else text.removeprefix("-q").strip().strip("'\"") or "/workspace"
    before = posix.getcwd()
    posix.chdir(module("os").path.expanduser(expand(to)))
    print(posix.getcwd())


def environment(text):
    environ = module("os").environ
    name, sign, value = [part.strip() for part in text.replace(" ", "=", "=" not in text).partition("=")]
    if sign:
        environ[name] = expand(value)
        return print(f"env: {name}={environ[name]}")
    return environ[name] if name else dict(environ)


def matplotlib(text):
    text = text.partition("#")[0].strip(" ;")
    if text not in ("", "inline", "agg", "notebook", "widget", "ipympl", "nbagg", "--list", "-l"):
        note("%matplotlib: there are no windows here; figures are shown by themselves")


def pylab(text):
    exec("import numpy, matplotlib\nfrom matplotlib import pylab, pyplot\nnp, plt = numpy, pyplot\n"
         "from pylab import *\nfrom numpy import *", driver.world)


def run_file(text):
    """The file as a program of its own, whose names come here afterwards; with -i it uses ours."""
    found, rest = options(expand(text), {"-i": False, "-n": False, "-e": False})
    path, *arguments = module("shlex").split(rest) or [""]
    if not posix.access(path, posix.F_OK) and posix.access(path + ".py", posix.F_OK):
        path += ".py"
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", 0, True)
    name = path.removesuffix(".py") if "-n" in found else "__main__"
    space = driver.world if "-i" in found else {"__name__": name, "__file__": path, "__builtins__": builtins}
    kept, sys.argv = sys.argv, [path, *arguments]
    try:
        exec(code, space)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.argv = kept
        driver.world.update({name: value for name, value in space.items() if name[:2] != "__"})


def write_file(text, body):
    found, path = options(text, {"-a": False, "--append": False})
    path = expand(path).strip("'\"")
    if not path:
        raise ValueError("%%writefile needs the name of a file")
    path, there = module("os").path.expanduser(path), posix.access(path, posix.F_OK)
    with open(path, "a" if found else "w", encoding="utf-8") as file:
        file.write(body if body.endswith("\n") else body + "\n")
    print(f"{'Appending to' if found else 'Overwriting' if there else 'Writing'} {path}")


def program(name):
    return lambda text: system(f"{name} {text}")


ALIASES = {"ll": "ls -l", **{name: name for name in "ls cat cp mv rm mkdir rmdir pip conda mamba man".split()}}
LINE = {**{name: program(command) for name, command in ALIASES.items()},
        "time": time_line, "timeit": timeit, "prun": profile, "pwd": lambda text: posix.getcwd(), "cd": cd,
        "who": who, "whos": whos, "who_ls": lambda text: sorted(our_names().user_names()[0]), "reset": reset,
        "xdel": lambda text: reset("", *text.split()), "matplotlib": matplotlib, "pylab": pylab, "env": environment,
        "set_env": environment, "run": run_file, "history": history, "hist": history, "lsmagic": list_magics,
        "system": captured, "sx": captured, "pinfo": look, "pinfo2": lambda text: look(text, True),
        "psource": lambda text: look(text, True), "pdoc": look, "psearch": look}
CELL = {"time": lambda text: at_end.append(Clock().tell), "timeit": timeit, "prun": profile, "capture": capture,
        "bash": script([BASH]), "sh": script([BASH]), "script": script([]), "python": script(["python3"]),
        "python3": script(["python3"]), "perl": script(["perl"]), "ruby": script(["ruby"]),
        "writefile": write_file, "file": write_file, "html": shown_as("text/html"), "HTML": shown_as("text/html"),
        "markdown": shown_as("text/markdown"), "latex": shown_as("text/latex"), "svg": shown_as("image/svg+xml"),
        "SVG": shown_as("image/svg+xml"), "system": lambda text, body: captured(body),
        "!": lambda text, body: captured(body)}
UNDER = ("time", "capture")   # these run the cell beneath them unchanged
SIGNS = {"!": system, "!!": captured, "?": look, "??": lambda text: look(text, True)}


def over():
    """The cell has ended, in any way."""
    while at_end:
        at_end.pop()()
