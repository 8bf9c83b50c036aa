"""The fakes refuse what the real services refuse, and misbehave only as told."""
import base64
import json

import pytest

import models
from models.client import MODEL, ask, events, plain
from models.faults import GARBAGE, HTML

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff rest").decode()
SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
USER = {"role": "user", "content": "?"}


def a_use(**fields):
    return {"type": "tool_use", "id": "toolu_1", "name": "python", "input": {}, **fields}


def a_result(**fields):
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": "2", **fields}


def a_talk(call, *results):
    return {"messages": [USER, {"role": "assistant", "content": [call]}, {"role": "user", "content": list(results)}]}


def a_image(mime, data):
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def a_said(*content):
    return {"messages": [{"role": "user", "content": list(content)}]}


TEXT = {"type": "text", "text": "and?"}
ANTHROPIC = [
    ({"temperature": 1}, "temperature"), ({"top_p": 1}, "top_p"), ({"top_k": 1}, "top_k"),
    ({"max_tokens": None}, "max_tokens"), ({"max_tokens": 10**9}, "maximum allowed"), ({"max_token": 1}, "Extra"),
    ({"messages": []}, "at least one"), ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
    ({"messages": [{"role": "user", "content": ""}]}, "non-empty"),
    ({"messages": [{"role": "assistant", "content": "x"}, USER]}, "first message"),
    ({"messages": [USER, {"role": "assistant", "content": "It is"}]}, "prefill"),
    (a_said({"type": "text", "text": ""}), "non-empty"), (a_said({"type": "text", "text": " \n"}), "non-whitespace"),
    (a_said({"type": "input_text", "text": "x"}), "expected tags"), (a_said({**TEXT, "note": 1}), "Extra"),
    (a_said({**TEXT, "citations": [{}]}), "citations"), (a_said(a_use()), "can only be in"),
    (a_said(a_image("image/bmp", PNG)), "media_type"), (a_said(a_image("image/png", "#")), "base64"),
    (a_said(a_image("image/png", JPEG)), "does not appear"), (a_said(a_result()), "unexpected `tool_use_id`"),
    (a_talk(a_use(), TEXT, a_result()), "must come first"), (a_talk(a_use(), TEXT), "without `tool_result`"),
    (a_talk(a_use(), a_result(tool_use_id="toolu_2")), "unexpected"),
    (a_talk(a_use(), a_result(), a_result()), "single result"), (a_talk(a_use(input="{}"), a_result()), "dictionary"),
    (a_talk(a_use(id="a b"), a_result(tool_use_id="a b")), "id"), (a_talk(a_use(name="a.b"), a_result()), "name"),
    (a_talk(a_use(), a_result(content="", is_error=True)), "cannot be empty"),
    (a_talk(a_use(), a_result(content=[a_image("image/png", PNG)], is_error=True)), "must be type"),
    ({"tools": [{"name": "a.b", "input_schema": SCHEMA}]}, "name"),
    ({"tools": [{"name": "a", "input_schema": {}}]}, "input_schema"),
    ({"tools": [{"name": "a", "input_schema": SCHEMA}] * 2}, "unique"),
    ({"tools": [{"name": "a", "parameters": SCHEMA}]}, "parameters"), ({"tool_choice": {"type": "auto"}}, "tools"),
    ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "enabled"),
    ({"system": [{"type": "text", "text": ""}]}, "non-empty"),
    (a_said(*[{**TEXT, "cache_control": {"type": "ephemeral"}}] * 5), "maximum of 4"),
    (a_said({"type": "text", "text": "x" * 900_000}), "prompt is too long: "),
]


def c_call(**fields):
    function = {"name": "python", "arguments": "{}", **fields.pop("function", {})}
    return {"id": "call_1", "type": "function", "function": function, **fields}


def c_talk(call, *rest):
    return {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, *rest]}


def c_image(url):
    return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


