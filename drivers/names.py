# The names of a Python session, for people and models: the existing names, a cell's changes, completions, and similar
# names (PROTOCOL.md). Part of cells.py. It calls no code of the user: it compares types and never asks them, and a
# value of an unknown class shows only its class.
import builtins
import sys

ENTRIES_MAX, LOOKED_AT_MAX, NAME_MAX, TEXT_MAX, ITEMS_MAX = 200, 20000, 200, 80, 64
FRAME_TEXT_MAX = 1000   # the names of all its columns
VALUES_MAX, VALUES_BYTES_MAX = 1000, 64 << 20
MATCHES_MAX, ALIKE_MAX, ALIKE_LENGTH_MAX, KEYS_MAX = 100, 2000, 60, 10

driver = scope = None        # the module; a session's names, set by cells.py
history = {}                 # In and Out: a session has them


# The interpreter's own: a class may override its name, bases and names.
FUNCTION, MODULE, DICT_SLOT = type(lambda: None), type(sys), type(type.__dict__["__dict__"])
name_of, line_of, class_names = [type.__dict__[name].__get__
                                 for name in ("__name__", "__mro__", "__dict__")]
module_names = MODULE.__dict__["__dict__"].__get__
LISTS = (list, tuple, set, frozenset, dict)
TEXTS = (str, bytes, bytearray)
PLAIN = (float, complex, bool, type(None), type(...), type(NotImplemented))
SHAPED = (("numpy", "ndarray"), ("pandas", "DataFrame", "Series"), ("torch", "Tensor"))
SHOWN = (("datetime", "date", "datetime", "timedelta", "time"), ("decimal", "Decimal"),
         ("fractions", "Fraction"), ("numpy", "float64", "float32", "int64", "int32", "bool_"))
COUNTED = (("collections", "deque", "Counter", "OrderedDict", "defaultdict"),)


def known(kind, module, *names):
    """Is this type one of a library? Ask the library, because a type can lie."""
    library = sys.modules.get(module)
    if MODULE not in line_of(type(library)):
        return False
    return any(module_names(library).get(name) is kind for name in names)


def any_known(kind, libraries):
    return any(known(kind, *names) for names in libraries)


def brief(value, depth=0):
    """A short text of a value, in bounded time."""
    kind = type(value)
    if kind in TEXTS:
        return repr(value[:TEXT_MAX])
    if kind is int:
        return repr(value) if value.bit_length() < 256 else f"<int of {value.bit_length()} bits>"
    if kind in PLAIN or any_known(kind, SHOWN):
        return repr(value)
    if kind in LISTS and depth < 3:
        return brief_list(value, kind, depth)
    if kind is FUNCTION:
        code = value.__code__
        return f"{value.__name__}({', '.join(code.co_varnames[: min(code.co_argcount, 8)])})"
    if kind is MODULE:
        return f"module {brief(module_names(value).get('__name__'))}"
    if kind is range:
        return f"range({brief(value.start)}, {brief(value.stop)}, {brief(value.step)})"
    if type in line_of(kind):
        return f"class {name_of(value)}"
    if any_known(kind, SHAPED):
        return brief_shaped(value, kind)
    return f"<{name_of(kind)}>"


def brief_list(value, kind, depth):
    items = [item for item, _ in zip(value.items() if kind is dict else value, range(6))]
    more = ", …" if len(value) > len(items) else ""
    if kind is dict:
        return "{" + ", ".join([f"{brief(key, 3)}: {brief(item, depth + 1)}"
                                for key, item in items]) + more + "}"
    text = ", ".join([brief(item, depth + 1) for item in items]) + more
    return {list: f"[{text}]", tuple: f"({text})", set: f"{{{text}}}"}.get(kind, f"frozenset({text})")


def brief_shaped(value, kind):
    if known(kind, "pandas", "DataFrame"):
        return f"columns [{', '.join([brief(name, 3) for name in value.columns[:ITEMS_MAX].tolist()])}]"
    if known(kind, "pandas", "Series"):
        return f"{value.dtype} {brief(value.iloc[:6].tolist())}"
    if known(kind, "numpy", "ndarray"):
        return f"{value.dtype.name} {brief(value.flat[:6].tolist())}"
    return f"{value.dtype}"


