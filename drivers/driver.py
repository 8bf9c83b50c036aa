# The Python driver: runs one program (cells.py: many) as __main__ in the box and reports the outcome (PROTOCOL.md).
# Runs as the occupant, with the same privileges as the user's code beside it.
#
# 1. Every run pays for the start-up: only builtin and frozen modules are imported up front. Importing json takes as
#    long as starting the interpreter (6 ms), so frames are read and written with its C core alone.
# 2. The user's code sees the world of `python3 main.py`, although the driver is started with -S.
# 3. A forked child sends no frame, and frames go only to the engine's pipe.
# 4. The process ends by _exit: the driver itself does before, in this order, what the interpreter does for the user
#    at its end (threads, atexit, destructors, unflushed files).
# 5. Changes of the code to builtins do not reach the driver, which has its own.
import atexit
import builtins
import gc
import marshal
import posix
import sys
import _ast
import _io
import _json
import _signal

__builtins__ = {**vars(builtins)}
WORDS_FD, REQUESTS_FD = 3, 4   # the channel from the engine: for frames, and for requests
PARKED_FDS = 250, 251          # its place during the run, so that the user's own files start at 3
FILE = "main.py"
ONLY_AST, TOP_LEVEL_AWAIT, FUTURE_FLAGS, CO_COROUTINE = 0x400, 0x2000, 0x1FF0000, 0x80
TEXT_MAX = 64 << 10
JSON_DEPTH_MAX = 56   # the engine reads 64; the frame around a value needs a few
FILES = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)
PATCHED = ("matplotlib.font_manager", "matplotlib.pyplot", "matplotlib.figure", "multiprocessing.spawn", "pandas",
           "PIL.Image", "IPython.core.getipython", "IPython.core.display_functions", "IPython.core.display")
ORDERED = '{"op":"result"', '{"op":"clear"', '{"op":"error"', '{"op":"input"'   # frames with a place in the output

NOTHING = compile("", FILE, "exec")
main_pid, source, program = posix.getpid(), "", FILE   # program: the code's file name
this, loaded = sys.modules[__name__], {}   # this module; modules read by `load`
world, sources, runner = {}, {}, None   # the program's names; texts of a session's cells; the event loop, if any
columns = 0           # the width of the client, where a session knows it
sign, raws, pipes = "", {}, {}   # for order.py: the secret of marks; by fd, the file below the stream, the pipe
sent_results, sent_bytes, sent_error, mark = 0, 0, 0, ""   # mark: the nonce, as it appears in each frame


# ---- frames ----
class Scan:
    """The attributes that _json's scanner reads; json.decoder has the same."""
    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant, memo = float, int, float, {}


scan = _json.make_scanner(Scan)


def arrive():
    """In the box: move the channel away, put the work folder first on the path."""
    global words, words_id, requests
    if not getattr(sys.flags, "safe_path", False) or sys.flags.isolated:   # from Python 3.11 on
        sys.path.insert(0, posix.getcwd())
    words, requests = PARKED_FDS
    try:   # the higher number first: both or none
        posix.dup2(REQUESTS_FD, requests, inheritable=False)
        posix.dup2(WORDS_FD, words, inheritable=False)
        posix.closerange(WORDS_FD, REQUESTS_FD + 1)
    except OSError:   # a low limit of open files: keep the numbers
        words, requests = WORDS_FD, REQUESTS_FD
        posix.set_inheritable(words, False), posix.set_inheritable(requests, False)
    words_id = posix.fstat(words)[1:3]
    pipes.update({fd: posix.fstat(fd)[1:3] for fd in (1, 2)})


def read_line(fd):
    parts = [posix.read(fd, 1 << 14)]
    while parts[-1] and b"\n" not in parts[-1]:
        parts.append(posix.read(fd, 1 << 20))
    return b"".join(parts) if parts[-1] else posix._exit(1)   # the engine is gone


