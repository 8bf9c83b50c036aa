# row: 67
# about: empty files and deep folders without end
# control: user
# limits: {"timeout_s": 30, "cpu_s": 30}
# status: ok
count = 0
try:
    for count in range(40000):
        os.close(os.open(f"f{count}", os.O_CREAT | os.O_WRONLY))
except OSError as error:
    check("said_why", error.errno in (errno.ENOSPC, errno.EDQUOT), error)
probe("files_40000", count >= 39999, count)
for number in range(2000):
    if os.path.exists(f"f{number}"):
        os.unlink(f"f{number}")
depth = 0
try:
    for depth in range(0 if OUTSIDE else 1500):
        os.mkdir("d")
        os.chdir("d")
except OSError:
    pass
check("deep_folders", depth > 500 or OUTSIDE, depth)
