# The values of an answer against a JSON Schema: the keywords that say something about plain values, local references;
# others are ignored. trace.py loads it for `--schema`. The schema is the user's, the values are the code's.
import math
import re

DEPTH_MAX, STEPS_MAX, FAULTS_MAX = 40, 100_000, 20
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
FORMATS = {
    "date": r"\d{4}-\d\d-\d\d", "time": r"\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?",
    "date-time": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?",
    "email": r"[^@\s]+@[^@\s]+", "uuid": r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
}

driver = None                # set by the loader of this file


def check(values, schema):
    """[(path, message)] for what does not fit."""
    return Check(schema).run(values)


def number(value):
    return type(value) in (int, float)


def is_type(value, name):
    if name == "number":
        return number(value)
    if name == "integer":
        return number(value) and value == int(value)
    return isinstance(value, TYPES.get(name, object))


def said(value):
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def equal(one, other):
    return one == other and (type(one) is bool) == (type(other) is bool)


class Check:
    def __init__(self, schema):
        self.root, self.steps = schema, 0

    def run(self, values):
        return self.faults(values, self.root, "", 0)[:FAULTS_MAX]

    def faults(self, value, schema, path, depth):
        self.steps += 1
        if schema is False:
            return [(path, "is not allowed")]
        if not isinstance(schema, dict) or depth > DEPTH_MAX or self.steps > STEPS_MAX:
            return []
        found = []
        for keyword, bound in schema.items():
            rule = RULES.get(keyword)
            if rule:
                try:
                    found += rule(self, value, bound, path, depth + 1, schema)
                except (TypeError, ValueError, ArithmeticError, re.error, LookupError, AttributeError):
                    continue   # a schema that says nothing
        return found[:FAULTS_MAX]

    def fits(self, value, schema, depth):
        return not self.faults(value, schema, "", depth)

    def reference(self, value, bound, path, depth, schema):
        target = self.root
        for part in str(bound).lstrip("#").strip("/").split("/") if str(bound) != "#" else ():
            part = part.replace("~1", "/").replace("~0", "~")
            target = target[int(part)] if isinstance(target, list) else target[part]
        return self.faults(value, target, path, depth)

    def type(self, value, bound, path, depth, schema):
        names = bound if isinstance(bound, list) else [bound]
        if any([is_type(value, name) for name in names]):
            return []
        return [(path, f"{said(value)} is not of type {' or '.join([str(name) for name in names])}")]

    def enum(self, value, bound, path, depth, schema):
        return [] if any([equal(value, one) for one in bound]) else [(path, f"{said(value)} is none of {said(bound)}")]

    def const(self, value, bound, path, depth, schema):
        return [] if equal(value, bound) else [(path, f"{said(value)} is not {said(bound)}")]

    def properties(self, value, bound, path, depth, schema):
        return [fault for name, inner in bound.items() if isinstance(value, dict) and name in value
                for fault in self.faults(value[name], inner, f"{path}.{name}".lstrip("."), depth)]

    def required(self, value, bound, path, depth, schema):
        return [(path, f"{name!r} is required and missing") for name in bound
                if isinstance(value, dict) and name not in value]

    def additional(self, value, bound, path, depth, schema):
        patterns = list(schema.get("patternProperties") or ())
        names = [name for name in value if name not in (schema.get("properties") or ())
                 and not any([re.search(one, name[:200]) for one in patterns])] if isinstance(value, dict) else []
        if bound is False:
            return [(path, f"{name!r} is not a property of the schema") for name in names]
        return [fault for name in names
                for fault in self.faults(value[name], bound, f"{path}.{name}".lstrip("."), depth)]

    def items(self, value, bound, path, depth, schema):
        first = len(schema.get("prefixItems") or ())
        return [fault for at, one in enumerate(value) if isinstance(value, list) and at >= first
                for fault in self.faults(one, bound, f"{path}[{at}]", depth)]

    def prefix(self, value, bound, path, depth, schema):
        pairs = zip(value, bound) if isinstance(value, list) else ()
        return [fault for at, (one, inner) in enumerate(pairs)
                for fault in self.faults(one, inner, f"{path}[{at}]", depth)]

    def multiple(self, value, bound, path, depth, schema):
        rest = value / bound if number(value) else 0
        return [] if math.isclose(rest, round(rest), abs_tol=1e-9) else [(path, f"{value} is no multiple of {bound}")]

    def pattern(self, value, bound, path, depth, schema):
        fits = not isinstance(value, str) or re.search(bound, value[:2000])
        return [] if fits else [(path, f"{said(value)} does not match the pattern {said(bound)}")]

    def format(self, value, bound, path, depth, schema):
        fits = not isinstance(value, str) or bound not in FORMATS or re.fullmatch(FORMATS[bound], value[:200])
        return [] if fits else [(path, f"{said(value)} is not in the format {bound}")]

    def unique(self, value, bound, path, depth, schema):
        texts = [repr(one) for one in value] if bound and isinstance(value, list) else []
        return [] if len(set(texts)) == len(texts) else [(path, "has an item twice")]

    def any_of(self, value, bound, path, depth, schema):
        if any([self.fits(value, one, depth) for one in bound]):
            return []
        return [(path, f"{said(value)} fits none of the {len(bound)} schemas of anyOf")]

    def one_of(self, value, bound, path, depth, schema):
        count = sum([self.fits(value, one, depth) for one in bound])
        return [] if count == 1 else [(path, f"{said(value)} fits {count} schemas of oneOf, and must fit 1")]

    def all_of(self, value, bound, path, depth, schema):
        return [fault for one in bound for fault in self.faults(value, one, path, depth)]

    def none_of(self, value, bound, path, depth, schema):
        return [(path, f"{said(value)} fits the schema of not")] if self.fits(value, bound, depth) else []


def limit(kind, measure, fits, text):
    """A rule for a bound: the values it is for, their measure, and the sentence."""
    def rule(self, value, bound, path, depth, schema):
        if not kind(value) or fits(measure(value), bound):
            return []
        return [(path, text.format(value=said(value), size=measure(value), bound=bound))]
    return rule


def least(size, bound):
    return size >= bound


def most(size, bound):
    return size <= bound


RULES = {
    "$ref": Check.reference, "type": Check.type, "enum": Check.enum, "const": Check.const,
    "properties": Check.properties, "required": Check.required, "additionalProperties": Check.additional,
    "items": Check.items, "prefixItems": Check.prefix, "multipleOf": Check.multiple, "pattern": Check.pattern,
    "format": Check.format, "uniqueItems": Check.unique, "anyOf": Check.any_of, "oneOf": Check.one_of,
    "allOf": Check.all_of, "not": Check.none_of,
    "minimum": limit(number, float, least, "{value} is under the minimum {bound}"),
    "maximum": limit(number, float, most, "{value} is over the maximum {bound}"),
    "exclusiveMinimum": limit(number, float, lambda size, bound: size > bound, "{value} is not over {bound}"),
    "exclusiveMaximum": limit(number, float, lambda size, bound: size < bound, "{value} is not under {bound}"),
    **{f"{word}{part}": limit(lambda value, of=kind: isinstance(value, of), len, fits,
                              f"has {{size}} {name}, at {text} {{bound}}")
       for part, kind, name in (("Length", str, "characters"), ("Items", list, "items"),
                                ("Properties", dict, "properties"))
       for word, fits, text in (("min", least, "least"), ("max", most, "most"))},
}
