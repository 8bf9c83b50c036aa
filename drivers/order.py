# Marks in the output of a Python program at each switch between stdout, stderr and the channel (PROTOCOL.md). Runs as
# the occupant; driver.py loads it at the first use of anything but stdout, the zygote before it forks.
#
# 1. The stream that was written last writes as usual, at no cost: only the files below the others have a `write` of
#    their own, which notices the switch and removes itself.
# 2. A mark gets into the engine's own pipes, by the engine's own process, and nowhere else.
import posix
import sys
import _io

driver = None   # the module; set by the loader of this file
MARKS_MAX = (1 << 20) - 1   # the engine reads one more
file_write = _io.FileIO.write
epoch = 0       # the number of the last mark


def pipe_of(fd):
    try:
        return posix.fstat(fd)[1:3]
    except OSError:
        return None


def switch(writer):
    """The mark of a switch to stdout (1), stderr (2) or the channel (0), or ""."""
    global epoch
    for stream in (sys.stdout, sys.stderr) if writer == 0 else ():
        try:
            stream.flush()
        except Exception:
            pass   # closed, or replaced by an object that cannot be flushed
    if not driver.sign:
        return ""
    expect(writer)
    if (epoch == MARKS_MAX or posix.getpid() != driver.main_pid
            or writer and pipe_of(writer) != driver.pipes[writer]):
        return ""
    epoch += 1
    return f"\1{driver.sign}{epoch:08x}00000000"


def expect(writer):
    """The next write of another writer is a switch."""
    for fd, raw in driver.raws.items():
        vars(raw).pop("write", None) if fd == writer else vars(raw).update(write=WRITES[fd])


def write(fd, data):
    raw, first = driver.raws[fd], switch(fd)
    if first and file_write(raw, first.encode()) is None:
        return None   # the pipe is full, and does not block
    if first and type(data) is memoryview:
        return 0   # io's buffer comes again: after an interrupt here, it must not write its data twice
    return file_write(raw, data)


WRITES = {1: lambda data: write(1, data), 2: lambda data: write(2, data)}
