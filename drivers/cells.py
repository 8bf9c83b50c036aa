# The cells of a Python session, with the functions of driver.py (PROTOCOL.md). Runs as the occupant:
# started as a program for a cold session, or loaded by the zygote before it forks.
#
# 1. There is one place to wait: the system call in `receive`. Nothing is held between two lines,
#    no thread is ours: the trusted side may fork the process there, and a copy that wakes up may
#    find another socket under the same number.
# 2. Whatever a cell does (exit, an error, SIGINT, its hands on sys or builtins), the next line is
#    waited for; only the loss of the channel and a real death end a session.
# 3. To name what a cell left behind, no code of the user's is called: types are compared, never
#    asked, and a value of a class that is not known shows its class alone.
import builtins
import gc
import posix
import sys
import _io
import _signal

__builtins__ = {**vars(builtins)}
CLOEXEC = 0x40000000         # MSG_CMSG_CLOEXEC
SOURCES_MAX = 16 << 20       # of earlier cells, for tracebacks
ENTRIES_MAX, LOOKED_AT_MAX, NAME_MAX, TEXT_MAX, ITEMS_MAX = 200, 20000, 200, 80, 64
MATCHES_MAX = 100
AGAIN = 11                   # errno

driver = None                # the module; whoever loads this file sets it
channel = scope = None
held, held_files = [], []    # what has come of the next line
sources, sources_bytes = {}, 0   # of the cells, by their names, oldest first
handler = _signal.default_int_handler   # the code's own for SIGINT, while none of it runs
args = None
stdin_given, stdin_form = False, ("utf-8", "strict")


# ---- the channel ----
def receive():
    """The next line, and the files that came with it; no line at the end of the channel."""
    global channel
    if not channel:   # made before any code of the user's runs, whose default timeout it would have
        import _socket
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, driver.control)
    while not held or b"\n" not in held[-1]:
        part, news, _, _ = channel.recvmsg(1 << 16, 64, CLOEXEC)
        for _, _, data in news:   # SCM_RIGHTS is all that comes
            held_files.extend(memoryview(data[: len(data) & ~3]).cast("i"))
        if not part:
            return b"", []
        held.append(part)
    line, _, rest = b"".join(held).partition(b"\n")
    held[:] = [rest] if rest else []   # files come with what came last
    files = [] if rest else held_files[:]
    del held_files[: len(files)]
    driver.control_id = posix.fstat(driver.control)[1:3]
    return line, files


def wait():
    """`receive`, whatever a signal handler of the code's does meanwhile."""
    while True:
        try:
            return receive()
        except OSError as problem:
            ours = innermost(problem) is receive.__code__
            if ours and problem.errno == AGAIN:
                posix.set_blocking(driver.control, True)
            elif ours:
                return b"", []
            else:
                complain(problem)
        except BaseException as problem:
            complain(problem)


def innermost(problem):
    trace = problem.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_code


def complain(problem):
    """An error that belongs to no cell, as the interpreter's own prompt would show it."""
    try:
        sys.excepthook(type(problem), problem, problem.__traceback__)
        sys.stderr.flush()
    except BaseException:
        pass   # nowhere to show it


def channel_is_ours():
    try:
        return posix.fstat(driver.control)[1:3] == driver.control_id
    except OSError:
        return False


# ---- a cell ----
def put_stdin(files):
    """The cell's own stdin over fd 0. sys.stdin is made anew, unless the code has put something
    else there: what the old one had read ahead, and its end, are not this cell's."""
    global stdin_given
    fd = files[0] if files else posix.open("/dev/null", posix.O_RDONLY | posix.O_CLOEXEC)
    posix.dup2(fd, 0)
    posix.set_inheritable(0, True)   # it came as 0 if the code had closed that
    for file in files or [fd]:
        file > 2 and posix.close(file)
    old = getattr(sys, "__stdin__", None)
    if files or stdin_given or old is None or old.closed:
        new = _io.TextIOWrapper(open(0, "rb", closefd=False), *stdin_form)
        new.buffer.raw.name, new.mode = "<stdin>", "r"
        if getattr(sys, "stdin", None) is old:
            sys.stdin = new
        sys.__stdin__ = new
    stdin_given = bool(files)


def keep_source():
    """For the tracebacks of later cells, whose functions may come from this one."""
    global sources_bytes
    cache = getattr(sys.modules.get("linecache"), "cache", {})
    sources_bytes += len(driver.source) - len(sources.pop(driver.program, ""))
    sources[driver.program] = driver.source
    while sources_bytes > SOURCES_MAX and len(sources) > 1:
        oldest = next(iter(sources))
        sources_bytes -= len(sources.pop(oldest))
        type(cache) is dict and cache.pop(oldest, None)
    driver.after_linecache(sys.modules.get("linecache"))


