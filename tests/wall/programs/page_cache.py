# row: 62
# about: reading far more of the image than the memory limit holds is no offence
# control: none, it is no attack
# limits: {"memory_bytes": 67108864, "timeout_s": 20, "cpu_s": 20}
# status: ok
read = 0
for folder, _, files in os.walk("/usr"):
    for name in files:
        try:
            with open(os.path.join(folder, name), "rb", 0) as file:
                while block := file.read(1 << 16):
                    read += len(block)
        except OSError:
            pass
    if read > 300 << 20:
        break
check("read_more_than_the_limit", read > 128 << 20, f"{read >> 20} MiB")