def send(frame):
    """Send one line to the engine; lost without a message if the code closed or replaced the channel."""
    try:
        ours = posix.getpid() == main_pid and posix.fstat(words)[1:3] == words_id
        first = load("order").switch(0) if ours and sign and frame.startswith(ORDERED) else ""
        rest = memoryview(f"{first}\n{{{mark}{frame[1:]}\n".encode())   # the previous line may lack its end
        while rest and ours:
            rest = rest[posix.write(words, rest):]
    except OSError:
        pass


def clean(text, cap=TEXT_MAX):
    """Text up to its maximum; lone surrogates become '?'."""
    raw = text.encode("utf-8", "replace")
    note = f"\n[cut: {len(raw)} bytes, the maximum is {cap}]"
    return raw.decode() if len(raw) <= cap else raw[: cap - 80].decode("utf-8", "ignore") + note


def to_json(value, depth=0):
    """The JSON text of a value: all types of json.dumps, and sets and numpy's numbers and arrays."""
    if depth > JSON_DEPTH_MAX:
        raise TypeError(f"value is nested deeper than {JSON_DEPTH_MAX}, or holds itself")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _json.encode_basestring_ascii(value.encode("utf-8", "replace").decode())
    if isinstance(value, int):   # beyond 64 bits most readers fail or round: exact as text
        text = int.__repr__(value)
        return text if -(1 << 63) <= value < 1 << 63 else f'"{text}"'
    if isinstance(value, float):   # JSON has no NaN and no infinity
        return float.__repr__(value) if value - value == 0 else "null"
    if isinstance(value, dict):
        items = {}
        for key, item in value.items():
            if isinstance(key, (int, float)) or key is None:
                key = to_json(key, depth).strip('"')
            if not isinstance(key, str):
                raise TypeError(f"key of type {type(key).__name__} is not a JSON key")
            key = to_json(key)
            if key in items:
                raise TypeError(f"two keys have the same text {key}")
            items[key] = to_json(item, depth + 1)
        return "{" + ",".join([f"{key}:{item}" for key, item in items.items()]) + "}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "[" + ",".join([to_json(item, depth + 1) for item in value]) + "]"
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return to_json(value.tolist(), depth + 1)
    raise TypeError(f"value of type {type(value).__name__} is not JSON serializable")


# ---- values: show.py ----
def show(value):
    """Send the value of the last expression: the main result. A small number or text needs no other file."""
    kind = type(value)
    small = kind is float or kind is bool or kind is int and abs(value) < 1 << 63 or kind is str and len(value) < 1000
    if small and not (sent_results or "show" in loaded and loaded["show"].printers):
        send(f'{{"op":"result","data":{{"text/plain":{to_json(clean(repr(value)))}}},"main":true}}')
    else:
        load("show").show(value, main=True)


def display(*values, **options):
    """Show values as results, each in its richest forms."""
    return load("show").display(*values, **options)


def get_ipython():
    """The shell of notebooks, as far as it is here (ipython.py)."""
    return load("ipython").shell


def show_figures(*_, **__):
    """plt.show() and the end of the program: every open figure becomes a result."""
    if "matplotlib.pyplot" in sys.modules:
        load("show").show_figures()


# ---- modules that need help, but only if they are imported ----
def after_linecache(module):   # or None, or a file of the user
    cache = getattr(module, "cache", {})
    cache[program] = len(source), None, [line + "\n" for line in source.split("\n")], program


def patch(module):
    """patches.py adapts it."""
    try:
        load("patches").PATCHES[module.__name__](module)
    except Exception:   # a file of the user with that name, or another version
        pass


