# row: 63
# about: a little in each of very many pipes, held by many processes
# control: user
# limits: {"memory_bytes": 50331648, "timeout_s": 20, "cpu_s": 20}
# status: memory_limit
import signal
import time


def hold():
    """As many as the process may have."""
    try:
        while True:
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            os.write(writer, b"x" * 4096)
    except OSError:
        time.sleep(20)


for _ in range(16):
    if os.fork() == 0:
        hold()
        os._exit(0)
time.sleep(1 if OUTSIDE else 6)
probe("pipes_8000", True)
if OUTSIDE:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
