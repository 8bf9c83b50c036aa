"""Looks for secrets of the host: its environment, its files, other processes."""
import os
import sys


def look(what, read):
    try:
        found = read()
    except OSError as refusal:
        found = refusal.strerror.lower()
    print(f"{what:32} {found or 'nothing there'}")


look("environment variable TOUR_SECRET", lambda: os.environ.get("TOUR_SECRET"))
for path in [*sys.argv[1:], "/root", "/etc/shadow", "/proc/1/environ"]:
    look(path, lambda: os.listdir(path) if os.path.isdir(path) else open(path).read())