def fill_linecache(module):
    """It was just imported, and hears of the cells until now."""
    cache = getattr(module, "cache", {})
    for name, text in sources.items():
        cache[name] = len(text), None, [line + "\n" for line in text.split("\n")], name


def take(request):
    """What the line says of the cell and its world. Arguments stay until others come, so that
    what the code did to sys.argv does too."""
    global args
    driver.source, driver.program = request["code"], f"<cell {request['cell']}>"
    keep_source()
    if args != request.get("args", []):
        args = request.get("args", [])
        sys.argv = [driver.FILE, *args]
    if request.get("env"):
        __import__("os").environ.update(request["env"])
    scope.setdefault("__builtins__", builtins)


def run(request, files):
    _signal.signal(_signal.SIGINT, handler)
    put_stdin(files)
    take(request)
    value = driver.run_program(request, scope)
    if value is not None:
        builtins._ = value   # a name `_` of the code's own comes first, as at the interpreter's prompt


def guard(step, *args):
    """Settle a step; also if the interrupt comes while it is being settled."""
    try:
        return driver.settle(step, *args)
    except KeyboardInterrupt as late:
        driver.send_error(late)
        return 130
    except BaseException:   # a sys.stderr that fails, or a message that has no text
        return 1


def hear_nothing():
    """No SIGINT between cells; the code's own handler comes back with the next one."""
    global handler
    while True:
        try:
            found = _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
            handler = _signal.default_int_handler if found is None else found
            return
        except BaseException:   # one that was under way: the cell is over
            pass


def flush():
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        try:
            getattr(sys, name).flush()
        except BaseException:
            pass   # replaced by what cannot be flushed, closed or gone


def perform(request, files):
    before = marks() if request.get("names") else None
    driver.sent_results = driver.sent_bytes = driver.sent_error = 0
    status = guard(run, request, files)
    later = guard(driver.show_figures)
    status = later if status is None or later == 130 else status
    guard(flush)
    hear_nothing()
    if posix.getpid() != driver.main_pid:   # a child that the code forked and that came here
        end(status)
    if not channel_is_ours():   # closed or replaced: no word would arrive
        posix._exit(1)
    try:
        names = "" if before is None else f',"names":{driver.to_json(changes(before))}'
    except Exception:   # no memory left to tell it
        names = ""
    driver.send(f'{{"op":"done","exit_code":{status or 0}{names}}}')


def renew(request, files):
    """After a fork from outside: what must be this process's own. Random generators that packages
    or the code made for themselves go on where they were."""
    driver.main_pid = posix.getpid()
    found = {name: vars(sys.modules[name]) for name in ("threading", "random", "numpy.random", "_ssl")
             if isinstance(sys.modules.get(name), type(sys))}
    steps = (lambda: vars(found["threading"]["_main_thread"]).update(_native_id=driver.main_pid),
             lambda: found["random"]["seed"](), lambda: found["numpy.random"]["seed"](),
             lambda: found["_ssl"]["RAND_add"](posix.urandom(32), 32.0))
    for step in steps:
        try:
            step()
        except Exception:
            pass   # not loaded, or not what it was
    driver.send('{"op":"renewed"}')


# ---- names ----
# As the interpreter has them: a class can have its own idea of its name, its bases, its names.
FUNCTION, MODULE, DICT_SLOT = type(receive), type(sys), type(type.__dict__["__dict__"])
name_of, line_of, class_names = [type.__dict__[name].__get__
                                 for name in ("__name__", "__mro__", "__dict__")]
module_names = MODULE.__dict__["__dict__"].__get__
LISTS = (list, tuple, set, frozenset, dict)
TEXTS = (str, bytes, bytearray)
PLAIN = (float, complex, bool, type(None), type(...), type(NotImplemented))
SHAPED = (("numpy", "ndarray"), ("pandas", "DataFrame", "Series"), ("torch", "Tensor"))
SHOWN = (("datetime", "date", "datetime", "timedelta", "time"), ("decimal", "Decimal"),
         ("fractions", "Fraction"), ("numpy", "float64", "float32", "int64", "int32", "bool_"))
COUNTED = (("collections", "deque", "Counter", "OrderedDict", "defaultdict"),)


def known(kind, module, *names):
    """Is this type one of a library's own? Asked of the library, because a type can lie."""
    library = sys.modules.get(module)
    if MODULE not in line_of(type(library)):
        return False
    return any(module_names(library).get(name) is kind for name in names)


def any_known(kind, libraries):
    return any(known(kind, *names) for names in libraries)


