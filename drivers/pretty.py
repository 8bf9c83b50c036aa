# A value as text that people can read: long containers wrap, classes show their names. The same text as IPython's
# pretty printer, and the same protocol, `_repr_pretty_(self, p, cycle)`. Runs as the occupant; show.py loads it for
# values that are not small and plain, the zygote before it forks.
#
# 1. Text is written piece by piece. Breaks wait until their line is full or ended; then the outermost group with
#    waiting breaks becomes one line per item.
# 2. The text has a maximum: a printer that has written it stops by `Full`, whatever the value holds.
import sys
from _collections import deque

ITEMS_MAX, WIDTH, TEXT_MAX = 1000, 79, 64 << 10
HOME = None, "builtins", "exceptions", "__builtin__"   # modules whose name is not shown


class Full(BaseException):
    """The text has its maximum. Not an Exception: a method that catches those must not go on."""


class Group:
    """Text and breaks that stay on one line, or become one line per break."""
    __slots__ = "depth", "waiting", "broken"

    def __init__(self, depth):
        self.depth, self.waiting, self.broken = depth, 0, False


class Within:
    """The context of `with p.group(...)` and `with p.indent(...)`."""

    def __init__(self, leave, *args):
        self.leave, self.args = leave, args

    def __enter__(self):
        pass

    def __exit__(self, *_):
        self.leave(*self.args)


class Printer:
    """The `p` of `_repr_pretty_`."""
    verbose, newline = False, "\n"

    def __init__(self, width=WIDTH, items=ITEMS_MAX, room=TEXT_MAX):
        self.max_width, self.max_seq_length, self.room = width, items, room
        self.parts, self.column = [], 0             # text that is written; the width of its last line
        self.pending, self.pending_width = deque(), 0   # texts, and breaks as (separator, indentation, group)
        self.indentation, self.stack = 0, []
        self.groups = [Group(0)]                    # the open ones
        self.levels = [[self.groups[0]]]            # those that may still become broken, by depth

    # ---- for values ----
    def text(self, text):
        self.room -= len(text)
        if self.room < 0:
            self.parts.append(text[: TEXT_MAX])
            raise Full
        if self.pending:
            self.pending.append(text)
            self.pending_width += len(text)
            self.fit()
        else:
            self.parts.append(text)
            self.column += len(text)

    def breakable(self, separator=" "):
        group = self.groups[-1]
        self.room -= len(separator)
        if group.broken:
            return self.end_line()
        group.waiting += 1
        self.pending.append((separator, self.indentation, group))
        self.pending_width += len(separator)
        self.fit()

    def break_(self):
        """A new line at any width."""
        group = self.break_outermost()
        if group:
            self.write_out(group)
        self.end_line()

    def begin_group(self, indent=0, open=""):
        open and self.text(open)
        group = Group(len(self.groups))
        self.groups.append(group)
        while len(self.levels) <= group.depth:
            self.levels.append([])
        self.levels[group.depth].append(group)
        self.indentation += indent

    def end_group(self, dedent=0, close=""):
        self.indentation -= dedent
        group = self.groups.pop()
        if not group.waiting:
            self.settle(group)
        close and self.text(close)

    def group(self, indent=0, open="", close=""):
        self.begin_group(indent, open)
        return Within(self.end_group, indent, close)

    def indent(self, indent):
        self.indentation += indent
        return Within(lambda: setattr(self, "indentation", self.indentation - indent))

    def flush(self):
        while self.pending:
            self.write_first()

    def pretty(self, value):
        cycle = id(value) in self.stack
        self.stack.append(id(value))
        self.begin_group()
        try:
            printer_of(value)(value, self, cycle)
        finally:
            self.end_group()
            self.stack.pop()

    # ---- lines ----
    def fit(self):
        while self.column + self.pending_width > self.max_width:
            group = self.break_outermost()
            if not group:
                return
            self.write_out(group)

    def break_outermost(self):
        """The outermost group with waiting breaks, now broken. The groups around it are too long as well."""
        for level in self.levels:
            for at in range(len(level) - 1, -1, -1):
                if level[at].waiting:
                    group = level[at]
                    group.broken = True
                    del level[-1 - at]   # IPython counts from the other end here; equal text needs the same
                    return group
            for group in level:
                group.broken = True
            level.clear()
        return None

    def write_out(self, group):
        """All pieces up to the group's last break, and the text after it."""
        while group.waiting or self.pending and type(self.pending[0]) is str:
            self.write_first()

    def write_first(self):
        piece = self.pending.popleft()
        if type(piece) is str:
            self.pending_width -= len(piece)
            self.parts.append(piece)
            self.column += len(piece)
            return
        separator, indentation, group = piece
        self.pending_width -= len(separator)
        group.waiting -= 1
        if group.broken:
            self.start_line(indentation)
            return
        if not group.waiting:
            self.settle(group)
        self.parts.append(separator)
        self.column += len(separator)

    def start_line(self, indentation):
        self.room -= indentation + 1
        if self.room < 0:
            raise Full
        self.parts.append("\n" + " " * indentation)
        self.column = indentation

    def end_line(self):
        self.flush()
        self.start_line(self.indentation)

    def settle(self, group):
        level = self.levels[group.depth]
        if group in level:
            level.remove(group)

    # ---- parts of values ----
    def items(self, values, show, most=None):
        """Each value, with commas between, up to the maximum number."""
        most = self.max_seq_length if most is None else most
        for at, value in enumerate(values):
            if at:
                self.text(",")
                self.breakable()
            if most and at >= most:
                return self.text("...")
            show(value)

    def _enumerate(self, values):   # by this name for printers that were written for IPython
        for at, value in enumerate(values):
            if self.max_seq_length and at >= self.max_seq_length:
                self.text(",")
                self.breakable()
                return self.text("...")
            yield at, value

    def call(self, name, *args, **named):
        """name(arg, key=value)"""
        def show(item):
            key, value = item
            if key is not None:
                with self.group(len(key) + 1, key + "="):
                    return self.pretty(value)
            self.text(value.text) if isinstance(value, Raw) else self.pretty(value)
        with self.group(), self.group(len(name) + 1, name + "(", ")"):
            self.items([*[(None, arg) for arg in args], *named.items()], show, 0)


