# row: 14 15
# about: device nodes that are there, that can be made, and terminal injection
# limits: {"timeout_s": 60}
# control: root
# boxes: every
# may-lack: open_devices terminal_injection terminal_injection_high
import stat

USUAL = {"null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr",
         "tty", "ptmx", "pts"}


def make(kind, major, minor):
    def action():
        os.mknod("node", kind | 0o600, os.makedev(major, minor))
        os.unlink("node")
        return "made"
    return action


def nodes(wanted):
    found = []
    for folder, names, files in os.walk("/", followlinks=False):
        if folder.startswith(("/proc/", "/sys/")):
            names[:] = []
            continue
        if folder.count("/") > 3:
            names[:] = []
        for name in files:
            try:
                mode = os.lstat(os.path.join(folder, name)).st_mode
            except OSError:
                continue
            if wanted(mode):
                found.append(os.path.join(folder, name))
    return found


attempt("make_block", make(stat.S_IFBLK, 254, 0))
attempt("make_char", make(stat.S_IFCHR, 1, 3))
attempt("make_memory", make(stat.S_IFCHR, 1, 1))
odd = [p for p in nodes(lambda m: stat.S_ISBLK(m) or stat.S_ISCHR(m))
       if p not in {"/dev/" + name for name in USUAL} | {"/dev/pts/ptmx"}]
probe("other_nodes", odd, odd[:5])
found = []
for name in "kvm mem kmsg vsock userfaultfd fuse net/tun vda sda port vhost-vsock loop0".split():
    try:
        os.close(os.open("/dev/" + name, os.O_RDONLY | os.O_NONBLOCK))
        found.append(name)
    except OSError:
        pass
probe("open_devices", found, found)
extra = set(os.listdir("/dev")) - USUAL
probe("more_in_dev", extra, sorted(extra)[:8])
TIOCSTI = 0x5412
for name, request in (("terminal_injection", TIOCSTI), ("terminal_injection_high", TIOCSTI | HIGH)):
    byte = ctypes.create_string_buffer(b"x")
    outcome = raw(16, 0, request, byte)
    probe(name, outcome[0] >= 0, outcome)
with open("/dev/null", "wb") as null, open("/dev/zero", "rb") as zero, \
        open("/dev/urandom", "rb") as random:
    null.write(b"x")
    check("usual_devices", zero.read(4) == bytes(4) and len(random.read(8)) == 8)
try:
    open("/dev/full", "wb", 0).write(b"x")
    check("full_is_full", False)
except OSError as error:
    check("full_is_full", error.errno == errno.ENOSPC, error)
