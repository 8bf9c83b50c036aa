# row: 17 34 35
# about: a namespace of one's own, by every way and with high bits
# control: root
import signal
import subprocess
import threading

FLAGS = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000,
         "ipc": 0x08000000, "uts": 0x04000000, "cgroup": 0x02000000}
UNSHARE, CLONE, SETNS, CLONE3 = 272, 56, 308, 435


def clone(flags):
    def action():
        outcome = raw(CLONE, flags | signal.SIGCHLD, 0, 0, 0, 0)
        if outcome[0] == 0:
            os._exit(0)
        return outcome
    return action


def clone3(flags):
    def action():
        words = (ctypes.c_uint64 * 11)(flags, 0, 0, 0, signal.SIGCHLD)
        outcome = raw(CLONE3, ctypes.byref(words), 88)
        if outcome[0] == 0:
            os._exit(0)
        return outcome
    return action


def tell(name, action):
    text = in_child(action)
    probe(name, text.startswith("(") and not text.startswith("(-1"), text)


for kind, flag in FLAGS.items():
    tell(f"unshare_{kind}", lambda: raw(UNSHARE, flag))
    tell(f"clone_{kind}", clone(flag))
tell("clone_user_high", clone(FLAGS["user"] | HIGH))
tell("clone_mount_high", clone(FLAGS["mount"] | HIGH << 3))
tell("clone3_user", clone3(FLAGS["user"]))
tell("clone3_plain", clone3(0))


def join(path, flags):
    def action():
        fd = os.open(path, os.O_RDONLY)
        return raw(SETNS, fd, flags)
    return action


tell("setns_net", join("/proc/self/ns/net", 0))
tell("setns_uts_high", join("/proc/self/ns/uts", HIGH))
threads = [threading.Thread(target=lambda: None) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
check("threads_work", True)
check("subprocess_works", subprocess.run(["true"]).returncode == 0)
