# The origin of a value, judged by its slice: read from data, computed, typed or invented. Runs in the box of trace.py.
# It reads programs and numbers, never sentences: the question counts only as a bag of numbers and words.
import ast
import re
import unicodedata

facts = driver = None        # set by the loader of this file

NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f \u066b\u066c]\d+)*")
UNITS = frozenset("""15 16 18 20 21 24 25 26 28 29 30 31 32 36 45 48 50 52 60 64 75 90 95 99 100 128 180 200 255 256 270
    273.15 360 365 365.25 366 500 512 1000 1024 1440 3600 10000 86400 100000 1000000 1000000000 0.5 0.25 0.1 0.01 0.001
    0.05 1.5 1.8 2.5 1e-6 1e-9 1e-12 9.81 9.80665 3.14159 3.1416 3.14 1.609 1.6093 1.60934 1.609344 0.621371 2.54 0.3048
    3.28084 0.453592 0.45359237 2.20462 2.2046 28.3495 3.785 3.78541 4.184 4.1868 3.6 1.852 299792458 6.02214076e23
    6.674e-11 6.67430e-11 1.380649e-23 8.314 8.314462618 1.602176634e-19 6.62607015e-34 273 459.67 101325""".split())
SMALL_NUMBERS = frozenset([float(one) for one in range(13)])
FREE = {float(one) for one in UNITS} | SMALL_NUMBERS
CONVERT = frozenset("""float int str round Decimal Fraction abs list tuple set dict frozenset array asarray Series
    DataFrame loads StringIO BytesIO Timestamp to_datetime literal_eval strip split splitlines join format title upper
    lower to_numeric astype tolist item to_dict dumps from_records from_dict read_csv read_json float64 int64 bool
    complex items keys values get append copy print""".split())
PLAIN = CONVERT | frozenset("""sum mean fmean median max min len sorted std var stdev pstdev variance sqrt pow zip
    enumerate reversed map filter head tail nlargest nsmallest idxmax idxmin argmax argmin sort_values groupby agg sort
    reset_index set_index average count nunique describe quantile percentile value_counts index fillna dropna mode loc
    iloc ceil floor assign rename itemgetter reader DictReader isnull""".split())
SELECTORS = frozenset("""isin eq ne gt ge lt le between query contains startswith endswith match fullmatch get get_group
    filter xs replace pop fillna loc where execute read_sql read_sql_query sql drop clip search findall""".split())
RANDOM = re.compile(r"(random|secrets|uuid|faker|mimesis)(\.|$)|numpy\.random|default_rng|(^|\.)make_[a-z_]+$|Faker|"
                    r"(^|\.)(randn?|randint|rand)$|scipy\.stats\.\w+\.rvs")
EVALS = frozenset("exec eval compile __import__ get_ipython".split())
RUNNERS = frozenset("import_module run_path run_module run_cell".split())
SMALL = frozenset(["index", "digits", "word"])   # the parts in which a small number means nothing
OPERANDS = frozenset(["assign", "operand", "element", "arm"])
LOGIC = (ast.If, ast.For, ast.While, ast.IfExp, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.AsyncFor)


def plain(text):
    """The text with ASCII digits in place of those of other scripts."""
    if text.isascii():
        return text
    return "".join([str(unicodedata.digit(one)) if unicodedata.category(one) == "Nd" else one for one in text])


def short(number):
    return float(f"{number:.10g}")


def readings(token):
    """The numbers that a text such as 1.234,5 may stand for."""
    groups, marks = re.findall(r"\d+", token), re.findall(r"\D", token)
    if len(token) > 40:
        return set()
    if not marks:
        return {short(float(token))}
    found = {short(float("".join(groups)))} if all([len(one) == 3 for one in groups[1:]]) else set()
    if marks[-1] in ".,\u066b" and marks.count(marks[-1]) == 1:
        found.add(short(float("".join(groups[:-1]) + "." + groups[-1])))
    if len(marks) > 1 or marks[0] in " \u00a0\u202f":
        found |= {short(float(one)) for one in groups}
    return found


def numbers(text):
    return {one for token in NUMBER.findall(plain(text)[:200_000]) for one in readings(token)}


