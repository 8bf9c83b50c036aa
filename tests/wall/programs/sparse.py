# row: 70 94
# about: files that claim to be larger than everything
# control: user
# may-lack: truncate_10t
# limits: {"disk_bytes": 33554432}
# status: ok
def grow(size, call):
    def action():
        fd = os.open("grown", os.O_CREAT | os.O_RDWR)
        try:
            call(fd, size)
            return os.fstat(fd).st_blocks
        finally:
            os.close(fd)
            os.unlink("grown")
    return action


attempt("truncate_10t", grow(10 << 40, os.ftruncate))
attempt("fallocate_64m", grow(64 << 20, lambda fd, size: os.posix_fallocate(fd, 0, size)))
