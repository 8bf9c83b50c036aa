# row: 39
# about: memory in files without a name, which no rlimit on addresses sees
# control: user
# limits: {"memory_bytes": 134217728}
# status: memory_limit ok error
# weak: ok
fds = []
block = b"x" * (1 << 20)
try:
    for step in range(320):
        if step % 64 == 0:
            fds.append(os.memfd_create("bomb"))
        os.write(fds[-1], block)
    probe("memory_320m", True)
except OSError as error:
    probe("memory_320m", False, error)
