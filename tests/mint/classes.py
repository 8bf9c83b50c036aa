"""The class of each cell: how what it gave agrees with the recording, or why it does not.

The first class that holds is a cell's. A difference that no rule explains is `unknown`: it is
looked at by hand, then mended, or named in EXAMINED together with what cupel gives."""
import re

SAME, DIFFERS, OUTSIDE = "agrees", "differs", "outside"
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
DIGITS = 1e-9                # relative

# (run, turn): class, and the text that cupel gives.
EXAMINED = {
    (162, 1): ("package version", "[(a, b, x**(a*x + b - x + 1))]"),
    (473, 0): ("package version", "[(-16/3, -15/8), (5, 2)]"),
    (599, 0): ("python version", "240"),
}


# ---- what may be the same ----
def same_text(own, recorded):
    text = own.text[: len(recorded.text)] if recorded.is_cut and not recorded.error else own.text
    return text == recorded.text


def same_error(own, recorded):
    if recorded.is_cut and not recorded.error:
        return True   # whatever came after the cut
    if own.is_late or recorded.is_late or not own.error or not recorded.error:
        return (own.is_late, own.error) == (recorded.is_late, recorded.error)
    if recorded.is_cut:
        return own.error.first == recorded.error.first \
            and own.error.places[: len(recorded.error.places)] == recorded.error.places
    return (own.error.name, own.error.message, own.error.places) \
        == (recorded.error.name, recorded.error.message, recorded.error.places)


def same(own, recorded):
    return same_text(own, recorded) and same_error(own, recorded)


def same_kind_of_error(own, recorded):
    return bool(own.error and recorded.error) and same_text(own, recorded) and own.error.name == recorded.error.name


def close(one, other):
    return abs(one - other) <= DIGITS * max(abs(one), abs(other))


# ---- the rules: of a cell, what it gave and what was recorded ----
def agrees_late(cell, own, recorded):
    return own.is_late and same(own, recorded)


def agrees_in_error(cell, own, recorded):
    return bool(recorded.error) and same(own, recorded)


def agrees(cell, own, recorded):
    return same(own, recorded)


def asks_the_search_tool(cell, own, recorded):
    return own.error is not None and own.error.message == "name 'wikipedia_search' is not defined"


def lacks_a_package(cell, own, recorded):
    return own.error is not None and own.error.name == "ModuleNotFoundError"


def is_late_once(cell, own, recorded):
    return own.is_late != recorded.is_late


def has_another_place(cell, own, recorded):
    return same_kind_of_error(own, recorded) and own.error.message == recorded.error.message


def has_other_words(cell, own, recorded):
    places = own.error and recorded.error and {own.error.places, recorded.error.places}
    return same_kind_of_error(own, recorded) and (len(places) == 1 or own.error.name == "SyntaxError")


def has_other_digits(cell, own, recorded):
    if NUMBER.sub("#", own.text) != NUMBER.sub("#", recorded.text) or not same_error(own, recorded):
        return False
    pairs = zip(NUMBER.findall(own.text), NUMBER.findall(recorded.text))
    return all(close(float(one), float(other)) for one, other in pairs)


def has_another_layout(cell, own, recorded):
    return own.text.split() == recorded.text.split() and same_error(own, recorded)


def has_another_order(cell, own, recorded):
    words = [sorted(re.findall(r"\w+|[^\w\s]", seen.text)) for seen in (own, recorded)]
    return words[0] == words[1] and same_error(own, recorded)


def uses_chance_or_time(cell, own, recorded):
    return bool(re.search(r"\b(random|time|datetime|uuid)\b", cell.code))


def uses_the_shells_own_syntax(cell, own, recorded):
    return bool(re.search(r"^\s*[%!?]|\?\s*$", cell.code, re.M))


CLASSES = (
    ("same, late", SAME, agrees_late, "time over on both sides, the same output until then"),
    ("same error", SAME, agrees_in_error, "the same output, name and message of the error, places in the cells"),
    ("same", SAME, agrees, "the same output and last value"),
    ("search tool", OUTSIDE, asks_the_search_tool, "calls a function of the recorder's that asked Wikipedia"),
    ("package missing", DIFFERS, lacks_a_package, "asks for a package that is not installed here"),
    ("time", DIFFERS, is_late_once, "in time on one side alone"),
    ("error: place", DIFFERS, has_another_place, "the same error, told of another line"),
    ("error: words", DIFFERS, has_other_words, "the same error in another Python's words"),
    ("last digits", DIFFERS, has_other_digits, "numbers that differ in their last digits"),
    ("layout", DIFFERS, has_another_layout, "a value broken into lines in another way"),
    ("order", DIFFERS, has_another_order, "the same words in another order"),
    ("chance or time", DIFFERS, uses_chance_or_time, "random numbers or the clock"),
    ("shell syntax", DIFFERS, uses_the_shells_own_syntax, "% and ! lines, which are IPython's and no Python"),
)
OTHERS = (
    ("package version", DIFFERS, "another version of a package computes it in another way"),
    ("python version", DIFFERS, "Python 3.11 has what 3.8 had not"),
    ("unknown", DIFFERS, "not explained"),
)
TABLE = [(name, counts, words) for name, counts, _, words in CLASSES] + [*OTHERS]
COUNTS = {name: counts for name, counts, _ in TABLE}


def classify(run, cell, own, recorded):
    for name, _, holds, _ in CLASSES:
        if holds(cell, own, recorded):
            return name
    name, text = EXAMINED.get((run.index, cell.turn), ("unknown", None))
    return name if own.text == text and not own.error else "unknown"
