# row: 19 20 21 22 23 24 25 32 36 37 42 43 44 45
# about: calls with a history of kernel bugs, or that change the machine
# control: root
# may-lack: io_uring_enter io_uring_register keyctl add_key request_key kexec_load quotactl
# may-lack: init_module acct userfaultfd perf_event_open kcmp memfd_secret iopl swapon bpf
import mmap

BAD = 2 ** 64 - 4096  # an address that no process has
CALLS = {  # harmless outside: each has an argument that the kernel refuses
    "io_uring_setup": (425, 0, None),
    "io_uring_enter": (426, 0, 0, 0, 0, None, 0),
    "io_uring_register": (427, 0, 99, None, 0),
    "bpf": (321, 0, None, 0),
    "userfaultfd": (323, 1),
    "perf_event_open": (298, BAD, 0, -1, -1, 0),
    "keyctl": (250, 0, -3, 0),
    "add_key": (248, b"user", b"cupel", BAD, 1, -3),
    "request_key": (249, b"user", b"cupel-absent", None, -3),
    "kcmp": (312, os.getpid(), os.getpid(), 99, 0, 0),
    "open_by_handle_at": (304, -1, BAD, 0),
    "fanotify_init": (300, 0xffff0000, 0),
    "reboot": (169, 1, 2, 3, None),
    "kexec_load": (246, 0, 99999, None, 0),
    "init_module": (175, BAD, 1, b""),
    "swapon": (167, b"/absent", 0),
    "acct": (163, b"/absent/file"),
    "quotactl": (179, 0x80000700, b"/absent", 0, BAD),
    "clock_settime": (227, 0, BAD),
    "settimeofday": (164, BAD, None),
    "sethostname": (170, BAD, 5),
    "setdomainname": (171, BAD, 5),
    "syslog": (103, 3, BAD, 5),
    "iopl": (172, 9),
    "process_vm_readv": (310, os.getpid(), BAD, 1, BAD, 1, 0),
    "process_vm_writev": (311, os.getpid(), BAD, 1, BAD, 1, 0),
    "memfd_secret": (447, 0xffff),
}
for name, call in CALLS.items():
    outcome = raw(*call)
    probe(name, kernel_looked(outcome), outcome)

reader, writer = os.pipe()
other_reader, other_writer = os.pipe()
os.write(writer, b"x" * 8)
probe("tee", raw(276, reader, other_writer, 4, 0)[0] > 0)
probe("splice", raw(275, reader, None, other_writer, None, 4, 0)[0] > 0)
vector = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.create_string_buffer(b"abcd")), 4)
probe("vmsplice", raw(278, other_writer, ctypes.byref(vector), 1, 0)[0] > 0)
with open("/etc/passwd" if os.path.exists("/etc/passwd") else "/proc/self/stat", "rb") as file:
    check("sendfile_copies", raw(40, other_writer, file.fileno(), None, 4)[0] == 4)

for name, value in (("no_randomize", 0x40000), ("read_implies_exec", 0x400000), ("linux32", 8)):
    text = in_child(lambda: raw(135, value)[0])
    probe("personality_" + name, not text.startswith("-1"), text)
    text = in_child(lambda: raw(135, value | HIGH)[0])
    probe(f"personality_{name}_high", not text.startswith("-1"), text)
check("personality_query", raw(135, 0xffffffff)[0] >= 0)

parameter = (ctypes.c_int * 1)(1)
text = in_child(lambda: raw(144, 0, 1, parameter))
probe("sched_fifo", text.startswith("(0"), text)
text = in_child(lambda: raw(141, 0, 0, -10))
probe("negative_nice", text.startswith("(0"), text)
text = in_child(lambda: raw(251, 1, 0, 1 << 13))
probe("ioprio_realtime", text.startswith("(0"), text)
area = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(area))
probe("mlock_64m", raw(149, at, 64 << 20)[0] == 0)
text = in_child(lambda: raw(317, 1, 8, BAD))
probe("seccomp_listener", "EFAULT" in text or text.startswith("(0"), text)
