# row: 9
# about: a crash that leaves the memory of a process on the host, in a file or with the host's
#        handler of crashes
# control: user
# may-lack: core_written core_file
import resource
import signal

hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
try:
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
except (OSError, ValueError):
    pass
before = set(os.listdir("."))
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGSEGV)
status = os.waitpid(pid, 0)[1]
check("it_crashed", os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV, status)
probe("core_allowed", hard == resource.RLIM_INFINITY or hard > 1, hard)
probe("core_written", os.WCOREDUMP(status), status)
found = set(os.listdir(".")) - before
probe("core_file", found, found)