def variants(found, levels=False):
    """A share and its percent are one number; with `levels` also a level, its rest and the middle of an interval."""
    both = {number * by for number in found for by in (1, -1, 100, 0.01)}
    rests = {rest for number in found for rest in (1 - number, 2 * number - 1) if 0 < number < 1} if levels else set()
    rests |= {rest for number in found for rest in (100 - number, 2 * number - 100) if 50 < number < 100 and levels}
    return {short(one) for one in both | rests | {100 * rest for rest in rests}}


def rates(found):
    """The factors of a growth or fall by a percentage."""
    return {short(1 + sign * number / 100) for number in found for sign in (1, -1) if 0 < number <= 100}


def number_of(value):
    """The number that a constant is or spells, or None."""
    if type(value) in (int, float):
        return value if abs(value) < 1e300 else None
    spelled = spellings(value) if type(value) is str and len(value) < 40 else ()
    return min(spelled) if spelled else None


def spellings(text):
    """The numbers that the whole of a text may spell."""
    bare = text.strip(" +-%.,\t\n")
    return readings(bare) if re.fullmatch(r"\s*[-+]?[\d.,]*\d\s*%?", text) and NUMBER.fullmatch(bare) else set()


class Scan:
    """The constants of code with the part that each plays, the calls, and whether anything is worked out."""

    def __init__(self, roots, imports):
        self.constants, self.calls, self.imports = [], [], imports
        self.work = self.arithmetic = self.risky = False
        stack = [(root, "assign") for root in roots]
        while stack:
            node, part = stack.pop()
            step = STEPS.get(node.__class__)
            if step:
                step(self, node, part, stack)
            else:
                if isinstance(node, ast.stmt):
                    part = "assign"
                stack += [(child, part) for child in facts.children(node)]

    def constant(self, node, part, stack):
        self.constants.append((node.value, part, node))

    def compare(self, node, part, stack):
        self.arithmetic = True
        stack += [(child, "select") for child in facts.children(node)]

    def subscript(self, node, part, stack):
        single = isinstance(node.slice, (ast.Constant, ast.UnaryOp)) and type(getattr(node.slice, "value", 0)) is int
        stack += [(node.value, part), (node.slice, "index" if single else "select")]
        if isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") in ("globals", "locals", "vars"):
            self.risky = True

    def call(self, node, part, stack):
        name = facts.dotted(node.func)
        root, _, rest = name.partition(".")
        full = f"{self.imports.get(root, root)}.{rest}".rstrip(".")
        last = name.rpartition(".")[2]
        self.calls.append((full, last, root in self.imports))
        self.arithmetic |= name == "format" or name == "int" and len(node.args) == 2   # to another base
        self.risky |= name in EVALS and root not in self.imports or last in RUNNERS
        asks = part == "select" or last in SELECTORS or self.imports.bridged and full.partition(".")[0] == "tools"
        inner = "select" if asks else "assign" if last in CONVERT else "arg"
        self.work |= last not in PLAIN and (root in self.imports or last in ("range", "divmod", "Counter"))
        stack.append((node.func.value if isinstance(node.func, ast.Attribute) else node.func, part))
        stack += [(one, "digits" if at and last == "round" else inner) for at, one in enumerate(node.args)]
        stack += [(one.value, inner if inner != "arg" else "word") for one in node.keywords]

    def display(self, node, part, stack):
        part = part if part == "select" else "element"
        stack += [(child, part) for child in facts.children(node)]

    def dict_(self, node, part, stack):
        stack += [(one, "key") for one in node.keys if one]
        stack += [(one, part if part == "select" else "element") for one in node.values]

    def operator(self, node, part, stack):
        self.arithmetic = True
        stack += [(child, part if part == "select" else "operand") for child in (node.left, node.right)]

    def augmented(self, node, part, stack):
        self.arithmetic = True
        stack += [(node.target, part), (node.value, "operand")]

    def choice(self, node, part, stack):
        self.arithmetic = True
        arm = part if part == "select" else "arm"
        stack += [(node.test, "select"), (node.body, arm), (node.orelse, arm)]

    def joined(self, node, part, stack):
        for child in node.values:
            stack.append((child, "format") if isinstance(child, ast.Constant) else (child.value, "arg"))

    def statement(self, node, part, stack):
        if not isinstance(node.value, ast.Constant):   # else a docstring
            stack.append((node.value, "assign"))

    def function(self, node, part, stack):
        inside = [one for statement in node.body for one in ast.walk(statement)]
        recursive = any([isinstance(one, ast.Name) and one.id == node.name for one in inside])
        self.work |= recursive or any([isinstance(one, LOGIC) for one in inside])
        stack += [(one, "assign") for one in node.body + node.args.defaults]

    def loop(self, node, part, stack):
        self.work |= isinstance(node, ast.While)
        stack += [(child, "assign") for child in facts.children(node)]


