# The functions of the module `tools`: a tool's schema as a signature, and the modules that hold them (PROTOCOL.md).
# Runs as the occupant; tools.py loads it. The text of a schema never becomes code: names are made identifiers first.
import sys

driver = tools = None    # the modules; set by the loader of this file, and by tools.py
TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict, "null": None}
KEYWORDS = frozenset("""False None True and as assert async await break class continue def del elif else except finally
for from global if import in is lambda nonlocal not or pass raise return try while with yield""".split())

known, spaces, made = {}, {}, {}   # definitions by name; our modules by name, now and ever


# ---- functions ----
def python_name(name):
    name = "".join([letter if letter.isalnum() and letter.isascii() else "_" for letter in name])
    return name + "_" if name in KEYWORDS else "_" + name if not name or name[0].isdigit() else name


def type_of(schema):
    """A schema's type as an annotation; None in the second place: not known."""
    kinds = schema.get("type") if isinstance(schema, dict) else None
    kinds = [kinds] if isinstance(kinds, str) else kinds or []
    found = [TYPES[kind] for kind in kinds if kind in TYPES]
    items = schema.get("items") if isinstance(schema, dict) else None
    if found == [list] and isinstance(items, dict) and items.get("type") in TYPES:
        return list[TYPES[items["type"]]], True
    if not found:
        return None, False
    whole = found[0]
    for one in found[1:]:
        whole = whole | one
    return whole, True


class Shape:
    """The parameters of a tool: from its schema to a Python signature, and back from a call to its arguments."""

    def __init__(self, about):
        schema = about.get("input_schema") or {}
        self.properties = schema.get("properties") or {}
        required = [name for name in schema.get("required", ()) if name in self.properties]
        names = required + [name for name in self.properties if name not in required]
        self.name = python_name(about["name"].rpartition(".")[2])
        self.at, self.defaults, space, parts = {}, {}, {}, []
        for name in names:
            own = python_name(name)
            if own in self.at:   # two names look the same: give them as one dict
                continue
            about_it = self.properties[name] if isinstance(self.properties[name], dict) else {}
            kind, is_known = type_of(about_it)
            self.at[own], part = name, own
            if is_known:
                space[f"A{len(parts)}"] = kind
                part += f": A{len(parts)}"
            if name not in required:
                self.defaults[own] = space[f"D{len(parts)}"] = about_it.get("default")
                part += f" = D{len(parts)}"
            parts.append(part)
        more = schema.get("additionalProperties", not self.properties)
        if more is not False and (more or more == {}):
            parts.append("**more")
        result, is_known = type_of(about.get("output_schema") or {})
        space["R"] = result
        arrow = " -> R" if is_known else ""
        # The parameter names are identifiers by now: the text holds nothing else of the schema.
        exec(f"def {self.name}({', '.join(parts)}){arrow}: return locals()", space)
        self.stub = space[self.name]
        first = self.properties[self.at[next(iter(self.at))]] if self.at else {}
        kinds = first.get("type", "object") if isinstance(first, dict) else "object"
        self.takes_dict = bool(self.at) and "object" in ([kinds] if isinstance(kinds, str) else kinds)

    def arguments(self, args, named):
        if len(args) == 1 and not named and isinstance(args[0], dict) and not (
                self.takes_dict and not set(args[0]) <= set(self.properties)):
            return args[0]
        back = {name: own for own, name in self.at.items()}
        found = self.stub(*args, **{back.get(name, name): value for name, value in named.items()})
        more = found.pop("more", {}) if "more" not in self.at else {}
        out = {self.at[own]: value for own, value in found.items()
               if own not in self.defaults or value is not self.defaults[own]}
        return {**out, **more}


def text_of(about):
    """The docstring of a tool."""
    schema = about.get("input_schema") or {}
    lines = [about.get("description") or about["name"], ""]
    for name, one in (schema.get("properties") or {}).items():
        one = one if isinstance(one, dict) else {}
        kind = one.get("type", "any")
        kind = kind if isinstance(kind, str) else " or ".join(map(str, kind))
        choices = f", one of {', '.join(map(repr, one['enum']))}" if isinstance(one.get("enum"), list) else ""
        lines.append(f"{name} ({kind}{choices}): {one.get('description', '')}".rstrip(": "))
    effect = {"read": "It only reads.", "irreversible": "What it does cannot be undone."}
    lines += ["", f"Tool {about['name']}. {effect.get(about.get('effect'), 'It changes something outside.')}"]
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def function_of(about, is_async):
    """The function of a tool: called like a function of Python, or with one dict."""
    name, shape = about["name"], Shape(about)

    def call(*args, **named):
        return run(name, shape.arguments(args, named), tools.user_line())
    run = tools.run_task if is_async else tools.run_call
    call.__name__, call.__qualname__, call.__doc__ = shape.name, shape.name, text_of(about)
    call.__module__ = ("tools.aio." + name if is_async else "tools." + name).rpartition(".")[0]
    call.__wrapped__ = shape.stub   # inspect.signature() and help() read it
    call.__annotations__ = shape.stub.__annotations__
    return call


