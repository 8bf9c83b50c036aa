# row: 27 30 34
# about: kinds of sockets below TCP and UDP, refused by the filter before the kernel asks for
#        the right to them
# control: root
# may-lack: rdm dccp rdm_high dccp_high packet packet_high
SOCKET, INET, TCP = 41, 2, 6
KINDS = {"raw": 3, "rdm": 4, "dccp": 6, "packet": 10}
for name, kind in KINDS.items():
    for suffix, high in (("", 0), ("_high", HIGH)):
        value, code = raw(SOCKET, INET, kind | high, TCP)
        if value >= 0:
            os.close(value)
        probe(name + suffix, code != "EAFNOSUPPORT", (value, code))
value, code = raw(SOCKET, INET, 1, TCP)
check("tcp_is_there", value >= 0, code)