STEPS = {
    ast.Constant: Scan.constant, ast.Compare: Scan.compare, ast.Subscript: Scan.subscript, ast.Call: Scan.call,
    ast.List: Scan.display, ast.Tuple: Scan.display, ast.Set: Scan.display, ast.Dict: Scan.dict_,
    ast.BinOp: Scan.operator, ast.AugAssign: Scan.augmented, ast.IfExp: Scan.choice, ast.JoinedStr: Scan.joined,
    ast.Expr: Scan.statement, ast.FunctionDef: Scan.function, ast.AsyncFunctionDef: Scan.function, ast.While: Scan.loop,
}


def parameters(scans):
    """The numbers that code is written with: its limits, counts and levels, not positions and digits."""
    found = [(number_of(value), part) for scan in scans for value, part, _ in scan.constants if part != "format"]
    found = {one for one, part in found if one is not None and not (part in SMALL and one in SMALL_NUMBERS)}
    texts = [text for text in texts_of(scans) if len(text) < 2000]
    return variants(found | {number for text in texts for number in numbers(text)}, levels=True)


def ordinals(scans):
    """The places that code takes by their index, counted from 1."""
    found = [value for scan in scans for value, part, _ in scan.constants if part == "index" and type(value) is int]
    return {float(value + 1) for value in found if 0 <= value < 99}


def texts_of(scans):
    return {text[:2000] for scan in scans for text, part, _ in scan.constants if type(text) is str and part != "format"}


def entries(tree):
    """The constants of the displays in an assignment, an append or a value; none below other calls."""
    stack, found = [(tree, False)], []
    while stack:
        node, inside = stack.pop()
        called = facts.dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Constant) and inside:
            found.append(node)
        elif isinstance(node, ast.Dict):
            stack += [(one, True) for one in node.values]
        elif isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load):
            stack += [(one, True) for one in node.elts]
        elif isinstance(node, (ast.Assign, ast.Expr)):
            stack.append((node.value, False))
        elif called in ("append", "DataFrame", "dict"):
            stack += [(one, False) for one in node.args] + [(one.value, called == "dict") for one in node.keywords]
    return found


def typed_entry(value, free):
    """A number typed as an entry of a list, dict or table that is a value, beside computed ones; or None."""
    name = value.tree.id if isinstance(value.tree, ast.Name) else None
    parts = [part for node in value.nodes if name in [one[0] for one in node.defs] for part in node.parts]
    found = [one for part in [*parts, value.tree] for one in entries(part)]
    inside = {id(one) for one in found}
    others = Scan([], value.scan.imports)
    others.constants = [one for one in value.scan.constants if id(one[2]) not in inside]
    known = free | parameters([others]) | SMALL_NUMBERS
    numbers_ = [number_of(one.value) for one in found if type(one.value) in (int, float)]
    return next((one for one in numbers_ if one is not None and short(abs(one)) not in known), None)


def join(scans, imports):
    """One scan of several."""
    whole = Scan([], imports)
    for one in scans:
        whole.constants += one.constants
        whole.calls += one.calls
        whole.work |= one.work
        whole.arithmetic |= one.arithmetic
        whole.risky |= one.risky
    return whole


def random(scan):
    return next((full for full, _, _ in scan.calls if RANDOM.search(full)), None)


