# row: 4
# about: any other process, and so the arguments it was started with
# control: root
import glob

own = os.getpid()
others = []
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        text = open(path, "rb").read()
    except OSError:
        continue
    if int(path.split("/")[2]) != own:
        others.append(text)
probe("other_processes", others, f"{len(others)} visible")