def brief(value, depth=0):
    """A short text of a value, in bounded time."""
    kind = type(value)
    if kind in TEXTS:
        return repr(value[:TEXT_MAX])
    if kind is int:
        return repr(value) if value.bit_length() < 256 else f"<int of {value.bit_length()} bits>"
    if kind in PLAIN or any_known(kind, SHOWN):
        return repr(value)
    if kind in LISTS and depth < 3:
        return brief_list(value, kind, depth)
    if kind is FUNCTION:
        code = value.__code__
        return f"{value.__name__}({', '.join(code.co_varnames[: min(code.co_argcount, 8)])})"
    if kind is MODULE:
        return f"module {brief(module_names(value).get('__name__'))}"
    if kind is range:
        return f"range({brief(value.start)}, {brief(value.stop)}, {brief(value.step)})"
    if type in line_of(kind):
        return f"class {name_of(value)}"
    if any_known(kind, SHAPED):
        return brief_shaped(value, kind)
    return f"<{name_of(kind)}>"


def brief_list(value, kind, depth):
    items = [item for item, _ in zip(value.items() if kind is dict else value, range(6))]
    more = ", …" if len(value) > len(items) else ""
    if kind is dict:
        return "{" + ", ".join([f"{brief(key, 3)}: {brief(item, depth + 1)}"
                                for key, item in items]) + more + "}"
    text = ", ".join([brief(item, depth + 1) for item in items]) + more
    return {list: f"[{text}]", tuple: f"({text})", set: f"{{{text}}}"}.get(kind, f"frozenset({text})")


def brief_shaped(value, kind):
    if known(kind, "pandas", "DataFrame"):
        return f"columns {brief(value.columns[:6].tolist())}"
    if known(kind, "pandas", "Series"):
        return f"{value.dtype} {brief(value.iloc[:6].tolist())}"
    if known(kind, "numpy", "ndarray"):
        return f"{value.dtype.name} {brief(value.flat[:6].tolist())}"
    return f"{value.dtype}"


def describe(name, value):
    """One entry of a list of names."""
    kind = type(value)
    entry = {"name": name, "type": str(name_of(kind))[:NAME_MAX], "text": ""}
    try:
        entry["text"] = driver.clean(brief(value))[:TEXT_MAX]
        if any_known(kind, SHAPED):
            entry["shape"] = [int(size) for size in value.shape[:32]]
        elif kind in LISTS or kind in TEXTS or any_known(kind, COUNTED):
            entry["length"] = kind.__len__(value)
        if known(kind, "numpy", "ndarray") or known(kind, "pandas", "Series"):
            entry["size_bytes"] = int(value.nbytes)
        elif known(kind, "pandas", "DataFrame"):
            if value.shape[1] <= ITEMS_MAX:
                entry["size_bytes"] = int(value.memory_usage().sum())
        elif __builtins__.get(name_of(kind)) is kind:
            entry["size_bytes"] = sys.getsizeof(value)
        else:
            entry["size_bytes"] = object.__sizeof__(value)
    except Exception:
        pass   # what could be told is told
    return entry


def attributes(value):
    """The dictionary of an instance, if it has a plain one."""
    for kind in line_of(type(value)):
        own = class_names(kind).get("__dict__")
        if own is not None:
            found = own.__get__(value) if type(own) is DICT_SLOT else None
            return found if type(found) is dict else None


def mark(value):
    """What is compared to find a change: identity, size, and a little of what is inside."""
    kind = type(value)
    try:
        if kind in TEXTS:
            return id(value), len(value), bytes(value[:1024]) if kind is bytearray else hash(value)
        if kind in PLAIN or kind is int:
            return id(value), hash(value)
        if kind in LISTS:
            inside = value.values() if kind is dict else value
            return id(value), len(value), tuple([id(item) for item, _ in zip(inside, range(ITEMS_MAX))])
        if known(kind, "numpy", "ndarray"):
            inside = b"" if value.dtype.hasobject else value.flat[: 16 * ITEMS_MAX].tobytes()
            return id(value), value.shape, inside
        if any_known(kind, SHAPED):
            return id(value), tuple(value.shape)
        own = attributes(value) if kind is not FUNCTION and kind is not MODULE else None
        inside = zip(own.values(), range(ITEMS_MAX)) if own else ()
        return id(value), tuple([id(item) for item, _ in inside])
    except Exception:
        return (id(value),)


def user_names():
    """The names that the code made, and how many more there are than can be looked at."""
    found = {name: value for name, value in scope.copy().items()
             if type(name) is str and name[:1] != "_" and len(name) <= NAME_MAX}
    more = len(found) - LOOKED_AT_MAX
    return {name: value for (name, value), _ in zip(found.items(), range(LOOKED_AT_MAX))}, max(more, 0)


