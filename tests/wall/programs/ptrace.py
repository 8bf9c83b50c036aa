# row: 3 24 25 51 108
# about: taking hold of init or of a sibling
# control: unshared
import signal
import time

ATTACH, SEIZE, DETACH = 16, 0x4206, 17


def hold(request, pid):
    def action():
        outcome = raw(101, request, pid, 0, 0)
        if outcome[0] == 0:
            os.waitpid(pid, 0x40000000) if request == ATTACH else None
            raw(101, DETACH, pid, 0, 0)
        return outcome
    return action


sibling = os.fork()
if sibling == 0:
    time.sleep(20)
    os._exit(0)
for name, pid in (("init", 1), ("sibling", sibling)):
    text = in_child(hold(ATTACH, pid))
    probe("attach_" + name, text.startswith("(0"), text)
    text = in_child(hold(SEIZE, pid))
    probe("seize_" + name, text.startswith("(0"), text)
    room = ctypes.create_string_buffer(8)
    here = (ctypes.c_uint64 * 2)(ctypes.addressof(room), 8)
    there = (ctypes.c_uint64 * 2)(0x400000, 8)
    text = in_child(lambda: raw(310, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
    probe("process_vm_" + name, not any(e in text for e in ("EPERM", "ESRCH", "ENOSYS")), text)
    pidfd = raw(434, pid, 0)
    got = raw(438, pidfd[0], 0, 0) if pidfd[0] >= 0 else (-1, "EPERM")
    probe("pidfd_getfd_" + name, got[0] >= 0, (pidfd, got))
try:
    os.kill(1, signal.SIGTERM)
    os.kill(1, signal.SIGKILL)
except OSError:
    pass
os.kill(sibling, signal.SIGKILL)
os.waitpid(sibling, 0)
check("init_cannot_be_killed", os.getppid() >= 0 and os.path.exists("/proc/self"))
