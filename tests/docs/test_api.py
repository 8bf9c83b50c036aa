"""docs/api.md has every route, every kind of error and the whole of its examples; its commands are run by
tests/docs/test_docs.py."""
import json
import re

import pytest

from host import REPO

PAGE = (REPO / "docs/api.md").read_text()
DOCUMENT = json.loads((REPO / "api/openapi.json").read_text())


def commands():
    return [line for line in PAGE.splitlines() if line.startswith("$ ")]


def method_of(command):
    if found := re.search(r"-X (\w+)", command):
        return found[1]
    return "PUT" if " -T " in command else "POST" if " -d " in command else "GET"


def shape(path):
    """{run} of the contract, and $(cat run) or a number in a command, as one."""
    return re.sub(r"\{\w+\}|\$\(cat \w+\)|(?<=/)\d+(?=/)", "*", path)


@pytest.mark.parametrize("method,path", [(method.upper(), path) for path, item in DOCUMENT["paths"].items()
                                         for method in item if method != "parameters"])
def test_every_route_has_a_sample(method, path):
    tail = shape(path).removesuffix("*") if path.endswith("{path}") else shape(path) + r"(?=[\s\"?;]|$)"
    found = [command for command in commands() if method_of(command) == method
             and re.search(tail.replace("*", r"\*"), shape(command))]
    assert found, f"no sample of {method} {path}"


def test_the_table_of_errors_is_that_of_the_program():
    table = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| .+ \|$", PAGE, re.M)
    text = (REPO / "src/base/err.h").read_text()
    rows = re.findall(r'^    X\(\w+, "(\w+)", (\d+), (\d+)\)', text, re.M)
    assert len(rows) > 10
    assert table == [(name, status, code) for name, code, status in rows if name != "none"]


def test_a_refusal_has_one_of_these_kinds():
    schema = json.loads((REPO / "api/refusal.schema.json").read_text())
    kinds = schema["properties"]["error"]["properties"]["kind"]["enum"]
    assert kinds == re.findall(r"^\| `(\w+)` \| \d+ \| \d+ \|", PAGE, re.M)


@pytest.mark.parametrize("language,file", [("python", "examples/python/api.py"), ("javascript", "examples/js/api.mjs")])
def test_an_example_is_shown_as_it_is(language, file):
    block = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)[1]
    assert block == (REPO / file).read_text()