C_TOOL = {"type": "function", "function": {"name": "python", "parameters": SCHEMA}}
C_RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "2"}
CHAT = [
    ({"max_tokens": 9}, "max_completion_tokens"), ({"temperature": 0}, "temperature"), ({"sytem": "x"}, "sytem"),
    ({"messages": []}, "empty array"), ({"messages": [{"role": "bot", "content": "x"}]}, "bot"),
    ({"messages": [{"role": "user", "content": None}]}, "content"),
    ({"messages": [{"role": "user", "content": []}]}, "empty array"),
    ({"messages": [{"role": "assistant", "content": None}]}, "content"),
    ({"messages": [{**USER, "note": 1}]}, "note"), ({"messages": [C_RESULT]}, "preceding"),
    ({"messages": [USER, {"role": "assistant", "content": "x", "tool_calls": []}]}, "empty array"),
    ({"messages": [USER, {"role": "assistant", "content": "x", "reasoning_content": "y"}]}, "reasoning_content"),
    (c_talk(c_call()), "did not have response"), (c_talk(c_call(), USER, C_RESULT), "did not have response"),
    (c_talk(c_call(), {**C_RESULT, "tool_call_id": "call_2"}), "preceding"),
    (c_talk(c_call(), C_RESULT, C_RESULT), "preceding"), (c_talk(c_call(id="x" * 41), C_RESULT), "41"),
    (c_talk(c_call(function={"arguments": '{"code": "unfin'}), C_RESULT), "JSON"),
    (c_talk(c_call(function={"arguments": {}}), C_RESULT), "type"),
    (c_talk(c_call(function={"name": "a.b"}), C_RESULT), "pattern"),
    (c_talk(c_call(), {**C_RESULT, "content": [{"type": "image_url", "image_url": {"url": "x"}}]}), "image_url"),
    (c_image(f"data:image/bmp;base64,{PNG}"), "image/bmp"), (c_image(f"data:image/png;base64,{JPEG}"), "appear"),
    (c_image("http://127.0.0.1/x.png"), "download"), ({"tools": []}, "empty array"),
    ({"tools": [{"type": "function", "name": "python", "parameters": SCHEMA}]}, "function"),
    ({"tools": [{"type": "function", "function": {"name": "a.b"}}]}, "pattern"),
    ({"tools": [{"type": "function", "function": {"name": "a", "parameters": SCHEMA, "strict": True}}]}, "schema"),
    ({"tool_choice": "auto"}, "only allowed"), ({"parallel_tool_calls": False}, "only allowed"),
    ({"tools": [C_TOOL], "tool_choice": "any"}, "any"), ({"stream_options": {"include_usage": True}}, "stream"),
    ({"messages": [{"role": "user", "content": "x" * 900_000}]}, "context_length_exceeded"),
]


def r_call(**fields):
    return {"type": "function_call", "call_id": "call_1", "name": "python", "arguments": "{}", **fields}


def r_output(**fields):
    return {"type": "function_call_output", "call_id": "call_1", "output": "2", **fields}


def r_in(*items):
    return {"input": [USER, *items]}


def r_part(role, **part):
    return r_in({"role": role, "content": [part]})


