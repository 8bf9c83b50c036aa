"""An IPython shell as the recorded one: cells as JSON strings on stdin, what each printed on stdout."""
import json
import os
import signal
import sys

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.io import capture_output

from recording import CUT_AT, CUT_MARK


def stop(*_):
    raise TimeoutError(f"Timed out after {sys.argv[1]} seconds.")


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)   # what code writes past sys.stdout is not an answer
    shell = InteractiveShell.instance(colors="NoColor", user_ns={})
    signal.signal(signal.SIGALRM, stop)
    for line in sys.stdin:
        signal.alarm(int(sys.argv[1]))
        with capture_output() as captured:
            shell.run_cell(json.loads(line), store_history=True)
        signal.alarm(0)
        text = captured.stdout
        text = text[:CUT_AT] + CUT_MARK if len(text) > CUT_AT else text
        print(json.dumps(text.strip()), file=answers, flush=True)


if __name__ == "__main__":
    main()
