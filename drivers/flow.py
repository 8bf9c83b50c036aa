# Which lines of a program a value comes from: the backward slice over the cells of a task. trace.py loads it in a box
# that runs none of the cells: their text is hostile, is only parsed, and every walk has a bound.
#
# 1. All cells become one list of nodes: a simple statement, the header of a compound one, a function or class as a
#    unit.
# 2. A node uses names, binds names, and changes what names stand for (`x.append(1)`, `df["a"] = 2`). A use may be of
#    one key alone (`d["mean"]`): the other entries of a dict or the other columns of a table stay out of a slice.
# 3. A binding ends the search for a name where it always runs before the use: its guards are the first of the use's.
import ast
import bisect

STEPS_MAX = 400_000          # of one slice
# Keys that make a new thing, not a part of the old one.
COPIES = (ast.Compare, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.List, ast.Slice, ast.Tuple)

facts = driver = None        # facts.py and the driver, set by the loader of this file


class TooMuch(Exception):
    """The program is larger than what is looked at."""


class Loop:
    def __init__(self, start):
        self.start, self.end, self.jumps = start, start, []


class Node:
    """A statement, a header or a unit, with its place in the list, its names and its guards."""
    loop = None
    late = ()                # names of a function's body: their value is the one at the call
    imported = jump = unit = False

    def __init__(self, at, cell, tree, parts, guards, loops, scope):
        self.at, self.cell, self.tree, self.parts = at, cell, tree, parts
        self.guards, self.loops, self.scope = guards, loops, scope
        first = min([tree.lineno] + [one.lineno for one in getattr(tree, "decorator_list", [])])
        self.line, self.end = first, max([tree.lineno] + [getattr(one, "end_lineno", 0) or 0 for one in parts])
        self.uses, self.defs = {}, []


class Scope:
    """The module, or a function in which the answer is given: its names with their bindings in order."""

    def __init__(self, parent=None, tree=None, owner=None):
        self.parent, self.tree, self.owner, self.defs, self.last = parent, tree, owner, {}, None
        self.parameters = set(facts.parameters(tree)) if tree else set()


