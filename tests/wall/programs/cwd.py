# row: 50
# about: climbing out by .. and by the links of /proc
# control: root
# args: host
root = os.stat("/")
climbs = []
for start in (".", "/proc/self/cwd", "/proc/self/root", "/workspace", "/tmp"):
    if os.path.isdir(start):
        path = start + "/.." * 40
        at = os.stat(path)
        climbs.append((at.st_dev, at.st_ino) == (root.st_dev, root.st_ino))
check("the_top_is_the_root", all(climbs), climbs)
reached = [path for path in sys.argv[1:-1] for way in ("", "/proc/self/root", "/proc/self/cwd" + "/.." * 20)
           if os.path.exists(way + path)]
probe("host_path", reached, reached)
if not OUTSIDE:
    check("work_folder", os.getcwd() == "/workspace", os.getcwd())
    for path in ("/mnt/data", "/home/user"):
        check("habit_" + path.strip("/").replace("/", "_"),
              os.path.samefile(path, "/workspace"), path)
