# row: 71 49
# about: as many open files as the kernel gives
# control: root
import resource

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
except (ValueError, OSError):
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
try:
    while len(held) < 5000:
        held.append(os.dup(0))
except OSError as error:
    check("said_why", error.errno == errno.EMFILE, error)
probe("descriptors_5000", len(held) >= 5000, len(held))
check("enough_for_work", len(held) >= 200, len(held))
for fd in held:
    os.close(fd)
