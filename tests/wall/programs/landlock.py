# row: 46
# about: a file that no mount and no mode protects, only Landlock, where the kernel has it
# control: user
# boxes: every
FORBIDDEN = "/.landlock"
if OUTSIDE:
    FORBIDDEN = "plain"
    open(FORBIDDEN, "w").close()
abi = raw(444, None, 0, 1)
if abi[0] < 1 and not OUTSIDE:
    probe("open_forbidden", False, f"no landlock in this kernel: {abi}")
else:
    attempt("open_forbidden", lambda: os.close(os.open(FORBIDDEN, os.O_RDONLY)))
check("forbidden_is_there", os.path.exists(FORBIDDEN), FORBIDDEN)
