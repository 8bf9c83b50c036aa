# The cells of a Python session, with the functions of driver.py (PROTOCOL.md). Runs as the occupant: started as a
# program for a cold session, or loaded by the zygote before it forks.
#
# 1. The session waits in one place: the system call in `receive`. Between two lines it holds no lock and has no
#    thread: the keeper may copy the process there, and a woken copy may find other pipes under the same numbers.
#    Tasks of earlier cells go on only after the line `go` (tasks.py), once the copy is made.
# 2. Whatever a cell does (exit, an error, SIGINT, changes to sys or builtins), the session waits for the next line;
#    only the loss of the channel and the death of the process end it.
# 3. names.py lists the names that a cell left behind; advice.py finds problems of a cell before it runs.
import builtins
import gc
import posix
import sys
import _io
import _signal
from posix import read

__builtins__ = {**vars(builtins)}
CLOEXEC = 1                  # MFD_CLOEXEC
PART = 1 << 16
SOURCES_MAX = 16 << 20       # maximum for sources of earlier cells, for tracebacks
AGAIN = 11                   # errno
NULL_DEVICE = 0x103          # of /dev/null

driver = names = None        # the modules; set by the loader of this file
main_thread = None
scope = requests_id = None
held = []                    # bytes of the next line that have arrived
sources, sources_bytes = {}, 0   # of the cells, by name, oldest first
handler = _signal.default_int_handler   # the code's own for SIGINT, while no cell runs
blocked = False              # by the code itself
folder = "/workspace"        # the folder at the end of the last cell
piped = [1, 2]               # the streams that were the engine's pipes then
may_go_on = False            # tasks of earlier cells
number, late = 0, None       # of the running cell; the module, once there may be threads
args, stdin_given, stdin_form = None, False, ("utf-8", "strict")


# ---- the channel ----
def receive():
    """The next line; "" at the end of the channel."""
    global requests_id
    while not held or b"\n" not in held[-1]:
        part = read(driver.requests, PART)
        if not part:
            return b""
        held.append(part)
    line, _, rest = b"".join(held).partition(b"\n")
    held[:] = [rest] if rest else []
    driver.words_id, requests_id = posix.fstat(driver.words)[1:3], posix.fstat(driver.requests)[1:3]
    return line


def unnamed_file(name):
    try:
        return posix.memfd_create(name, CLOEXEC)
    except OSError:   # refused where no cgroup counts such memory
        return posix.open("/tmp", posix.O_TMPFILE | posix.O_RDWR | posix.O_CLOEXEC, 0o600)


def receive_stdin(left):
    """The bytes after the line of a cell, as an unnamed file. Reads all of them, even without room."""
    problem, file = None, unnamed_file("stdin")
    while left:
        part = held.pop() if held else read(driver.requests, PART)
        if not part:
            break
        if len(part) > left:
            held.append(part[left:])
            part = part[:left]
        left -= len(part)
        try:
            while part and not problem:
                part = part[posix.write(file, part):]
        except OSError as error:
            problem = error
    if problem:
        posix.close(file)
        raise problem
    posix.lseek(file, 0, 0)
    return file


def wait():
    """`receive`, whatever a signal handler of the code does meanwhile."""
    while True:
        try:
            if may_go_on and driver.runner and not held:
                driver.load("tasks").go_on()
            return receive()
        except OSError as problem:
            ours = innermost(problem) is receive.__code__
            if ours and problem.errno == AGAIN:
                posix.set_blocking(driver.requests, True)
            elif ours:
                return b""
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
    """Show an error that belongs to no cell, like the interpreter's own prompt."""
    try:
        sys.excepthook(type(problem), problem, problem.__traceback__)
        sys.stderr.flush()
    except BaseException:
        pass   # nowhere to show it


def pipe_of(fd):
    try:
        return posix.fstat(fd)[1:3]
    except OSError:
        return None