class Raw:
    """An argument of a call that is text already."""

    def __init__(self, text):
        self.text = text


# ---- the printers of types ----
def as_repr(value, p, cycle):
    if type(value) in (str, bytes) and len(value) > TEXT_MAX:
        value = value[:TEXT_MAX]
    with p.group():
        text = repr(value)
        for at, line in enumerate(text.splitlines()):
            if at:
                p.break_()
            p.text(line)


def as_sequence(start, end):
    def show(values, p, cycle):
        if cycle:
            return p.text(f"{start}...{end}")
        with p.group(len(start), start, end):
            p.items(values, p.pretty)
            if len(values) == 1 and isinstance(values, tuple):
                p.text(",")
    return show


def in_order(values):
    """The items of a set, sorted where they can be."""
    values = list(values)
    for key in (None, str):
        try:
            return sorted(values, key=key)
        except Exception:
            pass
    return values


def as_set(start, end):
    def show(values, p, cycle):
        if cycle:
            return p.text(f"{start}...{end}")
        if not len(values):
            return p.text(type(values).__name__ + "()")
        with p.group(len(start), start, end):
            p.items(in_order(values) if len(values) < p.max_seq_length else values, p.pretty)
    return show


def as_mapping(start, end):
    def show(mapping, p, cycle):
        def show_pair(key):
            p.pretty(key)
            p.text(": ")
            p.pretty(mapping[key])
        if cycle:
            return p.text("{...}")
        with p.group(len(start), start, end):
            p.items(mapping.keys(), show_pair)
    return show


def as_call(arguments):
    """A call of the class; `arguments` gives the positional ones and those with names."""
    def show(value, p, cycle):
        args, named = ([Raw("...")], {}) if cycle else arguments(value)
        p.call(type(value).__name__, *args, **named)
    return show


def as_namespace(value, p, cycle):
    p.call("namespace", *([Raw("...")] if cycle else []), **({} if cycle else vars(value)))


def qualified(thing, name):
    module = getattr(thing, "__module__", None)
    return name if module in HOME or not isinstance(module, str) else f"{module}.{name}"


def as_class(value, p, cycle):
    if [kind for kind in type(value).__mro__ if "__repr__" in vars(kind)][0] is not type:
        return as_repr(value, p, cycle)   # the metaclass has one of its own
    name = getattr(value, "__qualname__", None)
    p.text(qualified(value, name if isinstance(name, str) else type.__dict__["__name__"].__get__(value)))


