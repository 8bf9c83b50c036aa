"""Takes memory until somebody stops it."""
held = []
while True:
    held.append(bytearray(16 << 20))
