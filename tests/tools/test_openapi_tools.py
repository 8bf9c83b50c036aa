"""Tool files with "openapi": one tool for each operation, or a reason why there is none."""
import json

import pytest

from test_http_tools import web  # noqa: F401  the fixture
from tool_files import SECRET, Tools

PET = {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string", "example": "Rex"}, "age": {"type": "integer", "nullable": True},
    "kind": {"type": "string", "enum": ["dog"], "nullable": True},
    "parent": {"$ref": "#/components/schemas/Pet"}}}
PATHS = {
    "/pets/{petId}": {
        "parameters": [{"name": "petId", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0,
                                                                                  "exclusiveMinimum": True}}],
        "get": {"operationId": "getPet", "summary": "One pet.", "description": "By number.\u202e",
                "parameters": [{"$ref": "#/components/parameters/Fields"},
                               {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                               {"name": "jar", "in": "cookie", "schema": {"type": "string"}}]},
        "delete": {"responses": {}}},
    "/pets": {"post": {"operationId": "addPet", "requestBody": {"$ref": "#/components/requestBodies/Pet"}},
              "get": {"operationId": "listPets", "parameters": [
                  {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}]}},
    "/search": {"post": {"operationId": "search", "requestBody": {"required": True, "content": {
        "application/json": {"schema": {"oneOf": [{"$ref": "#/components/schemas/Pet"}, {"type": "null"}]}}}}}},
    "/login": {"post": {"operationId": "login", "requestBody": {"required": True, "content": {
        "application/x-www-form-urlencoded": {"schema": {"type": "object",
                                                         "properties": {"user": {"type": "string"}}}}}}}},
    "/upload": {"post": {"operationId": "upload", "requestBody": {"content": {"multipart/form-data": {}}}}},
    "/deep": {"get": {"operationId": "deep", "parameters": [
        {"name": "filter", "in": "query", "required": True, "style": "deepObject", "schema": {"type": "object"}}]}},
    "/lost": {"get": {"operationId": "lost", "parameters": [{"$ref": "#/components/parameters/None"}]}},
    "/loose/{id}": {"get": {"operationId": "loose"}},
}
DOCUMENT = {"openapi": "3.0.3", "info": {"title": "Pets", "version": "1"}, "paths": PATHS, "components": {
    "schemas": {"Pet": PET}, "parameters": {"Fields": {"name": "fields", "in": "query", "schema": {"type": "string"}}},
    "requestBodies": {"Pet": {"required": True, "content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/Pet"}}}}}}}


@pytest.fixture
def tools(cupel_as, place):
    return Tools(cupel_as, place)


def api(tools, web, document=None, **more):  # noqa: F811
    folder = tools.folder / "documents"
    if not folder.exists():
        folder.mkdir()
        tools.own(folder, 0o755)
    path = folder / "pets.json"
    path.write_text(json.dumps(document or {**DOCUMENT, "servers": [{"url": web.url + "/api/"}]}))
    tools.own(path, 0o644)
    tools.write("pets.json", {"name": "pets", "openapi": "documents/pets.json", "private": True,
                              "policy": "allow", **more})


def listed(tools):
    return {tool["name"]: tool for tool in json.loads(tools.run("ls", "--json").stdout)["tools"]}


def test_each_operation_is_a_tool(tools, web):  # noqa: F811
    api(tools, web)
    found = listed(tools)
    assert set(found) == {"pets." + name for name in
                          ("getPet", "delete_pets__petId_", "addPet", "listPets", "search", "login")}
    get = found["pets.getPet"]
    assert (get["effect"], get["description"]) == ("read", "One pet.\nBy number.")
    assert get["input_schema"]["properties"]["petId"] == {"type": "integer", "exclusiveMinimum": 0}
    assert get["input_schema"]["required"] == ["petId"] and "jar" not in get["input_schema"]["properties"]
    add = found["pets.addPet"]
    assert add["effect"] == "write" and add["input_schema"]["required"] == ["name"]
    assert add["input_schema"]["properties"]["kind"] == {"type": ["string", "null"], "enum": ["dog", None]} or \
        add["input_schema"]["properties"]["kind"]["enum"] == ["dog", None]
    assert add["input_schema"]["properties"]["parent"] == {"$ref": "#/$defs/Pet"}


