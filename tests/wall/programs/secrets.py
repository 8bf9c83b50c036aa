# row: 1 2 3 4 5 6 7
# about: the caller's environment, arguments, memory, files and identity
# control: unshared
# boxes: every
# may-lack: init_exe_for_writing init_stack init_syscall init_map_files
# args: host
import glob
import re
import socket

HOST_FILES, HOST_NAME = sys.argv[1:-1], sys.argv[-1]
PATTERN = re.compile(rb"canary-[0-9a-f]{32}")


def hits(paths):
    found = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                if PATTERN.search(file.read(1 << 20)):
                    found.append(path)
        except OSError:
            pass
    return found


def memory_hits():
    """Our own memory, where a forked parent's secrets would still be."""
    found = []
    for line in open("/proc/self/maps"):
        span, rights = line.split()[:2]
        low, high = (int(x, 16) for x in span.split("-"))
        if not rights.startswith("r") or high - low > 64 << 20 or "[v" in line:
            continue
        try:
            with open("/proc/self/mem", "rb", 0) as file:
                file.seek(low)
                if PATTERN.search(file.read(high - low)):
                    found.append(span)
        except (OSError, ValueError, OverflowError):
            pass
    return found


secret = [name for name, value in os.environb.items() if PATTERN.search(value)]
probe("own_environment", secret, secret)
probe("environ_of_others", *[hits(glob.glob("/proc/[0-9]*/environ"))] * 2)
probe("own_memory", *[memory_hits()] * 2)
probe("host_files", *[hits(HOST_FILES)] * 2)
attempt("shadow", lambda: open("/etc/shadow").read(1) and "read")
probe("host_folders", any(os.path.isdir(d) and os.listdir(d)
                          for d in ("/root", "/var/log", "/var/lib/dpkg")))
probe("host_name", socket.gethostname() == HOST_NAME, socket.gethostname())
probe("identity", any(map(os.path.exists, ("/etc/machine-id", "/sys/class/dmi", "/proc/cmdline",
                                           "/sys/devices/virtual", "/proc/version"))))


def look(path):
    """Whatever there is to see at a name of /proc/1."""
    if path.endswith(("root", "cwd", "exe")):
        return os.readlink(path)
    if path.endswith(("fd", "map_files")):
        return os.listdir(path)
    with open(path, "rb", 0) as file:
        return "open" if path.endswith("mem") else len(file.read(64))


try:
    probe("init_environ", *[len(open("/proc/1/environ", "rb").read())] * 2)
except OSError as error:
    probe("init_environ", False, error)
for name in "mem maps root cwd fd exe io stack syscall map_files".split():
    attempt("init_" + name, lambda: look(f"/proc/1/{name}"))
attempt("init_exe_for_writing", lambda: os.close(os.open("/proc/1/exe", os.O_WRONLY)))
