# The event loop of Python code. A program that awaits runs in it. In a session it is as in a notebook: a cell's own
# code finds it without await, and tasks go on between cells. driver.py loads it for a program that awaits, cells.py
# with asyncio, the zygote in advance (PROTOCOL.md). Runs as the occupant.
#
# 1. Between cells the tasks wait until the engine says `go`: a process that waits for its line alone can be copied.
# 2. The loop runs in steps: a line of the engine is noticed between two of them, and after the last one the session
#    waits as without tasks.
# 3. asyncio.run() and run_until_complete() work in a cell: the loop does not run there.
import _thread
import posix
import sys

POLLIN, STEPS_MAX = 1, 100
driver = None            # the module; set by the loader of this file
main_thread = None       # set by cells.py


def the_runner():
    """The event loop of the program or the session; made when it is first needed."""
    if driver.runner is None or driver.runner.get_loop().is_closed():
        driver.runner = __import__("asyncio").Runner()
    return driver.runner


def run(coroutine):
    return the_runner().run(coroutine)


def run_parts(parts, scope):
    """Run the parts of a program, of which one at least awaits: the value of the last."""
    async def all_parts():
        return [await eval(part, scope) if part.co_flags & driver.CO_COROUTINE else eval(part, scope)
                for part in parts][-1]
    return run(all_parts())


def is_cell():
    return posix.getpid() == driver.main_pid and _thread.get_ident() == main_thread


def adopt(events):
    """asyncio.events is there: the session's loop is the current one of the cells."""
    running, kind = events.get_running_loop, events.BaseDefaultEventLoopPolicy
    current = kind.get_event_loop

    def get_running_loop():
        """The running event loop; in a cell's own code that of the session."""
        try:
            return running()
        except RuntimeError:
            if not is_cell():
                raise
        return the_runner().get_loop()

    def get_event_loop(policy):
        """The current event loop; in a cell that of the session, unless the code set another."""
        own = getattr(policy._local, "_loop", None)
        if not is_cell() or own is not None and not own.is_closed():
            return current(policy)
        return the_runner().get_loop()
    kind.get_event_loop = get_event_loop
    for module in (events, sys.modules.get("asyncio")):
        if hasattr(module, "get_running_loop"):
            module.get_running_loop = get_running_loop


def session_loop():
    """The loop, if it is one that can be run in steps."""
    loop = driver.runner.get_loop() if driver.runner else None
    return loop if hasattr(loop, "_selector") and not loop.is_closed() else None


def next_ms(loop):
    """The time until the loop has work; -1: until something arrives; None: never, without another cell."""
    timers = [handle._when for handle in loop._scheduled if not handle._cancelled]
    if loop._ready:
        return 0
    if timers:
        left = min(timers) - loop.time()
        return int(left * 1000) + 1 if left > 0 else 0
    threads = len(sys._current_frames()) > 1 and sys.modules["asyncio"].all_tasks(loop)
    return -1 if threads or len(loop._selector.get_map()) > 1 else None   # one is the loop's own


def pending():
    loop = session_loop()
    return loop is not None and next_ms(loop) is not None


def begin():
    """At the end of a cell: the work that is due, in a few steps. Its output is still the cell's, and cells that follow
    each other closely do not hold the tasks up."""
    loop = session_loop()
    for done in range(STEPS_MAX):
        wait_ms = None if loop is None or loop.is_closed() else next_ms(loop)
        if wait_ms is None or wait_ms and done:
            return
        step(loop)


def step(loop):
    loop.stop()   # at the end of one step
    loop.run_forever()


def go_on():
    """Let the tasks go on until a line arrives, or until nothing is left to do."""
    loop = session_loop()
    if loop is None:
        return
    poll = __import__("select").poll()
    poll.register(driver.requests, POLLIN)
    poll.register(loop._selector.fileno(), POLLIN)
    while True:
        wait_ms = None if loop.is_closed() else next_ms(loop)
        if wait_ms is None or driver.requests in [fd for fd, _ in poll.poll(wait_ms)]:
            return
        step(loop)


def renew():
    """In a copy: descriptors of the loop that belong to this process alone. A fork has none of the old ones."""
    loop = session_loop()
    if loop is None:
        return
    old, ends = loop._selector, [loop._ssock, loop._csock]
    keys = [key for key in old.get_map().values() if key.fileobj is not ends[0] and key.fd != ends[0].fileno()]
    fds = [*[end.detach() for end in ends], old.fileno()]
    for fd in fds:
        try:
            posix.close(fd)
        except OSError:
            pass   # not there in a fork
    loop._selector = new = type(old)()
    loop._internal_fds = 0
    loop._make_self_pipe()
    for key in keys:
        try:
            new.register(key.fileobj, key.events, key.data)
        except (OSError, ValueError):
            pass   # its descriptor is not there: `lost` names it
