# The module `tools` of the user's code: each tool that a request names is a function there, and its call a line to the
# engine (PROTOCOL.md). Runs as the occupant; loaded by the first line that has tools, and never without one.
#
# 1. Any number of threads and tasks may call at once. One of them reads the channel at a time and hands each answer to
#    the call of its number; a task's event loop reads when no thread does.
# 2. Nothing is left between two cells: the end of a cell takes back the calls that wait, and reads until the engine
#    has answered every one of them.
# 3. An interrupt finds the main thread where nothing was read yet. It takes its call back, and the engine tells the
#    tool's side.
# 4. A large value comes in parts, which go to a file as they are read (large.py); the code gets its name.
import posix
import sys
import _signal
import _thread

driver = None            # the module; set by the loader of this file
large = None             # large.py
OPEN_MAX = 128           # calls that wait at the engine; further ones wait here
BYTES_MAX = 1 << 20      # of a call's arguments
POLLIN, PART = 1, 1 << 16

held = []                # bytes of the next line that have arrived
number = 0               # of the last call
going = False            # a cell or run with tools runs
given, names = None, set()   # the definitions of the last line, and their names
waiting, dropped = {}, set()   # calls (and questions, below 0) that wait; numbers whose answer nobody wants
backlog = []             # calls that the engine has not got yet
reader, sender, writer = _thread.allocate_lock(), _thread.allocate_lock(), _thread.RLock()
poll = None
spaces, theirs = {}, {}  # our modules by name; the user's own of these names
loops = {}               # event loops that watch the channel, with the number of their calls
main_thread = None


# ---- errors ----
class ToolError(Exception):
    """A tool call failed. `tool` is its name, `reason` says why."""
    __module__ = "tools"

    def __init__(self, tool, reason):
        super().__init__(f"{tool}: {reason}")
        self.tool, self.reason = tool, reason

    def __reduce__(self):
        return type(self), (self.tool, self.reason)


class ToolDenied(ToolError):
    """The policy of the tool, or a person, refused the call."""
    __module__ = "tools"


class ToolTimeout(ToolError, TimeoutError):
    """The tool did not answer in its time."""
    __module__ = "tools"


KINDS = {"denied": ToolDenied, "timeout": ToolTimeout}


# ---- answers ----
class ToolFile:
    """A picture or another file that a tool sent with its answer."""
    __module__ = "tools"

    def __init__(self, about):
        self.name, self.mime = about.get("name"), about.get("mime", "application/octet-stream")
        self.data = __import__("binascii").a2b_base64(about["base64"])

    def __repr__(self):
        return f"ToolFile({self.name!r}, {self.mime!r}, {len(self.data)} bytes)"

    def save(self, path=None):
        """Write the bytes to a file; its path."""
        path = path or (self.name or "file").rpartition("/")[2] or "file"
        with open(path, "wb") as file:
            file.write(self.data)
        return path

    def _repr_mimebundle_(self, include=None, exclude=None):
        picture = self.mime.startswith("image/") and self.mime != "image/svg+xml"
        return {"text/plain": repr(self), **({self.mime: self.data} if picture else {})}


class ToolResult:
    """An answer with files: `value`, and `files`, a list of ToolFile."""
    __module__ = "tools"

    def __init__(self, value, files):
        self.value, self.files = value, files

    def __repr__(self):
        return f"ToolResult({self.value!r}, {self.files!r})"


CLASSES = ToolError, ToolDenied, ToolTimeout, ToolFile, ToolResult


def settle(call):
    """The value of an answered call."""
    frame = call.frame
    if "error" in frame:
        error = frame["error"]
        raise KINDS.get(error.get("kind"), ToolError)(call.tool, str(error.get("message")))
    value = frame.get("value")
    if "large" in frame:
        try:
            value = call.landing.end(frame["large"])
        except (OSError, MemoryError) as fault:
            reason = f"its value has {frame['large']} bytes, and the box could not keep it: {fault}"
            raise ToolError(call.tool, reason) from None
    if frame.get("files"):
        return ToolResult(value, [ToolFile(about) for about in frame["files"]])
    return value


