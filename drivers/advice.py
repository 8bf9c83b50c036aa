# Problems of code and their fixes: before it runs (`check`), and after it has failed (`explain`). driver.py loads it
# at the first error, a zygote in advance (PROTOCOL.md).
#
# 1. It calls no code of the user: it compares types and never asks them (like names.py).
# 2. A check leaves nothing behind: it imports, binds, shows and warns nothing.
# 3. It reports only certain problems. A name that code might still make in a way that cannot be seen here is no
#    problem; neither is one in code that may not run or handles the error.
# 4. Every walk has a maximum.
import builtins
import posix
import sys
import _imp

FRAMES_MAX, VALUES_MAX, PROBLEMS_MAX, LOOKED_AT_MAX, SPAN_MAX = 5, 8, 20, 2000, 5
TEXT_MAX, WORDS_MAX, LINE_MAX, CHECKED = 2000, 400, 200, "<check>"
LAZY = 0x20 | 0x80 | 0x200   # flags of code that a plain call does not run
# Finders beside the interpreter's own that find no module of a program.
FINDERS = (("six", "_SixMetaPathImporter"), ("pkg_resources.extern", "VendorImporter"))
ORIGINS = ("_frozen_importlib", "_frozen_importlib_external", "zipimport")
# Code with one of these can make names invisibly, or leave before one is needed.
SECRET = {"exec", "eval", "globals", "locals", "vars", "setattr", "builtins", "__builtins__", "__main__",
          "__dict__", "__import__", "modules", "_getframe", "currentframe", "f_globals", "runpy",
          "get_ipython", "load_session", "exit", "quit", "_exit", "var"}   # the last is sympy's
EARLIER = ("exec", "setattr", "builtins", "__main__", "var(")   # the same in functions of earlier cells
# Code with one of these can make modules.
INSTALL = {"path", "meta_path", "path_hooks", "system", "subprocess", "Popen", "extractall", "write_text",
           "import_module", "addsitedir", "unpack_archive"}
ODD = dict(zip("“”‘’−–×÷≤≥≠\xa0", ['"', '"', "'", "'", "-", "-", "*", "/", "<=", ">=", "!=", " "]))   # from prose
LATEX = ("$", "\\frac", "\\begin", "\\[", "\\(", "\\text", "\\times", "\\cdot")

driver = names = None   # the modules; driver.py sets the first


# ---- modules ----
def is_usual(finder):
    if type(finder) is type:
        return finder in (driver.Hooks, driver.Absent) or str(names.class_names(finder).get("__module__")) in ORIGINS
    if type(finder) is names.FUNCTION:
        return finder.__code__.co_filename.startswith("<frozen ")
    return names.any_known(type(finder), FINDERS)


def is_there(name):
    """Can this be imported? Looks it up without importing; None: unknown."""
    if name in sys.modules or name in sys.builtin_module_names or _imp.is_frozen(name) or name == "IPython":
        return True
    if not all([is_usual(finder) for finder in (*sys.meta_path, *sys.path_hooks)]):
        return None
    for path in sys.path:
        try:
            if any([entry.partition(".")[0] == name for entry in posix.listdir(path)]):
                return True
        except NotADirectoryError:
            return None   # an archive
        except OSError:
            pass   # absent
    return False


def import_of(name):
    """The import line for a well-known name, if the module exists here."""
    module = names.ALIASES.get(name) or names.HOMES.get(name) or (name if name in names.MODULES else None)
    if not module or not is_there(module.partition(".")[0]):
        return None
    if name in names.ALIASES:
        return f"import {module} as {name}"
    return f"from {module} import {name}" if name in names.HOMES else f"import {module}"


def name_hint(name, *places):
    line = import_of(name)
    others = dict.fromkeys([other for place in places for other in place])
    return f"'{line}' is missing" if line else names.mean(name, others)


# ---- syntax ----
def looks_like_prose(line):
    words = line.split()
    plain = [word for word in words if word.strip(".,;:!?'\"()*").replace("'", "").replace("-", "").isalpha()]
    return len(words) > 3 and len(plain) > 0.75 * len(words) and not any([mark in line for mark in "=[]{}#\\"])


