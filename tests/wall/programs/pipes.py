# row: 63
# about: memory of the kernel in pipes made as large as they can be
# control: root
# limits: {"memory_bytes": 134217728, "timeout_s": 20, "cpu_s": 20}
# status: ok memory_limit error
import fcntl

F_SETPIPE_SZ, WISH = 1031, 160 << 20
held, block = 0, b"x" * (64 << 10)
keep = []
try:
    while held < WISH:
        reader, writer = os.pipe()
        keep += [reader, writer]
        try:
            fcntl.fcntl(writer, F_SETPIPE_SZ, 1 << 20)
        except OSError:
            pass  # the uid's share is spent: pipes are one page from here on
        os.set_blocking(writer, False)
        try:
            while held < WISH:
                held += os.write(writer, block)
        except BlockingIOError:
            pass
except OSError as error:
    check("said_why", error.errno in (errno.EMFILE, errno.ENFILE), error)
probe("pipes_160m", held >= WISH, f"{held >> 20} MiB in {len(keep) // 2} pipes")