def as_function(value, p, cycle):
    name = getattr(value, "__qualname__", None)
    try:
        arguments = str(__import__("inspect").signature(value))
    except ValueError:   # a builtin that does not tell
        arguments = ""
    p.text(f"<function {qualified(value, name if isinstance(name, str) else value.__name__)}{arguments}>")


def as_exception(value, p, cycle):
    p.call(qualified(type(value), type(value).__qualname__), *value.args)


def as_super(value, p, cycle):
    with p.group(8, "<super: ", ">"):
        p.pretty(value.__thisclass__)
        p.text(",")
        p.breakable()
        p.pretty(value.__self__)


def as_pattern(value, p, cycle):
    flags = "TEMPLATE IGNORECASE LOCALE MULTILINE DOTALL UNICODE VERBOSE DEBUG".split()
    bits = dict(zip(flags, (1, 2, 4, 8, 16, 32, 64, 128)))
    names = "|".join([f"re.{name}" for name, bit in bits.items() if value.flags & bit])
    text = "r" + repr(value.pattern).replace("\\\\", "\\")
    p.call("re.compile", Raw(text), *([Raw(names)] if names else []))


def as_object(value, p, cycle):
    kind = class_of(value)
    if getattr(kind, "__repr__", None) is not object.__repr__:
        return as_repr(value, p, cycle)
    with p.group(1, "<", ">"):
        p.pretty(kind)
        p.text(f" at 0x{id(value):x}{' ...' if cycle else ''}")


# By identity: comparing or hashing a class may call code of its metaclass.
PRINTERS = {id(kind): printer for kinds, printer in (
    ((int, float, str, bytes, range, slice, type(as_repr.__get__(0)), type(None), type(...)), as_repr),
    ((tuple,), as_sequence("(", ")")), ((list,), as_sequence("[", "]")),
    ((dict,), as_mapping("{", "}")), ((type(type.__dict__),), as_mapping("mappingproxy({", "})")),
    ((set,), as_set("{", "}")), ((frozenset,), as_set("frozenset({", "})")),
    ((super,), as_super), ((type,), as_class), ((type(as_repr), type(len)), as_function),
    ((type(sys.implementation),), as_namespace), ((BaseException,), as_exception)) for kind in kinds}
# Types of modules that may not be loaded.
NAMED = {
    ("collections", "defaultdict"): as_call(lambda it: ([it.default_factory, dict(it)], {})),
    ("collections", "OrderedDict"): as_call(lambda it: ([list(it.items())] if len(it) else [], {})),
    ("collections", "Counter"): as_call(lambda it: ([dict(it)] if len(it) else [], {})),
    ("collections", "UserList"): as_call(lambda it: ([it.data], {})),
    ("collections", "deque"): as_call(lambda it: ([list(it)], {} if it.maxlen is None else {"maxlen": it.maxlen})),
    ("datetime", "datetime"): as_repr, ("datetime", "timedelta"): as_repr,
    ("os", "_Environ"): as_mapping("environ{", "}"), ("re", "Pattern"): as_pattern}


def class_of(value):
    """A proxy shows as the class that it stands for."""
    try:
        kind = value.__class__
    except Exception:
        kind = None
    return kind if isinstance(kind, type) else type(value)


def named_printer(kind):
    name = tuple([type.__dict__[part].__get__(kind) for part in ("__module__", "__name__")])
    printer = NAMED.get(name) if type(name[0]) is str else None
    return printer if printer and getattr(sys.modules.get(name[0]), name[1], None) is kind else None


registered = {}   # by class; from code (ipython.py)


def printer_of(value):
    for kind in type.__dict__["__mro__"].__get__(class_of(value)):
        printer = registered and registered.get(kind) or PRINTERS.get(id(kind)) or named_printer(kind)
        if printer:
            return printer
        own = vars(kind).get("_repr_pretty_")
        if own is not None and callable(kind._repr_pretty_):
            return kind._repr_pretty_
        if kind is not object and callable(vars(kind).get("__repr__")):
            return as_repr
    return as_object


def pretty(value, width=WIDTH, items=ITEMS_MAX):
    """The text, up to its maximum."""
    printer, note = Printer(width, items), ""
    try:
        printer.pretty(value)
    except Full:
        printer.max_width, note = sys.maxsize, f"\n[cut: more than {TEXT_MAX} characters]"
    printer.room = sys.maxsize
    printer.flush()
    text = "".join(printer.parts)
    return text[: TEXT_MAX - 80] + note if note else text
