#!/usr/bin/python3
"""The unit tests of an aarch64 build under qemu's user emulation: `make test-aarch64`. What needs
calls that the emulator lacks is told apart by name; everything else must pass."""
import os
import re
import subprocess
import sys

# openat2, Landlock and ptrace are not emulated.
NOT_EMULATED = ("curator_", "image_", "cli_steward_", "park_", "keep_", "transplant_", "files_session_")


def main():
    unit = os.path.join(os.environ["BUILD"], "unit")
    done = subprocess.run(["qemu-aarch64-static", unit], capture_output=True, text=True, errors="replace",
                          timeout=450)
    passed = re.findall(r"^ok (\w+)", done.stdout, re.M)
    failed = re.findall(r"^not ok (\w+)", done.stdout, re.M)
    real = [name for name in failed if not name.startswith(NOT_EMULATED)]
    print(f"aarch64: {len(passed)} unit tests passed, {len(failed) - len(real)} cannot run in emulation")
    for name in real:
        print(f"failed: {name}")
    filters = [name for name in passed if name.startswith("box_filter")]
    sys.exit(bool(real) or len(passed) < 250 or not filters)


if __name__ == "__main__":
    main()
