# row: 18 52
# about: the mount calls old and new, chroot, and what the mount table gives away
# control: unshared
# boxes: every
MS_BIND, AT_FDCWD = 4096, -100


def story():
    """In one child, because each step needs the one before it."""
    os.makedirs("m/old", exist_ok=True)
    os.makedirs("n", exist_ok=True)
    steps = []

    def step(name, number, *args):
        outcome = raw(number, *args)
        steps.append((name, outcome))
        return outcome[0]

    step("mount_tmpfs", 165, b"none", b"m", b"tmpfs", 0, None)
    step("mount_bind", 165, b"/usr", b"n", None, MS_BIND, None)
    step("mount_proc", 165, b"none", b"n", b"proc", 0, None)
    step("remount_root", 165, None, b"/", None, 32 | MS_BIND, None)
    tree = step("open_tree", 428, AT_FDCWD, b"/usr", 1)
    step("move_mount", 429, tree if tree >= 0 else 0, b"", AT_FDCWD, b"n", 4)
    fs = step("fsopen", 430, b"tmpfs", 0)
    step("fsconfig", 431, fs if fs >= 0 else 0, 6, None, None, 0)
    step("fsmount", 432, fs if fs >= 0 else 0, 0, 0)
    step("fspick", 433, AT_FDCWD, b"/", 0)
    attributes = (ctypes.c_uint64 * 4)(0, 0, 0, 0)
    step("mount_setattr", 442, AT_FDCWD, b"/", 0, ctypes.byref(attributes), 32)
    step("umount2", 166, b"n", 2)
    os.makedirs("m/old", exist_ok=True)
    step("pivot_root", 155, b"m", b"m/old")
    step("chroot", 161, b".")
    return repr(steps)


text = in_child(story)
if text.startswith("["):
    for name, outcome in eval(text):
        probe(name, outcome[0] >= 0, outcome)
else:
    check("story", False, text)

NODES = {"/dev/" + name for name in "null zero full random urandom tty pts".split()}
top = {line.split()[4]: line for line in open("/proc/self/mountinfo")}  # the last one counts
for line in top.values():
    left, right = line.split(" - ")
    point, options = left.split()[4], left.split()[5].split(",")
    if point not in NODES and not {"nosuid", "nodev"} <= set(options):
        check("mount_flags", False, line)
    if point in ("/", "/usr", "/etc", "/dev") and "ro" not in options:
        check("read_only_root", False, line)
    own = right.split()[1] == "cupel"  # a folder of a file system that the box was given
    if any(word in right or word in left.split()[3] and not own
           for word in ("/work", "/home", "/var", "/root", "/srv", "/mnt", "/tmp")):
        check("host_paths", False, line)
check("mountinfo_was_read", True)
for path in ("/x", "/usr/x", "/etc/x", "/usr/bin/x", "/dev/x", "/proc/x"):
    try:
        open(path, "w").close()
        check("read_only", False, path)
    except OSError:
        pass
for path in ("/tmp/x", "/workspace/x", "/dev/shm/x"):
    open(path, "w").close()
    os.unlink(path)
check("writable_places", True)
