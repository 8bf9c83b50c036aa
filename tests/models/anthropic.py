"""Anthropic Messages: /v1/messages, /v1/messages/count_tokens, /v1/models."""
import hmac
import json

from models.anthropic_check import VERSIONS, check
from models.judge import pieces
from models.server import FakeModel, Rejected

STOPS = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "refusal": "refusal", "filter": "refusal",
         "window": "model_context_window_exceeded", "pause": "pause_turn", "sequence": "stop_sequence"}
#          name: status, type, message, details
ERRORS = {
    "rate": (429, "rate_limit_error", "This request would exceed your organization's rate limit", None),
    "quota": (429, "rate_limit_error", "You have reached your spend limit",
              {"error_code": "enforced_spend_limit_reached"}),
    "billing": (402, "billing_error", "Your credit balance is too low", None),
    "server": (500, "api_error", "Internal server error", None),
    "overloaded": (529, "overloaded_error", "Overloaded", None),
    "timeout": (504, "timeout_error", "Timed out", None),
    "permission": (403, "permission_error", "Your API key may not use this resource", None),
    "context": (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", None),
    "request": (400, "invalid_request_error", "something: is not as it should be", None),
    "too_large": (413, "request_too_large", "Request exceeds the maximum size", None),
}


class Anthropic(FakeModel):
    COMPLETE = ("/v1/messages",)
    MODELS = ("claude-opus-5", "claude-sonnet-5", "claude-sonnet-5-5", "claude-haiku-4-5", "claude-fable-5",
              "claude-opus-4-8", "claude-sonnet-4-5")

    def headers(self):
        return {"request-id": self.name("req_"), "anthropic-organization-id": "org_fake"}

    def check_key(self, seen):
        sent = seen.headers.get("x-api-key")
        bearer = seen.headers.get("authorization", "")
        if sent is None and bearer.lower().startswith("bearer "):
            sent = bearer[7:]
        if sent is None:
            raise Rejected(401, "x-api-key header is required", "authentication_error")
        if sent != self.key:
            raise Rejected(401, "invalid x-api-key", "authentication_error")
        version = seen.headers.get("anthropic-version")
        if version not in VERSIONS:
            raise Rejected(400, "anthropic-version: header is required" if version is None
                           else f"anthropic-version: \"{version}\" is not a valid version")

    def check(self, request, headers):
        check(self, request, headers)

    def replies_in(self, request):
        return sum(message["role"] == "assistant" for message in request["messages"])

    # Errors.

    def error_body(self, kind, message, details=None):
        error = {"type": kind, "message": message, **({"details": details} if details else {})}
        return {"type": "error", "error": error, "request_id": self.name("req_")}

    def rejection(self, no):
        kind = {401: "authentication_error", 404: "not_found_error"}.get(no.status, no.kind)
        return self.error_body(kind, no.message)

    def error(self, name):
        status, kind, message, details = ERRORS[name]
        return status, self.error_body(kind, message, details)

    def error_frame(self):
        return "error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    # Other paths.

    def other(self, seen, path):
        if path == "/v1/messages/count_tokens" and seen.method == "POST":
            self.judge_counting(seen)
            return 200, self.headers(), {"input_tokens": self.overflow(seen.json)[0]}
        return super().other(seen, path)

    def judge_counting(self, seen):
        body = json.loads(seen.body)
        seen.json = body
        check(self, {"max_tokens": 1, **body}, seen.headers)

    def model_list(self):
        rows = [{"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z",
                 "capabilities": None, "deprecated_at": None, "lifecycle": "active", "line": None,
                 "max_input_tokens": self.window, "max_tokens": 64000, "retires_at": None}
                for name in sorted(self.known_models)]
        return {"data": rows, "has_more": False, "first_id": rows[0]["id"], "last_id": rows[-1]["id"]}

    # Replies.

    def blocks(self, reply, fault):
        found = []
        if "thinking" in reply:
            found.append({"type": "thinking", "thinking": reply["thinking"],
                          "signature": self.seal(reply["thinking"])})
        if "redacted" in reply:
            found.append({"type": "redacted_thinking", "data": self.seal_data(reply["redacted"])})
        said = reply.get("refusal") or reply.get("text")
        if said:
            found.append({"type": "text", "text": said, "citations": None})
        sealed = [block for block in found if block["type"] != "text"]
        for call in reply.get("tool_calls", ()):
            found.append({"type": "tool_use", "id": self.name("toolu_"), "name": call["name"],
                          "input": call["arguments"], "caller": {"type": "direct"}})
            self.issued[found[-1]["id"]] = sealed
            if fault.no_ids:
                del found[-1]["id"]
        return found

    def seal_data(self, text):
        return f"{text}.{self.seal(text)}"

    def is_sealed(self, block):
        if block["type"] == "thinking":
            return hmac.compare_digest(block["signature"], self.seal(block["thinking"]))
        text, _, seal = block["data"].rpartition(".")
        return hmac.compare_digest(seal, self.seal(text))

    def message(self, reply, request, fault):
        usage = self.usage_of(reply, request)
        stop = reply.get("stop") or ("refusal" if "refusal" in reply else "tools" if reply.get("tool_calls")
                                     else "end")
        refused = {"type": "refusal", "category": None, "explanation": reply.get("refusal")}
        return {
            "id": self.name("msg_"), "type": "message", "role": "assistant", "model": request["model"],
            "content": self.blocks(reply, fault), "stop_reason": STOPS[stop],
            "stop_sequence": "\n\nEND" if stop == "sequence" else None,
            "stop_details": refused if stop in ("refusal", "filter") else None,
            "container": None, "diagnostics": None,
            "usage": {"input_tokens": usage["input_tokens"],
                      "cache_creation_input_tokens": usage["cache_write_tokens"],
                      "cache_read_input_tokens": usage["cache_read_tokens"],
                      "cache_creation": {"ephemeral_5m_input_tokens": usage["cache_write_tokens"],
                                         "ephemeral_1h_input_tokens": 0},
                      "output_tokens": usage["output_tokens"],
                      "output_tokens_details": {"thinking_tokens": usage["reasoning_tokens"]},
                      "server_tool_use": None, "service_tier": "standard", "inference_geo": None, "speed": None}}

    def whole(self, reply, request, fault):
        message = self.message(reply, request, fault)
        for block in message["content"]:
            if block["type"] == "tool_use" and fault.odd_arguments:
                block["input"] = json.dumps(block["input"])
            if block["type"] == "tool_use" and fault.cut_arguments is not None:
                block["input"] = {}
        if fault.no_usage:
            del message["usage"]
        return message

    def frames(self, reply, request, fault):
        message = self.message(reply, request, fault)
        start = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None,
                 "usage": {**message["usage"], "output_tokens": 1, "output_tokens_details": None}}
        if fault.no_usage:
            del start["usage"]
        yield "message_start", {"type": "message_start", "message": start}
        yield "ping", {"type": "ping"}
        index = -1
        for index, block in enumerate(message["content"]):
            yield from self.block_frames(index, block, fault)
        if fault.endless:
            yield from self.endless_frames(index + 1)
        if not fault.no_end:
            yield from self.end_frames(message, fault)

    def block_frames(self, index, block, fault):
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}},
                 "redacted_thinking": {}}[block["type"]]
        odd = block["type"] == "tool_use" and fault.odd_arguments
        yield "content_block_start", {"type": "content_block_start", "index": index,
                                      "content_block": block if odd else {**block, **empty}}
        for delta in () if odd else deltas(block, fault):
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        if not (block["type"] == "tool_use" and fault.cut_arguments is not None and fault.no_end):
            yield "content_block_stop", {"type": "content_block_stop", "index": index}

    def endless_frames(self, index):
        yield "content_block_start", {"type": "content_block_start", "index": index,
                                      "content_block": {"type": "text", "text": "", "citations": None}}
        while True:
            yield "content_block_delta", {"type": "content_block_delta", "index": index,
                                          "delta": {"type": "text_delta", "text": "and so on " * 400}}

    def end_frames(self, message, fault):
        kept = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens",
                "output_tokens_details", "server_tool_use")
        delta = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details", "container")}
        event = {"type": "message_delta", "delta": delta,
                 "usage": {name: message["usage"][name] for name in kept}}
        if fault.no_usage:
            del event["usage"]
        yield "message_delta", event
        if not fault.no_done:
            yield "message_stop", {"type": "message_stop"}


def deltas(block, fault):
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": part} for part in pieces(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": part} for part in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": ""}
        text = json.dumps(block["input"], ensure_ascii=False)[:fault.cut_arguments]
        yield from ({"type": "input_json_delta", "partial_json": part} for part in pieces(text))
