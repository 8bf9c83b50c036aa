"""api/openapi.json as a judge: every response that a test reads is checked against it, and which routes, statuses and
members were seen is noted, for tests/http/test_openapi.py."""
import json
import os
import re
from pathlib import Path

import jsonschema

import host

DOCUMENT = json.loads((host.REPO / "api/openapi.json").read_text())
# Refusals that every route may give: of the head, of the body, of the server. Their body is always an Error.
ANYWHERE = {"400", "401", "403", "405", "408", "411", "413", "414", "429", "431", "500", "503"}
REFUSAL = re.compile(r"#/components/responses/")


def resolve(node):
    """The node behind a $ref of this document, and where that is."""
    place = None
    while isinstance(node, dict) and "$ref" in node:
        place, at = node["$ref"], DOCUMENT
        for part in place[2:].split("/"):
            at = at[part.replace("~1", "/").replace("~0", "~")]
        node = at
    return node, place


def template(path):
    """/v1/runs/{run} as a regular expression; {path} takes slashes."""
    parts = re.split(r"(\{\w+\})", path)
    return "".join("(.+)" if part == "{path}" else "([^/]+)" if part.startswith("{") else re.escape(part)
                   for part in parts)


ROUTES = sorted(DOCUMENT["paths"], key=lambda path: path.count("{"))


def route_of(path):
    """The template of a path, or None."""
    bare = path.partition("?")[0]
    return next((route for route in ROUTES if re.fullmatch(template(route), bare)), None)


class Fields:
    """Walks a schema, alone or beside a value, and names each member by the place of its schema."""

    def documented(self, schema, place, found, visited):
        schema, there = resolve(schema)
        place = there or place
        if place in visited or not isinstance(schema, dict):
            return
        visited.add(place)
        for name, below in schema.get("properties", {}).items():
            found.add(f"{place}/{name}")
            self.documented(below, f"{place}/{name}", found, visited)
        for key in ("oneOf", "anyOf"):
            for index, below in enumerate(schema.get(key, ())):
                self.documented(below, f"{place}|{index}", found, visited)
        if isinstance(schema.get("items"), dict):
            self.documented(schema["items"], f"{place}[]", found, visited)

    def seen(self, schema, place, value, found):
        schema, there = resolve(schema)
        place = there or place
        if isinstance(value, dict):
            for name, below in schema.get("properties", {}).items():
                if name in value:
                    found.add(f"{place}/{name}")
                    self.seen(below, f"{place}/{name}", value[name], found)
        for key in ("oneOf", "anyOf"):
            for index, below in enumerate(schema.get(key, ())):
                if validator(below).is_valid(value):
                    self.seen(below, f"{place}|{index}", value, found)
        if isinstance(value, list) and isinstance(schema.get("items"), dict):
            for one in value:
                self.seen(schema["items"], f"{place}[]", one, found)


FIELDS = Fields()
KNOWN = {}


def validator(schema):
    """One for each schema: to make one costs more than to use it."""
    key = json.dumps(schema, sort_keys=True)
    if key not in KNOWN:
        whole = {**schema, "components": DOCUMENT["components"]}
        KNOWN[key] = jsonschema.Draft202012Validator(whole)
    return KNOWN[key]


def validate(schema, value, what):
    wrong = next(iter(validator(schema).iter_errors(value)), None)
    if wrong is not None:
        wrong = jsonschema.exceptions.best_match(validator(schema).iter_errors(value))
        raise AssertionError(f"{what}: {wrong.message[:1000]} at {list(wrong.absolute_path)}: {str(value)[:2000]}")


def content_of(response, mime):
    """(the name in the document, the media type object) for a content type."""
    content = response.get("content", {})
    kind = mime.partition(";")[0].strip()
    for name in (mime, kind, *(n for n in content if n.partition(";")[0] == kind), "*/*"):
        if name in content:
            return name, content[name]
    return None, None


def documented():
    """Every response and every member of one that the document has."""
    responses, fields = set(), set()
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            for status, response in operation["responses"].items():
                if status == "default":
                    continue
                response, _ = resolve(response)
                kinds = response.get("content", {})
                names = [name for name in kinds if name != "*/*"] if len(kinds) > 1 and "*/*" in kinds else kinds
                responses |= {f"{method.upper()} {path} {status} {name}" for name in names or [""]}
                for content in kinds.values():
                    for key in ("schema", "x-item-schema"):
                        if key in content:
                            FIELDS.documented(content[key], f"{method.upper()} {path} {status}", fields, set())
    return responses, fields


class Contract:
    """What the tests of this process saw. It goes to a file of CUPEL_SEEN, which the runner of the tests names."""

    def __init__(self):
        self.responses, self.fields, self.operations = set(), set(), set()

    def place(self, method, path, status):
        """The documented response of a request."""
        route = route_of(path)
        method = {"HEAD": "GET"}.get(method, method).lower()
        operation = DOCUMENT["paths"].get(route, {}).get(method)
        if operation is None:
            assert str(status) in ANYWHERE | {"404"}, f"{method} {path} gives {status}, and is not documented"
            return None, None, DOCUMENT["components"]["responses"]["Refused"]
        self.operations.add(f"{method.upper()} {route}")
        response = operation["responses"].get(str(status))
        if response is None:
            assert str(status) in ANYWHERE, f"{method} {route} gives {status}, which is not documented"
            response = operation["responses"]["default"]
        return method.upper(), route, resolve(response)[0]

    def check(self, method, path, answer):
        if method == "OPTIONS":
            return
        verb, route, response = self.place(method, path, answer.status)
        if method == "HEAD":
            return
        where = f"{verb} {route} {answer.status}"
        name, content = content_of(response, answer.mime)
        if answer.body:
            assert content, f"{where}: content type {answer.mime!r} is not documented"
        if content and name.startswith("application/json"):
            validate(content["schema"], answer.json, f"{method} {path} {answer.status}")
            FIELDS.seen(content["schema"], where, answer.json, self.fields)
        for header in response.get("headers", {}):
            assert header.lower() in answer.headers, f"{where}: header {header} is missing"
        if route:
            self.note(where, name, response)

    def note(self, where, name, response):
        kinds = response.get("content", {})
        if name == "*/*":
            name = next(iter(kinds))
        self.responses.add(f"{where} {name or ''}")

    def check_stream(self, method, path, status, headers):
        """A function that checks each event."""
        verb, route, response = self.place(method, path, status)
        where = f"{verb} {route} {status}"
        name, content = content_of(response, headers["content-type"])
        assert content and "x-item-schema" in content, f"{where}: {headers['content-type']!r} is no documented stream"
        self.note(where, name, response)

        def check(event):
            validate(content["x-item-schema"], event, where)
            FIELDS.seen(content["x-item-schema"], where, event, self.fields)
        return check

    def keep(self, folder):
        text = json.dumps({"responses": sorted(self.responses), "fields": sorted(self.fields)})
        (Path(folder) / f"{os.getpid()}.json").write_text(text)

    def all_seen(self, folder):
        """What all processes of this run of the tests saw."""
        responses, fields = set(self.responses), set(self.fields)
        for file in Path(folder).glob("*.json") if folder else ():
            found = json.loads(file.read_text())
            responses |= set(found["responses"])
            fields |= set(found["fields"])
        return responses, fields


CONTRACT = Contract()  # for every client of this process
