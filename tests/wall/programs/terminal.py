# row: 15 34
# about: typing into a terminal, pasting into the console, line disciplines: refused before the
#        kernel asks what the descriptor is
# control: user
IOCTL = 16
REQUESTS = {"tiocsti": 0x5412, "tioclinux": 0x541C, "tiocsetd": 0x5423}
room = ctypes.create_string_buffer(8)
for name, request in REQUESTS.items():
    for suffix, high in (("", 0), ("_high", HIGH), ("_highest", 1 << 63)):
        outcome = raw(IOCTL, 0, request | high, room)
        probe(name + suffix, kernel_looked(outcome), outcome)
check("ordinary_question", raw(IOCTL, 0, 0x5401, ctypes.create_string_buffer(64))[1] == "ENOTTY")
