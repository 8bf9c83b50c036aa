# row: 59
# about: page tables of memory that is read here and there and never written
# control: user
# limits: {"memory_bytes": 134217728, "timeout_s": 20, "cpu_s": 20}
# status: memory_limit
import mmap
import time

libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
STEP, TABLES, NORESERVE, NOHUGEPAGE = 2 << 20, 400 << 8, 0x4000, 15
area = libc.mmap(None, STEP * TABLES, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE, -1, 0)
libc.madvise(ctypes.c_void_p(area), ctypes.c_size_t(STEP * TABLES), NOHUGEPAGE)
for at in range(TABLES):  # each needs a table of 4 KiB, and shows the one page of zeros
    ctypes.c_char.from_address(area + at * STEP).value
time.sleep(0 if OUTSIDE else 1)  # for whoever looks now and then
probe("page_tables_400m", True)
