# Late output of a Python session: what threads and tasks of earlier cells write, also beside a running cell, belongs to
# those cells (PROTOCOL.md). Runs as the occupant; cells.py loads it with threading, the zygote before it forks.
#
# 1. A thread and a task belong to the cell that started them, the work of a pool to the cell that gave it.
# 2. Text of an earlier cell never gets into the running one's streams, not even into their buffers: each earlier cell
#    has streams of its own, and each of their writes is one piece in the pipe: a mark, the bytes, a mark that ends it.
# 3. A thread of the running cell writes behind a gate, which the end of the cell closes: what it writes is that cell's,
#    or is not written yet.
# 4. Until a thread or an event loop is there, nothing of this is in the way of a write.
import posix
import sys
import _contextvars
import _io
import _thread

driver = main_thread = None   # set by the loader of this file
PIECE_MAX = 4096   # PIPE_BUF: the kernel mixes no such write with another
MARK = 33          # bytes
STREAMS_MAX = 64   # of earlier cells, at the end of a cell
TRIES, GATE_S = 9, 5   # the engine reads while a cell runs: only a pipe of the code's own can hold the gate longer
LAYERS = "write", "flush"
cell_of = _contextvars.ContextVar("cell", default=0)   # of the code that runs in this context; 0: not known
current = 0        # the running cell
secret = ""        # of marks; also between cells
crowded = False    # others than the running cell may write
gate = _thread.RLock()
streams = {}       # of earlier cells, by descriptor and cell
hooked = {}        # by descriptor: the session's own text stream, and that below it


# ---- streams of earlier cells ----
class Pieces(_io._RawIOBase):
    def __init__(self, fd, cell):
        self.fd, self.cell = fd, cell

    def writable(self):
        return True

    def write(self, data):
        end = min(len(data), PIECE_MAX - 2 * MARK)
        while end < len(data) and data[end] & 0xC0 == 0x80 and end > PIECE_MAX // 2:   # no character in two pieces
            end -= 1
        first, part, last = b"", bytes(data[:end]), b""
        if secret and posix.getpid() == driver.main_pid and pipe_of(self.fd) == driver.pipes.get(self.fd):
            first, last = (f"\1{secret}00000000{cell:08x}".encode() for cell in (self.cell, 0))
        try:
            written = posix.write(self.fd, first + part + last)
        except BlockingIOError:
            return None
        return len(part) if first else written


def pipe_of(fd):
    try:
        return posix.fstat(fd)[1:3]
    except OSError:
        return None


def stream_of(fd, cell):
    found = streams.get((fd, cell))
    if found is None:
        text = hooked[fd][0]
        found = _io.TextIOWrapper(_io.BufferedWriter(Pieces(fd, cell)), text.encoding, text.errors, line_buffering=True)
        found = streams.setdefault((fd, cell), found)
    return found


def flush_all(files):
    for file in files:
        try:
            file.flush()
        except Exception:   # closed
            pass


# ---- the running cell's streams ----
def in_loop():
    events = sys.modules.get("asyncio.events")
    return events is not None and events._get_running_loop() is not None


def for_running(step, otherwise):
    """Do the step if this code is the running cell's, or not known; else the other one, for the earlier cell. In a
    cell's own code the main thread runs nothing else: only a loop runs what earlier cells left."""
    cell = cell_of.get()
    if not cell or posix.getpid() != driver.main_pid:
        return step()
    if _thread.get_ident() == main_thread:
        return step() if cell == current or current and not in_loop() else otherwise(cell)
    with gate:
        if cell == current:
            return step()
    return otherwise(cell)


def route(fd, layer, name):
    """The method of a stream, for whoever calls it."""
    plain = getattr(type(layer), name).__get__(layer)
    is_text = isinstance(layer, _io.TextIOWrapper)

    def method(*args):
        if cell_of.get() == current and _thread.get_ident() == main_thread:
            return plain(*args)

        def apart(cell):
            stream = stream_of(fd, cell)
            return getattr(stream if is_text else stream.buffer, name)(*args)
        return for_running(lambda: plain(*args), apart)
    return method


def crowd(wanted):
    """Look at each write, or at none."""
    global crowded
    if wanted == crowded:
        return
    crowded = wanted
    for fd, layers in hooked.items():
        for layer in layers:
            for name in LAYERS:
                vars(layer).update({name: route(fd, layer, name)}) if wanted else vars(layer).pop(name, None)


def show(step, text):
    """A result, or its like: code of an earlier cell writes its text instead."""
    for_running(step, lambda cell: text and stream_of(1, cell).write(text + "\n")) if crowded else step()


# ---- cells ----
def begin(cell, sign):
    global current, secret
    current, secret = cell, sign
    cell_of.set(cell)
    if driver.runner:
        try:
            driver.runner._context.run(cell_of.set, cell)   # asyncio's own, of all cells
        except (AttributeError, RuntimeError):   # not begun; in use
            pass
    crowd(_thread._count() > 0 or driver.runner is not None)
    if streams and not crowded:
        flush_all(streams.values())
        streams.clear()


def leave():
    """The cell has ended. Close the gate behind what its threads have written."""
    global current
    crowd(crowded or driver.runner is not None)   # the loop may be this cell's
    for _ in range(TRIES if crowded and posix.getpid() == driver.main_pid else 0):
        try:
            if gate.acquire(True, GATE_S):
                try:
                    flush_all([layers[0] for layers in hooked.values()])
                    current = 0
                finally:
                    gate.release()
            flush_all([*streams.values()])
            break
        except BaseException:   # from a signal handler of the code
            pass
    current = 0
    if len(streams) > STREAMS_MAX:   # one that is still in use writes the rest of its text when it goes
        streams.clear()


# ---- whose code is it? ----
def of_cell(function, cell):
    def run(*args, **options):
        before = cell_of.set(cell)
        try:
            return function(*args, **options)
        finally:
            cell_of.reset(before)
    return run


def starting(start):
    def start_thread(function, *more, **options):
        kind = type(getattr(function, "__self__", None)).__module__
        cell = 0 if kind == "multiprocessing.dummy" else cell_of.get()   # workers of its pools serve all cells
        crowd(True)
        return start(of_cell(function, cell) if cell else function, *more, **options)
    return start_thread


def after_threading(module):
    for name in ("_start_new_thread", "_start_joinable_thread"):
        if hasattr(module, name):
            setattr(module, name, starting(getattr(module, name)))
    _thread.start_new_thread = starting(_thread.start_new_thread)


def after_executor(module):
    """The work that a pool is given has the cell that gave it."""
    item = module._WorkItem
    make, run = item.__init__, item.run

    def make_of_cell(self, *args, **options):
        make(self, *args, **options)
        self.cell = cell_of.get()
    item.__init__ = make_of_cell
    item.run = lambda self, *args: of_cell(run, self.cell)(self, *args)


def watch(thread, cell, sign):
    """The session may have threads from now on."""
    global main_thread
    main_thread = thread
    for fd, text in ((1, sys.__stdout__), (2, sys.__stderr__)):
        if isinstance(text, _io.TextIOWrapper):
            below = getattr(text, "buffer", None)
            hooked[fd] = [text, below] if isinstance(below, _io.BufferedWriter) else [text]
    for name, after in (("threading", after_threading), ("concurrent.futures.thread", after_executor)):
        if name in sys.modules:
            after(sys.modules[name])
        else:
            driver.Hooks.after[name] = after
    begin(cell, sign)
