# row: 39
# about: a program that never had a name: it runs, behind the same walls
# control: root
# weak: error
fd = os.memfd_create("program", 0)
with open("/usr/bin/cat", "rb") as file:
    os.write(fd, file.read())
reader, writer = os.pipe()
if os.fork() == 0:
    os.dup2(writer, 1)
    os.execve(fd, ["cat", "/proc/self/status"], {})
os.close(writer)
with os.fdopen(reader) as stream:
    fields = {line.split(":")[0]: line.split(":")[1].split() for line in stream}
os.wait()
check("it_ran", fields.get("Name"), fields.get("Name"))
held = {key: value[0] for key, value in fields.items() if key.startswith("Cap")}
probe("capabilities", len(held) != 5 or any(int(value, 16) for value in held.values()), held)
probe("no_filter", fields.get("Seccomp") != ["2"], fields.get("Seccomp"))
probe("new_privileges", fields.get("NoNewPrivs") != ["1"])
probe("root", "0" in fields.get("Uid", ["0"]), fields.get("Uid"))
