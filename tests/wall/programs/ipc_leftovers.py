# row: 16 66
# about: System V and POSIX objects of an earlier run; this one makes its own and leaves it
# control: none, see the two-box tests
IPC_CREAT, KEY = 0o1000, 0x6375
before = raw(29, KEY, 4096, 0o600)
check("no_segment_of_another_run", before[0] == -1, before)
raw(29, KEY, 4096, IPC_CREAT | 0o600)
for path in ("/dev/shm/left", "/tmp/left", "/workspace/left"):
    check("no_file_of_another_run", not os.path.exists(path), path)
    open(path, "w").close()