def syntax_hint(problem, source):
    lines, message = source.split("\n"), str(problem.msg)
    line = lines[problem.lineno - 1] if problem.lineno and problem.lineno <= len(lines) else ""
    line = line[:TEXT_MAX].strip()
    odd = [char for char in line if char in ODD]
    if line.startswith(("```", ">>>", "In [")):
        return "only code can run: leave out the marks for readers (``` or >>>)"
    if looks_like_prose(line):
        return "text outside code? put it after a '#' or leave it out"
    if any([mark in line for mark in LATEX]):
        return "LaTeX outside of code? put it behind a '#', or in a string r'...'"
    if odd:
        return f"use {ODD[odd[0]]!r} instead of {odd[0]!r}"
    if "unterminated" in message and "triple" not in message:
        return "a string must end on its line: close it there, or use three quotes for several lines"
    if "unterminated" in message or "was never closed" in message or "unexpected EOF" in message:
        return "the code ends inside an open bracket or string: was it cut off?"
    return None


# ---- errors ----
def is_users(file):
    return file not in driver.our_files and not file.startswith(("/usr/", "<frozen ", "<__array_"))


def keep_user_frames(report):
    """Drop the frames of the driver and of libraries, also in chained exceptions."""
    if report:
        report.stack[:] = [frame for frame in report.stack if is_users(frame.filename)]
        for other in (report.__cause__, report.__context__, *(getattr(report, "exceptions", None) or ())):
            keep_user_frames(other)


def text_at(file, line):
    if file == driver.program:
        return driver.source_line(line)
    entry = getattr(sys.modules.get("linecache"), "cache", {}).get(file)   # filled for the traceback
    lines = entry[2] if entry and len(entry) > 2 else []
    return lines[line - 1].rstrip("\r\n") if 0 < line <= len(lines) else ""


class Failure:
    """An exception with the details found about it."""

    def __init__(self, problem, compiling):
        self.problem, self.compiling, self.traces = problem, compiling, []
        trace = problem.__traceback__
        while trace:
            if is_users(trace.tb_frame.f_code.co_filename):
                self.traces = [*self.traces[1 - FRAMES_MAX:], trace]
            trace = trace.tb_next
        self.frame = self.traces[-1].tb_frame if self.traces else None

    def spot(self, trace):
        """(line, last line, column in bytes, ...) of the failing code."""
        code, at = trace.tb_frame.f_code, trace.tb_lasti // 2
        if not hasattr(code, "co_positions"):   # before Python 3.11
            return trace.tb_lineno, trace.tb_lineno, None
        for spot, _ in zip(code.co_positions(), range(at + 1)):
            pass
        return spot if at >= 0 and spot[0] == trace.tb_lineno else (trace.tb_lineno, trace.tb_lineno, None)

    def traceback(self):
        import traceback
        report = traceback.TracebackException.from_exception(self.problem, lookup_lines=False)
        keep_user_frames(report)
        return driver.clean("".join(report.format()))

    def column(self):
        """Line from 1, of the innermost frame in the program itself; a SyntaxError has its own."""
        own = [trace for trace in self.traces if trace.tb_frame.f_code.co_filename == driver.program]
        line, _, column, *_ = self.spot(own[-1]) if own else (None, None, None)
        if column is not None:
            return len(driver.source_line(line).encode()[:column].decode("utf-8", "ignore")) + 1
        return self.problem.offset or None if self.compiling and isinstance(self.problem, SyntaxError) else None

    def frames(self):
        return [{"function": driver.clean(trace.tb_frame.f_code.co_name)[:LINE_MAX], "line": trace.tb_lineno,
                 "text": driver.clean(text_at(trace.tb_frame.f_code.co_filename, trace.tb_lineno).strip()[:LINE_MAX])}
                for trace in self.traces if trace.tb_lineno]

    def text(self):
        """The failing lines in the innermost frame."""
        first, last, *_ = self.spot(self.traces[-1])
        last = min(last or first, first + SPAN_MAX)
        file = self.frame.f_code.co_filename
        return "\n".join([text_at(file, line) for line in range(first, last + 1)])[:TEXT_MAX]

    def named(self):
        """Names on the failing line with their values: [(name, value, following text)]."""
        if not self.traces:
            return []
        found, text, at, own = {}, self.text(), 0, self.frame.f_code.co_varnames
        spaces = [space for space in (self.frame.f_locals, self.frame.f_globals) if type(space) is dict]
        while at < len(text):
            end = at
            while end < len(text) and ("x" + text[end]).isidentifier():
                end += 1
            name, space = text[at:end], None
            if name.isidentifier() and text[at - 1: at] != ".":
                space = next((space for space in spaces if name in space), None)
            if space is not None and name[:2] != "__" and (name in spaces[0] or name not in own):
                found.setdefault(name, (name, space[name], text[end: end + 5]))
            at = max(end, at + 1)
        return [*found.values()]

    def values(self):
        told = []
        for name, value, _ in self.named():
            kind = type(value)
            if kind in (names.FUNCTION, names.MODULE, type(len)) or type in names.line_of(kind):
                continue   # no value that could have been another
            entry = names.describe(name, value)
            told.append({key: driver.clean(entry[key]) for key in ("name", "text", "type")})
        return told[:VALUES_MAX]

    def hint(self):
        if self.compiling:
            return syntax_hint(self.problem, driver.source)
        return HINTS.get(type(self.problem), lambda failure: None)(self)


