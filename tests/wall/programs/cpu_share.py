# row: 76
# about: a second of burning with a tenth of a cpu: the share is the kernel's to give
# control: root
# limits: {"cpus": 0.1, "timeout_s": 20, "cpu_s": 20}
# weak-leaks: whole_cpu
# as: root
import os
import time

if os.environ.get("CUPEL_OUTSIDE"):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # before all others on a busy machine
end, before = time.monotonic() + 1, time.process_time()
while time.monotonic() < end:
    pass
spent = time.process_time() - before
probe("whole_cpu", spent > 0.3, f"{spent:.3f} s of 1 s")
