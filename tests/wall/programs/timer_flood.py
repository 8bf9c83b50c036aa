# row: 83
# about: timers and queued signals, each of which holds memory of the kernel until it is heard
# control: user
# status: ok
import resource
import signal

TIMER_CREATE, RT_SIGQUEUEINFO, MONOTONIC, WISH = 222, 129, 1, 2000
hard = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]
resource.setrlimit(resource.RLIMIT_SIGPENDING, (hard, hard))


def flood(step):
    for count in range(WISH):
        value, code = step()
        if value < 0:
            return count, code
    return WISH, ""


made, code = flood(lambda: raw(TIMER_CREATE, MONOTONIC, None, ctypes.create_string_buffer(8)))
probe("timers_2000", made >= WISH, (made, code))
if made < WISH:
    check("timers_said_why", code == "EAGAIN", code)
check("some_timers", made >= 50, made)


def queue():
    """To ourselves, blocked, so that each one stays in the queue."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
    info = (ctypes.c_int * 32)(signal.SIGRTMIN, 0, -1)  # si_code SI_QUEUE
    return flood(lambda: raw(RT_SIGQUEUEINFO, os.getpid(), int(signal.SIGRTMIN), info))


text = in_child(queue)  # a queue of its own, but counted for the same uid
sent = int(text.strip("(").split(",")[0]) if text.startswith("(") else WISH
probe("signals_2000", sent >= WISH, text)