def channel_is_ours():
    try:
        return (posix.fstat(driver.words)[1:3] == driver.words_id
                and posix.fstat(driver.requests)[1:3] == requests_id)
    except OSError:
        return False


# ---- a cell ----
def reads_nothing():
    """Is it still /dev/null?"""
    try:
        return posix.fstat(0).st_rdev == NULL_DEVICE and not sys.__stdin__.closed
    except (OSError, AttributeError):
        return False


def put_stdin(count):
    """Put the cell's own stdin over fd 0. sys.stdin is made anew, unless the code replaced it: the old one's read-ahead
    and its end do not belong to this cell."""
    global stdin_given
    if not (count or stdin_given) and reads_nothing():
        return
    fd = receive_stdin(count) if count else posix.open("/dev/null", posix.O_RDONLY | posix.O_CLOEXEC)
    posix.dup2(fd, 0)
    posix.set_inheritable(0, True)   # it arrived as 0 if the code had closed 0
    fd > 2 and posix.close(fd)
    old = getattr(sys, "__stdin__", None)
    if count or stdin_given or old is None or old.closed:
        new = _io.TextIOWrapper(open(0, "rb", closefd=False), *stdin_form)
        new.buffer.raw.name, new.mode = "<stdin>", "r"
        if getattr(sys, "stdin", None) is old:
            sys.stdin = new
        sys.__stdin__ = new
    stdin_given = bool(count)


def keep_source():
    """Keep the source for tracebacks of later cells, whose functions may come from this one."""
    global sources_bytes
    cache = getattr(sys.modules.get("linecache"), "cache", {})
    sources_bytes += len(driver.source) - len(sources.pop(driver.program, ""))
    sources[driver.program] = driver.source
    while sources_bytes > SOURCES_MAX and len(sources) > 1:
        oldest = next(iter(sources))
        sources_bytes -= len(sources.pop(oldest))
        names.forget_text(oldest)
        type(cache) is dict and cache.pop(oldest, None)
    driver.after_linecache(sys.modules.get("linecache"))


def fill_linecache(module):
    """linecache was just imported: give it the earlier cells."""
    cache = getattr(module, "cache", {})
    for name, text in sources.items():
        cache[name] = len(text), None, [line + "\n" for line in text.split("\n")], name


def terminal():
    """The module, loaded when a person is at the other end."""
    module = driver.load("terminal")
    module.receive, module.held, module.main_thread = receive, held, main_thread
    return module


def take(request):
    """Set up the cell and its world from the line. Arguments stay until new ones arrive, and so do the code's changes
    to sys.argv."""
    global args, number
    number = request["cell"]
    driver.source, driver.program = request["code"], f"<cell {number}>"
    names.keep_text(request["cell"], request["code"])
    driver.sign = request.get("sign", "")
    "order" in driver.loaded and driver.loaded["order"].expect(1)
    late and late.begin(number, driver.sign)
    keep_source()
    first = args is None
    if args != request.get("args", []):
        args = request.get("args", [])
        driver.set_args(args)
    env = request.get("env")
    if env:
        __import__("os").environ.update(env)
    if (env or {}).get("CUPEL_AGENT") == "1" or first and posix.environ.get(b"CUPEL_AGENT") == b"1":
        driver.load("answer").open()
    scope.setdefault("__builtins__", builtins)
    if env and env.get("COLUMNS", "").isdigit():
        terminal().fit(int(env["COLUMNS"]))
    if request.get("tools"):
        driver.load("tools").begin(request["tools"], held)
    if request.get("input"):
        terminal().open_stdin()
    elif "terminal" in driver.loaded:
        terminal().close_stdin()


def run(request):
    if request.get("hush"):   # the waiting signal was for the last cell
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    _signal.signal(_signal.SIGINT, handler)
    put_stdin(request.get("stdin_bytes", 0))
    take(request)
    if not blocked:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGINT])
    value = driver.run_program(request, scope)
    if value is not None:
        names.keep(request["cell"], value)


