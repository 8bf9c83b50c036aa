# row: 34 40 41 43
# about: calls that are open but for some arguments, on the caller's own files and memory, where
#        nothing but the filter could refuse
# control: user
# may-lack: merge merge_high
import mmap
import socket

FCNTL, MADVISE, SET_SCHEDULER, SOCKET, SOCKETPAIR = 72, 28, 144, 41, 53
F_SETLEASE, F_NOTIFY, F_WRLCK, DN_CREATE, MADV_MERGEABLE = 1024, 1026, 1, 4, 12
file = os.open("mine", os.O_CREAT | os.O_RDWR)
here = os.open(".", os.O_RDONLY)
area = mmap.mmap(-1, 1 << 16, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(area))
pair, priority = (ctypes.c_int * 2)(), (ctypes.c_int * 1)(0)
for suffix, high in (("", 0), ("_high", HIGH)):
    probe("lease" + suffix, raw(FCNTL, file, F_SETLEASE | high, F_WRLCK)[0] >= 0)
    raw(FCNTL, file, F_SETLEASE, 2)
    probe("notify" + suffix, raw(FCNTL, here, F_NOTIFY | high, DN_CREATE)[0] >= 0)
    raw(FCNTL, here, F_NOTIFY, 0)
    probe("merge" + suffix, raw(MADVISE, at, 1 << 16, MADV_MERGEABLE | high)[0] >= 0)
    outcome = raw(SET_SCHEDULER, 0, 99 | high, priority)
    probe("scheduler" + suffix, kernel_looked(outcome), outcome)
    outcome = raw(SOCKETPAIR, socket.AF_INET | high, 1, 0, pair)
    probe("pair" + suffix, outcome[1] != "EAFNOSUPPORT", outcome)
for bit in (32, 63):  # an allowed value is allowed as it is, not with more bits
    value, code = raw(SOCKET, socket.AF_UNIX | 1 << bit, 1, 0)
    probe(f"unix_bit_{bit}", value >= 0, code)
value, code = raw(SOCKET, socket.AF_UNIX, 1, 0)
check("unix_works", value >= 0, code)