class Absent:
    """Last on sys.meta_path: a small IPython, where there is none."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return load("ipython").find(name) if name.partition(".")[0] == "IPython" else None


class Hooks:
    """First on sys.meta_path: finds nothing itself, but patches a few modules when they are loaded. Also the program's
    __loader__, by which linecache and inspect read code that is in no file."""
    after = {"linecache": after_linecache, **dict.fromkeys(PATCHED, patch)}

    @staticmethod
    def get_source(name=None):
        return source

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        after = cls.after.pop(name, None)
        for finder in sys.meta_path if after else ():
            spec = finder.find_spec(name, path, target) if finder is not cls else None
            if spec:
                load = spec.loader.exec_module
                spec.loader.exec_module = lambda module: (load(module), after(module))
                return spec


# ---- errors ----
def hook(name, own):
    """A hook for errors that the interpreter prints, with source lines: report.py. Else its own."""
    def print_error(*about):
        try:
            getattr(load("report"), name)(*about)
        except BaseException:   # no file, memory, stack or time left
            own(*about)
    return print_error


def set_hooks():
    import _thread
    sys.excepthook = sys.__excepthook__ = hook("uncaught", sys.excepthook)
    sys.unraisablehook = sys.__unraisablehook__ = hook("ignored", sys.unraisablehook)
    _thread._excepthook = hook("in_thread", _thread._excepthook)   # threading takes it from there
    if "threading" in sys.modules:
        threading = sys.modules["threading"]
        threading.excepthook = threading.__excepthook__ = _thread._excepthook


def line_of(problem):
    """The line of the innermost frame of the user's program."""
    line, trace = None, problem.__traceback__
    while trace:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == program else line
        trace = trace.tb_next
    return line


def source_line(line):
    lines = source.split("\n")
    return lines[line - 1].rstrip("\r") if line and 0 < line <= len(lines) else ""


def load(name):
    """Load a file beside this one, once, and register no name: a program may have a module of that name."""
    if name not in loaded:
        module, path = type(sys)(name), f"{our_files[0].rpartition('/')[0]}/{name}.py"
        module.__builtins__ = __builtins__   # our own, whatever the code did
        our_files.append(path)
        compiled = posix.access(path + "c", posix.F_OK)   # ahead, by the build
        with open(path + "c" * compiled, "rb") as file:
            code = file.read()
        exec(marshal.loads(code[16:]) if compiled else compile(code, path, "exec", 0, True), vars(module))
        module.driver, loaded[name] = this, module
    return loaded[name]


def explain(*about):
    """Details from advice.py for an error."""
    try:
        return load("advice").explain(*about)
    except BaseException:   # no file, memory, stack or time left: the error's name is enough
        return {}


def send_error(problem, compiling=False):
    """The program's first error counts; a later one does not hide it."""
    global sent_error
    if sent_error:
        return
    sent_error, kind = True, "import" if isinstance(problem, ImportError) else "exception"
    line, column = line_of(problem), None
    try:
        message = str(problem)
    except Exception:
        message = "<str() of the exception failed>"
    if compiling and isinstance(problem, ValueError):   # a NUL byte in the code
        kind = "syntax"
    elif compiling and isinstance(problem, SyntaxError):
        kind, message, problem.__traceback__ = "syntax", problem.msg, None
        line, column = problem.lineno, problem.offset
        if line and problem.filename == program:   # the compiler would look for a file of that name
            problem.text = source_line(line) + "\n"
    send(to_json({
        "op": "error", "kind": kind, "name": type(problem).__name__, "message": clean(message),
        "line": line or None, "column": column or None,
        "snippet": source_line(line)[:1000] or None, "traceback": "",
        "interrupted": isinstance(problem, KeyboardInterrupt), **explain(problem, compiling)}))


# ---- the run ----
class Warnings:
    """Stands for the module `warnings` while the compiler works, unless it is imported: it is at the first warning,
    which the compiler would else show without its source line."""

    def __getattr__(self, name):
        if name in ("filters", "defaultaction", "onceregistry") or name[:2] == "__":
            raise AttributeError(name)   # the compiler has its own
        sys.modules.pop("warnings", None)
        return getattr(__import__("warnings"), name)


def parse_program():
    """The program's tree. Text that is not Python may still be what a notebook accepts."""
    try:
        return compile(source, program, "exec", ONLY_AST | TOP_LEVEL_AWAIT, True)
    except SyntaxError:
        pass   # the other one knows the error, too
    return load("source").parse(source, program)