def describe(name, value):
    """One entry of a list of names."""
    kind = type(value)
    entry = {"name": name, "type": str(name_of(kind))[:NAME_MAX], "text": ""}
    try:
        text = driver.clean(brief(value))
        entry["text"] = text[:TEXT_MAX if not known(kind, "pandas", "DataFrame") else FRAME_TEXT_MAX]
        if any_known(kind, SHAPED):
            entry["shape"] = [int(size) for size in value.shape[:32]]
        elif kind in LISTS or kind in TEXTS or any_known(kind, COUNTED):
            entry["length"] = kind.__len__(value)
        if known(kind, "numpy", "ndarray") or known(kind, "pandas", "Series"):
            entry["size_bytes"] = int(value.nbytes)
        elif known(kind, "pandas", "DataFrame"):
            if value.shape[1] <= ITEMS_MAX:
                entry["size_bytes"] = int(value.memory_usage().sum())
        elif __builtins__.get(name_of(kind)) is kind:
            entry["size_bytes"] = sys.getsizeof(value)
        else:
            entry["size_bytes"] = object.__sizeof__(value)
    except Exception:
        pass   # keep what was found
    return entry


def attributes(value):
    """The dictionary of an instance, if it has a plain one."""
    for kind in line_of(type(value)):
        own = class_names(kind).get("__dict__")
        if own is not None:
            found = own.__get__(value) if type(own) is DICT_SLOT else None
            return found if type(found) is dict else None


def mark(value):
    """A fingerprint to find a change: identity, size, and some of the content."""
    kind = type(value)
    try:
        if kind in TEXTS:
            return id(value), len(value), bytes(value[:1024]) if kind is bytearray else hash(value)
        if kind in PLAIN or kind is int:
            return id(value), hash(value)
        if kind in LISTS:
            inside = value.values() if kind is dict else value
            return id(value), len(value), tuple([id(item) for item, _ in zip(inside, range(ITEMS_MAX))])
        if known(kind, "numpy", "ndarray"):
            inside = b"" if value.dtype.hasobject else value.flat[: 16 * ITEMS_MAX].tobytes()
            return id(value), value.shape, inside
        if any_known(kind, SHAPED):
            return id(value), tuple(value.shape)
        own = attributes(value) if kind is not FUNCTION and kind is not MODULE else None
        inside = zip(own.values(), range(ITEMS_MAX)) if own else ()
        return id(value), tuple([id(item) for item, _ in inside])
    except Exception:
        return (id(value),)


def user_names():
    """The names that the code made, and the number of names beyond the maximum."""
    found = {name: value for name, value in scope.copy().items()
             if type(name) is str and name[:1] != "_" and len(name) <= NAME_MAX
             and history.get(name, scope) is not value}
    more = len(found) - LOOKED_AT_MAX
    return {name: value for (name, value), _ in zip(found.items(), range(LOOKED_AT_MAX))}, max(more, 0)


def marks():
    return {name: mark(value) for name, value in user_names()[0].items()}


def changes(before):
    """The cell's changes to the names. It misses a change deep inside a value that is not itself replaced, and in the
    middle of a large one."""
    names, more = user_names()
    after = {name: mark(value) for name, value in names.items()}
    lists = {"added": [name for name in after if name not in before],
             "changed": [name for name in after if name in before and before[name] != after[name]],
             "removed": [name for name in before if name not in scope]}
    room, answer = ENTRIES_MAX, {}
    for word, found in lists.items():
        answer[word] = [describe(name, names[name]) if name in names else {"name": name}
                        for name in found[:room]]
        more += len(found) - len(answer[word])
        room -= len(answer[word])
    return {**answer, "more": more} if more else answer


def tell():
    found, more = user_names()
    entries = [describe(*item) for item, _ in zip(found.items(), range(ENTRIES_MAX))]
    more += len(found) - len(entries)
    driver.send(driver.to_json({"op": "names", "names": entries, **({"more": more} if more else {})}))


# ---- values and texts of earlier cells, under IPython's names ----
class Values(dict):
    """Out: the values that cells have shown, by cell number."""

    def __missing__(self, number):
        raise KeyError(f"cell {number} has no value, or it is no longer kept: the last {VALUES_MAX} are, "
                       f"and {VALUES_BYTES_MAX >> 20} MiB of them")