def guard(step, *args):
    """Settle a step, even if the interrupt arrives meanwhile."""
    try:
        return driver.settle(step, *args)
    except KeyboardInterrupt as late:
        driver.send_error(late)
        return 130
    except BaseException:   # a failing sys.stderr, or a message without text
        return 1


def hear_nothing():
    """Ignore SIGINT between cells: one sent with a line may arrive before the line is read. The next cell restores the
    code's own handler."""
    global handler, blocked
    while True:
        try:
            blocked = _signal.SIGINT in _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])
            found = _signal.signal(_signal.SIGINT, _signal.SIG_IGN)   # drops pending ones
            handler = _signal.default_int_handler if found is None else found
            return
        except BaseException:   # one in progress: the cell is over
            pass


def note_folder():
    global folder
    try:
        folder = posix.getcwd()
    except OSError:   # it is gone: perhaps the one before exists
        pass


def flush():
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        try:
            getattr(sys, name).flush()
        except BaseException:
            pass   # replaced by an object that cannot be flushed, or closed


def perform(request):
    global piped
    before = names.marks() if request.get("names") else None
    driver.sent_results = driver.sent_bytes = driver.sent_error = 0
    status = guard(run, request)
    for step in (begin_tasks, driver.show_figures):
        later = guard(step)
        status = later if status is None or later == 130 else status
    guard(flush)
    driver.sign = ""   # later output has no place in a cell's order
    hear_nothing()
    late and late.leave()
    note_folder()
    piped = [fd for fd, pipe in driver.pipes.items() if pipe_of(fd) == pipe]
    if posix.getpid() != driver.main_pid:   # a child that the code forked and that reached this loop
        end(status)
    if not channel_is_ours():   # closed or replaced: no frame would arrive
        posix._exit(1)
    if "tools" in driver.loaded:
        driver.loaded["tools"].end()
    try:
        told = "" if before is None else f',"names":{driver.to_json(names.changes(before))}'
    except Exception:   # no memory left for the message
        told = ""
    driver.send(f'{{"op":"done","exit_code":{status or 0}{told}{tasks_wait()}}}')


def begin_tasks():
    driver.runner and driver.load("tasks").begin()


def tasks_wait():
    """A member of the answer, if the event loop has work for the time after the cell."""
    global may_go_on
    may_go_on = False
    try:
        return ',"tasks":true' if driver.runner and driver.load("tasks").pending() else ""
    except Exception:   # a loop that the code changed
        return ""


def go(request):
    global may_go_on
    may_go_on = True


def end_children():
    """The subprocesses of the original were killed with it: tell those that wait for them."""
    for one in gc.get_objects() if "subprocess" in sys.modules else ():
        if type(one) is sys.modules["subprocess"].Popen and one.returncode is None:
            one.returncode = -9


def go_home():
    """Return to the working folder if the code removed it and it was made anew."""
    try:
        posix.getcwd()
    except FileNotFoundError:
        posix.chdir(folder)


def renew(request):
    """After a copy: make this process's state its own. Random generators that packages or the code made continue where
    they were; without `seeds` all of them do."""
    driver.main_pid = posix.getpid()
    driver.pipes.update({fd: pipe_of(fd) for fd in piped})
    seeds = request.get("seeds", True)
    found = {name: vars(sys.modules[name]) for name in ("threading", "random", "numpy.random", "_ssl")
             if isinstance(sys.modules.get(name), type(sys))}
    steps = (lambda: vars(found["threading"]["_main_thread"]).update(_native_id=driver.main_pid),
             lambda: seeds and found["random"]["seed"](),
             lambda: seeds and found["numpy.random"]["seed"](),
             lambda: found["_ssl"]["RAND_add"](posix.urandom(32), 32.0), end_children, go_home,
             lambda: driver.runner and driver.load("tasks").renew())
    for step in steps:
        try:
            step()
        except Exception:
            pass   # not loaded, or replaced
    driver.send(f'{{"op":"renewed"{tasks_wait()}}}')