def test_calls_reach_the_operation(tools, web):  # noqa: F811
    tools.secret(TOKEN=SECRET)
    api(tools, web, headers={"Authorization": "Bearer ${secret:TOKEN}"})
    tools.value("pets.getPet", {"petId": 7, "fields": "a,b", "X-Trace": "t"})
    seen = web.last()
    assert (seen["method"], seen["path"]) == ("GET", "/api/pets/7?fields=a%2Cb")
    assert (seen["headers"]["authorization"], seen["headers"]["x-trace"]) == (f"Bearer {SECRET}", "t")
    tools.value("pets.addPet", {"name": "Rex", "parent": {"name": "Max", "parent": {"name": "Old"}}})
    assert json.loads(web.last()["body"]) == {"name": "Rex", "parent": {"name": "Max", "parent": {"name": "Old"}}}
    tools.value("pets.listPets", {"tag": ["a", "b"]})
    assert web.last()["path"] == "/api/pets?tag=a&tag=b"
    tools.value("pets.search", {"body": {"name": "x"}})
    assert web.last()["body"] == '{"name":"x"}'
    tools.value("pets.login", {"user": "a b"})
    assert web.last()["body"] == "user=a%20b"
    assert "parent.name" in tools.refusal("pets.addPet", {"name": "x", "parent": {"name": 1}})["message"]
    assert tools.refusal("pets.getPet", {"petId": 0})["message"] == "'petId' is 0, must be above 0"


def test_an_operation_that_cannot_be_offered_says_why(tools, web):  # noqa: F811
    api(tools, web)
    faults = {fault["tool"]: fault["message"] for fault in tools.faults()}
    assert faults == {"pets.upload": "its body is neither JSON nor a form",
                      "pets.deep": "its parameter 'filter' has a style other than 'form'",
                      "pets.lost": "it refers to a parameter that is not there",
                      "pets.loose": "its path has a parameter that it does not describe"}


def test_patterns_choose_operations(tools, web):  # noqa: F811
    api(tools, web, include=["*Pet*", "POST /login"], exclude=["add*"])
    assert set(listed(tools)) == {"pets.getPet", "pets.listPets", "pets.login"}


@pytest.mark.parametrize("change, said", [
    ({"openapi": "2.0"}, "3.0 or 3.1"), ({"paths": []}, "3.0 or 3.1"), ({"servers": []}, "names no server"),
    ({"servers": [{"url": "/relative"}]}, "names no server"),
    ({"servers": [{"url": "http://u@evil/"}]}, "names no server"),
])
def test_a_document_that_cannot_be_used_is_one_fault(tools, web, change, said):  # noqa: F811
    api(tools, web, {**DOCUMENT, "servers": [{"url": web.url}], **change})
    assert said in tools.fault()["message"]


def test_a_wrong_field_and_a_document_that_is_no_json(tools, web):  # noqa: F811
    api(tools, web, effect="read")
    assert tools.fault()["field"] == "effect"
    tools.write("pets.json", {"openapi": "no.json"})
    assert "no.json" in tools.fault()["message"]


def test_a_document_from_a_url_names_its_own_server_only(tools, web):  # noqa: F811
    web.server.document = {**DOCUMENT, "servers": [{"url": "/api"}]}
    tools.write("pets.json", {"openapi": web.url + "/document", "private": True, "include": ["getPet"],
                              "policy": "allow"})
    tools.value("getPet", {"petId": 1})
    assert web.last()["path"] == "/api/pets/1"
    web.server.document = {**DOCUMENT, "servers": [{"url": "http://127.0.0.2:1/api"}]}
    assert "give it as 'server'" in tools.fault()["message"]
    tools.write("pets.json", {"openapi": web.url + "/document", "include": ["getPet"]})
    assert "may be asked" in tools.fault()["message"]


def test_a_schema_bomb_loses_its_own_operation_alone(tools, web):  # noqa: F811
    deep = {"type": "object"}
    for _ in range(49):
        deep = {"items": deep}
    wide = {"type": "object", "properties": {str(i): {} for i in range(5000)}}
    body = {"post": {"requestBody": {"content": {"application/json": {"schema": {"allOf": [deep]}}}}}}
    many = {"post": {"requestBody": {"content": {"application/json": {"schema": wide}}}}}
    api(tools, web, {**DOCUMENT, "servers": [{"url": web.url}],
                     "paths": {"/deep": body, "/wide": many, "/pets": PATHS["/pets"]}})
    assert set(listed(tools)) == {"pets.addPet", "pets.listPets"} and len(tools.faults()) == 2
