"""OpenAI-compatible Chat Completions: /v1/chat/completions, /v1/models.

With a key it is as strict as OpenAI; with key=None it is a server at home (vLLM, llama.cpp,
Ollama): it ignores fields that it does not know, and thinks aloud in a field of its own."""
import json

from models.chat_check import check
from models.judge import pieces
from models.openai_errors import OpenAI

STOPS = {"end": "stop", "tools": "tool_calls", "length": "length", "refusal": "stop", "filter": "content_filter",
         "window": "length", "sequence": "stop"}


class Chat(OpenAI):
    COMPLETE = ("/v1/chat/completions",)
    MODELS = (*OpenAI.MODELS, "qwen3-coder", "llama-4")
    # As the first chunk of some gateways: a chunk in which nothing is chosen.
    NOISE = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": "", "choices": []}

    def __init__(self, *args, thinks_in="reasoning_content", **rest):
        self.thinks_in = thinks_in
        super().__init__(*args, **rest)

    def check(self, request, headers):
        check(self, request)

    def replies_in(self, request):
        return sum(message["role"] == "assistant" for message in request["messages"])

    def error_frame(self):
        return None, {"error": {"message": "The server had an error", "type": "server_error", "param": None,
                                "code": None}}

    def calls(self, reply, fault):
        found = []
        for call in reply.get("tool_calls", ()):
            arguments = call["arguments"]
            if not fault.odd_arguments and not isinstance(arguments, str):
                arguments = json.dumps(arguments, ensure_ascii=False)[:fault.cut_arguments]
            found.append({"id": self.name("call_"), "type": "function",
                          "function": {"name": call["name"], "arguments": arguments}})
            if fault.no_ids:
                del found[-1]["id"]
        return found

    def usage(self, reply, request):
        told = self.usage_of(reply, request)
        prompt = told["input_tokens"] + told["cache_read_tokens"] + told["cache_write_tokens"]
        return {"prompt_tokens": prompt, "completion_tokens": told["output_tokens"],
                "total_tokens": prompt + told["output_tokens"],
                "prompt_tokens_details": {"cached_tokens": told["cache_read_tokens"], "audio_tokens": 0,
                                          "cache_write_tokens": told["cache_write_tokens"]},
                "completion_tokens_details": {"reasoning_tokens": told["reasoning_tokens"], "audio_tokens": 0,
                                              "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}}

    def stop(self, reply):
        return STOPS[reply.get("stop") or ("tools" if reply.get("tool_calls") else "end")]

    def whole(self, reply, request, fault):
        message = {"role": "assistant", "content": reply.get("text") or None, "refusal": reply.get("refusal"),
                   "annotations": []}
        if calls := self.calls(reply, fault):
            message["tool_calls"] = calls
        if "thinking" in reply and self.key is None:
            message[self.thinks_in] = reply["thinking"]
        answer = {"id": self.name("chatcmpl-"), "object": "chat.completion", "created": 1760000000,
                  "model": request["model"],
                  "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": self.stop(reply)}],
                  "usage": self.usage(reply, request), "service_tier": "default", "system_fingerprint": "fp_fake"}
        if fault.no_usage:
            del answer["usage"]
        return answer

    def frames(self, reply, request, fault):
        common = {"id": self.name("chatcmpl-"), "object": "chat.completion.chunk", "created": 1760000000,
                  "model": request["model"], "service_tier": "default", "system_fingerprint": "fp_fake"}
        counts = (request.get("stream_options") or {}).get("include_usage") and not fault.no_usage

        def chunk(delta, stop=None):
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
            return None, {**common, "choices": [choice], **({"usage": None} if counts else {})}

        yield chunk({"role": "assistant", "content": "", "refusal": None})
        for delta in self.deltas(reply, fault):
            yield chunk(delta)
        while fault.endless:
            yield chunk({"content": "and so on " * 400})
        if not fault.no_end:
            yield chunk({}, self.stop(reply))
        if counts:
            yield None, {**common, "choices": [], "usage": self.usage(reply, request)}
        if not fault.no_done and not fault.no_end:
            yield None, "data: [DONE]"

    def deltas(self, reply, fault):
        if "thinking" in reply and self.key is None:
            yield from ({self.thinks_in: part} for part in pieces(reply["thinking"]))
        yield from ({"content": part} for part in pieces(reply.get("text") or ""))
        yield from ({"refusal": part} for part in pieces(reply.get("refusal") or ""))
        for index, call in enumerate(self.calls(reply, fault)):
            arguments = call["function"]["arguments"]
            if not isinstance(arguments, str):
                yield {"tool_calls": [{"index": index, **call}]}
                continue
            head = {**call, "function": {**call["function"], "arguments": ""}}
            yield {"tool_calls": [{"index": index, **head}]}
            for part in pieces(arguments):
                yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
