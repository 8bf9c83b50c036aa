# row: 48
# about: the switches by which uid 0 or a change of uid would bring capabilities back
# control: root
GET_SECUREBITS = 27
LOCKED = {"noroot": 0b11, "no_setuid_fixup": 0b1100, "keep_caps_locked": 0b100000,
          "no_ambient_raise": 0b11000000}
value, code = raw(157, GET_SECUREBITS, 0, 0, 0, 0)
for name, bits in LOCKED.items():
    probe(name, value < 0 or value & bits != bits, (value, code))
