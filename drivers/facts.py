# The names that a piece of a program uses, binds and changes. flow.py asks; it runs in the box of trace.py, on hostile
# text that is parsed and never run. One walk without recursion over each tree, but for functions within functions.
import ast
import re

FIGURE = "\0figure"          # the drawing under way, as a name
PATH = re.compile(r"[\w~./\\ -]{0,120}\.[A-Za-z]\w{0,7}")
QUIET = frozenset("""print display len help type dir repr str id pprint sorted any all sum min max answer
    cannot_answer ask_user""".split())
READ_ONLY = frozenset("""head tail describe info sample show savefig keys values items get count copy nunique unique
    value_counts mean sum min max median std var corr groupby isna isnull notna print format strip split join lower
    upper close flush commit startswith endswith index plot hist boxplot display memory_usage duplicated select_dtypes
    sort_values reset_index set_index dropna fillna drop rename round astype query filter assign merge pivot pivot_table
    melt agg aggregate transform apply map isin between nlargest nsmallest quantile cumsum diff pct_change rolling
    resample cov idxmax idxmin any all abs unstack stack tolist item squeeze most_common""".split())
CHANGERS = frozenset("""pop popitem popleft fit fit_transform fit_predict setdefault readline readlines read shuffle
    next heappop heappush heapify heapreplace heappushpop insort insort_left insort_right setattr
    partial_fit""".split())
WRITERS = frozenset("dump save savetxt savez imwrite imsave to_sql writerow writerows write_text write_bytes".split())
PLOTS = frozenset("""plot bar barh hist hist2d scatter boxplot pie violinplot imshow fill_between errorbar step stem
    stackplot axhline axvline annotate text table heatmap""".split())
PLOT_MODULES = ("matplotlib", "seaborn", "plotly", "pylab", "altair", "bokeh")
DRAWN = frozenset("savefig write_html write_image to_image gcf gca".split())
HANDLES = frozenset("""cursor writer DictWriter reader DictReader open connect ExcelWriter get setdefault iter Path
    ZipFile TextIOWrapper add_sheet create_sheet groupby""".split())
WHOLE = frozenset("columns index loc iloc at iat values shape T str dt size empty cat plot iloc dtypes axes".split())
SQL = frozenset("query eval sql sqldf execute read_sql read_sql_query".split())
SKIP = frozenset("ctx op ops id attr arg kind type_comment names module level name asname is_async simple".split())
NONE = frozenset()
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
fields = {}                  # class of a tree's node -> its fields that hold nodes


def children(node):
    kind = node.__class__
    if kind not in fields:
        fields[kind] = tuple(name for name in kind._fields if name not in SKIP or kind in (ast.ClassDef, ast.Starred))
    for name in fields[kind]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            yield from [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            yield value


def root_of(node):
    """The name at the start of `a.b[0].c(1).d`, or None."""
    for _ in range(200):
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript, ast.Await, ast.Starred)):
            node = node.value
        else:
            return None
    return None


def dotted(node):
    """`a.b.c` of a call's function; a part that is no name is left out."""
    parts = []
    while isinstance(node, ast.Attribute) and len(parts) < 50:
        parts.append(node.attr)
        node = node.value
    return ".".join(([node.id] if isinstance(node, ast.Name) else [""]) + parts[::-1])


def key_of(node):
    """The constant between the brackets of a subscript, if it is a text or an integer."""
    inner = node.slice
    return inner.value if isinstance(inner, ast.Constant) and type(inner.value) in (str, int) else None


class Imports(dict):
    """Name -> module of all imports; and of the program's functions: the parameters that their result rests on."""

    bridged = False          # has the program called tools: is its module `tools` ours?

    def __init__(self):
        self.results = {}

    def note_lambda(self, target, tree):
        of = tree.args
        if isinstance(target, ast.Name) and not (of.vararg or of.kwarg or of.posonlyargs):
            used = {name for name, _ in Facts([tree.body], self).uses}
            self.results[target.id] = [one.arg for one in of.args], used & set(parameters(tree))

    def note(self, tree):
        """A function: with parameters in order, and those that its returns use, whatever happens on the way."""
        of = tree.args
        self.results.pop(tree.name, None)
        if of.vararg or of.kwarg or of.posonlyargs or tree.decorator_list:
            return
        pieces, wanted = [], set()
        collect(tree.body, set(), self, pieces, wanted)
        for _ in range(50):
            more = {name for uses, binds in pieces if binds & wanted for name in uses} - wanted
            wanted |= more
            if not more:
                break
        if wanted and "" not in wanted:
            self.results[tree.name] = [one.arg for one in of.args], wanted & set(parameters(tree))


