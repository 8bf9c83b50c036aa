# row: 26 27 28 29 30 31 34 117
# about: socket families with and without high bits, and the host's own listeners
# limits: {"timeout_s": 60}
# control: root
# may-lack: alg alg_high vsock vsock_high other_families other_families_high
# args: listeners
import socket
import stat

PORT, ABSTRACT, PATH = int(sys.argv[1]), sys.argv[2], sys.argv[3]
SOCKET, SOCKETPAIR = 41, 53


def make(family, kind=1, protocol=0):
    value, code = raw(SOCKET, family, kind, protocol)
    if value >= 0:
        os.close(value)
    return value >= 0, code


def any_kind(family):
    return next((k for k in (1, 2, 3, 4, 5, 10) if make(family, k)[0]), None)


for name, family in (("alg", 38), ("vsock", 40), ("netlink", 16), ("packet", 17)):
    probe(name, any_kind(family), any_kind(family))
    high = [bit for bit in (32, 40, 63) if any_kind(family | 1 << bit)]
    probe(name + "_high", high, high)
probe("raw_inet", make(2, 3, 1)[0], make(2, 3, 1))
probe("raw_inet_high", make(2, 3 | HIGH, 1)[0] or make(2, 3, 1 | HIGH)[0])
others = [f for f in range(64) if f not in (1, 2, 10, 16, 17, 38, 40) and any_kind(f)]
probe("other_families", others, others)
others = [f for f in range(64) if f not in (1, 2, 10, 16, 17, 38, 40) and any_kind(f | HIGH)]
probe("other_families_high", others, others)


def meet(family, address):
    with socket.socket(family) as link:
        link.settimeout(2)
        link.connect(address)
        return link.recv(16)


attempt("host_loopback", lambda: meet(socket.AF_INET, ("127.0.0.1", PORT)))
attempt("host_abstract", lambda: meet(socket.AF_UNIX, "\0" + ABSTRACT))
attempt("host_path", lambda: meet(socket.AF_UNIX, PATH))
found = []
for folder, names, files in os.walk("/"):
    if folder.count("/") > 4 or folder.startswith(("/proc", "/usr")):
        names[:] = []
        continue
    for name in files:
        try:
            if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode):
                found.append(os.path.join(folder, name))
        except OSError:
            pass
probe("unix_sockets", found, found[:4])
if not OUTSIDE:
    for family, address in ((socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("10.0.0.1", 80)),
                            (socket.AF_INET6, ("2606:4700::1111", 53)),
                            (socket.AF_INET, ("169.254.169.254", 80))):
        try:
            meet(family, address)
            check("no_way_out", False, address)
        except OSError as error:
            fast = error.errno in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EHOSTUNREACH)
            check("no_way_out", fast, error)
    try:
        socket.getaddrinfo("example.org", 443)
        check("no_names", False)
    except OSError as error:
        check("no_names", True, error)
    names = {row[4][0] for row in socket.getaddrinfo("localhost", 80)}
    check("localhost_is_known", names & {"127.0.0.1", "::1"}, names)
    a, b = socket.socketpair()
    a.send(b"x")
    check("socketpair_works", b.recv(1) == b"x")
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    check("own_loopback_works", client.getpeername() == server.getsockname())
