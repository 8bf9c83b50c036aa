# row: 46
# about: code that confines itself further is let do so, where the kernel can
# control: none, it is no attack
PRCTL, CREATE, RESTRICT, ABI = 157, 444, 446, 1
NO_NEW_PRIVS, READ_FILE, SECCOMP_SET, FILTER = 38, 1 << 2, 317, 1


def landlock():
    version = raw(CREATE, None, 0, ABI)[0]
    if version < 1:
        return "the kernel has none"
    ruleset = raw(CREATE, (ctypes.c_uint64 * 1)(READ_FILE), 8, 0)[0]
    raw(PRCTL, NO_NEW_PRIVS, 1, 0, 0, 0)
    if ruleset < 0 or raw(RESTRICT, ruleset, 0)[0] != 0:
        return "refused"
    try:
        open("/etc/passwd").close()
        return "does nothing"
    except PermissionError:
        return "works"


def seccomp():
    """A filter of its own: getppid fails from now on, the rest is as before."""
    code = (ctypes.c_uint64 * 4)(0x20, 0x15 | 1 << 24 | 110 << 32, 0x06 | 0x00050026 << 32,
                                 0x06 | 0x7fff0000 << 32)  # load nr; if it is 110; ERRNO; ALLOW
    program = (ctypes.c_uint64 * 2)(4, ctypes.addressof(code))
    if raw(SECCOMP_SET, FILTER, 0, program)[0] != 0:
        return "refused"
    return "works" if raw(110) == (-1, "ENOSYS") and raw(39)[0] > 0 else "does nothing"


answer = in_child(landlock)
check("landlock", answer in ("works", "the kernel has none"), answer)
answer = in_child(seccomp)
check("seccomp", answer == "works", answer)
