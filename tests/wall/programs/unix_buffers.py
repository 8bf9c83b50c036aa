# row: 65
# about: memory of the kernel in local sockets that nobody reads, and descriptors on their way
# control: root
# limits: {"memory_bytes": 67108864, "timeout_s": 20, "cpu_s": 20}
# status: ok memory_limit error
import array
import socket
import time

WISH, block = 72 << 20, b"x" * 4096


def travel():
    """Descriptors sent, never received, closed here: how many can be on their way?"""
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    sent, rights = 0, array.array("i", [0] * 250)
    a.setblocking(False)
    try:
        while sent < 5000:
            a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            sent += 250
            if sent % 2000 == 0:  # a queue holds few messages
                a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
                keep.append((a, b))
                a.setblocking(False)
    except OSError as error:
        return sent, error.errno
    return sent, 0


keep = []
sent, code = travel()
probe("descriptors_on_their_way_5000", sent >= 5000, (sent, code))
held = 0
try:
    while held < WISH:
        a, b = socket.socketpair()
        keep.append((a, b))
        for end in (a, b):
            end.setblocking(False)
            try:
                while held < WISH:
                    held += end.send(block)
            except BlockingIOError:
                pass
except OSError as error:
    check("said_why", error.errno in (errno.EMFILE, errno.ENOBUFS, errno.ENOMEM), error)
time.sleep(0 if OUTSIDE else 1)  # for whoever looks now and then
probe("unix_buffers_72m", held >= WISH, f"{held >> 20} MiB in {len(keep)} pairs")
