"""What the fakes say, and what cupel says to them, as TypeScript that compiles only where it has
the SDKs' own types."""
import json
import shutil

import models

IMPORTS = {"anthropic": 'import type Anthropic from "@anthropic-ai/sdk";\n',
           "responses": 'import type OpenAI from "openai";\n', "chat": 'import type OpenAI from "openai";\n'}
#          wire: type of a whole reply, of an event, of an error, of the model list's rows
TYPES = {
    "anthropic": ("Anthropic.Message", "Anthropic.RawMessageStreamEvent", "Anthropic.ErrorResponse",
                  "Anthropic.ModelInfo"),
    "responses": ("OpenAI.Responses.Response", "OpenAI.Responses.ResponseStreamEvent", "OpenAI.ErrorObject",
                  "OpenAI.Model"),
    "chat": ("OpenAI.ChatCompletion", "OpenAI.ChatCompletionChunk", "OpenAI.ErrorObject", "OpenAI.Model"),
}
REQUESTS = {"anthropic": "Anthropic.MessageCreateParamsStreaming",
            "responses": "OpenAI.Responses.ResponseCreateParamsStreaming",
            "chat": "OpenAI.ChatCompletionCreateParamsStreaming"}
UNTYPED = ("too_large",)  # documented, but not among the SDK's types
MODEL = {"anthropic": "claude-opus-5", "responses": "gpt-6.1-sol", "chat": "gpt-6.1-sol"}
FORMS = [
    {"text": "Plain."}, {"text": "Cut sho", "stop": "length"}, {"refusal": "I will not."},
    {"text": "Stopped", "stop": "filter"}, {"text": "Full", "stop": "window"}, {"redacted": "hidden", "text": "So."},
    {"text": "END", "stop": "sequence"}, {"tool_calls": [{"name": "python", "arguments": {}}]}, {},
    {"text": "tokens", "usage": {"input_tokens": 0, "cache_write_tokens": 9, "output_tokens": 1}},
]


def requests(wire):
    common = {"model": MODEL[wire]}
    if wire == "responses":
        return {**common, "input": "?", "include": ["reasoning.encrypted_content"], "store": False}
    body = {**common, "messages": [{"role": "user", "content": "?"}]}
    return {**body, "max_tokens": 9} if wire == "anthropic" else {**body, "stream_options": {"include_usage": True}}


def error_of(wire, body):
    """The SDKs type OpenAI's error without the object around it, Anthropic's without details."""
    if wire != "anthropic":
        return body["error"]
    return {**body, "error": {name: value for name, value in body["error"].items() if name != "details"}}


def rows(fake, wire, turns):
    """(place in TYPES, value) of every form; the streams of servers at home have fields of their own."""
    request, fault = requests(wire), models.Fault()
    for reply in [*turns, *FORMS]:
        yield 0, fake.whole(reply, request, fault)
        yield from ((1, value) for _, value in fake.frames(reply, request, fault) if isinstance(value, dict))
    names = models.anthropic.ERRORS if wire == "anthropic" else models.openai_errors.ERRORS
    for name in set(names) - set(UNTYPED):
        yield 2, error_of(wire, fake.error(name)[1])
    yield from ((3, row) for row in fake.model_list()["data"])
    for seen in fake.completions:
        for value in seen.sent if seen.status == 200 else ():
            yield (1 if seen.json.get("stream") else 0), value


def as_read(value):
    """The SDK adds output_text to a Response that it has read; the wire has none."""
    if value.get("object") == "response":
        return {**value, "output_text": ""}
    return {**value, "response": as_read(value["response"])} if "response" in value else value


def is_type(wire, value):
    """Pings are no part of the SDK's types, though its reader takes them."""
    return not (wire == "anthropic" and value.get("type") == "ping")


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def write_wrong(folder, fakes):
    """A whole reply of each wire without one field: no compiler may take it."""
    fresh(folder)
    for wire, names in TYPES.items():
        value = as_read(fakes[wire].whole({"text": "?"}, requests(wire), models.Fault()))
        del value["model"]
        (folder / f"{wire}.ts").write_text(f"{IMPORTS[wire]}export const v: {names[0]} = {json.dumps(value)};\n")


def write(folder, fakes, turns):
    """One file a wire; the number of values in all."""
    fresh(folder)
    count = 0
    for wire in TYPES:
        lines, known = [IMPORTS[wire]], set()
        for place, value in rows(fakes[wire], wire, turns):
            text = json.dumps(as_read(value))
            if (place, text) in known or not is_type(wire, value):
                continue
            known.add((place, text))
            lines.append(f"export const v{len(known)}: {TYPES[wire][place]} = {text};\n")
        (folder / f"{wire}.ts").write_text("".join(lines))
        count += len(known)
    return count


def write_requests(folder, asked):
    """`asked`: (wire, request) pairs."""
    fresh(folder)
    for wire, name in REQUESTS.items():
        found = [request for of, request in asked if of == wire]
        lines = [f"export const v{n}: {name} = {json.dumps(value)};\n" for n, value in enumerate(found)]
        (folder / f"{wire}.ts").write_text(IMPORTS[wire] + "".join(lines))
