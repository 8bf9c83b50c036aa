# row: 9 43 69 83
# about: the limits of a process, each on its own; a backstop counts too
# control: root
# may-lack: msgqueue memlock rtprio nice sigpending nproc nofile core
import resource

MOST = {  # (at most, asked for outside)
    "CORE": (1, 1 << 20), "CPU": (3600, None), "NOFILE": (4096, 20000), "NPROC": (4096, None),
    "FSIZE": (4 << 30, None), "STACK": (8 << 20, None), "MEMLOCK": (64 << 10, 1 << 30),
    "MSGQUEUE": (0, 1 << 20), "RTPRIO": (0, 10), "NICE": (0, 10), "SIGPENDING": (1024, 4096)}
for name, (most, wish) in MOST.items():
    kind = getattr(resource, "RLIMIT_" + name)
    try:
        wish = resource.RLIM_INFINITY if wish is None else wish
        resource.setrlimit(kind, (wish, wish))
    except (OSError, ValueError):
        pass
    hard = resource.getrlimit(kind)[1]
    probe(name.lower(), hard == resource.RLIM_INFINITY or hard > most, hard)
if not OUTSIDE:
    score = open("/proc/self/oom_score_adj").read().strip()
    check("killed_before_others", score == "500", score)
