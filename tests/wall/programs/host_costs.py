# row: 82
# about: calls that cost the whole host, or that make a process die late; in a box they are not
#        made, or not often. What cannot be seen by its answer is seen by whether it slept.
# control: user
# may-lack: collapse collapse_high extents extents_high
import mmap
import resource

SYNC, SYNCFS, FADVISE, MADVISE, INOTIFY_INIT1 = 162, 306, 221, 28, 294
DONTNEED, COLLAPSE, HUGE, NO_FILE = 4, 25, 2 << 20, 1 << 30
IOCTL, FIEMAP = 16, 0xc020660b
slept = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
values = {raw(SYNC)[0] for _ in range(20)}
slept = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - slept
probe("sync", slept >= 5, f"slept {slept} times in 20 calls")
check("sync_says_done", values == {0}, values)
area = mmap.mmap(-1, 2 * HUGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = (ctypes.addressof(ctypes.c_char.from_buffer(area)) + HUGE - 1) // HUGE * HUGE
area.write(b"x" * 2 * HUGE)
for suffix, high in (("", 0), ("_high", HIGH)):
    # Nothing is open there: who answers otherwise has not asked the kernel.
    probe("syncfs" + suffix, raw(SYNCFS, NO_FILE | high)[1] == "EBADF")
    probe("drop_cache" + suffix, raw(FADVISE, NO_FILE, 0, 0, DONTNEED | high)[1] == "EBADF")
    probe("collapse" + suffix, raw(MADVISE, at, HUGE, COLLAPSE | high)[0] >= 0)
program = os.open("/usr/bin/python3", os.O_RDONLY)
wish = ctypes.create_string_buffer(b"\0" * 8 + b"\xff" * 7 + b"\x7f" + b"\1", 64)  # all of it, synced
for suffix, high in (("", 0), ("_high", HIGH)):
    probe("extents" + suffix, raw(IOCTL, program, FIEMAP | high, wish)[0] >= 0)
check("other_advice_works", raw(FADVISE, NO_FILE, 0, 0, 3)[1] == "EBADF")
with open("mine", "wb") as file:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    check("fsync_works", os.fsync(file.fileno()) is None)
watchers = 0
while watchers < 40 and raw(INOTIFY_INIT1, 0)[0] >= 0:
    watchers += 1
probe("many_watchers", watchers >= 40, watchers)
check("some_watchers", watchers >= 8, watchers)
