# row: 59 68
# about: memory that is kept without being mapped: shared pages that were let go, System V memory,
#   semaphores and queues, events that nobody reads
# control: user
# limits: {"memory_bytes": 134217728, "timeout_s": 20, "cpu_s": 20}
# status: memory_limit
# weak: ok
import mmap
import struct

for name in ("mmap", "shmat"):
    getattr(libc, name).restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
libc.munmap.argtypes, libc.shmdt.argtypes = [ctypes.c_void_p, ctypes.c_size_t], [ctypes.c_void_p]
STEP, TIMES, FAILED = 32 << 20, 10, 2 ** 64 - 1
RMID, WISH = 0, STEP * TIMES


def fill(area):
    if area == FAILED:
        raise OSError(ctypes.get_errno(), "refused")
    libc.memset(area, 1, STEP)


def shared(fd, flags):
    """Mapped, written, and let go but for one page."""
    for _ in range(TIMES):
        area = libc.mmap(None, STEP, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
        fill(area)
        libc.munmap(area + 4096, STEP - 4096)


def segments():
    made = [libc.shmget(0, STEP, 0o1600) for _ in range(TIMES)]
    try:
        for one in made:
            area = libc.shmat(one, None, 0)
            fill(area)
            libc.shmdt(area)
    finally:
        for one in made:
            libc.shmctl(one, RMID, None)


def semaphores():
    made = [libc.semget(0, 32000, 0o1600) for _ in range(WISH >> 21)]
    for one in made:
        libc.semctl(one, 0, RMID)
    if made.count(-1):
        raise OSError(ctypes.get_errno(), "refused")


def queues():
    message, made, held = struct.pack("q", 1) + b"x" * 8192, [], 0
    while held < WISH:
        made.append(libc.msgget(0, 0o1600))
        if made[-1] < 0:
            break
        while libc.msgsnd(made[-1], message, 8192, 0o4000) == 0:
            held += 8192
    for one in made:
        libc.msgctl(one, RMID, None)
    if held < WISH:
        raise OSError(ctypes.get_errno(), "refused")


ANONYMOUS = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS
attempt("shared_anonymous_320m", lambda: shared(-1, ANONYMOUS))
attempt("shared_zeros_320m", lambda: shared(os.open("/dev/zero", os.O_RDWR), mmap.MAP_SHARED))
attempt("system_v_memory_320m", segments)
attempt("system_v_semaphores_320m", semaphores)
attempt("system_v_queues_320m", queues)
watchers = []
while len(watchers) < 64 and (one := libc.inotify_init1(os.O_NONBLOCK)) >= 0:
    watchers.append(one)
probe("watchers_64", len(watchers) >= 64, len(watchers))
