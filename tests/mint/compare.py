"""What came of a cell, in a form in which that of two shells can be compared.

The output is compared as text, with the last value as `Out[3]: ...`. An error is compared by its
name, its message and its places in the cells; the libraries' frames and the lines of source that
IPython shows around each place are left out, and so are addresses and the folders of packages. That
the time was over is no error of the code's: the recorder threw one, the engine ends the cell."""
import re
from dataclasses import dataclass

from recording import CUT_AT, CUT_MARK

RULE = "-" * 75
ERROR_HEAD = re.compile(rf"^(?:{RULE}\n)?(\w+) +Traceback \(most recent call last\)", re.M)
SYNTAX_HEAD = re.compile(r"^ *(?:Cell In ?\[\d+\], line \d+|File .*:\d+)\n(?=(?:.*\n)*(\w+Error): .*\Z)", re.M)
RECORDED_PLACE = re.compile(r"^ *Cell In ?\[(\d+)\], line (\d+)(?:, in ([^\n(]+)\(.*)?$", re.M)
OWN_PLACE = re.compile(r'^ *File "<cell (\d+)>", line (\d+)(?:, in (.+))?$', re.M)
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
PACKAGE_FOLDER = re.compile(r"/[^\s()]*/(?:dist|site)-packages/")


@dataclass
class Error:
    name: str
    message: str | None      # None: the recording was cut before it
    places: tuple            # (cell, line, function), outermost first, without repetitions
    first: str               # name of the first of a chain: of one that was cut no more is known


@dataclass
class Seen:
    text: str
    error: Error | None = None
    is_late: bool = False    # its time was over
    is_cut: bool = False
    cpu_ms: float | None = None   # tells a slow cell from one that a busy machine kept waiting

    def to_json(self):
        error = self.error and {"name": self.error.name, "message": self.error.message, "places": self.error.places}
        return {"text": self.text[:CUT_AT], "error": error, "late": self.is_late,
                "cpu_ms": self.cpu_ms if self.is_late else None}


def squeeze(places):
    """Of a recursion's places each once: shells leave out different numbers of them."""
    kept = []
    for place in places:
        if place not in kept:
            kept.append(place)
    return tuple(kept)


def places_in(pattern, text):
    return squeeze((int(cell), int(line), (function or "<module>").split(".")[-1])
                   for cell, line, function in pattern.findall(text))


def tidy(text):
    return ADDRESS.sub("0x...", PACKAGE_FOLDER.sub("", text)).strip()


def first_of_chain(traceback, name):
    """The name of the error that our traceback begins with: its first line that is neither indented nor
    a heading. An error whose places are all in libraries has no heading."""
    lines = [line for line in traceback.split("\n") if line and not line.startswith((" ", "Traceback ("))]
    return lines[0].partition(":")[0].rpartition(".")[2] if lines else name


def seen_in_recording(answer):
    """An answer of IPython's, taken apart."""
    is_cut = answer.endswith(CUT_MARK)
    body = answer.removesuffix(CUT_MARK)
    head = ERROR_HEAD.search(body) or (None if is_cut else SYNTAX_HEAD.search(body))
    if not head:
        return Seen(tidy(body), is_cut=is_cut)
    trace = body[head.start():]
    name = (ERROR_HEAD.findall(trace) or [head[1]])[-1]
    message = None if is_cut else tidy(re.split(rf"^{name}(?::|$)", trace, flags=re.M)[-1])
    text, is_late = tidy(body[:head.start()]), name == "TimeoutError"
    error = None if is_late else Error(name, message, places_in(RECORDED_PLACE, trace), head[1])
    return Seen(text, error, is_late, is_cut)


def seen_in_result(cell, stdout, results, error, is_late):
    """A result of cupel's, as IPython would have told it. A picture is no text."""
    values = [result["text/plain"] for result in results if "image/png" not in result]
    for value in values:
        stdout += f"Out[{cell}]: " + ("\n" if "\n" in value else "") + value + "\n"
    found = None
    if error and not is_late:
        found = Error(error["name"], tidy(error["message"]), places_in(OWN_PLACE, error["traceback"]),
                      first_of_chain(error["traceback"], error["name"]))
    return Seen(tidy(stdout), found, is_late)