def collect(body, above, imports, pieces, wanted):
    """The uses and bindings of each statement, with the conditions above it; `wanted` is what the returns use."""
    for tree in body:
        inner = [getattr(tree, name, None) or [] for name in ("body", "orelse", "finalbody", "handlers", "cases")]
        own = [one for one in children(tree) if isinstance(one, (ast.expr, ast.withitem, ast.pattern))]
        plain = not any(inner)
        facts = Facts([tree] if plain else own, imports)
        uses = {name for name, _ in facts.uses} | above
        pieces.append((uses, set(facts.stores) | {name for name, _ in facts.changes}))
        if isinstance(tree, ast.Return):
            wanted |= uses | {"\0return"}
        if facts.generator or isinstance(tree, (ast.FunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal)):
            wanted.add("")
        for part in inner if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else ():
            collect(part, uses, imports, pieces, wanted)


class Facts:
    """The names that a piece of code uses, binds and changes."""

    def __init__(self, roots, imports, bound=NONE, blind=False):
        self.uses, self.stores, self.changes, self.paths = {}, {}, {}, {}
        self.outer, self.called, self.imports, self.keys, self.generator = set(), [], imports, set(), False
        self.blind = blind   # to the length of things
        stack = [(root, bound) for root in roots]
        while stack:
            node, bound = stack.pop()
            step = STEPS.get(node.__class__)
            if step:
                step(self, node, bound, stack)
            else:
                stack += [(child, bound) for child in children(node)]

    def use(self, name, bound, key=None):
        if name not in bound:
            self.uses[name, key] = None

    def name(self, node, bound, stack):
        if node.ctx.__class__ is ast.Load:
            self.use(node.id, bound)
        else:
            self.stores[node.id] = None

    def constant(self, node, bound, stack):
        if node.value.__class__ is str and len(node.value) < 140 and PATH.fullmatch(node.value):
            self.paths[node.value.replace("\\", "/").rpartition("/")[2]] = None

    def subscript(self, node, bound, stack):
        base, key = node.value, key_of(node)
        direct = isinstance(base, ast.Name) and base.id not in bound
        if node.ctx.__class__ is ast.Load:
            if direct and key is not None:
                return self.use(base.id, bound, key)
            stack.append((base, bound))
        else:
            root = root_of(base)
            if root and root not in bound:
                self.changes[root, key if direct else None] = None
            stack += [] if direct else [(base, bound)]
        stack.append((node.slice, bound))

    def attribute(self, node, bound, stack):
        base = node.value
        if self.blind and node.attr in ("shape", "size", "index"):
            return
        direct = isinstance(base, ast.Name) and base.id not in bound
        key = node.attr if direct and node.attr not in WHOLE else None
        if node.ctx.__class__ is ast.Load:
            return self.use(base.id, bound, key) if direct else stack.append((base, bound))
        root = root_of(base)
        if root and root not in bound:
            self.changes[root, key] = None
        stack += [] if direct else [(base, bound)]

    def call(self, node, bound, stack, statement=False):
        func = node.func
        if self.blind and getattr(func, "id", "") == "len":
            return
        if isinstance(func, ast.Attribute):
            stack.append((func.value, bound))
            self.method(node, func.attr, root_of(func.value), bound, statement)
        else:
            stack.append((func, bound))
            if isinstance(func, ast.Name):
                self.called.append((func.id, names_among(node, bound), statement))
        self.keys.update([word.arg for word in node.keywords if word.arg])
        order, rests_on = self.imports.results.get(getattr(func, "id", None), ((), None))
        for at, child in enumerate(node.args):
            if rests_on is None or isinstance(child, ast.Starred) or at < len(order) and order[at] in rests_on:
                stack.append((child, bound))
        stack += [(word.value, bound) for word in node.keywords if rests_on is None or word.arg in (None, *rests_on)]

    def method(self, node, method, root, bound, statement):
        module = self.imports.get(root, "")
        names = names_among(node, bound)
        if method in PLOTS or module.startswith(PLOT_MODULES):
            self.changes[FIGURE, None] = None
            names = []
        if method in DRAWN:
            self.uses[FIGURE, None] = None
        inplace = any([word.arg == "inplace" and getattr(word.value, "value", 0) is True for word in node.keywords])
        written = method.startswith("to_") or method in WRITERS
        changed = statement and method not in READ_ONLY and not method.startswith("to_")
        changed |= method in CHANGERS or inplace
        if changed and root and not module and root not in bound:
            self.changes[root, None] = None
        if written or module and (statement or method in CHANGERS):
            self.changes.update({(name, None): None for name in names})
        if method in SQL:
            texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and type(one.value) is str]
            self.uses.update({(word, None): None for text in texts for word in re.findall(r"\w+", text[:20000])})

    def statement(self, node, bound, stack):
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(value, ast.Call):
            self.call(value, bound, stack, statement=True)
        else:
            stack.append((value, bound))

    def augmented(self, node, bound, stack):
        target = node.target
        if isinstance(target, ast.Name):
            self.use(target.id, bound)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.use(target.value.id, bound, key_of(target))
        stack += [(target, bound), (node.value, bound)]

    def dict_(self, node, bound, stack):
        self.keys.update([one.value for one in node.keys if isinstance(one, ast.Constant) and type(one.value) is str])
        stack += [(child, bound) for child in children(node)]

    def comprehension(self, node, bound, stack):
        targets = [one for part in node.generators for one in ast.walk(part.target)]
        inner = bound | {one.id for one in targets if isinstance(one, ast.Name)}
        for at, part in enumerate(node.generators):
            stack.append((part.iter, inner if at else bound))
            stack += [(test, inner) for test in part.ifs]
        stack += [(getattr(node, name), inner) for name in ("elt", "key", "value") if hasattr(node, name)]

    def lambda_(self, node, bound, stack):
        stack += [(one, bound) for one in node.args.defaults + node.args.kw_defaults if one]
        stack.append((node.body, bound | set(parameters(node))))

    def function(self, node, bound, stack):
        self.stores[node.name] = None
        inner = Facts(node.body, self.imports, bound)
        own = (set(inner.stores) | set(parameters(node))) - inner.outer
        self.uses.update({use: None for use in inner.uses if use[0] not in own})
        self.changes.update({use: None for use in inner.changes if use[0] not in own})
        self.changes.update({(name, None): None for name in inner.outer})
        self.called += [call for call in inner.called if call[0] not in own]
        self.paths.update(inner.paths)
        self.keys |= inner.keys
        given = node.args.defaults + [one for one in node.args.kw_defaults if one]
        stack += [(one, bound) for one in node.decorator_list + given]

    def class_(self, node, bound, stack):
        self.stores[node.name] = None
        inner = Facts(node.body, self.imports, bound)
        self.uses.update({use: None for use in inner.uses if use[0] not in inner.stores})
        self.changes.update({use: None for use in inner.changes if use[0] not in inner.stores})
        self.called += inner.called
        self.paths.update(inner.paths)
        self.keys |= inner.keys
        stack += [(one, bound) for one in node.decorator_list + node.bases + [word.value for word in node.keywords]]

    def outer_(self, node, bound, stack):
        self.outer.update(node.names)

    def yield_(self, node, bound, stack):
        self.generator = True
        stack += [(child, bound) for child in children(node)]

    def import_(self, node, bound, stack):
        for one in node.names:
            name = one.asname or one.name.partition(".")[0]
            self.stores[name] = None
            source = getattr(node, "module", None)
            self.imports[name] = f"{source}.{one.name}" if source else one.name if one.asname else name

    def named(self, node, bound, stack):
        """An except clause, a pattern: the name is a text."""
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.stores[name] = None
        stack += [(child, bound) for child in children(node)]