def check(request):
    """The problems of code that has not run. Checking leaves no trace."""
    advice = driver.load("advice")
    try:
        problems = advice.check(request["code"], scope, sources)
        if [problem for problem in problems if problem["kind"] == "syntax"]:
            text = driver.load("source").Text(request["code"], advice.CHECKED)
            problems = advice.check(text.python(), scope, sources)
            for problem in problems:
                problem["column"] = text.column(problem["line"], problem["column"])
    except SyntaxError as problem:
        hint = advice.syntax_hint(problem, request["code"])
        problems = [advice.problem_at("syntax", problem.lineno, problem.offset, None, str(problem.msg), hint)]
    except Exception:   # no known problem
        problems = []
    # Before the first cell nobody knows whether it is the agent's.
    later = () if sources else ("answer", "cannot_answer", "ask_user")
    later += ("tools",) if request.get("tools") else ()   # the module is there while a cell runs
    problems = [one for one in problems if one["name"] not in later]
    driver.send(driver.to_json({"op": "check", "problems": problems}))


# ---- the session ----
OPS = {"cell": perform, "renew": renew, "go": go, "names": lambda request: names.tell(), "check": check,
       "complete": lambda request: names.complete(request)}


def end(status=None):
    """Do the work of a program's end."""
    later = guard(driver.finish, scope)
    guard(driver.flush_files)
    posix._exit((later if status is None else status) or 0)


def await_asyncio():
    """Its loop is the session's."""
    def adopt(events):
        tasks = driver.load("tasks")
        tasks.main_thread = main_thread
        tasks.adopt(events)
    if "asyncio.events" in sys.modules:
        adopt(sys.modules["asyncio.events"])
    else:
        driver.Hooks.after["asyncio.events"] = adopt


def await_threads():
    """Threads and tasks belong to the cells that started them."""
    def watch(_):
        global late
        late = driver.load("late")
        late.watch(main_thread, number, driver.sign)
    if "threading" in sys.modules:
        watch(None)
    else:
        driver.Hooks.after["threading"] = watch


def serve(scope_, line=None):
    """Serve lines until the last: each is answered before the next. Does not return."""
    global scope, stdin_form, main_thread
    scope = names.scope = scope_
    names.driver, driver.loaded["names"] = driver, names
    names.open_history(sources)
    driver.sources = sources
    main_thread = __import__("_thread").get_ident()
    if sys.__stdin__:
        stdin_form = sys.__stdin__.encoding, sys.__stdin__.errors
    driver.our_files.append(serve.__code__.co_filename)
    driver.Hooks.after["linecache"] = fill_linecache
    await_asyncio()
    await_threads()
    hear_nothing()
    _signal.signal(_signal.SIGURG, lambda *_: None)   # the engine ends a blocking call with it, after an interrupt
    if line is None:
        line = wait()
    while line:
        request = driver.scan(line.decode(), 0)[0]
        if request["op"] == "end":
            break
        driver.mark = f'"nonce":"{request["nonce"]}",' if "nonce" in request else ""
        if request["op"] in OPS:
            OPS[request["op"]](request)
        line = wait()
    end()


def load_driver():
    """Register no name: a program may have a module of that name."""
    folder = serve.__code__.co_filename.rpartition("/")[0]
    if sys.path[0] != folder:
        sys.path.insert(0, folder)
    module = __import__("driver")
    del sys.modules["driver"]
    return module


def main():
    global driver, names
    driver = load_driver()
    driver.set_path()
    world, given = driver.set_world(), [int(number) for number in sys.argv[1:]]
    names = driver.load("names")
    driver.arrive()
    gc.freeze()
    if given:   # a copy of a zygote that cannot serve a session (zygote.py) passes the line on
        while part := read(given[0], PART):
            held.append(part)
        posix.close(given[0])
        serve(world, receive())
    driver.send('{"op":"ready"}')
    serve(world)


if __name__ == "__main__":
    main()
