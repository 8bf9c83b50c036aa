"""What Anthropic's Messages API refuses, as far as a client such as cupel could get it wrong."""
import re

from models.judge import PICTURES, TOOL_NAME, picture
from models.server import Rejected

VERSIONS = ("2023-06-01", "2026-10-21")
BETAS = ("context-1m-2025-08-07", "interleaved-thinking-2025-05-14", "extended-cache-ttl-2025-04-11",
         "structured-outputs-2025-11-13", "fine-grained-tool-streaming-2025-05-14")
FIELDS = {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stream", "metadata",
          "stop_sequences", "temperature", "top_p", "top_k", "cache_control", "output_config", "service_tier",
          "container", "diagnostics", "inference_geo", "speed"}
SAMPLING = ("temperature", "top_p", "top_k")
OUTPUT_MAX = 128_000
CACHE_MARKS = 4
BLOCKS = {  # type: (who may send it, its fields besides type, those of them that may be absent)
    "text": (("user", "assistant", "system"), ("text",), ("cache_control", "citations")),
    "image": (("user",), ("source",), ("cache_control",)),
    "document": (("user",), ("source",), ("cache_control", "citations", "title", "context")),
    "tool_result": (("user",), ("tool_use_id",), ("content", "is_error", "cache_control")),
    "tool_use": (("assistant",), ("id", "name", "input"), ("cache_control", "caller", "toolset_name")),
    "thinking": (("assistant",), ("thinking", "signature"), ()),
    "redacted_thinking": (("assistant",), ("data",), ()),
}


def no(message, status=400):
    raise Rejected(status, message)


def generation(model):
    """(4, 5) of claude-haiku-4-5 and claude-sonnet-4-5-20250929; (5, 0) of claude-opus-5."""
    numbers = [int(part) for part in model.split("-") if part.isdigit() and len(part) < 3]
    return tuple((numbers + [0, 0])[:2])