STEPS = {
    ast.Name: Facts.name, ast.Constant: Facts.constant, ast.Subscript: Facts.subscript, ast.Attribute: Facts.attribute,
    ast.Call: Facts.call, ast.Expr: Facts.statement, ast.AugAssign: Facts.augmented, ast.Lambda: Facts.lambda_,
    ast.FunctionDef: Facts.function, ast.AsyncFunctionDef: Facts.function, ast.ClassDef: Facts.class_,
    ast.Global: Facts.outer_, ast.Nonlocal: Facts.outer_, ast.Import: Facts.import_, ast.ImportFrom: Facts.import_,
    ast.Dict: Facts.dict_, ast.Yield: Facts.yield_, ast.YieldFrom: Facts.yield_, ast.ExceptHandler: Facts.named,
    ast.MatchAs: Facts.named, ast.MatchStar: Facts.named, ast.MatchMapping: Facts.named,
    **{kind: Facts.comprehension for kind in COMPREHENSIONS},
}


def names_among(call, bound):
    """The names that a call gets as they are: it may change what they stand for."""
    given = list(call.args) + [word.value for word in call.keywords]
    roots = [root_of(one) for one in given if isinstance(one, (ast.Name, ast.Starred, ast.Attribute, ast.Subscript))]
    return [name for name in roots if name and name not in bound]


def parameters(node):
    of = node.args
    every = of.posonlyargs + of.args + of.kwonlyargs + [one for one in (of.vararg, of.kwarg) if one]
    return [one.arg for one in every]
