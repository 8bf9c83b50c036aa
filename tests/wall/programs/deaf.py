# row: 77
# about: every signal ignored or blocked, children too
# control: none, time is not a thing one reaches
# limits: {"timeout_s": 1}
# status: timeout
import signal
import time

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        break
while True:
    time.sleep(100)
