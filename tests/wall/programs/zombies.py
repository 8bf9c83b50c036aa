# row: 79
# about: children that are never waited for
# control: user
# limits: {"pids": 64}
# status: ok
# hits: pids
count = 0
try:
    for count in range(300):
        if os.fork() == 0:
            os._exit(0)
except OSError as error:
    check("said_why", error.errno == errno.EAGAIN, error)
probe("zombies_300", count >= 299, count)
