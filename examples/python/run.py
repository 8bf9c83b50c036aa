#!/usr/bin/python3
"""Runs code through libcupel by ctypes, and prints the result.
    python3 run.py 'print(1 + 1)'
An engine that runs already is used; else the library starts one. $LIBCUPEL and
$CUPEL_PROGRAM name a library and a program that are not installed."""
import ctypes
import json
import os
import sys

ON_EVENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("socket", ctypes.c_char_p),
                ("program", ctypes.c_char_p), ("flags", ctypes.c_uint)]


def load():
    lib = ctypes.CDLL(os.environ.get("LIBCUPEL", "libcupel.so.0"))
    text = ctypes.POINTER(ctypes.c_char)  # not c_char_p, which would lose the pointer to free
    lib.cupel_open.restype = ctypes.c_void_p
    lib.cupel_open.argtypes = [ctypes.POINTER(Options), ctypes.POINTER(text)]
    lib.cupel_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ON_EVENT, ctypes.c_void_p,
                              ctypes.POINTER(text)]
    lib.cupel_cancel.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.cupel_close.argtypes = [ctypes.c_void_p]
    lib.cupel_free.argtypes = [text]
    lib.text = text
    return lib


class Engine:
    """One connection: `with Engine() as engine: engine.run({"code": "1 + 1"})`."""

    def __init__(self, socket=None, program=os.environ.get("CUPEL_PROGRAM"), flags=0):
        self.lib, error = load(), None
        options = Options(ctypes.sizeof(Options), socket and os.fsencode(socket),
                          program and os.fsencode(program), flags)
        error = self.lib.text()
        self.handle = self.lib.cupel_open(ctypes.byref(options), ctypes.byref(error))
        if not self.handle:
            raise RuntimeError(self.take(error)["error"]["message"])

    def take(self, text):
        value = json.loads(ctypes.cast(text, ctypes.c_char_p).value)
        self.lib.cupel_free(text)
        return value

    def run(self, request, on_event=None):
        """The result, or {"error": ...}. on_event gets each event; a true answer cancels."""
        answer = self.lib.text()
        hook = ON_EVENT(lambda _, text: int(bool(on_event(json.loads(text))))) if on_event else ON_EVENT()
        self.lib.cupel_run(self.handle, json.dumps(request).encode(), hook, None, ctypes.byref(answer))
        return self.take(answer)

    def cancel(self, id=None):
        return self.lib.cupel_cancel(self.handle, id and id.encode()) == 0

    def close(self):
        self.lib.cupel_close(self.handle)
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    code = sys.argv[1] if len(sys.argv) > 1 else "print('hello from a box')\n6 * 7"
    with Engine() as engine:
        result = engine.run({"language": "python", "code": code}, lambda event: print(event, file=sys.stderr))
    print(json.dumps(result))
    sys.exit(0 if "error" not in result or "status" in result else 1)
