# row: 64
# about: kernel memory in TCP and UDP buffers, which cgroup v1 does not charge
# control: root
# limits: {"memory_bytes": 134217728, "timeout_s": 20, "cpu_s": 20}
# status: ok memory_limit error
# as: root
import socket

WISH = 160 << 20


def tcp():
    """Bytes that loopback connections hold while nobody reads."""
    server = socket.create_server(("127.0.0.1", 0), backlog=256)
    held, links, block = 0, [], b"x" * (256 << 10)
    for _ in range(120):
        a = socket.create_connection(server.getsockname())
        b, _ = server.accept()
        links += [a, b]
        for end in (a, b):
            end.setblocking(False)
            try:
                while held < WISH:
                    held += end.send(block)
            except OSError:
                pass
        if held >= WISH:
            break
    return held


def udp():
    held, links, block = 0, [], b"x" * 60000
    for _ in range(900):
        a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            a.bind(("127.0.0.1", 0))
            a.setblocking(False)
            links.append(a)
            a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            for _ in range(8):
                held += a.sendto(block, a.getsockname())
        except OSError:
            pass
        if held >= WISH:
            break
    kept = 0  # what was dropped on the way does not count
    for a in links:
        try:
            while True:
                kept += len(a.recv(65536))
        except OSError:
            pass
    return kept


total = tcp()
probe("tcp_buffers", total >= WISH, f"{total >> 20} MiB")
total = udp()
probe("udp_buffers", total >= WISH, f"{total >> 20} MiB")
