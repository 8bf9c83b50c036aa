# Where the values of an answer come from: the lines of the kept cells that made each (its slice), the inputs that these
# lines read, and the values, numbers and names that were typed instead of computed. Runs as the occupant, in a box that
# holds the task's files and runs none of the cells. main(request) shows one result, the response, both JSON.
#
# 1. No rule reads prose: a question is a bag of numbers and words, a template is placeholders and digits.
# 2. The cells are hostile text. All walks are bounded; whatever goes wrong is the problem "untraced", never a crash.
import ast
import json
import re
import string
import warnings

driver = None                # the module; set by the loader of this file
called = facts = flow = origin = select = None

FORM = "application/vnd.cupel.trace+json"
CODE_MAX = 1 << 20           # characters of all cells
CELLS_MAX = 400
SLICE_MAX = 200              # lines shown of one value
SHOWN_MAX = 4000             # characters of one of them
PROBLEMS_MAX = 40
PARAMETER = "a number of the question, or one that another value is computed with"


class Trace:
    """The response, as a value with one form."""

    def __init__(self, response):
        self.response = response

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {FORM: self.response}


def connect():
    global called, facts, flow, origin, select
    names = "called", "facts", "flow", "origin", "select"
    called, facts, flow, origin, select = [driver.load(name) for name in names]
    flow.facts = origin.facts = called.facts = facts
    called.origin = origin
    select.origin, select.facts = origin, facts


def main(request_json):
    connect()
    driver.show(Trace(respond(json.loads(request_json))))


def respond(request):
    task = Task(request)
    try:
        task.read()
        task.trace()
    except Exception as problem:   # too large, too deep, or a case that nobody thought of: no proof, and no crash
        reason = str(problem) if isinstance(problem, flow.TooMuch) else repr(problem)
        task.problem("untraced", None, f"the program cannot be traced: {reason[:200]}",
                     "answer from a shorter and simpler program")
    try:
        task.look()
    except Exception as problem:
        task.problem("untraced", None, f"the answer cannot be compared with the inputs: {repr(problem)[:200]}",
                     "answer from a shorter and simpler program")
    return {"text": task.text, "values": task.values, "files": task.files, "problems": task.problems[:PROBLEMS_MAX],
            "notes": list(dict.fromkeys(task.notes))[:20]}


class Value:
    """One value of the answer: its expression in the call, its slice and what is known of it."""

    def __init__(self, name, tree, uses):
        self.name, self.tree, self.uses = name, tree, uses
        self.nodes, self.scans, self.parts, self.files, self.warnings = [], [], [], [], []
        self.scan = self.own = None
        self.origin = self.why = ""


