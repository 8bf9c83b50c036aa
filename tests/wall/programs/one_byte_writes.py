# row: 74
# about: output one byte at a time
# control: none, it is no attack on its own
# limits: {"timeout_s": 30, "cpu_s": 30}
# status: ok
for _ in range(200000):
    os.write(1, b"x")
os.write(1, b"\n")
check("all_written", True)