def hint_name(failure):
    spaces = failure.frame.f_locals, failure.frame.f_globals, vars(builtins)
    return name_hint(failure.problem.name, *[space for space in spaces if type(space) is dict])


def hint_local(failure):
    name = failure.problem.name or str(failure.problem.args[0]).split("'")[1]
    return f"the function assigns to '{name}', so the name is local there: give it a value first, pass it as an " \
           f"argument, or declare 'global {name}'"


def hint_key(failure):
    """The existing keys of the container on that line."""
    key = failure.problem.args[0] if failure.problem.args else None
    for name, value, after in failure.named():
        kind = type(value)
        if kind is dict or names.any_known(kind, names.COUNTED) and dict in names.line_of(kind):
            keys, what = dict.keys(value), "keys"
        elif names.any_known(kind, [("pandas", "DataFrame", "Series")]):
            by_row = after[:4] in (".loc", ".at[") or names.known(kind, "pandas", "Series")
            keys, what = (value.index, "index") if by_row else (value.columns, "columns")
            keys = keys[:LOOKED_AT_MAX].tolist()
        else:
            continue
        first = [one for one, _ in zip(keys, range(LOOKED_AT_MAX))]
        if [one for one in first if type(one) is type(key) and type(one) in (str, int) and one == key]:
            continue   # it has the key: another container was asked
        wanted = names.mean(key, first) if type(key) is str else None
        return f"{what} of '{name}': {names.listed(first)}{f'; {wanted}' if wanted else ''}"


def hint_index(failure):
    for name, value, after in failure.named():
        if after[:1] == "[" and type(value) in (list, tuple, str, bytes):
            return f"'{name}' has {len(value)} elements"


def hint_attribute(failure):
    thing, name = failure.problem.obj, failure.problem.name
    if type(name) is not str:
        return None
    if thing is None:
        return f"the value before '.{name}' is None: a function without 'return', or a method that changes its " \
               "object and returns nothing"
    found = [*names.members(thing)]
    if names.known(type(thing), "pandas", "DataFrame"):
        found += thing.columns[:LOOKED_AT_MAX].tolist()
    hidden = name[:1] == "_"
    return names.mean(name, [other for other in found if type(other) is str and (other[:1] == "_") == hidden])


def hint_import(failure):
    """A name that a module lacks."""
    parts = str(failure.problem.args[0]).split("'") if failure.problem.args else []
    module = sys.modules.get(parts[3]) if len(parts) > 3 and parts[0].startswith("cannot import name") else None
    return names.mean(parts[1], [*names.members(module)]) if module is not None else None


def hint_file(failure):
    """The existing files: beside it, or in the work folder."""
    path = failure.problem.filename
    if type(path) is not str or not path:
        return None
    folder, _, name = path.rpartition("/")
    for place in dict.fromkeys([folder or ("/" if path[:1] == "/" else "."), "."]):
        try:
            with posix.scandir(place) as entries:
                found = sorted([entry.name for entry, _ in zip(entries, range(LOOKED_AT_MAX))])
        except OSError:
            continue
        same = [other for other in found if other == name or other.lower() == name.lower()]
        same = same or names.close(name, found)
        if same:
            where = posix.getcwd() if place == "." else place
            return f"there is {' and '.join([repr(other) for other in same])} in {where}"
        if place == ".":
            return f"files in {posix.getcwd()}: {names.listed(found)}" if found else f"{posix.getcwd()} has no files"


HINTS = {NameError: hint_name, UnboundLocalError: hint_local, KeyError: hint_key, IndexError: hint_index,
         AttributeError: hint_attribute, ImportError: hint_import, FileNotFoundError: hint_file}


def explain(problem, compiling):
    """The details of an error frame beside its name and message; a part that fails is left out."""
    global names
    names = driver.load("names")
    failure, told = Failure(problem, compiling), {}
    for part in ("traceback", "column", "frames", "values", "hint"):
        try:
            told[part] = getattr(failure, part)()
        except Exception:
            pass   # no memory or stack left, or an object was replaced
    if told.get("hint"):
        told["hint"] = driver.clean(told["hint"][:WORDS_MAX])
    return told


