# The values that a Python program shows: their forms by mime type, display() with its options, matplotlib's figures.
# Runs as the occupant; driver.py loads it at the first value, the zygote before it forks.
#
# 1. A broken method of a value loses one form, never the value or the program.
# 2. Every form has a maximum; a dropped form is named in text/plain.
# 3. A value of a builtin type costs its repr, no more.
import posix
import sys
import _io

driver = None   # the module; set by the loader of this file
RESULTS_MAX, RESULTS_BYTES_MAX, TEXT_MAX, FRAME_MAX = 256, 60 << 20, 64 << 10, 15 << 20
FORMS_MAX, BUNDLE_MAX, MIME_MAX, METADATA_MAX, ID_MAX = 16, 1000, 100, 64 << 10, 200
WIDTH = 79   # a value within it stays on one line
MEBI = 1 << 20
CHART, TABLE = "e2b/chart", "application/vnd.dataresource+json"
# The forms of a value and their methods, in the order of IPython's.
KINDS = {"text/html": "_repr_html_", "text/markdown": "_repr_markdown_", "image/svg+xml": "_repr_svg_",
         "image/png": "_repr_png_", "application/pdf": "_repr_pdf_", "image/jpeg": "_repr_jpeg_",
         "text/latex": "_repr_latex_", "application/json": "_repr_json_",
         "application/javascript": "_repr_javascript_"}
# By identity: comparing or hashing a class may call code of its metaclass.
SCALARS = {id(kind) for kind in (int, float, bool, complex, str, bytes, type(None))}
BUILTIN = {*SCALARS, *map(id, (list, tuple, dict, set, frozenset, bytearray, range))}
MIME_SIGNS = {*"abcdefghijklmnopqrstuvwxyz0123456789+.-_"}
printers = {}   # by mime type and class
UNKNOWN = "_ipython_canary_method_should_not_exist_"   # who has this has every attribute


# ---- text/plain ----
def kind_of(value):
    return type.__dict__["__name__"].__get__(type(value))


def is_short(value):
    """Is repr the pretty text? Cheap for values that a line holds."""
    kind = type(value)
    if printers:
        return False
    if id(kind) in SCALARS:
        return True
    if not (kind is list or kind is tuple or kind is dict) or len(value) >= WIDTH:
        return False
    return all([id(type(one)) in SCALARS for one in ([*value, *value.values()] if kind is dict else value)])


def pretty(value):
    kind = type(value)
    if (kind is str or kind is bytes or kind is bytearray) and len(value) > TEXT_MAX:   # do not build gigabytes
        return f"{driver.clean(repr(value[: TEXT_MAX // 4]))} …  [{len(value)} long]"
    if is_short(value):
        text = repr(value)
        if id(kind) in SCALARS or len(text) <= WIDTH:
            return text
    try:
        return driver.load("pretty").pretty(value)
    except RecursionError:   # nested deeper than our printer goes
        return repr(value)


def plain(value):
    """The text of a value, as IPython's pretty printer gives it."""
    try:
        return driver.clean(pretty(value))
    except Exception as problem:
        return f"<{kind_of(value)}: repr failed with {kind_of(problem)}>"


# ---- rich forms ----
def method_of(value, name):
    """The method, unless the value is a class or has whatever one asks for."""
    try:
        if isinstance(value, type) or getattr(value, UNKNOWN, None) is not None:
            return None
        method = getattr(value, name, None)
        return method if callable(method) else None
    except Exception:
        return None


def printer_of(value, mime):
    """A function that code registered for the type (ipython.py)."""
    for kind in type(value).__mro__ if printers.get(mime) else ():
        if kind in printers[mime]:
            return lambda: printers[mime][kind](value)
    return None


def is_mime(name):
    if type(name) is not str or len(name) > MIME_MAX or name.count("/") != 1:
        return False
    return all([part and MIME_SIGNS.issuperset(part) for part in name.split("/")])


