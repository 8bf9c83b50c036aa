"""Every process makes more processes, until the kernel refuses one."""
import os
import time

first = os.getpid()
try:
    while True:
        os.fork()
except OSError as refusal:
    if os.getpid() == first:
        raise SystemExit(f"fork: {refusal.strerror.lower()}")
    time.sleep(60)