# ---- before the run ----
def instructions():
    """The numbers of the instructions for names, which differ between versions: found in code with known instructions.
    The number of EXTENDED_ARG comes last."""
    def number(text, at, inner=False):
        code = compile(text, CHECKED, "exec", 0, True)
        return (code.co_consts[0] if inner else code).co_code[2 * at]
    many = compile("\n".join([f"x{n} = 0" for n in range(257)]), CHECKED, "exec", 0, True).co_code
    store = number("x = 0", 2)
    last = max([at for at in range(0, len(many), 2) if many[at] == store])
    return {number("x + 0", 1): "load", number("def f(): return x", 1, True): "global", store: "store",
            number("def f():\n global x\n x = 0", 2, True): "store", number("import x", 3): "import"}, many[last - 2]


NUMBERS, LONGER = instructions()


def walk(code):
    """(use of the name, the name, the instruction) for all of them."""
    raw, names = code.co_code, code.co_names
    for at in [at for at, number in enumerate(raw[::2]) if number in NUMBERS]:
        value, bits, before = raw[2 * at + 1], 8, 2 * at - 2
        while before >= 0 and raw[before] == LONGER:
            value, bits, before = value | raw[before + 1] << bits, bits + 8, before - 2
        what = NUMBERS[raw[2 * at]]
        yield ("load", names[value >> 1], at) if what == "global" else (what, names[value], at)


class Uses:
    """The names that code uses and makes, and its imports, as the compiler decided: it knows the scopes."""

    def __init__(self, code):
        self.load, self.store, self.imports, self.words, self.codes = set(), set(), set(), set(), [code]
        of = {"load": self.load, "store": self.store, "import": self.imports}
        for one in self.codes:   # grows during the loop
            self.words.update(one.co_names)
            self.codes += [inner for inner in one.co_consts if type(inner) is type(code)]
            for what, name, _ in walk(one):
                of[what].add(name)

    def places(self, suspects):
        """{(line, column in bytes): name} of their uses."""
        found = {}
        for code in self.codes if sys.version_info >= (3, 11) else ():
            wanted = {at: name for what, name, at in walk(code) if what == "load" and name in suspects}
            for at, (line, _, column, _) in enumerate(code.co_positions()) if wanted else ():
                if at in wanted and line and column is not None:
                    found.setdefault((line, column), wanted[at])
        return found


# The parts of statements and expressions that always run.
SURE = {"If": ["test"], "IfExp": ["test"], "While": ["test", "body"], "For": ["iter", "body"],
        "AsyncFor": ["iter", "body"], "Assert": ["test"], "Match": ["subject"], "Lambda": ["args"],
        "FunctionDef": ["decorator_list", "args", "returns"], "AsyncFunctionDef": ["decorator_list", "args", "returns"],
        "Try": ["finalbody"], "TryStar": ["finalbody"], "GeneratorExp": [], "BoolOp": []}
LEAVING = ("Return", "Raise", "Break", "Continue")
CONDITIONS = ("If", "Try", "TryStar", "Match", "With", "AsyncWith")


class Way:
    """The code that always runs, unless it fails before: its names by position, and its imports."""

    def __init__(self, tree, uses):
        self.names, self.modules, self.functions, self.entered = {}, [], {}, set()
        self.lazy = {code.co_name for code in uses.codes if code.co_flags & LAZY}
        self.visit(tree.body)

    def visit(self, node):
        """A node, or a block of nodes up to one that may leave it."""
        for one in node if type(node) is list else ():
            self.visit(one)
            if type(one).__name__ in LEAVING or type(one).__name__ in CONDITIONS and may_leave(one):
                return
        if hasattr(node, "_fields"):
            kind = type(node).__name__
            getattr(self, kind, lambda _: None)(node)
            for name in self.fields(node, kind):
                self.visit(getattr(node, name, None))

    def fields(self, node, kind):
        if kind == "If" and not node.orelse and getattr(getattr(node.test, "left", None), "id", "") == "__name__":
            return ["test", "body"]
        if kind in ("Try", "TryStar") and not node.handlers:
            return ["body", "finalbody"]
        if kind in ("With", "AsyncWith"):   # a context manager other than open may swallow an error
            calls = [getattr(item.context_expr, "func", None) for item in node.items]
            return ["items", "body"] if all([getattr(call, "id", "") == "open" for call in calls]) else ["items"]
        if kind in ("ListComp", "SetComp", "DictComp"):
            sure = len(node.generators) == 1 and not node.generators[0].ifs
            return [name for name in node._fields if name != "generators"] if sure else []
        return SURE.get(kind, node._fields)

    def Name(self, node):
        self.names[node.lineno, node.col_offset] = node.id

    def Import(self, node):
        self.modules += [(alias.name, node) for alias in node.names]

    def ImportFrom(self, node):
        if not node.level and node.module:
            self.modules.append((node.module, node))

    def FunctionDef(self, node):
        plain = not node.decorator_list and node.name not in self.functions and node.name not in self.lazy
        self.functions[node.name] = node if plain else None

    def Call(self, node):
        function = self.functions.get(getattr(node.func, "id", None))
        if function and function not in self.entered:
            self.entered.add(function)
            self.visit(function.body)

    def ListComp(self, node):
        self.visit(node.generators[0].iter)

    SetComp = DictComp = GeneratorExp = ListComp

    def BoolOp(self, node):
        self.visit(node.values[0])