def take_bundle(bundle, forms, metadata, notes):
    """Add the members of a mime bundle, or of a pair of a bundle and its metadata."""
    if isinstance(bundle, tuple) and len(bundle) == 2:
        bundle, about = bundle
        metadata.update(about if isinstance(about, dict) else {})
    if not isinstance(bundle, dict):
        return
    for at, (mime, form) in enumerate(dict.items(bundle)):
        if at == BUNDLE_MAX:
            notes.append(f"[a bundle of {len(bundle)} types: the rest dropped]")
            break
        mime = str.lower(mime) if isinstance(mime, str) else None
        if mime and is_mime(mime) and form is not None:
            forms.setdefault(mime, form)


def failed(mime, method, problem):
    try:
        text = str(problem)
    except Exception:
        text = ""
    return f"[{mime}: {method} failed with {kind_of(problem)}: {text}]"


def rich(value, include=None, exclude=None):
    """Every form of a value by mime type, their metadata, and notes of what failed."""
    forms, metadata, notes = {}, {}, []
    if id(type(value)) in BUILTIN and not printers:
        return forms, metadata, notes
    if is_a(value, "PIL.Image", "Image"):
        value = shrunk(value)

    def wanted(mime):
        return (not include or mime in include) and not (exclude and mime in exclude)
    bundle = method_of(value, "_repr_mimebundle_")
    try:
        bundle and take_bundle(bundle(include=include, exclude=exclude), forms, metadata, notes)
    except NotImplementedError:
        pass
    except Exception as problem:
        notes.append(failed("bundle", "_repr_mimebundle_", problem))
    forms = {mime: form for mime, form in forms.items() if wanted(mime)}
    for mime, name in KINDS.items():
        if mime in forms or not wanted(mime):
            continue
        method = printer_of(value, mime) or method_of(value, name)
        try:
            form = method() if method else None
            if isinstance(form, tuple) and len(form) == 2:
                form, metadata[mime] = form
            if form is not None:
                forms[mime] = form
        except NotImplementedError:
            pass
        except Exception as problem:
            notes.append(failed(mime, name, problem))
    add_known(value, forms, wanted)
    return forms, metadata, notes