class Program:
    """The nodes of all cells: [(number, tree)]."""

    def __init__(self, cells, inputs=()):
        self.nodes, self.imports, self.alias, self.functions = [], facts.Imports(), {}, {}
        self.inputs = {name.rpartition("/")[2] for name in inputs}
        self.module, self.scopes = Scope(), {}
        for number, tree in cells:
            self.flatten(tree.body, number, (), (), self.module)
            last = self.nodes[-1] if tree.body else None
            if last and last.tree is tree.body[-1] and isinstance(last.tree, ast.Expr):   # a notebook's last value
                last.facts.stores.update({"_": None, f"_{number}": None})
                last.facts.changes["Out", number] = None
        self.settle(self.nodes)

    def add(self, cell, tree, parts, guards, loops, scope):
        node = Node(len(self.nodes), cell, tree, parts, guards, loops, scope)
        own = node.facts = facts.Facts(parts, self.imports)
        self.nodes.append(node)
        node.uses = own.uses
        scope.last = node
        return node

    def flatten(self, body, cell, guards, loops, scope):
        for tree in body:
            step = COMPOUND.get(tree.__class__)
            if step:
                step(self, tree, cell, guards, loops, scope)
            elif isinstance(tree, ast.Assign) and len(tree.targets) == 1 and pairs(tree.targets[0], tree.value):
                for target, value in zip(tree.targets[0].elts, tree.value.elts):
                    one = ast.copy_location(ast.Assign([target], value), tree)
                    self.simple(one, cell, guards, loops, scope)
            else:
                self.simple(tree, cell, guards, loops, scope)

    def simple(self, tree, cell, guards, loops, scope):
        node = self.add(cell, tree, [tree], guards, loops, scope)
        node.imported = isinstance(tree, (ast.Import, ast.ImportFrom))
        node.jump = isinstance(tree, (ast.Break, ast.Continue, ast.Return))
        if node.jump:
            for loop in loops:
                loop.jumps.append(node)
        if isinstance(tree, ast.Assign) and isinstance(tree.value, ast.Lambda):
            self.imports.note_lambda(tree.targets[0], tree.value)
        if isinstance(tree, (ast.Assign, ast.AnnAssign)) and tree.value:
            targets = tree.targets if isinstance(tree, ast.Assign) else [tree.target]
            self.link(node, targets, tree.value)

    def link(self, node, targets, value):
        """Names that stand for (a part of) the same thing: a change of one is a change of the other."""
        loose = isinstance(value, (ast.Name, ast.Attribute, ast.Constant))
        loose |= isinstance(value, ast.Subscript) and not isinstance(value.slice, COPIES)
        handle = isinstance(value, ast.Call) and facts.dotted(value.func).rpartition(".")[2] in facts.HANDLES
        if not loose and not handle and not isinstance(node.tree, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)):
            return
        own = facts.Facts([value], self.imports)
        sources = [name for name, _ in own.uses if name not in self.imports] + ["\0" + path for path in own.paths]
        for target in targets:
            for one in ast.walk(target) if target else ():
                if isinstance(one, ast.Name):
                    self.alias.setdefault(one.id, {}).update(dict.fromkeys(sources[:20]))

    def unit(self, tree, cell, guards, loops, scope):
        """A function or class: shown whole. The names of its body are looked up where it is used."""
        node = self.add(cell, tree, [tree], guards, loops, scope)
        node.unit, node.late, node.uses = True, node.uses, {}
        node.end = tree.end_lineno
        if isinstance(tree, facts.FUNCTIONS):
            self.imports.note(tree)
        self.functions.setdefault(tree.name, []).append(node)

    def choice(self, tree, cell, guards, loops, scope):
        header = self.add(cell, tree, [tree.test], guards, loops, scope)
        self.flatten(tree.body, cell, guards + ((header.at, 0),), loops, scope)
        self.flatten(tree.orelse, cell, guards + ((header.at, 1),), loops, scope)

    def repeat(self, tree, cell, guards, loops, scope):
        over = [tree.test] if isinstance(tree, ast.While) else [tree.target, tree.iter]
        header = self.add(cell, tree, over, guards, loops, scope)
        loop = header.loop = Loop(header.at)
        if len(over) == 1:
            header.loops = loops + (loop,)
        else:
            self.link(header, [tree.target], tree.iter)
        self.flatten(tree.body, cell, guards + ((header.at, 0),), loops + (loop,), scope)
        loop.end = len(self.nodes) - 1
        self.flatten(tree.orelse, cell, guards, loops, scope)

    def within(self, tree, cell, guards, loops, scope):
        parts = [part for item in tree.items for part in (item.context_expr, item.optional_vars) if part]
        header = self.add(cell, tree, parts, guards, loops, scope)
        for item in tree.items:
            self.link(header, [item.optional_vars], item.context_expr)
        self.flatten(tree.body, cell, guards, loops, scope)

    def attempt(self, tree, cell, guards, loops, scope):
        self.flatten(tree.body, cell, guards, loops, scope)
        for handler in tree.handlers:
            header = self.add(cell, handler, [handler.type] if handler.type else [], guards, loops, scope)
            header.facts.stores.update({handler.name: None} if handler.name else {})
            self.flatten(handler.body, cell, guards + ((header.at, 0),), loops, scope)
        self.flatten(tree.orelse + tree.finalbody, cell, guards, loops, scope)

    def match(self, tree, cell, guards, loops, scope):
        header = self.add(cell, tree, [tree.subject], guards, loops, scope)
        for at, case in enumerate(tree.cases):
            inner = guards + ((header.at, at),)
            parts = [part for part in (case.pattern, case.guard) if part]
            one = self.add(cell, case.pattern, parts, inner, loops, scope)
            self.flatten(case.body, cell, inner + ((one.at, 0),), loops, scope)

    def settle(self, nodes):
        """The bindings of the nodes, and the index of each scope, when all functions are known."""
        for node in nodes:
            changes = dict(node.facts.changes)
            changes.update({("\0" + path, None): None for path in node.facts.paths if path not in self.inputs})
            node.uses.update({("\0" + path, None): None for path in node.facts.paths if path not in self.inputs})
            if not node.unit:
                self.effects(node, changes)
            for name, _ in [*changes] if not node.unit else []:
                changes.update({(other, None): None for other in self.same(name)})
            node.defs = [(name, None, True) for name in node.facts.stores]
            node.defs += [(name, key, False) for name, key in changes if (name, None, True) not in node.defs]
            if node.unit:
                node.defs = [(node.tree.name, None, True)]
            for name, key, strong in node.defs:
                node.scope.defs.setdefault(name, []).append((node.at, key, strong, node))

    def same(self, name):
        found, todo = {}, [name]
        while todo and len(found) < 100:
            for other in self.alias.get(todo.pop(), ()):
                if other not in found and other != name:
                    found[other] = None
                    todo.append(other)
        return found

    def effects(self, node, changes):
        """What calls of the program's own functions change, and calls of functions that nobody knows."""
        todo, seen = [name for name, _ in node.uses], set()
        while todo and len(seen) < 300:
            name = todo.pop()
            for function in self.functions.get(name, ()) if name not in seen else ():
                changes.update({use: None for use in function.facts.changes if use[0] != name})
                todo += [use for use, _ in function.late]
            seen.add(name)
        for name, given, statement in node.facts.called:
            own = self.functions.get(name)
            unknown = statement and not own and name not in facts.QUIET
            if name in facts.CHANGERS or unknown and not self.imports.get(name, "").startswith(facts.PLOT_MODULES) or (
                    own and any([changes_parameters(one.tree, self.imports) for one in own])):
                changes.update({(one, None): None for one in given})

    # ---- functions in which the answer is given ----
    def enter(self, tree, owner, cell, parent):
        """The scope of a function's body, flattened the first time."""
        if tree not in self.scopes:
            scope = self.scopes[tree] = Scope(parent, tree, owner)
            before = len(self.nodes)
            self.flatten(tree.body, cell, (), (), scope)
            self.settle(self.nodes[before:])
        return self.scopes[tree]

    def sites(self, scope):
        """The nodes that call the function of a scope; the last one of the outer scope if none does."""
        name = (scope.owner or scope.tree).name
        found = [node for node in self.nodes if not node.unit and (name, None) in node.uses and node.scope is not scope]
        for node in [*self.nodes]:
            calls = node.unit and (name, None) in node.late and isinstance(node.tree, facts.FUNCTIONS)
            if calls and node.tree not in (scope.tree, scope.owner):
                self.enter(node.tree, None, node.cell, node.scope)
                found += [one for one in self.nodes if one.scope is self.scopes[node.tree]
                          and not one.unit and (name, None) in one.uses]
        return found or [node for node in [scope.parent.last] if node]


