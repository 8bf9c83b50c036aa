# The values of an agent's answer: as plain JSON with their types, and back, and the text of a template with them.
# answer.py loads it. Runs as the occupant.
#
# 1. The text is made from the JSON alone, also at the call: whoever has the payload can make the same text again.
# 2. `types` has one entry for each value. The members of a container need one only where JSON does not tell their type:
#    "name/2" for a member by its position (a table's by column, then row), or "name/*" for all of them: a type for
#    those that are not null, one for those that are, or both with a comma between.
# 3. numpy, pandas and sympy are recognised without being imported.
import sys
import _string

LISTED_MAX, ROWS_MAX, COLUMNS_MAX, TEXT_MAX, DEPTH_MAX, WIDTH_MAX = 1000, 200, 50, 64 << 10, 8, 999
SHORTER = "make it short, or write a file and name it in files="
IMPLIED = {str: "text", int: "integer", float: "number", bool: "bool", type(None): "none", list: "list", dict: "dict"}
NULLS = {"none", "nan", "inf", "-inf"}
FLOAT_CODES = "eEfFgGn%"

driver = None   # the module; set by the loader of this file


# ---- to JSON ----
def encode(value, depth=0):
    """The value as JSON, and its type; a container's is a pair of that and the types of its members."""
    if depth > DEPTH_MAX:
        raise ValueError(f"it is nested deeper than {DEPTH_MAX}, or holds itself")
    if value is None:
        return None, "none"
    if isinstance(value, str):
        return cut(str.encode(value, "utf-8", "replace").decode().replace("\0", "\ufffd")), "text"
    if isinstance(value, bool):
        return value, "bool"
    if isinstance(value, int):
        value = int.__int__(value)
        return (value if -(1 << 63) <= value < 1 << 63 else cut(number_text(value))), "integer"
    if isinstance(value, float):
        value = float.__float__(value)
        return (value, "number") if value - value == 0 else (None, repr(value))
    if isinstance(value, complex):
        return repr(complex(value)), "complex"
    if isinstance(value, dict):
        return encode_dict([*dict.items(value)], depth)
    if hasattr(value, "_fields") and isinstance(value, tuple):   # a named one
        return encode_dict([*zip(value._fields, value)], depth)
    if isinstance(value, (list, tuple, range, type({}.keys()), type({}.values()), type({}.items()))):
        return encode_list(value, depth)
    if isinstance(value, (set, frozenset)):
        return encode_list(sorted(bounded(value), key=lambda one: (isinstance(one, str), *sort_key(one))), depth)
    return encode_known(value, depth)


def sort_key(one):
    try:
        number = float("nan" if isinstance(one, str) else one)
    except Exception:
        number = float("nan")
    return (number, "") if number == number else (0.0, str(one))


def number_text(value):
    try:
        return int.__repr__(value)
    except ValueError:   # the interpreter's own limit
        raise ValueError(f"it is an integer of {value.bit_length()} bits: {SHORTER}") from None


def cut(text):
    if len(text) > TEXT_MAX or len(text.encode()) > TEXT_MAX:
        raise ValueError(f"its text has {len(text)} characters, the maximum is {TEXT_MAX} bytes: {SHORTER}")
    return text


def bounded(members):
    if len(members) > LISTED_MAX:
        raise ValueError(f"it has {len(members)} items, the maximum is {LISTED_MAX}: {SHORTER}")
    return members


def key_text(key):
    """A key of a dict or a name of a column."""
    if isinstance(key, tuple):
        return " / ".join([key_text(one) for one in key])
    plain, kind = encode(key, DEPTH_MAX)
    return text_of(decode(plain, kind))


def encode_dict(items, depth):
    plain, kinds = {}, []
    for key, one in bounded(items):
        name = key_text(key)
        if name in plain:
            raise ValueError(f"two of its keys have the same text {name!r}")
        plain[name], kind = encode(one, depth + 1)
        kinds.append(kind)
    return plain, ("dict", kinds)


def encode_list(members, depth):
    """A list; one of dicts or of rows of the same length is a table."""
    members = [*bounded(members)]
    if members and all([isinstance(one, dict) for one in members]):
        names = [*dict.fromkeys([name for one in members for name in dict.keys(one)])]
        return table(names, [[dict.get(one, name) for name in names] for one in members], depth)
    if members and all([isinstance(one, (list, tuple)) for one in members]) and len({*map(len, members)}) == 1:
        names = getattr(members[0], "_fields", [""] * len(members[0]))
        if names and not any([isinstance(cell, (list, tuple, dict)) for row in members for cell in row]):
            return table(names, members, depth)
    pairs = [encode(one, depth + 1) for one in members]
    return [plain for plain, _ in pairs], ("list", [kind for _, kind in pairs])


