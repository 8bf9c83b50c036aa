# Text that is not Python but that notebooks accept: code that is indented as a whole, a pasted dialogue with its
# prompts, magics (`!ls`, `%timeit f()`, `%%bash`, `f?`). driver.py loads it when a program or cell does not compile,
# never before (PROTOCOL.md). Runs as the occupant.
#
# 1. Text that compiles stays as it is: only a line at which the compiler stops is a magic.
# 2. A line stays one line, and the positions in the tree are those of the text as it was sent: errors and tracebacks
#    refer to that.
import builtins

LINES_MAX = 200              # magics in one program
CALL = "__magic__"           # in builtins: the function that a translated line calls
SIGNS = "%!?"

driver = None                # the module; set by the loader of this file


class Text:
    """A program on its way to Python: its lines, and what was cut from the start of each, or True for a magic."""

    def __init__(self, code, program):
        self.code, self.program = code, program
        self.lines = code.split("\n")
        self.cuts = [0] * len(self.lines)

    def cut_indent(self, first):
        """The first line's indentation, from every line that has it."""
        line = self.lines[first]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        for at, line in enumerate(self.lines):
            if indent and line.startswith(indent):
                self.cut(at, len(indent))

    def cut_prompts(self, first):
        """The prompts of Python and of IPython, if the first or the second line has one."""
        following = self.lines[first + 1: first + 2]
        for prompt_of in (classic_prompt, numbered_prompt):
            if prompt_of(self.lines[first]) or following and prompt_of(following[0]):
                for at, line in enumerate(self.lines):
                    self.cut(at, prompt_of(line))
                return

    def cut(self, at, count):
        self.lines[at] = self.lines[at][count:]
        self.cuts[at] += count

    def spot(self, line, column, begins):
        """A position in the tree, in bytes, as one of the text that was sent."""
        if not line or line > len(self.cuts) or column is None or column < 0:
            return column
        if self.cuts[line - 1] is not True:
            return column + self.cuts[line - 1]   # spaces and prompts: one byte each
        sent = self.code.split("\n")[line - 1].encode("utf-8", "replace")
        return len(sent) - len(sent.lstrip()) if begins else len(sent.rstrip())

    def place(self, tree):
        nodes = [tree] if any(self.cuts) else []
        for node in nodes:   # grows during the loop
            if hasattr(node, "col_offset"):
                node.col_offset = self.spot(node.lineno, node.col_offset, True)
                node.end_col_offset = self.spot(node.end_lineno, node.end_col_offset, False)
            for name in node._fields:
                value = getattr(node, name, None)
                nodes += [one for one in (value if type(value) is list else [value]) if hasattr(one, "_fields")]
        return tree

    def place_error(self, problem):
        """The same for a SyntaxError."""
        line = problem.lineno or 0
        if problem.filename == self.program and 0 < line <= len(self.lines):
            problem.offset = self.spot(line, problem.offset, True)
            if hasattr(problem, "end_lineno"):   # from Python 3.10 on
                problem.end_offset = self.spot(problem.end_lineno, problem.end_offset, False)
            problem.text = self.code.split("\n")[line - 1] + "\n"
        return problem

    def column(self, line, column):
        cut = self.cuts[line - 1] if column and line and line <= len(self.cuts) else 0
        return 1 if cut is True else column and column + cut

    def python(self):
        """The text as Python; a SyntaxError if it is nothing that we know."""
        first = next((at for at, line in enumerate(self.lines) if line.strip()), None)
        if first is None:
            return self.code
        self.cut_indent(first)
        self.cut_prompts(first)
        try:
            if any([sign in self.code for sign in SIGNS]):
                translate_all(self, first)
        except SyntaxError as problem:
            raise self.place_error(problem) from None
        return "\n".join(self.lines)


def parse(code, program):
    """The tree of a program that is not plain Python; a SyntaxError with the positions of its text."""
    text = Text(code, program)
    python = text.python()
    try:
        tree = compile(python, program, "exec", driver.ONLY_AST | driver.TOP_LEVEL_AWAIT, True)
        return text.place(tree)
    except SyntaxError as problem:
        raise text.place_error(problem) from None


# ---- prompts ----
def classic_prompt(line):
    """The length of `>>> ` or `... ` at the start of a line."""
    if line[:3] not in (">>>", "..."):
        return 0
    return 4 if line[3:4] == " " else 3 if len(line) == 3 else 0


