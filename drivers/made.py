# Files that an agent's answer names: each must be there, be made by the code, and open as what its name says. answer.py
# loads it. Runs as the occupant.
import posix

HOME = "/workspace"
READ_MAX, COLUMNS_MAX, NAME_MAX = 32 << 20, 50, 200

driver = None   # the module; set by the loader of this file


def check(files, inputs, most):
    """[{"path", "kind", "bytes", "rows", "columns"}], the last two for tables; an error that names the fix."""
    import os
    files = [*files] if isinstance(files, (list, tuple, set)) else [files]
    if len(files) > most:
        raise ValueError(f"files= has {len(files)} files, the maximum is {most}: make one archive of them")
    return [check_one(os, one, inputs) for one in files]


def check_one(os, given, inputs):
    if not isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(f"files= has a {type(given).__name__}: name files by their paths, such as 'chart.png'")
    path = os.path.realpath(os.fsdecode(given))
    name = path.removeprefix(HOME + "/")
    if not path.startswith(HOME + "/"):
        raise ValueError(f"file '{name}' is outside of {HOME}: write it there")
    if name in inputs:
        raise ValueError(f"file '{name}' is an input: files= names what you made")
    if not os.path.isfile(path):
        also = "; a figure that was only shown is no file: savefig() writes one" if kind_of(name) in PICTURES else ""
        raise FileNotFoundError(2, f"files= names a file that is not there: write it before answer(){also}", name)
    size = posix.stat(path).st_size
    if not size:
        raise ValueError(f"file '{name}' is empty: close it before answer(), or use 'with open(...)'")
    kind, found = kind_of(name), {}
    try:
        if kind in KINDS:
            with open(path, "rb") as file:
                found = KINDS[kind](file, size) or {}
    except Exception as problem:
        raise ValueError(f"file '{name}' does not open as {kind}: {str(problem) or type(problem).__name__}") from None
    return {"path": name, "kind": kind, "bytes": size, **found}


def kind_of(name):
    ending = name.rpartition("/")[2].rpartition(".")
    return ending[2].lower() if ending[1] else ""


def named(columns):
    return [str(one)[:NAME_MAX] for one in [*columns][:COLUMNS_MAX]]


def need(fits, what):
    if not fits:
        raise ValueError(what)


# ---- text ----
def text_of(file, size):
    raw = file.read(READ_MAX)
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16")
    try:
        text = raw.decode("utf-8-sig", "strict" if size <= READ_MAX else "ignore")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")
    need("\0" not in text, "it has bytes that are no text")
    need(text.strip(), "it has only blanks")
    return text


def plain(file, size):
    text_of(file, size)


def html(file, size):
    need("<" in text_of(file, size), "it has no element")


def separated(separators):
    def rows(file, size):
        import csv
        import io
        text = text_of(file, size)
        text = text if size <= READ_MAX else text.rpartition("\n")[0]
        first = text.lstrip("\r\n").partition("\n")[0]
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(separators, key=first.count))
        head, count = None, 0
        for row in reader:
            head = head if head is not None else row or None
            need(not row or len(row) == len(head), f"line {reader.line_num} has {len(row)} fields, the first has "
                 f"{len(head or ())}")
            count += bool(row)
        return {"columns": named(head), **({"rows": count - 1} if size <= READ_MAX else {})}
    return rows


def records(found):
    """The shape of a list of objects."""
    if not isinstance(found, list):
        return {}
    names = dict.fromkeys([name for one in found if isinstance(one, dict) for name in one])
    return {"rows": len(found), **({"columns": named(names)} if names else {})}


def json(file, size):
    if size > READ_MAX:
        return {}
    return records(__import__("json").loads(text_of(file, size)))


def json_lines(file, size):
    if size > READ_MAX:
        return {}
    loads = __import__("json").loads
    return records([loads(line) for line in text_of(file, size).splitlines() if line.strip()])


# ---- pictures and others ----
def bytes_of(begin, end=b"", name="it"):
    """A file that begins and, near its end, ends with certain bytes."""
    def look(file, size):
        need(file.read(16).startswith(begin), f"{name} does not begin as one")
        file.seek(max(0, size - 1024))
        need(end in file.read(), f"{name} is cut off")
    return look


def svg(file, size):
    if size <= READ_MAX:
        root = __import__("xml.etree.ElementTree").etree.ElementTree.fromstring(file.read())
        need(root.tag.rpartition("}")[2] == "svg", f"its element is {root.tag}")


def archive(file, size):
    import zipfile
    with zipfile.ZipFile(file) as parts:
        broken = parts.testzip() if size <= READ_MAX else None
        need(not broken, f"{broken} is broken")


def workbook(file, size):
    """Rows and columns of the first sheet."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        return archive(file, size)
    book = load_workbook(file, read_only=True, data_only=True)
    rows = [row for row in book.worksheets[0].iter_rows(values_only=True) if any([cell is not None for cell in row])]
    need(rows, "its first sheet is empty")
    return {"rows": len(rows) - 1, "columns": named(["" if one is None else one for one in rows[0]])}


PICTURES = ("png", "jpg", "jpeg", "gif", "svg", "pdf")
KINDS = {"csv": separated(",;\t|"), "tsv": separated("\t"), "json": json, "jsonl": json_lines, "ndjson": json_lines,
         "geojson": json, "ipynb": json, "html": html, "htm": html, **dict.fromkeys(("md", "txt", "py", "sql"), plain),
         "png": bytes_of(b"\x89PNG\r\n\x1a\n", b"IEND"), "gif": bytes_of(b"GIF8", b";"), "svg": svg,
         **dict.fromkeys(("jpg", "jpeg"), bytes_of(b"\xff\xd8\xff", b"\xff\xd9")), "pdf": bytes_of(b"%PDF-", b"%%EOF"),
         "xlsx": workbook, **dict.fromkeys(("zip", "docx", "pptx", "npz"), archive),
         "parquet": bytes_of(b"PAR1", b"PAR1")}
