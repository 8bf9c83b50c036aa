# row: 15 77
# about: processes that wait on full terminals, drain them, hold them by sessions: they die at once
# control: none, outside it would only wait
# limits: {"timeout_s": 3}
# status: timeout
import termios

for _ in range(5):
    leader, end = os.openpty()
    for drain in (False, True):
        if os.fork() == 0:
            os.login_tty(end) if hasattr(os, "login_tty") else os.setsid()
            if drain:
                termios.tcdrain(end)
            while True:
                os.write(end, b"x" * 4096)
        if os.fork() == 0:
            os.setsid()
            while True:
                os.write(leader, b"y" * 4096)
    os.close(end)
check("started", True)
while True:
    os.read(os.openpty()[1], 1)