RESPONSES = [
    ({"max_output_tokens": 1}, ">= 16"), ({"temperature": 1}, "temperature"), ({"messages": []}, "messages"),
    ({"input": None}, "input"), ({"input": []}, "empty array"), ({"previous_response_id": "resp_1"}, "not found"),
    ({"include": ["all"]}, "all"), ({"reasoning": {"effort": "much"}}, "much"),
    ({"tools": [{"type": "function", "function": {"name": "a", "parameters": SCHEMA}}]}, "name"),
    ({"tools": [{"type": "function", "name": "a", "parameters": SCHEMA, "strict": True}]}, "schema"),
    (r_in({"role": "tool", "content": "x"}), "tool"), (r_part("user", type="text", text="x"), "input_text"),
    (r_part("assistant", type="input_text", text="x"), "output_text"),
    (r_part("user", type="input_image", image_url={"url": "x"}), "type"),
    (r_part("user", type="input_image", image_url=f"data:image/tiff;base64,{PNG}"), "tiff"),
    (r_in(r_call()), "No tool output"), (r_in(r_output()), "No tool call"), (r_in(r_output(), r_call()), "No tool"),
    (r_in(r_call(), r_output(), r_output()), "Duplicate"), (r_in(r_call(id="call_1"), r_output()), "begins with 'fc'"),
    (r_in(r_call(arguments="{"), r_output()), "JSON"), (r_in(r_call(call_id="x" * 65)), "65"),
    (r_in({"type": "reasoning", "id": "rs_1", "summary": []}), "not found"),
    ({"input": "x" * 900_000}, "context_length_exceeded"),
]
TABLES = {"anthropic": ANTHROPIC, "chat": CHAT, "responses": RESPONSES}
NAMED = [(wire, number) for wire, table in TABLES.items() for number in range(len(table))]


@pytest.fixture(scope="module")
def fakes():
    with models.Anthropic() as a, models.Chat() as c, models.Responses() as r:
        yield {"anthropic": a, "chat": c, "responses": r}


@pytest.fixture(params=models.WIRES)
def wire(request):
    return request.param


@pytest.fixture
def fake(fakes, wire):
    fakes[wire].reset()
    return fakes[wire]


@pytest.mark.parametrize("wire,number", NAMED, ids=[f"{wire}-{TABLES[wire][number][1]}" for wire, number in NAMED])
def test_what_the_service_refuses(fakes, wire, number):
    fields, words = TABLES[wire][number]
    body = {name: value for name, value in plain(wire, **fields).items() if value is not None}
    fakes[wire].reset()
    fakes[wire].say({"text": "taken"})
    status, _, content = ask(fakes[wire], wire, body)
    assert status in (400, 404) and words in content.decode(), (status, content)
    assert fakes[wire].rejected


def test_a_plain_request_is_taken(fake, wire):
    fake.say({"text": "four"}, {"text": "five"})
    status, headers, content = ask(fake, wire, plain(wire))
    assert status == 200 and "four" in content.decode() and any("request-id" in name for name in headers)
    status, _, content = ask(fake, wire, plain(wire, stream=True))
    assert status == 200 and events(content) == fake.seen[1].sent and not fake.rejected
    assert fake.seen[0].headers["content-type"] == "application/json"


def test_keys_models_bodies_and_paths(fake, wire):
    keys = ("x-api-key", "authorization")
    assert ask(fake, wire, plain(wire), without=keys)[0] == 401
    wrong = {"x-api-key": "no"} if wire == "anthropic" else {"authorization": "Bearer no"}
    assert ask(fake, wire, plain(wire), **wrong)[0] == 401
    assert ask(fake, wire, plain(wire, model="gone"))[0] == 404
    assert ask(fake, wire, b'{"model": ')[0] == 400
    assert ask(fake, wire, b'{"model": "\\ud800"}')[0] == 400
    assert ask(fake, wire, b"[]")[0] == 400
    assert ask(fake, wire, plain(wire), path="/v2/x")[0] == 404
    assert ask(fake, wire, plain(wire), **{"content-type": "text/plain"})[0] == 415
    listed = json.loads(ask(fake, wire, b"", "/v1/models", "GET")[2])
    assert MODEL[wire] in [row["id"] for row in listed["data"]]
    assert ask(fake, wire, plain(wire))[0] == 400  # the script is empty


def test_the_version_is_asked_for(fakes):
    fake = fakes["anthropic"]
    fake.reset()
    assert ask(fake, "anthropic", plain("anthropic"), without=("anthropic-version",))[0] == 400
    assert ask(fake, "anthropic", plain("anthropic"), **{"anthropic-version": "2024-01-01"})[0] == 400
    fake.say({"text": "old"})
    body = plain("anthropic", temperature=0.5)
    assert ask(fake, "anthropic", body, **{"anthropic-version": "2023-06-01"})[0] == 200