def may_leave(node):
    """May it end the code after it, under some condition?"""
    nodes = [node]
    for one in nodes:   # grows during the loop
        if type(one).__name__ in LEAVING:
            return True
        if not type(one).__name__.endswith(("FunctionDef", "ClassDef")):
            nodes += children(one)
    return False


def children(node):
    values = [getattr(node, name, None) for name in node._fields]
    return [one for value in values for one in (value if type(value) is list else [value]) if hasattr(one, "_fields")]


def compile_quietly(*what):
    """`compile`, without the warnings, which the cell itself will show, and without the module that it imports for
    names beyond ASCII."""
    warnings, there = sys.modules.get("warnings"), "unicodedata" in sys.modules
    loaded = type(warnings) is names.MODULE
    space, way = (names.module_names(warnings), "_showwarnmsg") if loaded else (vars(sys), "stderr")
    kept = space.get(way)
    try:
        space[way] = (lambda message: None) if loaded else None
        return compile(*what)
    finally:
        space[way], _ = kept, there or sys.modules.pop("unicodedata", None)


def problem_at(kind, line, column, name, message, hint=None):
    name, message, hint = [text and driver.clean(text[:WORDS_MAX]) for text in (name, message, hint)]
    return dict(kind=kind, line=line or None, column=column or None, name=name, message=message, hint=hint)


def may_hide(uses, code, sources):
    """May names appear invisibly, now or through an earlier cell?"""
    stars = [line for line in code.split("\n") if "import" in line and "*" in line]
    return stars or uses.words & SECRET or any([word in text for text in sources.values() for word in EARLIER])


def check(code, scope, sources):
    """The problems of code that would be the next cell."""
    global names
    names, flags = driver.load("names"), driver.TOP_LEVEL_AWAIT
    try:
        uses = Uses(compile_quietly(code, CHECKED, "exec", flags, True))
    except SyntaxError as problem:
        hint = syntax_hint(problem, code)
        return [problem_at("syntax", problem.lineno, problem.offset, None, str(problem.msg), hint)]
    known = {**vars(builtins), **scope}
    suspects = {name for name in uses.load - uses.store if name[:1] != "_" and name not in known}
    missing = {name for name in uses.imports if name and name.partition(".")[0] not in sys.modules}
    if suspects and (scope.get("__builtins__") is not builtins or may_hide(uses, code, sources)):
        suspects = set()
    suspects -= {name for name in suspects if any(["global" in text and name in text for text in sources.values()])}
    missing = set() if uses.words & (INSTALL | SECRET) or ".py" in code else missing
    if not suspects and not missing:
        return []
    way = Way(compile_quietly(code, CHECKED, "exec", flags | driver.ONLY_AST, True), uses)
    lines, found = code.split("\n"), []

    def column(line, offset):
        return len(lines[line - 1].encode()[:offset].decode("utf-8", "ignore")) + 1
    for (line, offset), name in sorted(uses.places(suspects).items()):
        if way.names.get((line, offset)) == name and name in suspects:
            suspects.discard(name)   # reported once
            found.append(problem_at("name", line, column(line, offset), name, f"name '{name}' is not defined",
                                    name_hint(name, uses.store, known)))
    for name, node in way.modules:
        top = name.partition(".")[0]
        if name in missing and is_there(top) is False:
            missing = {other for other in missing if other.partition(".")[0] != top}
            found.append(problem_at("module", node.lineno, column(node.lineno, node.col_offset), top,
                                    f"No module named '{top}'"))
    return sorted(found, key=lambda problem: problem["line"])[:PROBLEMS_MAX]
