# Errors that the interpreter itself prints: in threads, in __del__ and other places that cannot raise, in forked
# children. driver.py loads it at the first such error (PROTOCOL.md). Runs as the occupant.
#
# The interpreter's own hooks look for source lines in a file of the program's name; linecache has the program.
import sys

driver = None   # the module; set by the loader of this file


def name_of(kind):
    module = getattr(kind, "__module__", None)
    return kind.__qualname__ if module in ("builtins", "__main__", None) else f"{module}.{kind.__qualname__}"


def uncaught(kind, problem, trace):
    """sys.excepthook"""
    if sys.stderr is not None:
        __import__("traceback").print_exception(kind, problem, trace)


def in_thread(args):
    """threading.excepthook"""
    kind, problem, trace, thread = args
    file = sys.stderr if sys.stderr is not None else getattr(thread, "_stderr", None)
    if kind is SystemExit or file is None:
        return
    name = getattr(thread, "name", None) or __import__("_thread").get_ident()
    lines = __import__("traceback").format_exception(kind, problem, trace)
    print(f"Exception in thread {name}:\n{''.join(lines)}", end="", file=file, flush=True)


def ignored(args):
    """sys.unraisablehook"""
    if sys.stderr is None:
        return
    traceback, parts = __import__("traceback"), []
    try:
        what = repr(args.object)
    except Exception:
        what = "<object repr() failed>"
    if args.object is not None:
        parts.append(f"{args.err_msg or 'Exception ignored in'}: {what}\n")
    elif args.err_msg:
        parts.append(f"{args.err_msg}:\n")
    if args.exc_traceback is not None:
        parts += ["Traceback (most recent call last):\n", *traceback.format_tb(args.exc_traceback)]
    if args.exc_value is None:
        parts.append(f"{name_of(args.exc_type)}\n")
    else:
        parts += traceback.format_exception_only(args.exc_type, args.exc_value)
    print("".join(parts), end="", file=sys.stderr, flush=True)
