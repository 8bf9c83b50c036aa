# The values that a Python program shows: their forms by mime type, display(), matplotlib's figures. Runs as the
# occupant; driver.py loads it at the first value, the zygote before it forks.
#
# 1. A broken method of a value loses one form, never the value or the program.
# 2. Every form has a maximum; a dropped form is named in text/plain.
import posix
import sys
import _io

driver = None   # the module; set by the loader of this file
RESULTS_MAX, RESULTS_BYTES_MAX, TEXT_MAX = 256, 60 << 20, 64 << 10
# The forms of a value and their methods; maximum bytes of each.
KINDS = {"text/html": "_repr_html_", "text/markdown": "_repr_markdown_",
         "text/latex": "_repr_latex_", "image/svg+xml": "_repr_svg_", "image/png": "_repr_png_",
         "image/jpeg": "_repr_jpeg_", "application/json": "_repr_json_"}
CAPS = {kind: 8 << 20 if kind.startswith("image/") else 1 << 20 for kind in KINDS}


def plain(value):
    """repr, without building gigabytes for a long container."""
    try:
        if type(value) in (str, bytes, bytearray, list, tuple) and len(value) > TEXT_MAX:
            return driver.clean(repr(value[: TEXT_MAX // 4])) + f" …  [{len(value)} long]"
        return driver.clean(repr(value))
    except Exception as problem:
        return f"<{type(value).__name__}: repr failed with {type(problem).__name__}>"


def rich(value):
    """Every form of a value, by mime type. A broken _repr_*_ loses only its own form."""
    forms, notes, kind = {}, [], object if isinstance(value, type) else type(value)
    try:
        bundle = kind._repr_mimebundle_(value, include=None, exclude=None)
        bundle = bundle[0] if isinstance(bundle, tuple) else bundle
        forms.update((mime, form) for mime, form in bundle.items() if mime in CAPS)
    except Exception:
        pass   # no such method, or it fails
    for mime, method in KINDS.items():
        try:
            if mime not in forms and getattr(kind, method, None):
                form = getattr(kind, method)(value)
                forms[mime] = form[0] if isinstance(form, tuple) else form
        except Exception as problem:
            notes.append(f"[{mime}: {method} failed with {type(problem).__name__}: {problem}]")
    figure = sys.modules.get("matplotlib.figure")
    if figure and isinstance(value, figure.Figure):
        forms["image/png"] = draw(value)
    return forms, notes


def encode_form(mime, form):
    """The JSON text of one form, or None."""
    if isinstance(form, (bytes, bytearray)) and mime in ("image/png", "image/jpeg"):
        import binascii
        return '"' + binascii.b2a_base64(form, newline=False).decode() + '"'
    return driver.to_json(form) if isinstance(form, str) or mime == "application/json" else None


def show(value, main=False):
    """Send one value as a result."""
    if posix.getpid() != driver.main_pid or driver.sent_results >= RESULTS_MAX:
        return
    (forms, notes), parts = rich(value), []
    for mime, form in forms.items():
        try:
            text = encode_form(mime, form)
        except Exception as problem:
            text = notes.append(f"[{mime}: {problem}]")
        if text and len(text) > CAPS[mime]:
            text = notes.append(f"[{mime} dropped: {len(text)} bytes, the maximum is {CAPS[mime]}]")
        if text:
            parts.append(f'"{mime}":{text}')
    text = "\n".join([plain(value), *(driver.clean(note, 1024) for note in notes)])
    parts.insert(0, f'"text/plain":{driver.to_json(text)}')
    told = ',"main":true' if main else ""
    frame = f'{{"op":"result","data":{{{",".join(parts)}}}{told}}}'
    driver.sent_results, driver.sent_bytes = driver.sent_results + 1, driver.sent_bytes + len(frame)
    if driver.sent_results == RESULTS_MAX or driver.sent_bytes > RESULTS_BYTES_MAX:
        frame = '{"op":"result","data":{"text/plain":"[this and later results dropped: too many]"}}'
        driver.sent_results = RESULTS_MAX
    driver.send(frame)


def display(*values, **_):
    """Show values as results, each in its richest forms."""
    for value in values:
        show(value)


def draw(figure):
    """A figure as PNG. Then close it, or the end of the program would show it again."""
    file = _io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)
    return file.getvalue()


def show_figures(*_, **__):
    """plt.show() and the end of the program: every open figure becomes a result."""
    pyplot = sys.modules.get("matplotlib.pyplot") if posix.getpid() == driver.main_pid else None
    for number in pyplot.get_fignums() if pyplot else ():
        show(pyplot.figure(number))