def foreign(scan, free):
    """The numbers that code works with and that stand neither in the question nor among the common ones."""
    found = [(number_of(value), part) for value, part, _ in scan.constants if part in OPERANDS]
    known = free | FREE
    return [(one, part) for one, part in found if one is not None and short(abs(one)) not in known]


def without_data(scan, question, free):
    """'computed' or 'typed', for a slice that reads no input where none was given; and the reason."""
    typed = foreign(scan, free)
    table = [one for one, part in typed if part == "element"]
    words = [value for value, part, _ in scan.constants if part == "element" and type(value) is str and len(value) > 1
             and value.casefold() not in question and number_of(value) is None]
    ranged = any([last in ("range", "count", "product", "permutations", "combinations") for _, last, _ in scan.calls])
    if len(table) > 2 and not scan.work or len(table) > 5 and not ranged:
        return "typed", f"it rests on numbers typed into the code, such as {table[0]:.10g}"
    if scan.work:
        return "computed", "computed by code"
    done = scan.arithmetic or any([last not in CONVERT for _, last, _ in scan.calls])
    pairs = [value for value, part, _ in scan.constants if part == "element" and number_of(value) is not None]
    if typed or words and pairs:
        named = f"{typed[0][0]:.10g}" if typed else repr(words[0])
        return "typed", f"it rests on {named}, which is typed into the code and not in the question"
    return ("computed", "computed from the question's values") if done else ("typed", "it is a constant of the code")


def printed_before(outputs, cell, number, digits):
    """The cell before this one that printed a number which is equal at its precision."""
    for other, found in outputs.items():
        if other < cell and any([abs(one) < 1e15 and round(one, digits) == number for one in found]):
            return other
    return None


def copied(trees, outputs, free):
    """A number of at least four digits that an earlier cell printed and that stands as a constant in a slice."""
    for node, scan in trees:
        for value, part, tree in scan.constants:
            number = number_of(value) if part in OPERANDS else None
            if number is None or short(abs(number)) in free or number in FREE:
                continue
            text = f"{number:.15g}"
            digits = len(text.partition(".")[2]) if "e" not in text else 0
            plain_year = type(value) is int and 1800 <= number <= 2200
            figures = text.replace(".", "").lstrip("-0")
            if plain_year or len(figures if digits else figures.rstrip("0")) < 4:
                continue
            cell = printed_before(outputs, node.cell, number, digits)
            if cell is not None:
                return number, cell, tree.lineno, node.cell
    return None


# ---- digits of a template ----
TOKEN = re.compile(r"[^\W\d]*\d\w*(?:[.,'’\u00a0\u202f\u066b\u066c]\d+)*\w*")
MARKER = re.compile(r"(?<![^\s(>*#-])(\d{1,2})[.)](?=\s|\0)")
GLUED = re.compile(r"\0[:.,]0+(?::00)?(?!\d)|(?<=[^\W\d_)])\^\{*-?\d\}*")   # {hour}:00, R^2
UNIT = re.compile(r"(?:[kcdmµn]?m|ft|in|yd|s|r)[23]")


def tokens(text):
    """The words and numbers with digits; markers of a list that counts from 1 are none."""
    counted, text = 0, GLUED.sub("\0", text)
    for found in list(MARKER.finditer(text)):
        if int(found[1]) == counted + 1:
            counted += 1
            text = text[:found.start(1)] + " " * len(found[1]) + text[found.end(1):]
    single = re.findall(r"(?<![^\W\d_])[^\W\d_]", text)
    found = TOKEN.findall(text) + [one for one in single if unicodedata.category(one) in ("No", "Nl")]
    return list(dict.fromkeys(found))


def token_known(token, words, numbers):
    folded = plain(token).casefold()
    if token.casefold() in words or UNIT.fullmatch(folded) or re.fullmatch("000?", folded):
        return True
    if re.fullmatch("q[123]", folded) and {0.25, 0.75} & numbers:   # quartiles
        return True
    if re.match(r"[a-z]", folded):   # Q1, H2O: a name
        return all([one in words for one in re.findall(r"[^\W_]+", folded)])
    found = [readings(one) for one in NUMBER.findall(folded)]
    return bool(found) and all([one & numbers for one in found])
