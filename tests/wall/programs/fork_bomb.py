# row: 57
# about: as many children as the kernel gives
# control: user
# limits: {"pids": 64}
# status: ok
# hits: pids
import signal
import time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
count = 0
try:
    for count in range(300):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
except OSError as error:
    check("said_why", error.errno == errno.EAGAIN, error)
probe("children_300", count >= 299, count)
check("some_children", count >= 16, count)
if OUTSIDE:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
