# row: 42 93
# about: files by handle, hard links to foreign inodes, leases
# control: root
# may-lack: lease
import fcntl

handle = ctypes.create_string_buffer(128 + 8)
ctypes.c_uint32.from_buffer(handle).value = 128
mount_id = ctypes.c_int()
named = raw(303, -100, b"/", handle, ctypes.byref(mount_id), 0)
fd = os.open("/", os.O_RDONLY)
probe("open_by_handle", raw(304, fd, handle, os.O_RDONLY)[0] >= 0, named)


if OUTSIDE:
    open("foreign", "w").close()
foreign = "foreign" if OUTSIDE else "/usr/bin/env"
attempt("hard_link_to_image", lambda: os.link(foreign, "hard"))
with open("/usr/bin/env", "rb") as file:
    attempt("lease", lambda: fcntl.fcntl(file, 1024, 0))