CALL = {"thinking": "hm", "text": "So:", "tool_calls": [{"name": "python", "arguments": {"code": "1"}}]}


@pytest.mark.parametrize("spoil", [None, "text", "seal", "gone"])
def test_thinking_comes_back_unchanged(fakes, spoil):
    fake = fakes["anthropic"]
    fake.reset()
    fake.say(CALL, {"text": "done"})
    content = json.loads(ask(fake, "anthropic", plain("anthropic"))[2])["content"]
    call = content[-1]["id"]
    if spoil == "text":
        content[0]["thinking"] += "!"
    elif spoil == "seal":
        content[0]["signature"] = "0" * 64
    elif spoil == "gone":
        del content[0]
    body = plain("anthropic", **a_talk(content[-1], a_result(tool_use_id=call)))
    body["messages"][1]["content"] = content
    assert ask(fake, "anthropic", body)[0] == (400 if spoil else 200)


@pytest.mark.parametrize("spoil", [None, "seal", "gone", "alone"])
def test_reasoning_comes_back_unchanged(fakes, spoil):
    fake = fakes["responses"]
    fake.reset()
    fake.say(CALL, {"text": "done"})
    sealed = {"store": False, "include": ["reasoning.encrypted_content"]}
    items = json.loads(ask(fake, "responses", plain("responses", **sealed))[2])["output"]
    if spoil == "seal":
        items[0]["encrypted_content"] = "0"
    elif spoil == "gone":
        del items[0]
    elif spoil == "alone":
        del items[1:]
    outputs = [r_output(call_id=item["call_id"]) for item in items if item["type"] == "function_call"]
    body = plain("responses", **sealed, **r_in(*items, *outputs))
    assert ask(fake, "responses", body)[0] == (400 if spoil else 200)


def test_faults_are_as_told(fake, wire):
    body = plain(wire, stream=True)
    fake.fail(models.Fault(error="rate", retry_after=3), models.Fault(error="quota"), HTML, GARBAGE,
              models.Fault(redirect="http://127.0.0.1:9/"))
    status, headers, _ = ask(fake, wire, body)
    assert (status, headers["retry-after"]) == (429, "3")
    status, headers, _ = ask(fake, wire, body)
    assert status == 429 and "retry-after" not in headers
    assert ask(fake, wire, body)[0] == 502
    assert ask(fake, wire, body)[2] == GARBAGE.body
    assert ask(fake, wire, body)[0] == 307
    assert len(fake.seen) == 5


END = {"anthropic": b"message_stop", "responses": b"response.completed", "chat": b"[DONE]"}


def test_streams_break_as_told(fake, wire):
    body = plain(wire, stream=True)
    fake.say(*[{"text": "as long as it takes"}] * 6)
    fake.fail(models.Fault(cut_after=100), models.Fault(newline="\r\n", split=1), models.Fault(error_event=2),
              models.Fault(no_end=True), models.Fault(no_done=True, noise=True), models.Fault(no_usage=True))
    assert len(ask(fake, wire, body)[2]) == 100
    assert b"\r\n\r\n" in ask(fake, wire, body)[2]
    assert "error" in json.dumps(events(ask(fake, wire, body)[2])[-1])
    assert END[wire] not in ask(fake, wire, body)[2]
    assert b"unheard_of" in ask(fake, wire, body)[2]
    whole = ask(fake, wire, body)[2]
    assert END[wire] in whole and b'"usage": {' not in whole


def test_the_reply_by_how_far_the_conversation_is(wire):
    with models.WIRES[wire](turns=[{"text": "first"}, {"text": "second"}]) as fake:
        field = "input" if wire == "responses" else "messages"
        later = plain(wire, **{field: [USER, {"role": "assistant", "content": "first"}, USER]})
        for body, words in ((later, b"second"), (plain(wire), b"first"), (later, b"second")):
            assert words in ask(fake, wire, body)[2]