def check_shape(rows, columns):
    if rows > ROWS_MAX or columns > COLUMNS_MAX:
        raise ValueError(f"the table has {rows} rows and {columns} columns, the maximum is {ROWS_MAX} x {COLUMNS_MAX}: "
                         f"{SHORTER}")


def table(names, rows, depth=0):
    check_shape(len(rows), len(names))
    pairs = [[encode(cell, depth + 1) for cell in row] for row in rows]
    plain = {"columns": [key_text(name) if name is not None else "" for name in names],
             "rows": [[cell for cell, _ in row] for row in pairs]}
    return plain, ("table", [("list", [row[at][1] for row in pairs]) for at in range(len(names))])


def encode_known(value, depth):
    """Types of other modules, by the module that defines them."""
    kinds = [f"{str(one.__module__).partition('.')[0]}.{one.__name__}" for one in type(value).__mro__]
    for kind in kinds:
        if kind in KNOWN:
            return KNOWN[kind](value, depth)
    if kinds[0] in ("pandas.NaTType", "pandas.NAType"):
        return None, "nan"
    name, hint = kinds[0].removeprefix("builtins."), "str(x) makes it text"
    if kinds[0] == "matplotlib.Figure":
        hint = "save it with savefig() and name that file in files="
    elif hasattr(value, "__next__"):
        hint = "list(x) makes it a list"
    elif callable(value):
        hint = "call it, and pass what it returns"
    raise TypeError(f"a {name} cannot be shown: pass a number, text, date, list, dict or small table; {hint}")


def encode_time(value, depth):
    """Dates and times, also pandas' own, which are subclasses."""
    if type(value).__name__ == "NaTType":
        return None, "nan"
    value = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    return value.isoformat(), ("date" * hasattr(value, "year") + "time" * hasattr(value, "hour"))


def encode_numpy(value, depth):
    kind = value.dtype.kind
    if kind in "mM":
        unit = str(value.dtype).partition("[")[2][:-1]
        if str(value) == "NaT":
            return None, "nan"
        if kind == "M" and unit in ("Y", "M"):
            return str(value), "text"
        item = value.astype(f"{kind}8[{'D' if unit in ('D', 'W') and kind == 'M' else 'us'}]").item()
        return encode(str(value) if isinstance(item, int) else item, depth)   # beyond the year 9999
    if kind in "fc" and value.dtype.itemsize < (8 if kind == "f" else 16):   # 0.1, not 0.10000000149
        return encode(type(value.item())(str(value)), depth)
    item = value.item()
    return encode(float(item) if kind == "f" else complex(item) if kind == "c" else item, depth)


def encode_array(value, depth):
    if value.ndim == 0:
        return encode(value[()], depth)
    if value.ndim > 2:
        raise ValueError(f"an array of {value.ndim} dimensions cannot be shown: {SHORTER}")
    if value.ndim == 2:
        check_shape(*value.shape)
        return table([""] * value.shape[1], [[*row] for row in value], depth)
    return encode_list(bounded(value), depth)


def encode_frame(value, depth, names=None):
    index = value.index
    plain = type(index).__name__ == "RangeIndex"
    check_shape(len(value), value.shape[1] + (0 if plain else index.nlevels))
    columns = [value.iloc[:, at].tolist() for at in range(value.shape[1])]
    names = [*value.columns] if names is None else names
    if not plain:
        names = [*index.names, *names]
        columns = [*[index.get_level_values(at).tolist() for at in range(index.nlevels)], *columns]
    return table(names, [[column[at] for column in columns] for at in range(len(value))], depth)


def encode_series(value, depth):
    bounded(value)
    if type(value.index).__name__ == "RangeIndex":
        return encode_list(value.tolist(), depth)
    return encode_frame(value.to_frame(), depth, [value.name])


def encode_sympy(value, depth):
    if getattr(value, "is_Integer", False) or getattr(value, "is_Float", False):
        return encode(int(value) if value.is_Integer else float(value), depth)
    if getattr(value, "is_Rational", False):
        return f"{value.p}/{value.q}", "fraction"
    return encode(bool(value) if type(value).__name__ in ("BooleanTrue", "BooleanFalse") else str(value), depth)


def encode_text(value, depth):
    return encode(str(value), depth)


def encode_decimal(value, depth):
    if value.is_finite():
        return cut(str(value)), "decimal"
    return None, "nan" if value.is_nan() else "inf" if value > 0 else "-inf"


