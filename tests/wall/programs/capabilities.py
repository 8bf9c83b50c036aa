# row: 47 48
# about: capabilities, set-uid files, and the promise of no new privileges
# control: root
# boxes: every
import subprocess


def status(text):
    return {line.split(":")[0]: line.split(":")[1].split() for line in text.splitlines()}


for name, text in (("own", open("/proc/self/status").read()),
                   ("child", subprocess.run(["cat", "/proc/self/status"], capture_output=True,
                                            text=True).stdout)):
    fields = status(text)
    sets = {key: value[0] for key, value in fields.items() if key.startswith("Cap")}
    probe("capabilities_" + name, any(int(v, 16) for v in sets.values()) or len(sets) != 5, sets)
    probe("new_privileges_" + name, fields["NoNewPrivs"] != ["1"])
    probe("no_filter_" + name, fields["Seccomp"] != ["2"], fields["Seccomp"])
    probe("root_" + name, "0" in fields["Uid"] + fields["Gid"] + fields["Groups"],
          (fields["Uid"], fields["Groups"]))
attempt("set_uid_0", lambda: os.setresuid(0, 0, 0))
attempt("set_groups", lambda: os.setgroups([0]))
suid_mounts = [line.split()[4] for line in open("/proc/self/mountinfo")
               if "nosuid" not in line.split()[5] and not line.split()[4].startswith("/dev/")]
probe("set_uid_files_work", suid_mounts, suid_mounts[:4])
