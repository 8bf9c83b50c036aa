#!/usr/bin/python3
"""All figures, one after another: `make bench`. Ends with 0 where every promise of
docs/spec.md that has a figure was held, with 1 where one was broken."""
import sys
import time

import ask
import cold
import collect
import common
import images
import kill
import leak
import mcp
import tools
import warm


def main():
    common.RESULTS.unlink(missing_ok=True)
    print(f"figures of cupel on {common.machine()}, load {open('/proc/loadavg').read().split()[0]}")
    common.record({"bench": "machine", "what": common.machine(), "at": time.strftime("%Y-%m-%dT%H:%M:%S%z")})
    # warm first: it looks at the load, which the others leave behind.
    broken = [part.__name__ for part in (warm, ask, tools, cold, collect, kill, leak, mcp, images) if part.main()]
    print(f"\nresults as JSON lines: {common.RESULTS}")
    print("broken: " + ", ".join(broken) if broken else "every promise with a figure was held or not judged")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
