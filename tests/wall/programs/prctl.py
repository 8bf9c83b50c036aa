# row: 38
# about: process controls that only a privileged or odd program asks for
# control: root
# may-lack: set_tsc mce_kill set_ptracer sched_core set_mm set_mm_high
OPS = {"set_mm": (35, 1, 0, 0, 0), "capbset_drop": (24, 0, 0, 0, 0), "set_keepcaps": (8, 1, 0, 0, 0),
       "set_securebits": (28, 1, 0, 0, 0), "set_tsc": (26, 2, 0, 0, 0), "mce_kill": (33, 1, 0, 0, 0),
       "set_ptracer": (0x59616d61, 2 ** 64 - 1, 0, 0, 0),
       "sched_core": (62, 1, 0, 0, 0), "set_mm_high": (35 | HIGH, 1, 0, 0, 0)}
for name, words in OPS.items():
    text = in_child(lambda: raw(157, *words))
    probe(name, "EPERM" not in text and "ENOSYS" not in text
          and ("EINVAL" not in text or name.startswith("set_mm")), text)
for name, words in {"name": (15, b"probe", 0, 0, 0), "get_dumpable": (3, 0, 0, 0, 0),
                    "pdeathsig": (1, 0, 0, 0, 0), "no_new_privs": (38, 1, 0, 0, 0),
                    "capbset_read": (23, 0, 0, 0, 0)}.items():
    text = in_child(lambda: raw(157, *words))
    check("usual_" + name, text.startswith("(") and not text.startswith("(-1"), text)
