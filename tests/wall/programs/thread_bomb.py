# row: 58
# about: threads count as processes do
# control: user
# limits: {"pids": 64}
# status: ok
# hits: pids
import threading

gate = threading.Event()
count = 0
threading.stack_size(64 << 10)
try:
    for count in range(300):
        threading.Thread(target=gate.wait, daemon=True).start()
except RuntimeError as error:
    check("said_why", "start new thread" in str(error), error)
probe("threads_300", count >= 299, count)
gate.set()
