# row: 15
# about: the box's terminals are its own, few, and of the plain line discipline
# control: root
# may-lack: types_into_itself types_into_itself_high
import fcntl
import pty
import termios

IOCTL, TIOCSTI, TIOCSETD = 16, 0x5412, 0x5423


def on_a_terminal(action):
    """What action(fd) says in a child whose terminal fd is."""
    def child():
        pid, leader = pty.fork()
        if pid == 0:
            os.write(1, b"<" + str(action(0)).encode() + b">")
            os._exit(0)
        text = b""
        try:
            while data := os.read(leader, 4096):
                text += data
        except OSError:
            pass
        os.waitpid(pid, 0)
        return text.decode().split("<", 1)[1].split(">")[0]
    return in_child(child)


leader, end = os.openpty()
check("named", os.ttyname(end) == f"/dev/pts/{os.listdir('/dev/pts')[0]}" or OUTSIDE, os.ttyname(end))
os.write(end, b"hello\n")
check("carries", os.read(leader, 100) == b"hello\r\n")
room = ctypes.create_string_buffer(b"x" * 8)
for suffix, high in (("", 0), ("_high", HIGH)):
    said = on_a_terminal(lambda fd: raw(IOCTL, fd, TIOCSTI | high, room)[0])
    probe("types_into_itself" + suffix, said == "0", said)
    kind = (ctypes.c_int * 1)(25)  # no such discipline: EINVAL from a kernel that looks
    outcome = raw(IOCTL, end, TIOCSETD | high, kind)
    probe("line_disciplines" + suffix, kernel_looked(outcome), outcome)
said = on_a_terminal(lambda fd: os.ttyname(os.open("/dev/tty", os.O_RDWR)))
check("own_terminal", said == "/dev/tty", said)
opened = []
try:
    for _ in range(40):
        opened += os.openpty()
except OSError as error:
    check("few", error.errno == errno.ENOSPC, error)
probe("many", len(opened) == 80, len(opened) // 2)
if not OUTSIDE:
    try:
        os.open("/dev/tty", os.O_RDWR)
        check("no_terminal_of_the_caller", False)
    except OSError as error:
        check("no_terminal_of_the_caller", error.errno == errno.ENXIO, error)
    mount = [line for line in open("/proc/self/mountinfo") if " /dev/pts " in line][0]
    check("own_instance", "max=16" in mount and "ptmxmode=666" in mount, mount)