def marks():
    return {name: mark(value) for name, value in user_names()[0].items()}


def changes(before):
    """What the cell did to the names. Not seen: a change deep inside a value that is not itself
    replaced, and in the middle of a large one."""
    names, more = user_names()
    after = {name: mark(value) for name, value in names.items()}
    lists = {"added": [name for name in after if name not in before],
             "changed": [name for name in after if name in before and before[name] != after[name]],
             "removed": [name for name in before if name not in scope]}
    room, answer = ENTRIES_MAX, {}
    for word, found in lists.items():
        answer[word] = [describe(name, names[name]) if name in names else {"name": name}
                        for name in found[:room]]
        more += len(found) - len(answer[word])
        room -= len(answer[word])
    return {**answer, "more": more} if more else answer


def tell_names(request, files):
    names, more = user_names()
    entries = [describe(*item) for item, _ in zip(names.items(), range(ENTRIES_MAX))]
    more += len(names) - len(entries)
    driver.send(driver.to_json({"op": "names", "names": entries, **({"more": more} if more else {})}))


# ---- completion ----
def members(value):
    """The attributes of a value by name, without asking it: what __getattr__ and __dir__ would
    add is not there. A descriptor stands for itself."""
    found = {}
    line = line_of(type(value))
    for kind in reversed(line_of(value) + line if type in line else line):
        found.update(class_names(kind))
    found.update((module_names(value) if MODULE in line else attributes(value)) or {})
    return found


def resolve(path):
    """The value that a dotted name leads to; an error if code would have to run to know it."""
    value = {**vars(builtins), **scope}[path[0]]
    for name in path[1:]:
        value = members(value)[name]
        line = line_of(type(value))
        if type(value) in (staticmethod, classmethod):
            value = value.__func__
        elif type(value) is not FUNCTION and any("__get__" in class_names(kind) for kind in line):
            raise LookupError(name)
    return value


def complete(request, files):
    """What may stand at the cursor: names and keywords, or attributes behind a dot."""
    text = request["code"][: max(int(request["cursor"]), 0)]
    start = len(text)
    while start and (text[start - 1] == "." or ("x" + text[start - 1]).isidentifier()):
        start -= 1
    *path, prefix = text[start:].split(".")
    try:
        if path:
            found = members(resolve(path))
        else:
            found = {**vars(builtins), **scope, **dict.fromkeys(__import__("keyword").kwlist)}
        matches = sorted([name for name in found if type(name) is str and name.startswith(prefix)
                          and len(name) <= NAME_MAX and (prefix or name[:1] != "_")])
    except Exception:
        matches = []
    matches = [driver.clean(name) for name in matches[:MATCHES_MAX]]
    driver.send(driver.to_json({"op": "complete", "matches": matches,
                                "start": len(text) - len(prefix)}))


# ---- the session ----
OPS = {"cell": perform, "names": tell_names, "complete": complete, "renew": renew}


def end(status=None):
    """What the end of a program does."""
    later = guard(driver.finish, scope)
    guard(driver.flush_files)
    posix._exit((later if status is None else status) or 0)


def serve(names, line=None, files=()):
    """Lines until the last: each is answered before the next is waited for. Does not return."""
    global scope, stdin_form
    scope = names
    if sys.__stdin__:
        stdin_form = sys.__stdin__.encoding, sys.__stdin__.errors
    driver.our_files.append(serve.__code__.co_filename)
    driver.Hooks.after["linecache"] = fill_linecache
    hear_nothing()
    if line is None:
        line, files = wait()
    while line:
        request = driver.scan(line.decode(), 0)[0]
        if request["op"] == "end":
            break
        if request["op"] in OPS:
            OPS[request["op"]](request, files)
        line, files = wait()
    end()


def load_driver():
    """It is found under no name: a program may have a module of that name."""
    folder = serve.__code__.co_filename.rpartition("/")[0]
    if sys.path[0] != folder:
        sys.path.insert(0, folder)
    module = __import__("driver")
    del sys.modules["driver"]
    return module


def main():
    global driver
    driver = load_driver()
    driver.set_path()
    names, given = driver.set_world(), [int(number) for number in sys.argv[1:]]
    driver.arrive()
    gc.freeze()
    if given:   # a copy of a zygote that cannot serve a session (zygote.py) hands the line on
        serve(names, driver.read_line(given[0]).partition(b"\n")[0], given[1:])
    driver.send('{"op":"ready"}')
    serve(names)


if __name__ == "__main__":
    main()