def compile_program():
    """The program's code, and that of its last expression if it shows a value."""
    tree = parse_program()
    if "ipython" in loaded:
        tree = loaded["ipython"].interactive(tree)
    last = tree.body[-1] if tree.body else None
    shows = type(last).__name__ == "Expr"
    if shows:   # unless it ends in `;`, which suppresses the value
        rest = source_line(last.end_lineno).encode()[last.end_col_offset:]
        shows = not rest.strip().startswith(b";")
    if not shows:
        return compile(tree, program, "exec", TOP_LEVEL_AWAIT, True), None
    del tree.body[-1]
    code = compile(tree, program, "exec", TOP_LEVEL_AWAIT, True) if tree.body else NOTHING
    flags = TOP_LEVEL_AWAIT | code.co_flags & FUTURE_FLAGS
    return code, compile(_ast.Expression(last.value), program, "eval", flags, True)


def run_codes(code, last, scope):
    parts = (code, last) if last else (code,)
    if not any(part.co_flags & CO_COROUTINE for part in parts):
        return [eval(part, scope) for part in parts][-1]
    return load("tasks").run_parts(parts, scope)


def settle(step, *args):
    """Run one step of the user's code: its exit status, None if the program continues."""
    try:
        step(*args)
        return None
    except SystemExit as problem:
        if problem.code is None or isinstance(problem.code, int):
            return (problem.code or 0) & 0xFF
        print(problem.code, file=sys.stderr)
        return 1
    except BaseException as problem:
        send_error(problem)
        if posix.getpid() != main_pid or sys.excepthook is not sys.__excepthook__:
            trace = problem.__traceback__
            while trace and trace.tb_frame.f_code.co_filename != program:
                trace = trace.tb_next
            try:
                sys.excepthook(type(problem), problem.with_traceback(trace), trace)
            except Exception:
                pass   # a failing hook: the error was sent
        return 130 if isinstance(problem, KeyboardInterrupt) else 1


def run_program(request, scope):
    ours = sys.modules.setdefault("warnings", Warnings())
    try:
        code, last = compile_program()
    except BaseException as problem:
        send_error(problem, compiling=True)
        raise SystemExit(1)
    finally:
        type(ours) is Warnings and sys.modules.get("warnings") is ours and sys.modules.pop("warnings")
    try:
        "seed" in request and load("seed").begin(request)
        value = run_codes(code, last, scope)
        if value is not None:
            show(value)
    finally:
        "magics" in loaded and loaded["magics"].over()
    if request.get("call"):
        load("show").run_call(request["call"], scope)
    return value


def finish(scope):
    """Do the interpreter's work at its end, without the slow rest."""
    threading = sys.modules.get("threading")
    ours = hasattr(threading, "_shutdown")   # else a file of the user, or none
    runner and runner.close()
    ours and threading._shutdown()
    atexit._run_exitfuncs()
    if not ours or threading.active_count() == 1:   # a daemon thread may still use them
        scope.update(dict.fromkeys([name for name in scope if name != "__builtins__"]))