KNOWN = {"numpy.ndarray": encode_array, "numpy.generic": encode_numpy, "pandas.DataFrame": encode_frame,
         "pandas.Series": encode_series, "datetime.date": encode_time, "datetime.time": encode_time,
         "datetime.timedelta": lambda value, depth: (value.total_seconds(), "timedelta"),
         "decimal.Decimal": encode_decimal, "fractions.Fraction": lambda value, depth: (cut(str(value)), "fraction"),
         "pandas.Index": lambda value, depth: encode_list(bounded(value).tolist(), depth),
         "pandas.Categorical": lambda value, depth: encode_list(bounded(value).tolist(), depth),
         "pandas.ExtensionArray": lambda value, depth: encode_list([*bounded(value)], depth),
         "collections.deque": encode_list, "sympy.Basic": encode_sympy, "sympy.MatrixBase": encode_text,
         **dict.fromkeys(("pandas.Period", "pandas._Period", "pandas.Interval", "pathlib.PurePath", "uuid.UUID",
                          "ipaddress._BaseAddress", "numpy.dtype", "pandas.ExtensionDtype"), encode_text)}


def note_types(path, plain, kind, types, top=True):
    """Fill `types` for a value and its members."""
    name, inner = kind if type(kind) is tuple else (kind, ())
    if top or IMPLIED[type(plain)] != name:
        types[path] = name
    members = [*(plain.values() if name == "dict" else plain)] if inner and name != "table" else \
        [[row[at] for row in plain["rows"]] for at in range(len(inner))]
    odd = [at for at, one in enumerate(inner) if type(one) is tuple or IMPLIED[type(members[at])] != one]
    simple = {one for one in inner if type(one) is str}
    if odd and len(simple - NULLS) < 2 and len(simple & NULLS) < 2 and tuple not in map(type, inner):
        types[f"{path}/*"] = ",".join(sorted(simple))
        return
    for at in odd:
        note_types(f"{path}/{at}", members[at], inner[at], types, False)


# ---- from JSON ----
class Table:
    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows

    def __getitem__(self, key):
        """A column by its name, a row by its first cell or by its number."""
        if key in self.columns:
            return [row[self.columns.index(key)] for row in self.rows]
        rows = {text_of(row[0]): row[1:] for row in self.rows if row}
        if str(key) not in rows:
            return dict(zip(self.columns, self.rows[key]))
        row = rows[str(key)]
        return row[0] if len(row) == 1 else dict(zip(self.columns[1:], row))


SCALARS = {"number": float, "integer": int, "bool": bool, "text": str, "none": lambda _: None,
           "nan": lambda _: float("nan"), "inf": lambda _: float("inf"), "-inf": lambda _: -float("inf"),
           "complex": complex, "decimal": lambda text: __import__("decimal").Decimal(text),
           "fraction": lambda text: __import__("fractions").Fraction(text),
           "timedelta": lambda seconds: __import__("datetime").timedelta(seconds=seconds),
           **{name: lambda text, name=name: getattr(__import__("datetime"), name).fromisoformat(text)
              for name in ("date", "datetime", "time")}}


def decode(plain, kind, path="", types={}):
    """The value of its JSON, of builtin types, dates, Decimal, Fraction and Table."""
    kind = kind[0] if type(kind) is tuple else kind
    if kind in SCALARS:
        return SCALARS[kind](plain)
    known = types.get(f"{path}/*", "").split(",")

    def inner(at, one, way=path):
        told = types.get(f"{way}/{at}") or [name for name in known if name and (name in NULLS) == (one is None)]
        told = told if type(told) is str else told[0] if told else IMPLIED[type(one)]
        return decode(one, told, f"{way}/{at}", types)
    if kind == "dict":
        return {key: inner(at, one) for at, (key, one) in enumerate(plain.items())}
    if kind == "list":
        return [inner(at, one) for at, one in enumerate(plain)]
    columns = [inner(at, [row[at] for row in plain["rows"]]) for at in range(len(plain["columns"]))]
    return Table(plain["columns"], [[column[at] for column in columns] for at in range(len(plain["rows"]))])


# ---- the text ----
def readable(number):
    """A float without noise: 0.3 for 0.30000000000000004, 715 for 715.0."""
    if number - number != 0 or abs(number) >= 1e15:
        return repr(number)
    if number == int(number):
        return str(int(number))
    text = f"{number:.2f}" if abs(number) >= 1e8 else f"{number:.10g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def text_of(value):
    """In a line, without a format."""
    if isinstance(value, float):
        return readable(value)
    if isinstance(value, complex):
        return repr(value).strip("()")
    if isinstance(value, list):
        inner = [f"[{text_of(one)}]" if isinstance(one, list) and one else text_of(one) for one in value]
        return ", ".join(inner) if value else "[]"
    if isinstance(value, dict):
        return ", ".join([f"{key}: {text_of(one)}" for key, one in value.items()]) if value else "{}"
    if isinstance(value, Table):
        return "; ".join([text_of(row) for row in value.rows]) if value.rows else "[]"
    text = str(value)
    return text.removesuffix(" 00:00:00") if type(value).__name__ == "datetime" else text