# ---- the module ----
class Names(list):
    """Names of tools; printed, one line says what each of them is."""

    def __repr__(self):
        return "\n".join([line_of(name) for name in self]) or "no tools"


def line_of(name):
    about = known.get(name, {"name": name})
    shape = Shape(about)
    return f"{name}({', '.join(shape.at)}): {(about.get('description') or '').partition(chr(10))[0]}"[:200]


def list_tools():
    """The names of all tools that this program may call."""
    return Names(known)


def words_of(text):
    return "".join([letter if letter.isalnum() else " " for letter in text.lower()]).split()


def search_tools(text):
    """The names of the tools that fit a text, the best first."""
    words = words_of(text)

    def points(about):
        name, other = words_of(about["name"]), words_of(text_of(about))
        return sum([sum([one.startswith(word) for one in name]) * 9 + any([one.startswith(word) for one in other])
                    for word in words])
    found = sorted(known.values(), key=points, reverse=True)
    return Names([about["name"] for about in found if points(about)])


def get_tool(name):
    """The function of the tool of that name."""
    return function_of(known[name], False)


class Space(type(sys)):
    """The module `tools`, or one for the tools whose names begin alike. A tool that is both is called as the module."""

    def __getattr__(self, name):
        found = self.__dict__["_tools"].get(name)
        if found is None:
            raise AttributeError(f"there is no tool '{self.__dict__['_path'] + name}': tools.list_() names all tools")
        vars(self)[name] = function = function_of(found, self.__dict__["_async"])
        return function

    def __dir__(self):
        return sorted({*super().__dir__(), *self.__dict__["_tools"]})

    def __call__(self, *args, **named):
        own = self.__dict__["_own"]
        if own is None:
            raise TypeError(f"'{self.__name__}' is no tool: it holds {', '.join(self.__all__)}")
        return self.__dict__["_function"](*args, **named)


def space_of(name, path, is_async):
    """The module of that name: always the same one, as code may hold it."""
    if name not in spaces:
        space = spaces[name] = made.setdefault(name, Space(name))
        vars(space).clear()
        about = "Tools that run outside of the box. tools.list_() names them."
        vars(space).update(__name__=name, __doc__=about, __path__=[], __all__=[], __spec__=None, __loader__=None,
                           __package__=name, _tools={}, _path=path, _async=is_async, _own=None)
    return spaces[name]


def put(about, root, is_async):
    """Give a tool its place, by the parts of its name."""
    *above, last = about["name"].split(".")
    at, path, prefix = space_of(root, "", is_async), "", root
    for part in above:
        path, prefix = f"{path}{part}.", f"{prefix}.{python_name(part)}"
        below = space_of(prefix, path, is_async)
        vars(at)[python_name(part)] = below
        at.__all__.append(python_name(part))
        at = below
    name = python_name(last)
    below = vars(at).get(name)
    if isinstance(below, Space):   # `db` and `db.query`
        function = function_of(about, is_async)
        vars(below).update(_own=about, _function=function, __doc__=function.__doc__, __wrapped__=function.__wrapped__)
        return
    at._tools.setdefault(name, about)
    at.__all__.append(name)


def build(definitions):
    """The modules for these tools, by name."""
    known.clear()
    known.update({about["name"]: about for about in definitions})
    spaces.clear()
    for root, is_async in (("tools", False), ("tools.aio", True)):
        space_of(root, "", is_async)
        for name in sorted(known, key=lambda name: -name.count(".")):
            put(known[name], root, is_async)
    top, helpers = spaces["tools"], {"list": list_tools, "search": search_tools, "get": get_tool,
                                     "aio": spaces["tools.aio"]}
    for name, helper in helpers.items():   # a tool of that name has it; with _ it is always ours
        vars(top)[name + "_"] = helper
        if name not in top._tools and name not in vars(top):
            vars(top)[name] = helper
    vars(top).update({kind.__name__: kind for kind in (*tools.CLASSES, tools.large.ToolLarge)})
    return dict(spaces)
