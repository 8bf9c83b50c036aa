# IPython.display and get_ipython() on our own display channel. Where IPython is installed, its functions that show
# values are replaced by ours; where it is not, these modules are a small IPython. driver.py loads this file when code
# imports IPython or calls get_ipython(). Runs as the occupant.
#
# 1. Names and results are those of IPython, or the name is not there.
# 2. An attribute of the shell that needs IPython's kernel is not there.
import sys

driver = None   # the module; set by the loader of this file


def shows():
    return driver.load("show")


def display_as(mime):
    def show(*values, raw=False, metadata=None):
        for value in values:
            about = {mime: metadata} if metadata else None
            shows().display({mime: value} if raw else value, raw=raw, metadata=about,
                            **({} if raw else {"include": ["text/plain", mime]}))
    return show


# ---- the shell ----
class Events:
    """Functions that libraries want called around cells. Nothing calls them: figures are shown at a cell's end."""

    def __init__(self):
        self.callbacks = {}

    def register(self, event, function):
        self.callbacks.setdefault(event, []).append(function)

    def unregister(self, event, function):
        self.callbacks.get(event, []).remove(function)


class Formatter:
    """The functions that code registers for classes, for one mime type."""
    enabled = True

    def __init__(self, mime):
        self.mime = mime
        own = driver.load("pretty").registered if mime == "text/plain" else {}
        self.type_printers = shows().printers.setdefault(mime, own)

    def for_type(self, kind, function=None):
        before = self.type_printers.get(kind)
        if function is not None:
            self.type_printers[kind] = function
        return before

    def for_type_by_name(self, module, name, function=None):
        kind = getattr(sys.modules.get(module), name, None)
        return self.for_type(kind, function) if isinstance(kind, type) else None

    def pop(self, kind, default=None):
        return self.type_printers.pop(kind, default)


class Formatters(dict):
    def __missing__(self, mime):
        self[mime] = Formatter(mime)
        return self[mime]


class DisplayFormatter:
    def __init__(self):
        self.formatters = Formatters()

    @staticmethod
    def format(value, include=None, exclude=None):
        forms, metadata, _ = shows().rich(value, include, exclude)
        return {"text/plain": shows().plain(value), **forms}, metadata


class InteractiveShell:
    """get_ipython(): what code outside of a notebook's kernel asks it for."""
    ast_node_interactivity, config, autoawait, colors = "last_expr", {}, True, "NoColor"

    def __init__(self):
        self.events, self.display_formatter = Events(), DisplayFormatter()

    @staticmethod
    def instance():
        return shell

    @staticmethod
    def initialized():
        return True

    @property
    def user_ns(self):
        return vars(sys.modules["__main__"])

    user_global_ns = user_ns

    @property
    def execution_count(self):
        number = "".join([sign for sign in driver.program if sign.isdigit()])
        return int(number or 1)

    def run_line_magic(self, magic_name, line="", _stack_depth=1):
        return self.call_magic("%" + magic_name, line)

    def run_cell_magic(self, magic_name, line="", cell=""):
        return self.call_magic("%%" + magic_name, line, cell)

    def magic(self, text):
        name, _, line = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, line.strip())

    def call_magic(self, name, line, *body):
        magics = driver.load("magics")
        if name.lstrip("%") not in (magics.CELL if body else magics.LINE) and name.lstrip("%") not in magics.SAY:
            raise ValueError(f"there is no magic {name} here; %lsmagic lists them")
        return magics.call(name, line, *body)

    def system(self, command):
        driver.load("magics").call("!", command)

    system_raw = system_piped = system

    def getoutput(self, command, split=True, depth=0):
        lines = driver.load("magics").call("!!", command)
        return lines if split else "\n".join(lines)

    def ev(self, expression):
        return eval(expression, self.user_ns)

    def ex(self, code):
        exec(code, self.user_ns)

    def run_cell(self, raw_cell, *_, **__):
        tree = driver.load("source").parse(raw_cell, "<run_cell>")
        exec(compile(tree, "<run_cell>", "exec"), self.user_ns)

    def push(self, variables, interactive=True):
        names = [variables] if isinstance(variables, str) else variables
        self.user_ns.update(names if isinstance(names, dict) else {name: self.user_ns[name] for name in names})

    def enable_gui(self, gui=None):
        """There are no windows."""

    enable_matplotlib = enable_gui

    def __repr__(self):
        return "<IPython.core.interactiveshell.InteractiveShell object>"


