"""Fake model servers: Anthropic Messages, OpenAI Responses and Chat Completions.

Standard library only. Each answers from a script of replies, refuses what the real service
refuses, records what it was sent, and can be told to misbehave. That they are faithful is
proven from outside: the official SDKs work with them and accept the types of all they say
(tests/ecosystem).

    with models.Anthropic([{"text": "Let me see.", "tool_calls": [{"name": "python",
                            "arguments": {"code": "1 + 1"}}]}, {"text": "2"}]) as fake:
        fake.fail(models.Fault(error="overloaded"))      # the first request meets a 529
        ...                                              # fake.url, fake.base_url, fake.key
        assert fake.seen[1].json["messages"]

A reply of the script is what replay: reads, and more:
    text, tool_calls [{"name","arguments"}], thinking (text), redacted (bytes as text), refusal,
    usage {"input_tokens","cache_read_tokens","cache_write_tokens","output_tokens",
    "reasoning_tokens"} (input without what the cache gave or took; reasoning within output),
    stop: "end" | "tools" | "length" | "refusal" | "filter" | "window" | "pause" | "sequence"."""
from models.anthropic import Anthropic
from models.chat import Chat
from models.faults import Fault
from models.responses import Responses
from models.server import FakeModel, Rejected

WIRES = {"anthropic": Anthropic, "responses": Responses, "chat": Chat}
__all__ = ["Anthropic", "Chat", "FakeModel", "Fault", "Rejected", "Responses", "WIRES"]