COMPOUND = {
    ast.FunctionDef: Program.unit, ast.AsyncFunctionDef: Program.unit, ast.ClassDef: Program.unit,
    ast.If: Program.choice, ast.For: Program.repeat, ast.AsyncFor: Program.repeat, ast.While: Program.repeat,
    ast.With: Program.within, ast.AsyncWith: Program.within, ast.Try: Program.attempt, ast.Match: Program.match,
}
if hasattr(ast, "TryStar"):
    COMPOUND[ast.TryStar] = Program.attempt


def pairs(target, value):
    """`a, b = 1, 2`: two assignments, if none of them needs the other."""
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    stars = both and any([isinstance(one, ast.Starred) for one in target.elts + value.elts])
    return both and not stars and not {facts.root_of(one) for one in target.elts} & {
        one.id for one in ast.walk(value) if isinstance(one, ast.Name)}


def changes_parameters(tree, imports):
    if not isinstance(tree, facts.FUNCTIONS):
        return True
    inner = facts.Facts(tree.body, imports)
    return any([name in inner.changes for name in [(one, None) for one in facts.parameters(tree)]]) or any(
        [name in facts.parameters(tree) for name, _ in inner.changes])


class Slice:
    """The nodes that the uses of names at a node come from."""

    def __init__(self, program, control=True, blind=False):
        self.program, self.nodes, self.seen, self.work, self.steps = program, {}, set(), [], 0
        self.control = control   # whether the conditions that a node stands under belong to it
        self.blind = blind       # whether the length of a thing says nothing of it
        self.looped = {}
        self.keys = {}       # node's place -> the keys it was wanted for; None: the whole of it

    def want(self, uses, node):
        self.work += [(name, key, node) for name, key in uses]
        self.guard(node)
        while self.work:
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise TooMuch("the program is too large to trace")
            self.reach(*self.work.pop())
        return self

    def guard(self, node):
        for at, _ in node.guards if self.control else ():
            self.include(self.program.nodes[at], None, node)

    def reach(self, name, key, user):
        scope = user.scope
        stop = self.walk(scope.defs[name], key, user) if name in scope.defs else -1
        if stop >= 0 or not scope.tree or (name, key, scope.tree) in self.seen:
            return
        self.seen.add((name, key, scope.tree))
        for site in self.program.sites(scope):
            if name in scope.parameters:
                self.include(site, None, site)
                if scope.owner:
                    self.work.append((scope.owner.name, None, site))
            elif name not in scope.defs or not scope.defs[name][0][2]:
                self.work.append((name, key, site))
            self.guard(site)

    def walk(self, entries, key, user):
        at, stop = bisect.bisect_left(entries, user.at, key=lambda entry: entry[0]) - 1, -1
        while at >= 0:
            mark = (id(entries), key, user.guards, at)
            if mark in self.seen:
                break
            self.seen.add(mark)
            self.steps += 1
            place, other, strong, node = entries[at]
            at -= 1
            if type(key) is type(other) is str and key != other:
                continue
            self.include(node, key, user)
            exact = strong or key is not None and key == other and isinstance(node.tree, ast.Assign)
            if exact and node.guards == user.guards[:len(node.guards)]:
                stop = place
                break
        for loop in user.loops:
            if stop < loop.start:
                self.again(entries, key, user, loop)
                break
        return stop

    def again(self, entries, key, user, loop):
        """Bindings further down in a loop reach its next round."""
        mark = (id(entries), key, loop)
        first = bisect.bisect_left(entries, user.at, key=lambda entry: entry[0])
        last = min(self.looped.get(mark, len(entries)), len(entries))
        self.looped[mark] = min(first, last)
        for place, other, _, node in entries[first:last]:
            if place > loop.end:
                break
            if not (type(key) is type(other) is str and key != other):
                self.include(node, key, user)

    def include(self, node, key, user):
        mark = (node.at, key, user.at if node.late else -1)
        if mark in self.seen:
            return
        self.seen.add(mark)
        if node.tree in self.program.scopes:
            return   # the answer is given in it: its lines count one by one
        self.nodes[node.at] = node
        entry = entry_of(node.tree, key)
        self.keys.setdefault(node.at, []).append(entry)
        uses = node.uses
        if entry or self.blind and not node.unit:
            uses = facts.Facts([entry] if entry else node.parts, self.program.imports, blind=self.blind).uses
        self.work += [(name, of, node) for name, of in uses]
        self.work += [(name, of, user) for name, of in node.late]
        self.guard(node)
        for jump in node.loop.jumps if node.loop and self.control else ():
            self.include(jump, None, jump)

    def ordered(self):
        return [self.nodes[at] for at in sorted(self.nodes)]

    def trees(self):
        """The parts of the nodes that were wanted: one entry of a dict, or all of it."""
        for node in self.ordered():
            wanted = self.keys.get(node.at, [None])
            yield node, node.parts if None in wanted else wanted


def entry_of(tree, key):
    """The expression of one key, where a name is bound to a display of a dict, list or tuple."""
    value = tree.value if isinstance(tree, ast.Assign) and isinstance(tree.targets[0], ast.Name) else None
    if key is None or value is None:
        return None
    if isinstance(value, ast.Dict) and all([isinstance(one, ast.Constant) for one in value.keys]):
        found = [one for name, one in zip(value.keys, value.values) if name.value == key]
        return found[-1] if found else None
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("dict", "SimpleNamespace") and not value.args:
        return next((word.value for word in value.keywords if word.arg == key), None)
    if isinstance(value, (ast.List, ast.Tuple)) and type(key) is int and -len(value.elts) <= key < len(value.elts):
        one = value.elts[key]
        return None if any([isinstance(each, ast.Starred) for each in value.elts]) else one
    return None