def numbered_prompt(line):
    """The length of `In [3]: ` or `   ...: `."""
    head, colon, rest = line.partition(":")
    word = head.strip(" ")
    dots = word.strip(".") == "" and len(word) > 2
    if not colon or not dots and not (word.startswith("In [") and word[4:-1].isdigit() and word[-1] == "]"):
        return 0
    return len(head) + 1 + (rest[:1] == " ")


# ---- magics ----
def translate_all(text, first):
    lines, program = text.lines, text.program
    code = next((at for at, line in enumerate(lines) if line.strip() and line[0] != "#"), first)
    if lines[code].startswith("%%"):   # only comments may stand before
        return translate_cell(text, code)
    for _ in range(LINES_MAX):
        try:
            quietly("\n".join(lines), program)
            break
        except SyntaxError as problem:
            at = (problem.lineno or 0) - 1
            if problem.filename != program or not 0 <= at < len(lines) or not translate(text, at):
                raise
    builtins.__magic__ = driver.load("magics").call


def quietly(text, program):
    advice = driver.load("advice")
    advice.names = driver.load("names")
    return advice.compile_quietly(text, program, "exec", driver.ONLY_AST | driver.TOP_LEVEL_AWAIT, True)


def translate_cell(text, first):
    """Text that begins with %%: the rest of it belongs to the magic, or is the code beneath it."""
    lines, magics = text.lines, driver.load("magics")
    name, _, rest = lines[first][2:].strip().partition(" ")
    if name not in magics.CELL and name not in magics.SAY:
        refuse(f"%%{name}", text, first)
    builtins.__magic__ = magics.call
    told = ["%%" + name, rest.strip()]
    if name in magics.UNDER:
        for at in range(first + 1):
            lines[at] = ""
        below = next((at for at, line in enumerate(lines) if line.strip()), None)
        if below is not None:
            text.cut_indent(below)
            translate_all(text, below)
    else:
        told.append("\n".join(text.code.split("\n")[first + 1:]))
        lines[first + 1:] = [""] * len(lines[first + 1:])
    lines[first], text.cuts[first] = f"{CALL}({', '.join([repr(part) for part in told])})", True


def translate(text, at):
    """Translate one line if it is a magic; lines joined to it by a backslash become empty."""
    lines, line = text.lines, text.lines[at]
    indent, found = line[: len(line) - len(line.lstrip())], line.strip()
    target, equals, right = [part.strip() for part in found.partition("=")]
    to = ""
    if equals and right[:1] in ("!", "%") and is_target(target):
        to, found = f"{target} = ", right
    joined = []
    if found[:1] in ("!", "%"):
        while found.endswith("\\") and at + len(joined) + 1 < len(lines):
            joined.append(at + len(joined) + 1)
            found = found[:-1] + lines[joined[-1]].strip()
    told = of_line(found, bool(to), text, at)
    if told:
        lines[at], text.cuts[at] = f"{indent}{to}{CALL}({', '.join([repr(part) for part in told])})", True
        for other in joined:
            lines[other] = ""
    return bool(told)


def of_line(found, captured, text, at):
    """The arguments of a magic's call; None: it is no magic."""
    magics = driver.load("magics")
    if found.startswith("!!"):
        return "!!", found[2:].strip()
    if found.startswith("!") and found[1:2] not in ("", "="):
        return "!!" if captured else "!", found[1:].strip()
    if found.startswith("%%"):
        fail("a magic with %% must be on the first line of its cell", text, at)
    name, _, rest = found[1:].lstrip().partition(" ")
    if found.startswith("%") and name.isidentifier():
        if name in magics.LINE or name in magics.SAY:
            return "%" + name, rest.strip()
        if found[1] != " ":
            refuse(f"%{name}", text, at)
    asked = found.strip("?").rstrip(";").strip("? ")
    words = asked.lstrip("%").replace("*", "x").split(".")
    if "?" in found and len(found) - len(asked) <= 4 and all([word.isidentifier() for word in words]):
        return "??" if "??" in found else "?", asked
    return None


def refuse(name, text, at):
    magics = driver.load("magics")
    near = driver.load("names").close(name.lstrip("%"), {**magics.LINE, **magics.CELL, **magics.SAY})
    meant = f"did you mean %{near[0]}? " if near else ""
    fail(f"there is no magic {name} here; {meant}%lsmagic lists them", text, at)


def fail(message, text, at):
    raise SyntaxError(message, (text.program, at + 1, 1, text.lines[at])) from None


def is_target(text):
    try:
        compile(f"{text} = 0", "", "exec")
        return True
    except (SyntaxError, ValueError):
        return False
