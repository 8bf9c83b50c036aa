# The calls of tools as inputs of an answer: which of them a value rests on, and whether a tool only gave back what the
# code had typed. trace.py loads it, in a box that runs none of the cells. The host has recorded the calls; the code
# cannot forge them, but their arguments and values are strangers' text. The answer itself is the box's word: it is
# cleaned here, too.
import ast

driver = None                # the module; set by the loader of this file
facts = origin = None        # set by trace.py

TOOL = "tool "               # a source of this name is no file: what a tool gave
LEAVES_MAX = 5000            # of a value or a call's arguments, where they are compared
STEPS_MAX = 50_000


class Call:
    """A call of a tool. `arguments` and `value` may be unknown, `line` is 0 for a call of a thread."""

    def __init__(self, cell, about):
        self.cell, self.tool = cell, str(about.get("tool"))[:100]
        self.line = about.get("line") if type(about.get("line")) is int else 0
        self.failed = about.get("failed") is True
        self.arguments, self.value = about.get("arguments"), about.get("value")


def calls_of(cell):
    found = cell.get("calls")
    number = int(cell.get("n") or 0)
    return [Call(number, one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def names_tools(node, imports):
    names = {name for name, _ in [*node.uses, *node.late]}
    return any([imports.get(name, "").partition(".")[0] == "tools" for name in names])


def made_by(calls, value, places, imports):
    """The calls that the lines made; one without a line belongs to the lines that name tools, in its cell or before."""
    if not calls:
        return []
    named = [node.cell for node in value.nodes if not node.imported and names_tools(node, imports)]
    return [call for call in calls if any(
        [cell == call.cell and first <= call.line <= last for cell, first, last in places]
        if call.line else [cell <= call.cell for cell in named])]


# ---- constants that come back ----
def leaf(value):
    """A number, or a text in small letters, as it is compared; None: nothing that is worth it."""
    if type(value) is bool or not isinstance(value, (int, float, str)):
        return None
    number = origin.number_of(value)
    if number is not None:
        return origin.short(number)
    text = value.strip().casefold()[:2000] if isinstance(value, str) else ""
    return text if len(text) > 1 else None


def leaves(value):
    """The numbers and texts in a value of JSON, each once."""
    found, stack, steps = set(), [value], 0
    while stack and len(found) < LEAVES_MAX and steps < STEPS_MAX:
        one, steps = stack.pop(), steps + 1
        if isinstance(one, (dict, list)):
            stack += one.values() if isinstance(one, dict) else one
        else:
            found.add(leaf(one))
    return found - {None}


def constants_of(trees):
    return {leaf(node.value) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)} - {None}


def check_given_back(task, value):
    """A constant that a tool gave back as it came is typed; one that a tool was told before is a note."""
    own, question = leaves(task.given.get(value.name)), task.question.casefold()
    if not own or not all([path.startswith(TOOL) for path in value.files]):
        return
    written = {one for one in constants_of([tree for _, tree in task.trees])
               if one not in (task.free if isinstance(one, float) else question)}
    found = made_by(task.calls, value, task.places_of(value), task.program.imports)
    if own <= given_back(found, written):
        value.origin, value.why, value.files = "typed", "it is a constant that a tool gave back", []
    elif told := own & written & passed(task.calls):
        value.warnings.append(f"{str(min(told, key=str))[:60]} was typed in the code as an argument of a tool")


def given_back(calls, written):
    """The constants that went out as arguments and came back. Small numbers count only where nothing else came."""
    found = set()
    for call in calls:
        came = leaves(call.value)
        both = leaves(call.arguments) & came & written
        found |= both if len(came) == 1 else both - origin.SMALL_NUMBERS
    return found


def passed(calls):
    return {one for call in calls for one in leaves(call.arguments)} - origin.SMALL_NUMBERS


# ---- the answer ----
def clean(payload):
    """The answer as the box sent it, which the code may have forged: the fields that are read, with their types."""
    payload = payload if isinstance(payload, dict) else {}
    fields = {name: payload.get(name) if isinstance(payload.get(name), kind) else kind() for name, kind in (
        ("template", str), ("text", str), ("values", dict), ("types", dict), ("files", list), ("opened", list),
        ("cell", int), ("line", int))}
    fields["files"] = [one for one in fields["files"] if isinstance(one, dict)][:100]
    places = [(one.get("path"), one.get("at")) for one in fields["opened"][:100] if isinstance(one, dict)]
    fields["opened"] = []
    for path, found in places:
        lines = {}
        for at in found[:200] if isinstance(path, str) and isinstance(found, list) else ():
            if isinstance(at, list) and len(at) == 2 and type(at[0]) is type(at[1]) is int:
                lines.setdefault(at[0], []).append(at[1])
        fields["opened"].append((path, lines))
    return fields
