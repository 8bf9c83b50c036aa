# row: 16 61
# about: more files than the disk limit holds, in every writable place
# control: user
# limits: {"disk_bytes": 33554432, "memory_bytes": 268435456}
# status: ok
PLACES = [p for p in ("/workspace", "/tmp", "/dev/shm", "/var/tmp", "/run", "/home/user")
          if os.path.isdir(p) and os.path.realpath(p) == p and os.access(p, os.W_OK)] or ["."]
if OUTSIDE:
    PLACES = ["."]
block = b"x" * (1 << 20)
made, written = [], 0
for place in PLACES:
    path = os.path.join(place, "fill")
    made.append(path)
    try:
        with open(path, "wb", 0) as file:
            for step in range(96):
                written += file.write(block)
    except OSError as error:
        check("said_why", error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), error)
probe("disk_96m", written >= 96 << 20, f"{written >> 20} MiB in {len(PLACES)} places")
for path in made:
    if os.path.exists(path):
        os.unlink(path)
with open(os.path.join(PLACES[0], "again"), "wb") as file:
    file.write(block)
os.unlink(os.path.join(PLACES[0], "again"))
check("usable_after_removal", True)