def formatted(value, spec):
    """One value with a format of Python's."""
    kind = type(value).__name__
    if kind in ("date", "datetime", "time") and "%" not in spec:
        raise ValueError(f"a {kind} needs a format with %, such as %d.%m.%Y")
    if kind == "Fraction":
        value = float(value)
    if isinstance(value, float) and spec[-1:] not in FLOAT_CODES and "." not in spec and value - value == 0:
        value = int(value) if value == int(value) else float(readable(value))
    if value is None or kind == "timedelta":
        raise ValueError("None has no format" if value is None else "a duration has no format: pass "
                         "x.total_seconds(), or write {x.days}")
    return format(value, spec)


def within(value, spec, whole=True):
    """A member of a container: only numbers and dates get the format; `whole`: whole numbers get decimals, too."""
    kind = type(value).__name__
    if kind == "list":
        return ", ".join([within(one, spec, whole) for one in value])
    wanted = ("date", "datetime", "time") if "%" in spec[:-1] else ("int", "float", "Decimal", "Fraction")
    decimals = spec[-1:] in FLOAT_CODES or "." in spec
    return formatted(value, spec) if kind in wanted and (whole or kind != "int" or not decimals) else text_of(value)


def block(value, spec):
    """A Markdown table."""
    rows = [*map(list, value.items())] if isinstance(value, dict) else value.rows
    names = ["", ""] if isinstance(value, dict) else value.columns
    cells = [[(within(cell, spec, False) if spec else text_of(cell)) for cell in row] for row in rows]
    cells = [[" ".join(cell.replace("|", "\\|").split("\n")) for cell in row] for row in [names, *cells]]
    right = [rows and all([isinstance(row[at], (int, float)) for row in rows]) for at in range(len(names))]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], f"|{'|'.join(['---:' if one else '---' for one in right])}|", *lines[1:]])


def find(field, values):
    """The value of a placeholder: `name`, `name[key]`, `name.attribute`."""
    first, rest = _string.formatter_field_name_split(field)
    if first == "" or isinstance(first, int):
        raise ValueError(f"the placeholder {{{field}}} has no name: write {{name}} and pass name=...")
    if not first.isidentifier():
        raise ValueError(f"the placeholder {{{field}}} is no name: write {{x}} and pass x=<the expression>; literal "
                         "braces are doubled")
    if first not in values:
        raise ValueError(f"the template has {{{first}}}, but no value has that name: pass {first}=...")
    found, path = values[first], first
    for is_attribute, key in rest:
        path += f".{key}" if is_attribute else f"[{key}]"
        try:
            if isinstance(found, (dict, Table, list)):
                found = found[key if isinstance(found, Table) or isinstance(key, int) == isinstance(found, list)
                              else str(key)]
            elif is_attribute and key[:1] != "_" and not callable(getattr(found, key)):
                found = getattr(found, key)
            else:
                raise KeyError(key)
        except (LookupError, AttributeError, TypeError):
            raise ValueError(f"{{{field}}}: there is no {path}; pass it as a value of its own") from None
    return found


def fill(field, spec, conversion, values):
    found = find(field, values)
    spec = "".join([before + ("" if name is None else str(fill(name, inner or "", how, values)))
                    for before, name, inner, how in _string.formatter_parser(spec)])
    if any([len(part) > len(str(WIDTH_MAX)) for part in "".join([c if c.isdigit() else " " for c in spec]).split()]):
        raise ValueError(f"{{{field}:{spec}}}: a width of more than {WIDTH_MAX}")
    if conversion:
        found = {"r": repr, "a": ascii}.get(conversion, text_of)(found)
    try:
        if isinstance(found, (dict, Table)):
            return Block(block(found, spec))
        if isinstance(found, list):
            return ", ".join([within(one, spec) for one in found]) if spec and found else text_of(found)
        return formatted(found, spec) if spec else text_of(found)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{{{field}:{spec}}}: {problem}; the value is {text_of(found)[:80]!r}") from None


class Block(str):
    """Stands on lines of its own."""


def render(template, values, types):
    """The text of a template with values as JSON."""
    real = {name: decode(values[name], types[name], name, types) for name in values}
    try:
        parts = [*_string.formatter_parser(template)]
    except ValueError as problem:
        raise ValueError(f"the template: {problem}; literal braces are doubled: {{{{ }}}}") from None
    text, apart = "", False   # apart: the text ends with a table
    for before, field, spec, conversion in parts:
        for part in (before, "" if field is None else fill(field, spec, conversion, real)):
            if text and part and (apart or type(part) is Block):
                around = len(text) - len(text.rstrip("\n")) + len(part) - len(part.lstrip("\n"))
                text += "\n" * max(0, 2 - around)
            text, apart = text + part, type(part) is Block if part else apart
    return text