def flush_files():
    """Flush files that the code left open, texts before the buffers below them, and the standard streams."""
    files = [thing for thing in gc.get_objects() if isinstance(thing, FILES)]
    files.sort(key=lambda file: not isinstance(file, _io.TextIOWrapper))
    for file in (*files, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if not file.closed:
                file.flush()
        except (OSError, ValueError, AttributeError):
            pass


def set_path():
    """sys.path as set by site, without the driver's own folder."""
    folder, version = sys.argv[0].rpartition("/")[0], f"python3.{sys.version_info[1]}"
    sys.path[:1] = [] if sys.path[0] == folder else sys.path[:1]
    if posix.access(sys.executable.rpartition("/bin/")[0] + "/pyvenv.cfg", posix.F_OK):   # of --venv
        import site
        return site.main()
    debian = f"local/lib/{version}/dist-packages lib/python3/dist-packages lib/{version}/dist-packages"
    others = " ".join(f"{lib}/{version}/site-packages" for lib in dict.fromkeys((sys.platlibdir, "lib")))
    there = [[path for path in (f"{sys.prefix}/{name}" for name in names.split())
              if posix.access(path, posix.F_OK)] for names in (debian, others)]
    sys.path += there[0] or there[1]


def add_local():
    """The packages of an image that adds to the host's, which the zygote did not have; the rest is as in plan.c."""
    environ, modules = sys.modules["os"].environ, "/usr/local/lib/node_modules"
    environ["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    if posix.access(modules, posix.F_OK):
        environ["NODE_PATH"] = modules
    sys.path[:] = [path for path in sys.path if not path.endswith("-packages")]
    set_path()


def set_flags():
    """sys.flags as without -S: subprocess, multiprocessing and joblib start children with the flags that it shows. It
    cannot be made anew, so its field is changed in memory, if it is where it must be."""
    shown, wanted = (id(number).to_bytes(8, sys.byteorder) for number in (1, 0))
    try:
        place = id(sys.flags) + tuple.__basicsize__ + 8 * sys.flags.__match_args__.index("no_site")
        memory = posix.open("/proc/self/mem", posix.O_RDWR | posix.O_CLOEXEC)
        if posix.pread(memory, 8, place) == shown:
            posix.pwrite(memory, wanted, place)
        posix.close(memory)
    except (OSError, AttributeError):   # a kernel that forbids it, Python before 3.10
        pass


def set_args(args):
    sys.argv = [FILE, *args]
    sys.orig_argv = [sys.executable, *sys.argv]


def set_world():
    """The world of `python3 main.py`, although site was not imported."""
    global our_files, world
    import _sitebuiltins
    set_flags()
    our_files = [set_world.__code__.co_filename]
    sys.meta_path[:] = Hooks, *sys.meta_path, Absent
    set_hooks()
    sys.stdout.reconfigure(line_buffering=True)
    raws.update({fd: getattr(stream.buffer, "raw", stream.buffer) for fd, stream in ((1, sys.stdout), (2, sys.stderr))})
    vars(raws[2])["write"] = lambda data: load("order").write(2, data)   # a switch from stdout
    for name in ("exit", "quit"):
        setattr(builtins, name, _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)"))
    for name in ("copyright", "credits", "license"):
        text = sys.copyright if name == "copyright" else "See https://www.python.org for more information."
        setattr(builtins, name, _sitebuiltins._Printer(name, text))
    builtins.help = _sitebuiltins._Helper()
    builtins.display, builtins.get_ipython = display, get_ipython
    module = sys.modules["__main__"] = type(sys)("__main__")
    module.__dict__.update(__builtins__=builtins, __file__=FILE, __cached__=None,
                           __loader__=Hooks, __spec__=None, __package__=None)
    world = module.__dict__
    return world


def take(request):
    """Set up the program and its world from the request."""
    global source, sign
    source, sign = request["code"], request.get("sign", "")
    set_args(request["args"])
    if request.get("env"):
        __import__("os").environ.update(request["env"])
        "COLUMNS" in request["env"] and "pandas" in sys.modules and patch(sys.modules["pandas"])
    after_linecache(sys.modules.get("linecache"))
    request.get("tools") and load("tools").begin(request["tools"], [])


def perform(request, scope):
    """The run without the end of the process: its exit status."""
    status = settle(run_program, request, scope)
    for step in (show_figures, finish):
        later = settle(step, scope)
        status = later if status is None or later == 130 else status
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)   # too late to interrupt anything
    flush_files()
    send(f'{{"op":"done","exit_code":{status or 0}}}')
    return status or 0


def main():
    set_path()
    scope = set_world()
    arrive()
    given = sys.argv[1:]
    if given == ["wait"]:   # in a pool, where no zygote can fork this Python
        send('{"op":"ready"}')
        given = []
    # A copy of a zygote that cannot serve a request (zygote.py) passes it on in a file.
    request = scan(read_line(int(given[0]) if given else requests).decode(), 0)[0]
    take(request)
    gc.freeze()   # the collections at the end then skip the existing objects
    posix._exit(perform(request, scope))


if __name__ == "__main__":
    main()