def check(fake, request, headers):
    for name in request:
        if name not in FIELDS:
            no(f"{name}: Extra inputs are not permitted")
    for name in ("model", "max_tokens", "messages"):
        if name not in request:
            no(f"{name}: Field required")
    if request["model"] not in fake.known_models:
        no(f"model: {request['model']}", 404)
    for beta in filter(None, re.split(r"\s*,\s*", headers.get("anthropic-beta", ""))):
        if beta not in BETAS:
            no(f"Unexpected value(s) `{beta}` for the `anthropic-beta` header")
    check_numbers(request, headers)
    check_system(request.get("system", []))
    check_tools(request)
    check_thinking(request)
    check_messages(fake, request)
    if (marks := cache_marks(request)) > CACHE_MARKS:
        no(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    tokens, too_many = fake.overflow(request)
    if too_many:
        no(f"prompt is too long: {tokens} tokens > {fake.window} maximum")


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def check_numbers(request, headers):
    if not is_whole(request["max_tokens"]) or request["max_tokens"] < 0:
        no("max_tokens: Input should be a valid integer, greater than or equal to 0")
    if request["max_tokens"] > OUTPUT_MAX:
        no(f"max_tokens: {request['max_tokens']} > {OUTPUT_MAX}, which is the maximum allowed number of output "
           f"tokens for {request['model']}")
    if not isinstance(request.get("stream", False), bool):
        no("stream: Input should be a valid boolean")
    for name in SAMPLING:
        if name in request and headers.get("anthropic-version") == "2026-10-21":
            no(f"{name}: is not supported at anthropic-version 2026-10-21")


def check_text(block, where):
    if not isinstance(block.get("text"), str):
        no(f"{where}.text: Input should be a valid string")
    if not block["text"]:
        no("messages: text content blocks must be non-empty")
    if not block["text"].strip():
        no("messages: text content blocks must contain non-whitespace text")


def check_mark(mark, where):
    if mark is None:
        return
    if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or set(mark) - {"type", "ttl"} \
            or mark.get("ttl", "5m") not in ("5m", "1h"):
        no(f"{where}.cache_control: Input should be {{'type': 'ephemeral', 'ttl'?: '5m' | '1h'}}")


def check_system(system):
    if isinstance(system, str):
        return
    if not isinstance(system, list):
        no("system: Input should be a valid list")
    for index, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            no(f"system.{index}.type: Input should be 'text'")
        check_block(block, "system", f"system.{index}")


def check_tools(request):
    tools = request.get("tools", [])
    if not isinstance(tools, list):
        no("tools: Input should be a valid list")
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict) or tool.get("type", "custom") != "custom":
            no(f"tools.{index}: Input tag is unknown to this fake")
        if extra := set(tool) - {"type", "name", "description", "input_schema", "cache_control", "strict",
                                 "allowed_callers", "eager_input_streaming", "defer_loading", "input_examples"}:
            no(f"tools.{index}.custom.{min(extra)}: Extra inputs are not permitted")
        if not TOOL_NAME.fullmatch(str(tool.get("name"))):
            no(f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            no(f"tools.{index}.custom.input_schema.type: Field required, should be 'object'")
        check_mark(tool.get("cache_control"), f"tools.{index}")
    names = [tool["name"] for tool in tools]
    if len(set(names)) != len(names):
        no("tools: Tool names must be unique.")
    check_choice(request.get("tool_choice"), names)


def check_choice(choice, names):
    if choice is None:
        return
    if not names:
        no("tool_choice may only be specified while providing tools.")
    if not isinstance(choice, dict) or choice.get("type") not in ("auto", "any", "tool", "none"):
        no("tool_choice: Input tag does not match any of the expected tags: 'auto', 'any', 'tool', 'none'")
    if choice["type"] == "tool" and choice.get("name") not in names:
        no(f"Tool '{choice.get('name')}' not found in provided tools")


def check_thinking(request):
    thinking = request.get("thinking")
    if thinking is None:
        return
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if kind not in ("adaptive", "enabled", "disabled", "between_tools"):
        no("thinking.type: Input tag does not match any of the expected tags")
    version = generation(request["model"])
    if kind == "enabled" and version >= (4, 7):
        no(f"thinking.type: 'enabled' is not supported by {request['model']}; use 'adaptive'")
    if kind == "adaptive" and version <= (4, 5):
        no(f"thinking.type: 'adaptive' is not supported by {request['model']}")
    if kind == "disabled" and "fable" in request["model"]:
        no(f"thinking.type: 'disabled' is not supported by {request['model']}")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if not is_whole(budget) or budget < 1024:
            no("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if budget >= request["max_tokens"]:
            no("`max_tokens` must be greater than `thinking.budget_tokens`.")


def blocks_of(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def check_messages(fake, request):
    messages = request["messages"]
    if not isinstance(messages, list) or not messages:
        no("messages: at least one message is required")
    for index, message in enumerate(messages):
        check_message(message, f"messages.{index}", generation(request["model"]))
    if messages[0]["role"] != "user":
        no('messages: first message must use the "user" role')
    if messages[-1]["role"] == "assistant" and generation(request["model"]) >= (4, 6):
        no("This model does not support assistant message prefill. The conversation must end with a user message.")
    check_pairs(messages)
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            check_seals(fake, message, f"messages.{index}")


def check_message(message, where, version):
    if not isinstance(message, dict) or set(message) != {"role", "content"}:
        no(f"{where}: should have 'role' and 'content' and no other field")
    roles = ("user", "assistant", "system") if version >= (4, 8) else ("user", "assistant")
    if message["role"] not in roles:
        no(f"messages: Unexpected role \"{message['role']}\". Allowed roles are {', '.join(roles)}.")
    if not isinstance(message["content"], (str, list)):
        no(f"{where}.content: Input should be a valid string or list")
    if not message["content"]:
        no(f"{where}: all messages must have non-empty content except for the optional final assistant message")
    for number, block in enumerate(blocks_of(message)):
        check_block(block, message["role"], f"{where}.content.{number}")


def check_block(block, role, where):
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in BLOCKS:
        no(f"{where}.type: Input tag '{kind}' found does not match any of the expected tags")
    roles, required, optional = BLOCKS[kind]
    if role not in roles:
        no(f"{where}: `{kind}` blocks can only be in `{roles[0]}` messages")
    for name in required:
        if name not in block:
            no(f"{where}.{kind}.{name}: Field required")
    if extra := set(block) - {"type", *required, *optional}:
        no(f"{where}.{kind}.{min(extra)}: Extra inputs are not permitted")
    check_mark(block.get("cache_control"), where)
    CHECKS[kind](block, where)
    if kind == "text" and role == "user" and block.get("citations"):
        no(f"{where}.text.citations: must be empty in a user message")


def check_image(block, where):
    source = block["source"] if isinstance(block["source"], dict) else {}
    if source.get("type") != "base64" or set(source) != {"type", "media_type", "data"}:
        no(f"{where}.image.source: a fake takes only base64 with media_type and data")
    if source["media_type"] not in PICTURES:
        no(f"{where}.image.source.base64.media_type: Input should be {', '.join(PICTURES)}")
    picture(source["media_type"], source["data"], f"{where}.image.source.base64")


def check_result(block, where):
    content = block.get("content", "")
    if not isinstance(content, (str, list)):
        no(f"{where}.tool_result.content: Input should be a valid string or list")
    if block.get("is_error") and not content:
        no(f"{where}.tool_result: content cannot be empty if `is_error` is true")
    for number, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict) or part.get("type") not in ("text", "image", "document"):
            no(f"{where}.tool_result.content.{number}.type: Input tag is not expected here")
        if block.get("is_error") and part["type"] != "text":
            no(f"{where}.tool_result: all content must be type \"text\" if `is_error` is true")
        check_block(part, "user", f"{where}.tool_result.content.{number}")


def check_use(block, where):
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", str(block["id"])):
        no(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not TOOL_NAME.fullmatch(str(block["name"])):
        no(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    if not isinstance(block["input"], dict):
        no(f"{where}.tool_use.input: Input should be a valid dictionary")


def check_strings(block, where):
    for name, value in block.items():
        if not isinstance(value, str):
            no(f"{where}.{name}: Input should be a valid string")


CHECKS = {"text": check_text, "image": check_image, "document": lambda block, where: None,
          "tool_result": check_result, "tool_use": check_use, "thinking": check_strings,
          "redacted_thinking": check_strings}


def check_pairs(messages):
    """Each call is answered once, in the next message, before anything else there."""
    known, pending = set(), []
    for index, message in enumerate(messages):
        blocks = blocks_of(message)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        for name in results:
            if name not in pending:
                no(f"messages.{index}.content: unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each "
                   "`tool_result` block must have a corresponding `tool_use` block in the previous message.")
        if len(set(results)) != len(results):
            no(f"messages.{index}: each tool_use must have a single result")
        if missing := [name for name in pending if name not in results]:
            no(f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
               f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
               "next message.")
        if any(block["type"] != "tool_result" for block in blocks[:len(results)]):
            no(f"messages.{index}: `tool_result` blocks must come first in the content")
        pending = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(pending)) != len(pending) or known & set(pending):
            no(f"messages.{index}: `tool_use` ids must be unique")
        known |= set(pending)
    if pending:
        no(f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
           f"{', '.join(pending)}.")


def check_seals(fake, message, where):
    """Thinking comes back as it was given, and whole, beside the calls that it led to."""
    blocks = blocks_of(message)
    sealed = [block for block in blocks if block["type"] in ("thinking", "redacted_thinking")]
    for block in sealed:
        if not fake.is_sealed(block):
            no(f"{where}: Invalid `signature` in `{block['type']}` block")
    for block in blocks:
        if block["type"] == "tool_use" and fake.issued.get(block["id"], sealed) != sealed:
            no(f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
               "modified. These blocks must remain as they were in the original response.")
    if sealed and blocks[-1] is sealed[-1]:
        no(f"{where}: The final block in an assistant message cannot be `{sealed[-1]['type']}`.")


def cache_marks(request):
    """Breakpoints asked for; the one over all takes a place too."""
    places = [request, *request.get("tools", []), *blocks_of({"content": request.get("system", [])})]
    for message in request["messages"]:
        for block in blocks_of(message):
            places += [block, *(part for part in block.get("content", ()) if isinstance(part, dict))]
    return sum(bool(place.get("cache_control")) for place in places)
