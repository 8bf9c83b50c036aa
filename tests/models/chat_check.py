"""What OpenAI's Chat Completions API refuses, as far as a client such as cupel could get it wrong."""
from models.judge import arguments, data_url, fields, one_of, reject, schema, tool_name, typed

FIELDS = {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "max_tokens",
          "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed", "user", "metadata", "store",
          "reasoning_effort", "response_format", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty",
          "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "verbosity", "modalities",
          "prediction", "logit_bias", "functions", "function_call", "web_search_options", "audio"}
ROLES = {  # role: fields besides role, those of them that may be absent, types of content parts
    "developer": (("content",), ("name",), ("text",)),
    "system": (("content",), ("name",), ("text",)),
    "user": (("content",), ("name",), ("text", "image_url", "input_audio", "file")),
    "assistant": ((), ("content", "name", "tool_calls", "refusal", "audio", "function_call", "annotations"),
                  ("text", "refusal")),
    "tool": (("content", "tool_call_id"), (), ("text",)),
}
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
OUTPUT_MAX = 128_000
ID_MAX = 40


def check(fake, request):
    local = fake.key is None
    if not local:
        for name in request:
            if name not in FIELDS:
                reject(f"Unrecognized request argument supplied: {name}", param=name)
    fake.check_model(request)
    check_numbers(request, fake.reasons(request))
    check_tools(request)
    messages = request.get("messages")
    if not isinstance(messages, list):
        reject("Missing required parameter: 'messages'.", code="missing_required_parameter", param="messages")
    if not messages:
        reject("Invalid 'messages': empty array. Expected an array with minimum length 1.", code="empty_array")
    for index, message in enumerate(messages):
        check_message(message, f"messages[{index}]", local)
    check_pairs(messages)
    tokens, too_many = fake.overflow(request)
    if too_many:
        reject(f"This model's maximum context length is {fake.window} tokens. However, your messages resulted in "
               f"{tokens} tokens.", code="context_length_exceeded", param="messages")


def check_numbers(request, reasons):
    for name in ("max_tokens", "max_completion_tokens"):
        if request.get(name) is not None:
            if typed(request[name], int, name) < 1:
                reject(f"Invalid '{name}': integer below minimum value.", code="integer_below_min_value", param=name)
            if request[name] > OUTPUT_MAX:
                reject(f"{name} is too large: {request[name]}. This model supports at most {OUTPUT_MAX} completion "
                       "tokens.", param=name)
    if reasons and "max_tokens" in request:
        reject("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
               "instead.", code="unsupported_parameter", param="max_tokens")
    for name in ("temperature", "top_p"):
        if reasons and request.get(name) not in (None, 1):
            reject(f"Unsupported value: '{name}' does not support {request[name]} with this model. Only the default "
                   "(1) value is supported.", code="unsupported_value", param=name)
    if request.get("reasoning_effort") is not None:
        one_of(request["reasoning_effort"], EFFORTS, "reasoning_effort")
    typed(request.get("stream", False), bool, "stream")
    if request.get("stream_options") is not None:
        if not request.get("stream"):
            reject("The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options")
        fields(request["stream_options"], "stream_options", (), ("include_usage", "include_obfuscation"))


def check_tools(request):
    tools = request.get("tools")
    if tools is None:
        for name in ("tool_choice", "parallel_tool_calls"):
            if name in request and request[name] != "none":
                reject(f"'{name}' is only allowed when 'tools' are specified.", param=name)
        return
    if not typed(tools, list, "tools"):
        reject("Invalid 'tools': empty array. Expected an array with minimum length 1.", code="empty_array")
    for index, tool in enumerate(tools):
        where = f"tools[{index}]"
        fields(tool, where, ("type", "function"))
        one_of(tool["type"], ("function",), f"{where}.type")
        fields(tool["function"], f"{where}.function", ("name",), ("description", "parameters", "strict"))
        tool_name(tool["function"]["name"], f"{where}.function.name")
        if "parameters" in tool["function"]:
            schema(tool["function"]["parameters"], f"{where}.function.parameters",
                   tool["function"].get("strict") is True)
    choice = request.get("tool_choice", "auto")
    if isinstance(choice, dict):
        fields(choice, "tool_choice", ("type", "function"))
        one_of(choice["function"].get("name"), [tool["function"]["name"] for tool in tools], "tool_choice")
    else:
        one_of(choice, ("none", "auto", "required"), "tool_choice")


def check_message(message, where, local):
    role = message.get("role") if isinstance(message, dict) else None
    one_of(role, tuple(ROLES), f"{where}.role")
    if local and role == "developer":
        reject(f"{where}.role: the chat template knows no 'developer'")
    required, optional, kinds = ROLES[role]
    extra = ("reasoning_content", "reasoning") if local else ()
    fields(message, where, ("role", *required), (*optional, *extra))
    content = message.get("content")
    if content is None:
        if role != "assistant" or not (message.get("tool_calls") or message.get("refusal")):
            reject(f"Invalid value for 'content': expected a string, got null.", param=f"{where}.content")
    elif not isinstance(content, str):
        check_parts(typed(content, list, f"{where}.content"), kinds, f"{where}.content")
    if message.get("tool_calls") is not None:
        check_calls(message["tool_calls"], f"{where}.tool_calls")


def check_parts(parts, kinds, where):
    if not parts:
        reject(f"Invalid '{where}': empty array. Expected an array with minimum length 1.", code="empty_array")
    for number, part in enumerate(parts):
        at = f"{where}[{number}]"
        one_of(part.get("type") if isinstance(part, dict) else None, kinds, f"{at}.type")
        if part["type"] == "text":
            fields(part, at, ("type", "text"))
            typed(part["text"], str, f"{at}.text")
        elif part["type"] == "image_url":
            fields(part, at, ("type", "image_url"))
            fields(part["image_url"], f"{at}.image_url", ("url",), ("detail",))
            one_of(part["image_url"].get("detail", "auto"), ("auto", "low", "high", "original"), f"{at}.detail")
            data_url(part["image_url"]["url"], f"{at}.image_url.url")


def check_calls(calls, where):
    if not typed(calls, list, where):
        reject(f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array "
               "instead.", code="empty_array", param=where)
    for number, call in enumerate(calls):
        at = f"{where}[{number}]"
        fields(call, at, ("id", "type", "function"))
        one_of(call["type"], ("function",), f"{at}.type")
        if not typed(call["id"], str, f"{at}.id") or len(call["id"]) > ID_MAX:
            reject(f"Invalid '{at}.id': string of {len(call['id'])} characters, between 1 and {ID_MAX} expected.",
                   code="string_above_max_length", param=f"{at}.id")
        fields(call["function"], f"{at}.function", ("name", "arguments"))
        tool_name(call["function"]["name"], f"{at}.function.name")
        arguments(call["function"]["arguments"], f"{at}.function.arguments")


def check_pairs(messages):
    """Each call is answered, directly after the message that made it."""
    pending = []
    for index, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in pending:
                reject("Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                       "'tool_calls'.", param=f"messages[{index}].role")
            pending.remove(message["tool_call_id"])
            continue
        if pending:
            reject("An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                   f"'tool_call_id'. The following tool_call_ids did not have response messages: "
                   f"{', '.join(pending)}", param="messages")
        pending = [call["id"] for call in message.get("tool_calls") or ()]