# ---- calls ----
class Call:
    """One call: `frame` is its answer. A thread waits at `gate`, a task for `future`."""
    number = frame = loop = future = landing = None

    def __init__(self, tool, arguments, line):
        self.tool, self.gate = tool, _thread.allocate_lock()
        try:
            text = driver.to_json(arguments)
        except TypeError as problem:
            raise ToolError(tool, f"the arguments are not JSON: {problem}") from None
        if len(text) > BYTES_MAX:
            raise ToolError(tool, f"the arguments have {len(text)} bytes, at most {BYTES_MAX}")
        self.rest = f'"tool":{driver.to_json(tool)},"args":{text},"line":{line or "null"}}}'
        self.gate.acquire()

    def take_part(self, part):
        self.landing = self.landing or large.Landing(self.tool)
        self.landing.add(part)

    def answer(self, frame):
        self.frame = frame
        if self.landing and "large" not in frame:
            self.landing.forget()
        if self.future is None:
            release(self.gate)
            return
        try:
            self.loop.call_soon_threadsafe(lambda: self.future.done() or self.future.set_result(None))
        except RuntimeError:   # the loop is closed: nobody waits
            pass


def release(gate):
    try:
        gate.release()
    except RuntimeError:   # it is open
        pass


def user_line():
    """The line of the running program that makes the call."""
    frame = sys._getframe(2)
    while frame and frame.f_code.co_filename != driver.program:
        frame = frame.f_back
    return frame.f_lineno if frame else None


class Masked:
    """Keep the interrupt out of the main thread, so that no line is cut and no lock is left taken."""

    def __enter__(self):
        self.main = _thread.get_ident() == main_thread
        self.mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT]) if self.main else None
        return self

    def __exit__(self, *_):
        if self.main:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self.mask)

    def let_in(self, step, *args):
        """Do a step that waits, and lets an interrupt in."""
        if not self.main:
            return step(*args)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, self.mask)
        try:
            return step(*args)
        finally:
            _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])


def start(call):
    """Send a call, or keep it until another has its answer."""
    if posix.getpid() != driver.main_pid:
        raise ToolError(call.tool, "a child process cannot call tools: call them in the program itself")
    with sender:
        if not going:
            raise ToolError(call.tool, "tools can be called only while a program or cell that has them runs")
        if call.tool not in names:
            raise ToolError(call.tool, "this program has no such tool")
        backlog.append(call)
    send_more()


def send_more():
    global number
    while True:
        with sender:
            if not backlog or len(waiting) + len(dropped) >= OPEN_MAX:
                return
            call = backlog.pop(0)
            number += 1
            call.number = number
            waiting[number] = call
            driver.send(f'{{"op":"call","number":{number},{call.rest}')


def drop(call):
    """Nobody waits for this call any more."""
    with sender:
        if call in backlog:
            backlog.remove(call)
        elif waiting.pop(call.number, None):
            call.landing and call.landing.forget()
            dropped.add(call.number)
            driver.send(f'{{"op":"cancel","number":{call.number}}}')


def take(line):
    """A line of the engine."""
    if line[:1] == b"+":   # a part of a large value
        own, _, part = line.partition(b" ")
        call = waiting.get(int(own))
        call and call.take_part(part)
        return
    try:
        frame = driver.scan(line.decode(), 0)[0]
    except (StopIteration, ValueError):   # not the engine's
        return
    own = {"return": 1, "input": -1}.get(frame.get("op"), 0) * frame.get("number", 0)
    dropped.discard(own)
    call = waiting.pop(own, None)
    call and call.answer(frame)
    backlog and send_more()


def read():
    """Take what the channel has; only for who holds `reader`."""
    part = posix.read(driver.requests, PART)
    if not part:   # the engine is gone
        posix._exit(1)
    held.append(part)
    if b"\n" not in part:
        return
    *lines, rest = b"".join(held).split(b"\n")
    held[:] = [rest] if rest else []
    for line in lines:
        line and take(line)


