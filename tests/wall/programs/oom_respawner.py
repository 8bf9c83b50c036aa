# row: 60
# about: a parent that lets its children be killed in its place
# control: none, it would take the host
# limits: {"memory_bytes": 134217728, "timeout_s": 4}
# status: memory_limit
# weak: error memory_limit killed timeout ok
deaths = 0
for attempt_number in range(200):
    pid = os.fork()
    if pid == 0:
        try:
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("1000")
        except OSError:
            pass
        held = []
        while len(held) < 64:
            held.append(bytearray(b"x") * (8 << 20))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    deaths += os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9
    if deaths > 1:
        probe("outlived_its_children", True, deaths)
        break