def is_a(value, module, name):
    """Without importing the module."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def add_known(value, forms, wanted):
    """Forms that we make ourselves: a figure's picture and data, a data frame's rows."""
    if is_a(value, "matplotlib.figure", "Figure"):
        forms["image/png"] = draw(value)
        mime, make = CHART, "chart"
    elif is_a(value, "pandas", "DataFrame"):
        mime, make = TABLE, "table"
    else:
        return
    try:
        form = getattr(driver.load("charts"), make)(value) if wanted(mime) and mime not in forms else None
        if form:
            forms[mime] = Encoded(form)
    except Exception:
        pass   # data beside the value: the value counts


class Encoded(str):
    """JSON text."""


def is_json(mime):
    return mime in ("application/json", CHART) or mime.startswith("application/") and mime.endswith("+json")


def is_binary(mime):
    return mime.startswith(("image/", "audio/", "video/")) and mime != "image/svg+xml" or mime == "application/pdf"


def cap_of(mime):
    return 8 * MEBI if is_binary(mime) else 4 * MEBI if is_json(mime) else MEBI


def encode_form(mime, form):
    """The JSON text of one form; None if it has another type than it should."""
    if isinstance(form, Encoded):
        return str(form)
    if is_json(mime):
        return driver.to_json(form)
    if is_binary(mime):
        import binascii
        if isinstance(form, str):   # base64 already
            form = binascii.a2b_base64("".join(form.split()), strict_mode=True)
        if isinstance(form, (bytes, bytearray, memoryview)):
            return '"' + binascii.b2a_base64(form, newline=False).decode() + '"'
    return driver.to_json(str(form)) if isinstance(form, str) else None


def encode(forms, notes):
    """The members of a bundle as JSON texts, each within its maximum, and all of them."""
    parts, left = [], FRAME_MAX - MEBI
    for mime, form in forms.items():
        if len(parts) == FORMS_MAX - 1:
            notes.append(f"[{len(forms) - len(parts)} more types dropped: the maximum is {FORMS_MAX}]")
            break
        try:
            text = encode_form(mime, form)
        except Exception as problem:
            text = notes.append(f"[{mime}: {problem}]")
        if text and len(text) > min(left, cap_of(mime)):
            text = notes.append(f"[{mime} dropped: {len(text)} bytes, the maximum is {min(left, cap_of(mime))}]")
        if text:
            left -= len(text)
            parts.append(f'"{mime}":{text}')
    return parts


# ---- frames ----
def publish(forms, metadata=None, notes=(), main=False, display_id=None, update=False):
    """Send one bundle as a result, or as an update of one."""
    if posix.getpid() != driver.main_pid:
        return
    notes, text = list(notes), forms.pop("text/plain", None)
    parts = encode(forms, notes)
    if isinstance(text, str) or notes:
        lines = [driver.clean(text)] if isinstance(text, str) else []
        lines += [driver.clean(note, 1024) for note in notes[:FORMS_MAX]]
        text = "\n".join(lines)
        parts.insert(0, '"text/plain":' + driver.to_json(text))
    if not parts:
        return
    told = ',"main":true' if main else ""
    if display_id:
        told += f',"display_id":{driver.to_json(display_id)}' + (',"update":true' if update else "")
    try:
        about = driver.to_json(metadata) if metadata else ""
        told += f',"metadata":{about}' if about and len(about) <= METADATA_MAX else ""
    except Exception:
        pass   # not JSON: the value counts
    frame = f'{{"op":"result","data":{{{",".join(parts)}}}{told}}}'
    of_cell(lambda: send(frame, update), text if isinstance(text, str) else f"[{', '.join(forms)}]")


def of_cell(step, text=""):
    """A step for the cell whose code this is: an earlier one's value becomes late output (late.py)."""
    driver.loaded["late"].show(step, text) if "late" in driver.loaded else step()


def send(frame, update):
    """Send a result, unless there are too many."""
    if driver.sent_results >= RESULTS_MAX:
        return
    driver.sent_results, driver.sent_bytes = driver.sent_results + (not update), driver.sent_bytes + len(frame)
    if driver.sent_results == RESULTS_MAX or driver.sent_bytes > RESULTS_BYTES_MAX:
        frame = '{"op":"result","data":{"text/plain":"[this and later results dropped: too many]"}}'
        driver.sent_results = RESULTS_MAX
    driver.send(frame)


def show(value, main=False, include=None, exclude=None, metadata=None, display_id=None, update=False):
    """Send one value as a result in all of its forms."""
    if posix.getpid() != driver.main_pid:
        return
    own = None if id(type(value)) in BUILTIN else method_of(value, "_ipython_display_")
    note = []
    try:
        if own:   # it shows itself
            return own()
    except NotImplementedError:
        pass
    except Exception as problem:
        note = [failed("display", "_ipython_display_", problem)]
    forms, about, notes = rich(value, include, exclude)
    if "text/plain" not in forms and (not include or "text/plain" in include) and "text/plain" not in (exclude or ()):
        forms["text/plain"] = plain(value)
    for mime, more in (metadata or {}).items():
        about[mime] = {**about[mime], **more} if isinstance(about.get(mime), dict) and isinstance(more, dict) else more
    publish(forms, about, note + notes, main, display_id, update)


def clear_output(wait=False):
    """Remove what was shown so far; with `wait` only when something new is shown."""
    def clear():
        driver.sent_results = 0
        driver.send(f'{{"op":"clear","wait":{"true" if wait else "false"}}}')
    posix.getpid() == driver.main_pid and of_cell(clear)


# ---- display() ----
class DisplayHandle:
    """A value that was shown and can be shown anew in its place."""

    def __init__(self, display_id=None):
        self.display_id = display_id or posix.urandom(16).hex()

    def __repr__(self):
        return f"<{type(self).__name__} display_id={self.display_id}>"

    def display(self, value, **options):
        display(value, display_id=self.display_id, **options)

    def update(self, value, **options):
        update_display(value, display_id=self.display_id, **options)


