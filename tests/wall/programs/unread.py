# row: 65
# about: what was sent over local sockets that are closed, and that nobody has read: whole blocks,
#   single bytes, and datagrams behind a small one
# control: user
# limits: {"memory_bytes": 67108864, "timeout_s": 20, "cpu_s": 20}
# status: memory_limit error ok
# weak: memory_limit
import socket
import time

WISH, keep = 400 << 20, []


def leave(kind, block):
    """One more socket that holds what its closed sender has left; as many bytes as were sent."""
    sender, receiver = socket.socketpair(socket.AF_UNIX, kind)
    keep.append(receiver)
    sender.setblocking(False)
    sent = 0
    try:
        sender.send(b"x")
        while True:
            sent += sender.send(block)
    except OSError:
        sender.close()
    return sent


held, many = 0, 0
while held < WISH and len(keep) < 900:
    held += leave(socket.SOCK_STREAM, b"x" * 16384) + leave(socket.SOCK_DGRAM, b"x" * 65536)
    many += leave(socket.SOCK_STREAM, b"x")
time.sleep(0 if OUTSIDE else 1)  # for whoever looks now and then
probe("unread_in_900_sockets", True, f"{held >> 20} MiB, {many} bytes")