def wait_for(call, masked):
    """Wait until the call has its answer, as the reader or beside it."""
    while call.frame is None:
        if not reader.acquire(False):
            masked.let_in(call.gate.acquire)
            continue
        try:
            while call.frame is None:
                masked.let_in(poll.poll)
                read()
        finally:
            reader.release()
            for other in [*waiting.values(), *backlog]:   # another one reads on
                if other.future is None and other.frame is None:
                    release(other.gate)
                    break


def run_call(tool, arguments, line):
    call = Call(tool, arguments, line)
    with Masked() as masked:
        try:
            start(call)
            wait_for(call, masked)
        except BaseException:
            drop(call)
            raise
    return settle(call)


class Question:
    """terminal.py waits for the answer to a question."""
    frame = future = None

    def __init__(self):
        self.gate = _thread.allocate_lock()
        self.gate.acquire()

    def answer(self, frame):
        self.frame = frame
        release(self.gate)


def expect(own):
    """The question of that number will be sent: another thread may read its answer at once."""
    waiting[-own] = question = Question()
    return question


def ask(own, question):
    """The answer to a question that was sent."""
    with Masked() as masked:
        try:
            wait_for(question, masked)
        finally:
            waiting.pop(-own, None)
    return question.frame


# ---- tasks ----
def on_readable():
    """An event loop found bytes on the channel. A thread that reads takes them."""
    if reader.acquire(False):
        with Masked():
            try:
                poll.poll(0) and read()
            finally:
                reader.release()


async def run_task(tool, arguments, line):
    call = Call(tool, arguments, line)
    loop = call.loop = sys.modules["asyncio"].get_running_loop()
    call.future = loop.create_future()
    loops[loop] = loops.get(loop, 0) + 1
    loop.add_reader(driver.requests, on_readable)
    try:
        with Masked():
            start(call)
        await call.future
    except BaseException:
        with Masked():
            drop(call)
        raise
    finally:
        leave_loop(loop)
    return settle(call)


def leave_loop(loop):
    loops[loop] = loops.get(loop, 1) - 1
    if loops[loop] <= 0:
        del loops[loop]
        loop.is_closed() or loop.remove_reader(driver.requests)


# ---- cells ----
def whole(send):
    """Lines of threads do not mix, however long they are."""
    def send_whole(frame):
        if posix.getpid() == driver.main_pid:
            with writer:
                send(frame)
    return send_whole


def begin(tools, held_):
    """The program or cell has these tools."""
    global going, given, names, held, poll, main_thread, spaces, large
    main_thread, held = _thread.get_ident(), held_
    if poll is None:
        driver.send = whole(driver.send)
        poll = __import__("select").poll()
    poll.register(driver.requests, POLLIN)
    if tools != given:
        functions, large = driver.load("functions"), driver.load("large")
        functions.tools = driver.loaded["tools"]
        given, names = tools, {about["name"] for about in tools}
        spaces = functions.build(tools)
    for name, space in spaces.items():
        if name in sys.modules and type(sys.modules[name]) is not type(space):
            theirs[name] = sys.modules[name]
        sys.modules[name] = space
    going = True


def leave_modules():
    for name, space in spaces.items():
        if sys.modules.get(name) is space:
            del sys.modules[name]
            if name in theirs:
                sys.modules[name] = theirs[name]
    theirs.clear()


def end():
    """The cell is over: take back what waits, and read until the engine has answered all of it."""
    global going
    if not going:
        return
    with sender:
        going = False
        left, backlog[:] = [*backlog], []
    for call in left:
        call.answer({"error": {"kind": "cancelled", "message": "the cell ended before the call began"}})
    for one in [one for one in waiting if one < 0]:   # a question whose asking failed
        waiting.pop(one, None)
    for one in [*waiting]:
        driver.send(f'{{"op":"cancel","number":{one}}}')
    while waiting or dropped:
        if reader.acquire(True, 0.05):
            try:
                poll.poll(50) and read()
            finally:
                reader.release()
    leave_modules()
    poll.unregister(driver.requests)
    for loop in [*loops]:
        loops.pop(loop)
        loop.is_closed() or loop.remove_reader(driver.requests)

