"""OpenAI Responses: /v1/responses, /v1/models."""
import json

from models.judge import pieces
from models.openai_errors import OpenAI
from models.responses_check import check

INCOMPLETE = {"length": "max_output_tokens", "window": "max_output_tokens", "filter": "content_filter"}


class Responses(OpenAI):
    COMPLETE = ("/v1/responses",)
    NOISE = {"type": "response.tomorrow.delta", "sequence_number": 0, "delta": "?"}

    def check(self, request, headers):
        check(self, request)

    def replies_in(self, request):
        """Of one reply come one or more items; another's item lies between."""
        count, inside = 0, False
        for item in request["input"] if isinstance(request["input"], list) else ():
            ours = item.get("type") in ("function_call", "reasoning") or item.get("role") == "assistant"
            count += ours and not inside
            inside = ours
        return count

    def error_frame(self):
        return "error", {"type": "error", "code": "server_error", "message": "The server had an error",
                         "param": None, "sequence_number": 99}

    def items(self, reply, request, fault):
        found, before = [], []
        if "thinking" in reply:
            before = [{"type": "reasoning", "id": self.name("rs_"),
                       "summary": [{"type": "summary_text", "text": reply["thinking"]}]}]
            if "reasoning.encrypted_content" in request.get("include", ()):
                text = f"{before[0]['id']}:{reply['thinking']}"
                before[0]["encrypted_content"] = f"{self.seal(text)}"
            self.issued[before[0]["id"]] = dict(before[0])
        if reply.get("text") or reply.get("refusal"):
            part = ({"type": "refusal", "refusal": reply["refusal"]} if reply.get("refusal") else
                    {"type": "output_text", "text": reply["text"], "annotations": [], "logprobs": []})
            found.append({"type": "message", "id": self.name("msg_"), "role": "assistant", "status": "completed",
                          "content": [part]})
        for call in reply.get("tool_calls", ()):
            arguments = call["arguments"]
            if not fault.odd_arguments and not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False)[:fault.cut_arguments]
            found.append({"type": "function_call", "id": self.name("fc_"), "call_id": self.name("call_"),
                          "name": call["name"], "arguments": arguments, "status": "completed"})
            if fault.no_ids:
                del found[-1]["call_id"]
        if before and found:
            self.issued[found[0]["id"]] = before[0]["id"]
        return before + found

    def response(self, reply, request, fault):
        told = self.usage_of(reply, request)
        entered = told["input_tokens"] + told["cache_read_tokens"] + told["cache_write_tokens"]
        reason = INCOMPLETE.get(reply.get("stop"))
        return {
            "id": self.name("resp_"), "object": "response", "created_at": 1760000000,
            "status": "incomplete" if reason else "completed", "error": None, "access_programs": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": request.get("instructions"), "metadata": {}, "model": request["model"],
            "output": self.items(reply, request, fault), "parallel_tool_calls": True, "temperature": 1.0,
            "tool_choice": "auto", "tools": [], "top_p": 1.0, "max_output_tokens": request.get("max_output_tokens"),
            "previous_response_id": None, "reasoning": {"effort": None, "summary": None},
            "service_tier": "default", "text": {"format": {"type": "text"}}, "truncation": "disabled",
            "usage": {"input_tokens": entered,
                      "input_tokens_details": {"cached_tokens": told["cache_read_tokens"],
                                               "cache_write_tokens": told["cache_write_tokens"]},
                      "output_tokens": told["output_tokens"],
                      "output_tokens_details": {"reasoning_tokens": told["reasoning_tokens"]},
                      "total_tokens": entered + told["output_tokens"]}}

    def whole(self, reply, request, fault):
        answer = self.response(reply, request, fault)
        if fault.no_usage:
            del answer["usage"]
        return answer

    def frames(self, reply, request, fault):
        """Numbered in order."""
        for number, event in enumerate(self.events(reply, request, fault)):
            yield event["type"], {**event, "sequence_number": number}

    def events(self, reply, request, fault):
        whole = self.whole(reply, request, fault)
        begun = {**whole, "status": "in_progress", "output": [], "incomplete_details": None}
        begun.pop("usage", None)
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        for index, item in enumerate(whole["output"]):
            yield {"type": "response.output_item.added", "output_index": index, "item": empty(item)}
            yield from INNER[item["type"]](item, {"output_index": index, "item_id": item["id"]})
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        while fault.endless:
            yield {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg_0",
                   "delta": "and so on " * 400, "logprobs": []}
        if not fault.no_end:
            yield {"type": "response." + whole["status"], "response": whole}


def empty(item):
    blank = {"message": {"content": [], "status": "in_progress"}, "reasoning": {"summary": []},
             "function_call": {"arguments": "", "status": "in_progress"}}[item["type"]]
    return {**item, **blank}


def message_events(item, place):
    part, place = item["content"][0], {**place, "content_index": 0}
    kind = "text" if part["type"] == "output_text" else "refusal"
    extra = {"logprobs": []} if kind == "text" else {}
    yield {"type": "response.content_part.added", **place, "part": {**part, kind: ""}}
    name = "response.output_text" if kind == "text" else "response.refusal"
    for piece in pieces(part[kind]):
        yield {"type": name + ".delta", **place, "delta": piece, **extra}
    yield {"type": name + ".done", **place, kind: part[kind], **extra}
    yield {"type": "response.content_part.done", **place, "part": part}


def call_events(item, place):
    if isinstance(item["arguments"], str):
        for piece in pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}


def reasoning_events(item, place):
    part, place = item["summary"][0], {**place, "summary_index": 0}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


INNER = {"message": message_events, "function_call": call_events, "reasoning": reasoning_events}