def publish_display_data(data, metadata=None, source=None, *, transient=None, update=False, **_):
    """A bundle as it is."""
    forms, about, notes = {}, {}, []
    take_bundle((data, metadata or {}), forms, about, notes)
    display_id = (transient or {}).get("display_id")
    publish(forms, about, notes, False, checked_id(display_id) if display_id else None, update)


def checked_id(display_id):
    if not isinstance(display_id, str) or not 0 < len(display_id.encode("utf-8", "replace")) <= ID_MAX:
        raise ValueError(f"a display_id is text of 1 to {ID_MAX} bytes")
    return str(display_id)


def display(*values, include=None, exclude=None, metadata=None, transient=None, display_id=None, raw=False,
            clear=False, update=False, **_):
    """Show values as results, each in its richest forms. With display_id, True or a text, it returns a handle."""
    if not values and display_id is None and not clear:
        return None
    if display_id is None:
        display_id = (transient or {}).get("display_id")
    elif display_id is True:
        display_id = posix.urandom(16).hex()
    if update and not display_id:
        raise TypeError("display_id required for update_display")
    display_id = checked_id(display_id) if display_id else None
    if clear:
        clear_output(wait=True)
    for value in values:
        if raw:
            publish_display_data(value, metadata, transient=display_id and {"display_id": display_id}, update=update)
        else:
            show(value, False, include, exclude, metadata, display_id, update)
    return DisplayHandle(display_id) if display_id else None


def update_display(value, *, display_id, **options):
    """Show a value in the place of those with this id."""
    display(value, display_id=display_id, update=True, **options)


# ---- figures ----
def picture_px():
    """The most pixels of a picture's long side, where the caller's model takes no more; 0: any."""
    try:
        return max(0, int(sys.modules["os"].environ["CUPEL_PICTURE_PX"]))
    except (KeyError, ValueError):
        return 0


def shrunk(image):
    """A copy of a PIL image that is not larger than that."""
    most = picture_px()
    if not most or max(image.size) <= most:
        return image
    small = image.copy()
    small.thumbnail((most, most))
    return small


def draw(figure):
    """A figure as PNG. Then close it, or the end of the program would show it again."""
    file, most = _io.BytesIO(), picture_px()
    figure.savefig(file, format="png", bbox_inches="tight")
    wide = max(int.from_bytes(file.getvalue()[at:at + 4], "big") for at in (16, 20)) if most else 0
    if wide > most:
        file = _io.BytesIO()
        figure.savefig(file, format="png", bbox_inches="tight", dpi=figure.dpi * most / (wide + 2))
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)
    return file.getvalue()


def show_figures(*_, **__):
    """plt.show() and the end of the program: every open figure becomes a result."""
    pyplot = sys.modules.get("matplotlib.pyplot") if posix.getpid() == driver.main_pid else None
    for number in pyplot.get_fignums() if pyplot else ():
        show(pyplot.figure(number))


# ---- the value of a call ----
def run_call(call, scope):
    name = call["function"]
    if name not in scope:
        raise NameError(f"name '{name}' is not defined: the code has no such function to call")
    value = scope[name](*call.get("args") or (), **call.get("kwargs") or {})
    if hasattr(value, "__await__"):
        async def wait():
            return await value
        value = driver.load("tasks").run(wait())
    try:
        text = driver.to_json(value)
    except TypeError as problem:
        raise TypeError(f"'{name}' returned a value that JSON cannot hold: {problem}") from None
    if len(text) > FRAME_MAX:
        raise ValueError(f"'{name}' returned {len(text)} bytes of JSON, the maximum is {FRAME_MAX}")
    driver.send(f'{{"op":"result","data":{{"text/plain":{driver.to_json(plain(value))},'
                f'"application/json":{text}}},"main":true}}')