class Task:
    def __init__(self, request):
        self.question = str(request.get("question") or "")[:100_000]
        self.inputs = [str(one) for one in request.get("inputs") or []][:1000]
        self.made = [str(one) for one in request.get("made") or []][:1000]
        self.payload, self.schema = called.clean(request.get("answer")), request.get("schema")
        self.cells = [one for one in request.get("cells") or [] if isinstance(one, dict)]
        made = [call for cell in self.cells for call in called.calls_of(cell)]
        self.calls = [call for call in made if not call.failed]
        self.has_data = bool(self.inputs or made)
        self.template, self.given, self.types = [self.payload[name] for name in ("template", "values", "types")]
        self.values, self.problems, self.notes, self.traced, self.files = [], [], [], [], []
        self.program = self.call = self.place = None
        self.sources, self.trees, self.columns, self.changed = {}, [], [], set()
        self.scanned, self.made_values = {}, []
        self.parameters, self.texts, self.names, self.ordinals = set(), set(), set(), set()
        self.free = origin.variants(asked := origin.numbers(self.question)) | origin.rates(asked)
        try:
            self.text = driver.load("answer").render(self.template, self.given, self.types)
        except Exception as problem:
            self.text = self.payload["text"]
            self.notes.append(f"the text could not be rendered again: {str(problem)[:200]}")

    def problem(self, kind, value, message, repair):
        one = {"kind": kind, "value": value, "message": message, "repair": repair}
        if one not in self.problems:
            self.problems.append(one)

    # ---- the program ----
    def read(self):
        """The trees of the cells up to the one with the answer."""
        if len(self.cells) > CELLS_MAX or sum([len(str(one.get("code"))) for one in self.cells]) > CODE_MAX:
            raise flow.TooMuch(f"more than {CELLS_MAX} cells or {CODE_MAX >> 20} MiB of code")
        for cell in self.cells:
            number, code = int(cell.get("n") or 0), str(cell.get("code") or "")
            self.sources[number] = code.split("\n")
            tree = parse(code, number)
            if tree is None:
                self.notes.append(f"cell {number} is not Python and was not traced")
            else:
                self.trees.append((number, tree))
        self.program = flow.Program(self.trees, self.inputs)
        self.program.imports.bridged = bool(self.calls)

    def trace(self):
        self.find_call()
        if not self.call:
            return self.problem("untraced", None, "the call of answer() was not found in the cells",
                                "call answer(template, name=value) by its name in the last cell")
        for name in self.given:
            tree, uses = self.expression(name)
            if uses is None:
                self.problem("untraced", name, f"the expression of {name} was not found in the call of answer()",
                             f"pass {name}=... by name in the call of answer()")
                continue
            value = Value(name, tree, uses)
            self.slice(value)
            self.traced.append(value)
        self.settle()
        for value in self.traced:
            self.values.append({"name": value.name, "origin": value.origin, "why": value.why, "files": value.files,
                                "slice": self.shown(value), "warnings": value.warnings})

    def find_call(self):
        cell, line, best = self.payload["cell"], self.payload["line"], None
        for number, tree in self.trees:
            stack = [(tree, ())] if number == cell else []
            while stack:
                node, path = stack.pop()
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "answer":
                    near = (node.lineno == line, node.lineno <= line <= node.end_lineno, same_text(node, self.template))
                    if any(near[:2]) and (best is None or near > best[0]):
                        best = (near, node, path)
                inner = path + (node,) if isinstance(node, (*facts.FUNCTIONS, ast.ClassDef)) else path
                stack += [(child, inner) for child in ast.iter_child_nodes(node)]
        if best:
            self.call = best[1]
            self.locate(cell, best[2])
            self.check_name()

    def locate(self, cell, path):
        """The node that holds the call, in the scope of the function it stands in."""
        scope, owner = self.program.module, None
        for tree in path:
            if isinstance(tree, ast.ClassDef):
                owner = tree
            else:
                scope, owner = self.program.enter(tree, owner, cell, scope), None
        inside = [node for node in self.program.nodes if node.scope is scope and node.cell == cell
                  and node.line <= self.call.lineno <= node.end]
        exact = [node for node in inside if any([one is self.call for part in node.parts for one in ast.walk(part)])]
        self.place = (exact or inside or [scope.last])[-1]

    def check_name(self):
        """The name `answer` must be ours: bound by no cell, or deleted again."""
        events = [(node.at, isinstance(node.tree, ast.Delete)) for node in self.program.nodes
                  if "answer" in node.facts.stores and node.at < self.place.at]
        hidden = [scope for scope in self.program.scopes.values() if "answer" in scope.parameters]
        if hidden or events and not max(events)[1]:
            self.problem("untraced", None, "a cell binds the name answer", "give that variable another name")

    def expression(self, name):
        """The expression of a value in the call and the names it uses; None: it is not there."""
        found = [word.value for word in self.call.keywords if word.arg == name]
        for word in self.call.keywords if not found else ():
            if word.arg is None and isinstance(word.value, ast.Name):
                return word.value, {(word.value.id, name): None}
            if word.arg is None:
                holder = ast.Assign([ast.Name("_", ast.Store())], word.value)
                found = [flow.entry_of(holder, name) or word.value]
        return (found[0], facts.Facts(found[:1], self.program.imports).uses) if found else (None, None)

    # ---- origin ----
    def slice(self, value):
        found = flow.Slice(self.program).want(value.uses, self.place)
        imports = self.program.imports
        value.nodes = found.ordered()
        value.parts = [part for _, parts in found.trees() for part in parts] + [value.tree] * bool(value.tree)
        value.scans = self.scans_of(found)
        whole = isinstance(value.tree, ast.Name) and (value.tree.id, value.name) in value.uses   # **results
        value.own = origin.Scan([value.tree] if value.tree and not whole else [], imports)
        value.scan = origin.join([one for _, one in value.scans] + [value.own], imports)
        value.files = self.files_of(value)
        value.origin, value.why = self.origin_of(value)
        if value.origin == "data":
            called.check_given_back(self, value)
        if value.origin == "data" and self.types.get(value.name) in ("number", "integer", "text", "bool"):
            self.check_choice(value)

    def scans_of(self, found):
        """The nodes of a slice with their constants and calls, which values share."""
        scans = []
        for node, parts in found.trees():
            scan = self.scanned.get(node.at) if parts is node.parts else None
            scan = scan or origin.Scan(parts, self.program.imports)
            if parts is node.parts:
                self.scanned[node.at] = scan
            scans.append((node, scan))
        return scans

    def files_of(self, value):
        """The inputs that the slice opens, or names where it calls something, and the tools that its lines called."""
        places, opened = self.places_of(value), {}
        for path, found in self.payload["opened"]:
            if any([first <= line <= last for cell, first, last in places for line in found.get(cell, ())]):
                opened[path] = None
        texts = [text for text, _, _ in value.scan.constants if type(text) is str] if value.scan.calls else []
        for name in self.inputs:
            base = name.rpartition("/")[2]
            if any([text == name or text.rpartition("/")[2] == base for text in texts]):
                opened[name] = None
        found = called.made_by(self.calls, value, places, self.program.imports)
        return list(opened) + list(dict.fromkeys([called.TOOL + call.tool for call in found]))

    def places_of(self, value):
        """(cell, first line, last line) of the lines that may read something."""
        places = [(node.cell, node.line, node.end) for node, scan in value.scans
                  if scan.calls or node.unit or node.imported]
        if value.own.calls:
            places.append((self.payload["cell"], value.tree.lineno, value.tree.end_lineno))
        return places

    def origin_of(self, value):
        written = {path for node in self.program.nodes for path in node.facts.paths if path.endswith(".py")}
        modules = [one.name.partition(".")[0] for node in value.nodes if isinstance(node.tree, ast.Import)
                   for one in node.tree.names] + [str(node.tree.module) for node in value.nodes
                                                  if isinstance(node.tree, ast.ImportFrom)]
        if value.scan.risky or any([name + ".py" in written and name + ".py" not in self.inputs for name in modules]):
            return "unknown", "its lines run code that cannot be traced (exec, eval, or a module written by the cells)"
        maker = origin.random(value.scan)
        if value.files and not (maker and self.only_length(value)):
            return "data", f"computed from {', '.join(value.files[:3])}"
        if self.has_data and maker:
            return "invented", f"it comes from {maker}, not from the inputs"
        if self.has_data:
            return "typed", "its lines read none of the inputs" + (" and call no tool" if self.calls else "")
        return origin.without_data(value.scan, self.question.casefold(), self.free)

    def only_length(self, value):
        """Random numbers, as many as the data has rows: the slice without lengths reads no input."""
        other = Value(value.name, value.tree, facts.Facts([value.tree], self.program.imports, blind=True).uses)
        found = flow.Slice(self.program, blind=True).want(other.uses, self.place)
        other.scans, other.own = self.scans_of(found), value.own
        other.scan = origin.join([one for _, one in other.scans], self.program.imports)
        return not self.files_of(other)

    def check_choice(self, value):
        """A constant that stands under a condition on data is typed, unless the condition chooses among several."""
        found = flow.Slice(self.program, control=False).want(value.uses, self.place)
        scans = self.scans_of(found)
        scan = origin.join([one for _, one in scans] + [value.own], self.program.imports)
        if scan.calls or scan.arithmetic or any([node.unit for node in found.ordered()]):
            return
        if len({repr(one) for one, part, _ in scan.constants if part in origin.OPERANDS}) == 1 and not any(
                [node.loop or isinstance(node.tree, ast.With) for node in found.ordered()]):
            value.origin, value.why, value.files = "typed", "it is a constant of the code", []

    def settle(self):
        """Problems of the values, when the slices of all are known."""
        good = [one for one in self.traced if one.origin in ("data", "computed")]
        self.parameters = origin.parameters([one.scan for one in good])
        self.texts = origin.texts_of([one.scan for one in good])
        self.ordinals = origin.ordinals([one.scan for one in good])
        self.names = {word for one in good for node in one.nodes for word, _ in node.uses} | {
            word for one in good for full, _, _ in one.scan.calls for word in full.split(".")}
        outputs = self.outputs()
        for value in self.traced:
            if value.origin == "typed" and good and self.is_parameter(value):
                value.origin, value.why = "computed", PARAMETER
            repair = f"compute {{{value.name}}} in code from the numbers of the question; knowledge is no answer"
            if self.calls:
                repair = f"compute {{{value.name}}} in code from what the tools give"
            elif self.inputs:
                repair = f"read {', '.join(self.inputs[:3])} and compute {{{value.name}}} from it in code"
            if value.origin == "unknown":
                self.problem("untraced", value.name, f"{value.name}: {value.why}",
                             "write the steps as plain code, without exec or eval")
            elif value.origin == "invented":
                self.problem("invented", value.name, f"{value.name}: {value.why}",
                             f"compute {{{value.name}}} from the input files, not from made-up data")
            elif value.origin == "typed":
                self.problem("typed", value.name, f"{value.name} is typed, not computed: {value.why}", repair)
            entry = origin.typed_entry(value, self.free) if value.origin == "data" else None
            if entry is not None:
                self.problem("typed", value.name, f"{value.name} has {entry:.10g} typed among its entries", repair)
            found = origin.copied(value.scans + [(self.place, value.own)], outputs, self.free)
            if found and value.origin != "typed":
                number, cell, line, at = found
                self.problem("typed", value.name, f"{value.name} rests on {number:.15g} in line {line} of cell {at}, "
                             f"copied from the output of cell {cell}",
                             f"in place of the number {number:.15g} use the expression that cell {cell} printed")

    def outputs(self):
        """The numbers that each cell printed and that its code and the code before it did not have."""
        found, known = {}, set()
        for at, cell in enumerate(self.cells):
            known |= origin.numbers(str(cell.get("code") or ""))
            numbers = origin.numbers(str(cell.get("output") or "")[:20_000]) - known
            found[int(cell.get("n") or 0)] = sorted(numbers)[:5000]
        return found

    def is_parameter(self, value):
        """A typed number that the question has or that another value is computed with."""
        numbers = [origin.number_of(one) for one, part, _ in value.scan.constants if part in origin.OPERANDS]
        if self.types.get(value.name) not in ("number", "integer", "decimal") or value.scan.calls or not numbers:
            return False
        return all([one is not None and origin.short(abs(one)) in self.free | self.parameters for one in numbers])

    def shown(self, value):
        lines = []
        for node in value.nodes:
            source = self.sources.get(node.cell, [])
            if not node.imported and len(lines) < SLICE_MAX:
                lines.append({"cell": node.cell, "line": node.line, "end": node.end, "code": text_of(source, node)})
        if value.tree and not isinstance(value.tree, ast.Name):
            code = ast.get_source_segment("\n".join(self.sources.get(self.place.cell, [])), value.tree) or ""
            lines.append({"cell": self.place.cell, "line": value.tree.lineno, "end": value.tree.end_lineno,
                          "code": f"{value.name}={code}"[:SHOWN_MAX]})
        return lines

    # ---- template, data, schema ----
    def look(self):
        self.columns = select.read_all(self.inputs) if self.inputs else []
        nodes = self.program.nodes if self.program else []
        self.changed = {key for node in nodes for _, key, _ in node.defs if type(key) is str}
        self.changed |= {key for node in nodes for key in node.facts.keys}
        if self.call:
            self.check_template()
            select.check(self)
        self.check_empty()
        select.check_files(self)
        self.notes += select.notes(self)
        if isinstance(self.schema, dict):
            for path, message in driver.load("schema").check(self.given, self.schema):
                self.problem("schema", re.split(r"[.\[]", path)[0] or None, f"{path or 'the values'}: {message}",
                             f"make {path or 'the values'} fit the schema")

    def check_empty(self):
        for name, value in self.given.items():
            kind = self.types.get(name)
            rows = value.get("rows") if kind == "table" and isinstance(value, dict) else value
            chosen = any([one.name == name and any([text == "" for text, _, _ in one.scan.constants])
                          for one in self.traced])   # "" if prime else "not "
            empty = kind in ("list", "dict", "table") and not rows or value == "" and not chosen
            if kind in ("nan", "inf", "-inf", "none") or empty:
                what = {"nan": "not a number", "inf": "infinite", "-inf": "infinite", "none": "None"}.get(kind, "empty")
                self.problem("empty", name, f"{name} is {what}", f"find out why {{{name}}} is {what}: look at the rows "
                             "that are selected and at missing values")

    def check_template(self):
        """Digits and names outside the placeholders, and whether any value is used."""
        try:
            parts = list(string.Formatter().parse(self.template))
        except ValueError:
            return
        used = {re.split(r"[.\[]", part[1])[0] for part in parts if part[1]}
        text = "\0".join([part[0] for part in parts])
        good = [one for one in self.traced if one.name in used and one.origin in ("data", "computed", "unknown")
                and one.why != PARAMETER]
        made = self.check_made()
        told = [one for one in self.problems if one["kind"] in ("typed", "invented", "untraced")]
        if not good and not told and not (made and not used):
            self.problem("typed", None, "the answer is typed, not computed: its template uses no computed value",
                         "compute what the question asks for and put it into the template as {name}")
        if not self.is_literal(self.call.args[0] if self.call.args else None, 0):
            if not good or origin.tokens(text):
                self.problem("template", None, "the template is put together by code, so its text cannot be traced",
                             "give answer() one literal template, and computed parts as values: {name}")
            self.notes.append("the template is put together by code")
        self.check_digits(text, None)
        for value in self.traced if self.inputs else ():
            if self.types.get(value.name) == "text":
                name = getattr(value.tree, "id", None)
                bound = [scan for node, scan in value.scans if name in [one[0] for one in node.defs] and not node.unit]
                texts = [one for scan in [value.own, *bound] for one, part, _ in scan.constants
                         if part == "format" and type(one) is str]
                self.check_digits("\0".join(texts), value.name)
        self.check_names(text)

    def is_literal(self, tree, depth):
        """Whether a template is constants, joined or chosen: then its text is typed, and its digits are looked at."""
        if isinstance(tree, (ast.Constant, ast.JoinedStr)):
            return isinstance(tree, ast.Constant) or all([isinstance(one, ast.Constant) for one in tree.values])
        if depth > 20:
            return False
        if isinstance(tree, ast.Name):
            found = [node.tree for _, _, _, node in self.place.scope.defs.get(tree.id, []) if node.at < self.place.at]
            return bool(found) and all([isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and
                                        self.is_literal(one.value, depth + 1) for one in found[:50]])
        inner = []
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
            inner = [tree.left, tree.right]
        elif isinstance(tree, ast.IfExp):
            inner = [tree.body, tree.orelse]
        elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
            inner = [*tree.args] + [tree.func.value] * (tree.func.attr != "dedent")
        elif isinstance(tree, (ast.List, ast.Tuple)):
            inner = tree.elts
        return bool(inner) and all([self.is_literal(one, depth + 1) for one in inner])

    def check_made(self):
        """Files of the answer: made from the inputs, where there are any; False if there is none."""
        names = [str(one.get("path")).rpartition("/")[2] for one in self.payload["files"]]
        for name in names:
            value = Value(name, None, {("\0" + name, None): None})
            self.slice(value)
            self.files.append({"path": name, "slice": self.shown(value)})
            self.made_values.append(value)
            if self.has_data and value.nodes and value.origin in ("typed", "invented"):
                self.problem(value.origin, None, f"the file {name} is not made from the inputs: {value.why}",
                             f"make {name} from the data of the input files")
        return bool(names)

    def check_digits(self, text, value):
        known = [one.name for one in self.columns] + self.inputs + self.made + [
            str(one.get("path")) for one in self.payload["files"]]
        for name in sorted([one for one in known if re.search(r"\d", one)], key=len, reverse=True)[:200]:
            text = text.replace(name, " ").replace(name.rpartition("/")[2], " ")
        words = set(select.words(" ".join([self.question, *known, *self.texts, *self.names, *self.given])).split())
        for token in origin.tokens(text):
            counted = self.ordinals if not token.isdigit() else set()   # 2nd for [1]
            if not origin.token_known(token, words, self.free | self.parameters | counted):
                where = f"the text of {value}" if value else "the template"
                self.problem("template", value, f"{where} has {token!r}, which is typed, not computed",
                             f"compute {token!r} in code, pass it as a value and write {{name}} in its place")

    def check_names(self, text):
        """A value of a column that stands in the template and neither in the question nor in a slice. A value in small
        letters is a name where the question has the column's name, and other values of it are not words of the text."""
        split = set(re.findall(r"[^\W_]+", text))
        known = select.words(" ".join([self.question, *self.texts]))
        question = f" {select.words(self.question)} "
        for column in self.columns:
            asked = len(column.values) < 100 and f" {select.words(column.name)} " in question
            typed = []
            for value in column.values:
                first = re.search(r"[^\W_]+", value)
                name = first and first[0] in split and len(value) > 2 and (value != value.lower() or asked)
                if name and select.words(value) not in known and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text):
                    typed.append(value)
            few = len([one for one in typed if one == one.lower()]) < 3
            for value in [one for one in typed if one != one.lower() or few]:
                self.problem("template", None, f"the template has {value!r}, a value of {column.name}; it is typed",
                             f"compute {value!r} in code, pass it as a value and write {{name}} in its place")


def parse(code, number):
    """The tree of a cell; magics are rewritten as the session does it. None: it is no Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except ValueError:
            return None
        except SyntaxError:
            pass
        try:
            return driver.load("source").parse(code, f"<cell {number}>")
        except Exception:
            return None


def same_text(call, template):
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and first.value == template


def text_of(source, node):
    """The lines of a node, without what shares the line with it."""
    tree, lines = node.tree, source[node.line - 1:node.end]
    if node.line == node.end == getattr(tree, "end_lineno", 0) and lines and tree.lineno == node.line:
        indent = lines[0][:len(lines[0]) - len(lines[0].lstrip())]
        lines = [indent + lines[0].encode()[tree.col_offset:tree.end_col_offset].decode(errors="replace")]
    return "\n".join(lines)[:SHOWN_MAX]