shell = InteractiveShell()


def shows_all():
    """Did code of an earlier cell ask for the value of every expression?"""
    real = getattr(sys.modules.get("IPython.core.interactiveshell"), "InteractiveShell", InteractiveShell)
    return "all" in [vars(one).get("ast_node_interactivity") for one in (real, InteractiveShell, shell)]


def interactive(tree):
    """The program's tree, with a call around each expression at its top level but the last."""
    if not shows_all():
        return tree
    sys.modules["builtins"].__show__ = lambda value: None if value is None else shows().show(value)
    import ast
    for statement in tree.body[:-1]:
        if isinstance(statement, ast.Expr):
            place = statement.value
            name = ast.copy_location(ast.Name("__show__", ast.Load()), place)
            statement.value = ast.copy_location(ast.Call(name, [place], []), place)
    return tree


def get_ipython():
    return shell


# ---- modules ----
FUNCTIONS = "display update_display clear_output publish_display_data DisplayHandle".split()
FORMS = {"pretty": "text/plain", "html": "text/html", "markdown": "text/markdown", "svg": "image/svg+xml",
         "png": "image/png", "jpeg": "image/jpeg", "latex": "text/latex", "json": "application/json",
         "javascript": "application/javascript", "pdf": "application/pdf"}


def functions():
    return {name: getattr(shows(), name) for name in FUNCTIONS}


def of_display():
    media = driver.load("media")
    things = {one.__name__: one for one in media.CORE + media.LIB}
    return {**functions(), **things, **{f"display_{name}": display_as(mime) for name, mime in FORMS.items()}}


def of_pretty():
    module = driver.load("pretty")
    return {"pretty": module.pretty, "pprint": lambda value: print(module.pretty(value)),
            "RepresentationPrinter": module.Printer, "PrettyPrinter": module.Printer}


def of_top():
    return {"get_ipython": get_ipython, "display": shows().display, "InteractiveShell": InteractiveShell,
            "__version__": "8.0.0", "version_info": (8, 0, 0, ""), "__doc__": "A small IPython of the box."}


MODULES = {"IPython": of_top, "IPython.display": of_display, "IPython.core": dict, "IPython.lib": dict,
           "IPython.core.display": of_display, "IPython.core.display_functions": functions,
           "IPython.core.getipython": lambda: {"get_ipython": get_ipython},
           "IPython.core.interactiveshell": lambda: {"InteractiveShell": InteractiveShell},
           "IPython.core.pylabtools": lambda: {"backend2gui": {}}, "IPython.lib.pretty": of_pretty,
           "IPython.lib.display": lambda: {one.__name__: one for one in driver.load("media").LIB}}
PACKAGES = "IPython", "IPython.core", "IPython.lib"
InteractiveShell.__module__ = "IPython.core.interactiveshell"


class Loader:
    """Makes one of the modules above."""

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        vars(module).update(MODULES[module.__name__]())


def find(name):
    """The spec of one of our modules; None: there is none of that name."""
    if name not in MODULES:
        return None
    whole = sys.modules.get("IPython")
    if name != "IPython" and getattr(getattr(whole, "__spec__", None), "loader", None) is not Loader:
        return None   # a real one, without this module
    machinery = sys.modules["_frozen_importlib"]
    return machinery.ModuleSpec(name, Loader, origin="cupel", is_package=name in PACKAGES)


def after_import(module):
    """IPython itself: its functions use our channel."""
    if getattr(module.__spec__, "loader", None) is Loader:
        return
    if module.__name__ == "IPython.core.getipython":
        module.get_ipython = get_ipython
    for name, function in functions().items():
        if hasattr(module, name):
            setattr(module, name, function)
