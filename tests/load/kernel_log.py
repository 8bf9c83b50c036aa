"""The kernel's own complaints, and what it holds in memory, before and after a load."""
import os
import re
from pathlib import Path

ALARMS = re.compile(r"WARNING: |BUG: |BUG at|Oops|soft lockup|hard LOCKUP|blocked for more than|"
                    r"rcu.*(stall|detected)|general protection fault: .* \[#|unable to handle|"
                    r"UBSAN|KASAN|KCSAN|refcount_t: |list_(add|del) corruption|kernel panic|"
                    r"unregister_netdevice: waiting|possible (circular|recursive) locking")
# What a box could leave behind without a process, a mount or a cgroup to show for it.
HELD = ("Shmem", "SUnreclaim", "KernelStack", "PageTables", "Percpu", "Mlocked")


class KernelLog:
    """Reads /dev/kmsg from now on; an ordinary user may not be allowed to."""

    def __enter__(self):
        try:
            self.file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.file, 0, os.SEEK_END)
        except OSError:
            self.file = None
        return self

    def __exit__(self, *_):
        if self.file is not None:
            os.close(self.file)

    def alarms(self):
        found = []
        while self.file is not None:
            try:
                text = os.read(self.file, 8192).decode(errors="replace")
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten before we came: the next read goes on
                continue
            line = text.split("\n", 1)[0].partition(";")[2]
            if ALARMS.search(line):
                found.append(line)
        return found


def held_mib():
    """{name: MiB} of the host's memory that no process need be holding."""
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.M))
    return {name: int(found[name]) >> 10 for name in HELD if name in found}
