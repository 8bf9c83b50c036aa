# row: 79
# about: orphans that end: init must reap them or the pids run out
# control: none, it is no attack outside
# limits: {"pids": 64, "timeout_s": 20, "cpu_s": 20}
# status: ok
import time

made = 0
for _ in range(400):
    for patience in range(200):
        try:
            pid = os.fork()
            break
        except BlockingIOError:
            time.sleep(0.01)
    if pid == 0:
        try:
            os.fork()
        except OSError:
            pass
        os._exit(0)
    os.waitpid(pid, 0)
    made += 1
check("orphans_are_reaped", made == 400, made)
