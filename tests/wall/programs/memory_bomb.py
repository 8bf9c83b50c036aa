# row: 59
# about: more anonymous memory than allowed
# control: user
# limits: {"memory_bytes": 134217728}
# status: memory_limit
held = []
for step in range(40):
    held.append(bytearray(b"x") * (8 << 20))
probe("memory_320m", True)
