# A person at the other end of a Python session: input() and getpass() ask them, and printed output fits their
# terminal (PROTOCOL.md). cells.py loads it when a cell reports a person. Runs as the occupant.
#
# 1. An answer comes on the control channel, one line for each question, with its number: a late answer is never taken
#    for another.
# 2. Only the main thread of the session's own process may ask, because nothing else may read the channel. For all
#    others standard input is at its end.
import posix
import sys
import _io
import _signal
import _thread

POLLIN = 1
WIDTHS = {"pandas": 80, "numpy": 75}   # their print widths, unless the code sets others

driver = receive = None      # the module; the function of cells.py that reads a line
held = ()                    # bytes of the next line
main_thread = None
asked = 0                    # questions so far
stdin = None                 # the replacement of sys.stdin


# ---- questions ----
def may_ask():
    return posix.getpid() == driver.main_pid and _thread.get_ident() == main_thread


def ask(echo, then=None):
    """A line that the person typed, with its newline; "" at the end of their input. `then` is called once the question
    is sent: a prompt for a secret should appear when the terminal hides the input."""
    global asked
    if not may_ask():
        return ""
    asked += 1
    tools = driver.loaded.get("tools")
    question = tools.expect(asked) if tools and tools.going else None   # a thread's call may read the channel, too
    driver.send(f'{{"op":"input","number":{asked},"echo":{"true" if echo else "false"}}}')
    then and then()
    if question:
        return tools.ask(asked, question).get("text", "")
    poll = __import__("select").poll()
    poll.register(driver.requests, POLLIN)
    while True:
        if not held:
            poll.poll()   # an interrupt arrives here, where nothing was read yet
        waits = _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])
        try:
            line = receive()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, waits)
        if not line:
            return ""
        answer = driver.scan(line.decode(), 0)[0]
        if answer["op"] == "input" and answer["number"] == asked:
            return answer.get("text", "")


class Asking(_io._RawIOBase):
    """The file below sys.stdin."""
    name, mode, rest = "<stdin>", "rb", b""

    def readable(self):
        return True

    def fileno(self):
        return 0

    def readinto(self, room):
        self.rest = self.rest or ask(True).encode("utf-8", "surrogateescape")
        part, self.rest = self.rest[: len(room)], self.rest[len(room):]
        room[: len(part)] = part
        return len(part)


def getpass(prompt="Password: ", stream=None):
    """getpass.getpass(), which has no terminal to open here."""
    text = ask(False, lambda: print(prompt, end="", file=stream or sys.stderr, flush=True))
    if not text:
        raise EOFError
    return text.removesuffix("\n")


def after_getpass(module):
    module.getpass = module.unix_getpass = getpass


def open_stdin():
    """A new one for each cell: the last cell's read-ahead does not belong to this one."""
    global stdin
    ours = stdin is not None and sys.stdin is stdin
    if getattr(sys, "stdin", None) is not getattr(sys, "__stdin__", None) and not ours:
        return   # the code replaced it
    stdin = sys.stdin = _io.TextIOWrapper(_io.BufferedReader(Asking()), "utf-8", "surrogateescape")
    if "getpass" in sys.modules:
        after_getpass(sys.modules["getpass"])
    else:
        driver.Hooks.after["getpass"] = after_getpass


def close_stdin():
    """The person is gone."""
    global stdin
    if stdin is not None and sys.stdin is stdin:
        sys.stdin = sys.__stdin__
    stdin = None


# ---- width ----
def fit_pandas(pandas, before, now):
    if pandas.get_option("display.width") == before:
        pandas.set_option("display.width", now)


def fit_numpy(numpy, before, now):
    if numpy.get_printoptions()["linewidth"] == before:
        numpy.set_printoptions(linewidth=now)


def fit_one(name, columns):
    """Adjust a loaded module."""
    try:
        {"pandas": fit_pandas, "numpy": fit_numpy}[name](sys.modules[name], WIDTHS[name], columns)
        WIDTHS[name] = columns
    except Exception:   # a file of the user with that name
        pass


def fit(columns):
    """pandas and numpy print by the terminal's width, unless the code has set another."""
    driver.columns = columns   # for pandas, if it is imported later
    for name in WIDTHS:
        if hasattr(sys.modules.get(name), "__version__"):
            fit_one(name, columns)
        elif name not in sys.modules and name == "pandas":
            WIDTHS[name] = columns
        elif name not in sys.modules:
            driver.Hooks.after[name] = lambda module, name=name: fit_one(name, columns)
