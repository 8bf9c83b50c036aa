# row: 97
# about: an archive that is small and becomes large; unpacking is the box's own affair
# control: user
# limits: {"disk_bytes": 33554432, "memory_bytes": 268435456, "timeout_s": 20, "cpu_s": 20}
# status: ok
import zipfile

with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for n in range(4):
        archive.writestr(f"zeros{n}", bytes(24 << 20))
size = os.path.getsize("bomb.zip")
check("it_is_small", size < 1 << 20, size)


def unpack():
    with zipfile.ZipFile("bomb.zip") as archive:
        archive.extractall("unpacked")
    return "96 MiB"


attempt("unpacked_96m", unpack)