class Texts:
    """In: the texts of the cells, by number, or backwards from the last. Cells are counted from 1."""

    def __init__(self, sources):
        self.sources, self.last = sources, 0

    def __len__(self):
        return self.last + 1

    def __getitem__(self, number):
        if type(number) is slice:
            return [self[one] for one in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no cell {number}")
        return self.sources.get(f"<cell {number % len(self)}>", "")   # "" for one that is no longer kept

    def __repr__(self):
        return repr(self[:])


def open_history(sources):
    """`In`, `Out`, `_` and the others, for a session."""
    global values, sizes, last, given, texts
    values, sizes, texts = Values(), {}, Texts(sources)
    last, given = [dict.fromkeys(("_", "__", "___"), "") for _ in range(2)]   # the values; those in the code's names
    history.update(In=texts, Out=values)
    scope.update(last, **history, _ih=texts, _oh=values, _dh=[driver.posix.getcwd()], _i="", _ii="", _iii="")


def keep_text(number, text):
    """`_i` is the text of the cell before, `_ii` and `_iii` of those before it, `_i3` that of cell 3."""
    _i, _ii, _iii = [texts[back] if back > 0 else "" for back in range(texts.last, texts.last - 3, -1)]
    scope.update({"_i": _i, "_ii": _ii, "_iii": _iii, f"_i{number}": text})
    texts.last = number if type(number) is int else texts.last


def forget_text(program):
    scope.pop(f"_i{program[6:-1]}", None)


def keep(number, value):
    """`_` is the last value, `__` and `___` the ones before, unless the code uses the names itself; `Out` has them by
    cell, and `_3` is that of cell 3."""
    if value is values:
        return
    last.update(___=last["__"], __=last["_"], _=value)
    if "_" not in vars(builtins) and all([scope.get(name, old) is old for name, old in given.items()]):
        given.update(last)
        scope.update(given)
    scope[f"_{number}"] = value
    sizes[number], values[number] = describe("_", value).get("size_bytes", 0), value
    while len(values) > 1 and (len(values) > VALUES_MAX or sum(sizes.values()) > VALUES_BYTES_MAX):
        oldest = next(iter(values))
        dropped = values.pop(oldest)
        sizes.pop(oldest, None)
        if scope.get(f"_{oldest}") is dropped:
            del scope[f"_{oldest}"]


# ---- completion ----
def members(value):
    """The attributes of a value by name, without asking it: names from __getattr__ and __dir__ are missing. A
    descriptor stands for itself."""
    found = {}
    line = line_of(type(value))
    for kind in reversed(line_of(value) + line if type in line else line):
        found.update(class_names(kind))
    found.update((module_names(value) if MODULE in line else attributes(value)) or {})
    return found


def resolve(path):
    """The value of a dotted name; an error if finding it would run code."""
    value = {**vars(builtins), **scope}[path[0]]
    for name in path[1:]:
        value = members(value)[name]
        line = line_of(type(value))
        if type(value) in (staticmethod, classmethod):
            value = value.__func__
        elif type(value) is not FUNCTION and any("__get__" in class_names(kind) for kind in line):
            raise LookupError(name)
    return value


def open_string(text):
    """The content of the string that is open at the end of the text; None: none is."""
    quote, at, begun = "", 0, 0
    while at < len(text):
        char = text[at]
        if not quote and char == "#":
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
        elif not quote and char in "'\"":
            quote = char * 3 if text[at: at + 3] == char * 3 else char
            at = begun = at + len(quote)
        elif quote and text.startswith(quote, at):
            at, quote = at + len(quote), ""
        elif len(quote) == 1 and char == "\n":
            at, quote = at + 1, ""
        else:
            at += 2 if quote and char == "\\" else 1
    return text[begun:] if quote else None


def paths(text):
    """The files that complete a path."""
    folder, slash, begun = text.rpartition("/")
    with driver.posix.scandir(folder + slash or ".") as entries:
        found = [entry.name + "/" * entry.is_dir() for entry, _ in zip(entries, range(LOOKED_AT_MAX))
                 if entry.name.startswith(begun) and (begun or entry.name[:1] != ".")]
    return begun, found


def folders(package):
    """The folders of a package's modules, or of all modules."""
    if not package:
        return [path or "." for path in sys.path if type(path) is str]
    loaded = sys.modules.get(package)
    if MODULE in line_of(type(loaded)):
        return [path for path in module_names(loaded).get("__path__") or () if type(path) is str]
    above, _, name = package.rpartition(".")
    return [f"{folder}/{name}" for folder in folders(above)]


def modules(package):
    found = dict.fromkeys(() if package else sys.builtin_module_names)
    for folder in folders(package):
        try:
            entries = driver.posix.listdir(folder)
        except OSError:
            continue
        found.update(dict.fromkeys([entry.partition(".")[0] for entry in entries[:LOOKED_AT_MAX]
                                    if "." not in entry or entry.endswith((".py", ".so"))]))
    return [name for name in found if name.isidentifier()]


def imported(line):
    """Completions of an import: the begun word and the choices. None: it is no import."""
    words = line.replace(",", " , ").split() + [""] * (line[-1:] in (" ", ","))
    if words[:1] == ["from"] and "import" in words[2:-1]:
        found = modules(words[1])
        if MODULE in line_of(type(sys.modules.get(words[1]))):
            found += members(sys.modules[words[1]])
        return words[-1], found
    if words[:1] in (["from"], ["import"]) and 1 < len(words) and (words[-2] in ("from", "import", ",")):
        package, _, begun = words[-1].rpartition(".")
        return begun, modules(package)
    return None


def choices(text):
    """The begun word at the end of the text, and its completions."""
    string, line = open_string(text), text.rpartition("\n")[2].lstrip()
    if string is not None:
        return paths(string)
    start = len(text)
    while start and (text[start - 1] == "." or ("x" + text[start - 1]).isidentifier()):
        start -= 1
    *path, begun = text[start:].split(".")
    if line.startswith("%") and line.lstrip("%").isidentifier():
        magics = driver.load("magics")
        return begun, [*(magics.CELL if line[:2] == "%%" else magics.LINE)]
    found = imported(line)
    if found:
        return found
    if path:
        return begun, members(resolve(path))
    return begun, {**vars(builtins), **scope, **dict.fromkeys(__import__("keyword").kwlist)}


def complete(request):
    """Completions at the cursor: names and keywords, attributes after a dot, modules in an import, files in a
    string."""
    text = request["code"][: max(int(request["cursor"]), 0)]
    begun, matches = "", []
    try:
        begun, found = choices(text)
        matches = sorted([name for name in found if type(name) is str and name.startswith(begun)
                          and len(name) <= NAME_MAX and (begun or name[:1] != "_")])
    except Exception:
        pass   # finding it would run code, or there is no such folder
    matches = [driver.clean(name) for name in matches[:MATCHES_MAX]]
    driver.send(driver.to_json({"op": "complete", "matches": matches, "start": len(text) - len(begun)}))


# ---- similar names ----
# Well-known names and their modules.
ALIASES = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot", "mpl": "matplotlib", "dt": "datetime"}
MODULES = {*"""argparse array asyncio base64 bisect calendar cmath collections copy csv datetime decimal
    fractions functools glob hashlib heapq io itertools json logging math matplotlib numpy operator os
    pandas pathlib pickle random re scipy shutil sklearn sqlite3 statistics string struct subprocess
    sympy sys tempfile textwrap threading time timeit traceback typing uuid warnings zipfile""".split()}
MEMBERS = {"math": "ceil comb cos degrees exp factorial floor gcd isclose isqrt lcm log pi prod radians sin sqrt tan",
           "collections": "Counter OrderedDict defaultdict deque namedtuple",
           "itertools": "accumulate chain combinations groupby islice permutations product zip_longest",
           "functools": "cache lru_cache partial reduce wraps", "copy": "deepcopy", "pathlib": "Path",
           "typing": "Any Callable Dict Iterable List Optional Set Tuple Union", "io": "BytesIO StringIO",
           "datetime": "date timedelta", "decimal": "Decimal", "fractions": "Fraction", "enum": "Enum",
           "dataclasses": "dataclass field", "statistics": "mean median stdev", "abc": "ABC abstractmethod",
           "heapq": "heapify heappop heappush", "bisect": "bisect_left bisect_right",
           "sympy": "Eq Rational Symbol simplify solve symbols"}
HOMES = {name: module for module, members in MEMBERS.items() for name in members.split()}


def listed(items):
    """The first few keys or names, as text."""
    shown = [brief(item, 3)[:ALIKE_LENGTH_MAX] for item, _ in zip(items, range(KEYS_MAX + 1))]
    return ", ".join(shown[:KEYS_MAX]) + (", …" if len(shown) > KEYS_MAX else "")


def distance(one, other, most):
    """The number of letters to change, add, drop or swap; stops above `most`."""
    before, row = None, [*range(len(other) + 1)]
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b))
            if older and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


def close(word, among):
    """Up to three similar names, nearest first."""
    lower, found = word.lower(), []
    most = 0 if len(word) < 3 else 1 if len(word) < 6 else 2
    for other, _ in zip(among, range(ALIKE_MAX)):
        if type(other) is not str or other == word or max(len(other), len(word)) > ALIKE_LENGTH_MAX:
            continue
        far = most + 1
        if abs(len(other) - len(word)) <= most:
            far = distance(lower, other.lower(), most)
        if far > most and len(word) > 3 and len(other) > 3 and (lower in other.lower() or other.lower() in lower):
            far = most   # sales for sales_frame
        if far <= most:
            found.append((far, abs(len(other) - len(word)), other))
    return [other for _, _, other in sorted(found)[:3]]


def mean(word, among):
    found = close(word, among)
    return f"did you mean {' or '.join([repr(other) for other in found])}?" if found else None
