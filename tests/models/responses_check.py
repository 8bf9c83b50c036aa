"""What OpenAI's Responses API refuses, as far as a client such as cupel could get it wrong."""
from models.judge import arguments, data_url, fields, one_of, reject, schema, tool_name, typed

FIELDS = {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
          "max_output_tokens", "temperature", "top_p", "store", "include", "reasoning", "text", "truncation", "user",
          "metadata", "previous_response_id", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
          "service_tier", "background", "conversation", "max_tool_calls", "prompt", "top_logprobs"}
INCLUDES = ("reasoning.encrypted_content", "code_interpreter_call.outputs", "message.output_text.logprobs",
            "message.input_image.image_url", "file_search_call.results", "computer_call_output.output.image_url",
            "web_search_call.action.sources")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", None)
PARTS = {"user": ("input_text", "input_image", "input_file"), "system": ("input_text", "input_image"),
         "developer": ("input_text", "input_image"), "assistant": ("output_text", "refusal")}
OUTPUT_MIN, OUTPUT_MAX, CALL_ID_MAX = 16, 128_000, 64


def check(fake, request):
    for name in request:
        if name not in FIELDS:
            reject(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    fake.check_model(request)
    if "input" not in request:
        reject("Missing required parameter: 'input'.", code="missing_required_parameter", param="input")
    if request.get("previous_response_id") is not None:
        reject(f"Previous response with id '{request['previous_response_id']}' not found.",
               code="previous_response_not_found", param="previous_response_id")
    check_numbers(request, fake.reasons(request))
    check_tools(request)
    if not isinstance(request["input"], str):
        check_input(fake, typed(request["input"], list, "input"), request.get("store", True) is False)
    tokens, too_many = fake.overflow(request)
    if too_many and request.get("truncation") != "auto":
        reject(f"Your input exceeds the context window of this model: {tokens} of {fake.window} tokens.",
               code="context_length_exceeded", param="input")


def check_numbers(request, reasons):
    most = request.get("max_output_tokens")
    if most is not None and typed(most, int, "max_output_tokens") < OUTPUT_MIN:
        reject(f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {OUTPUT_MIN}, but got "
               f"{most} instead.", code="integer_below_min_value", param="max_output_tokens")
    if most is not None and most > OUTPUT_MAX:
        reject(f"max_output_tokens is too large: {most}.", param="max_output_tokens")
    for name in ("temperature", "top_p"):
        if reasons and request.get(name) is not None:
            reject(f"Unsupported parameter: '{name}' is not supported with this model.",
                   code="unsupported_parameter", param=name)
    for name in ("stream", "store", "parallel_tool_calls"):
        typed(request.get(name, False), bool, name)
    for value in request.get("include") or ():
        one_of(value, INCLUDES, "include")
    if request.get("reasoning") is not None:
        fields(request["reasoning"], "reasoning", (), ("effort", "summary", "generate_summary"))
        one_of(request["reasoning"].get("effort"), EFFORTS, "reasoning.effort")
        one_of(request["reasoning"].get("summary"), ("auto", "concise", "detailed", None), "reasoning.summary")
    one_of(request.get("truncation", "disabled"), ("auto", "disabled", None), "truncation")
    if request.get("instructions") is not None:
        typed(request["instructions"], str, "instructions")


def check_tools(request):
    names = []
    for index, tool in enumerate(typed(request.get("tools", []), list, "tools")):
        where = f"tools[{index}]"
        one_of(tool.get("type") if isinstance(tool, dict) else None, ("function",), f"{where}.type")
        fields(tool, where, ("type", "name", "parameters"), ("description", "strict", "allowed_callers",
                                                             "output_schema", "defer_loading"))
        tool_name(tool["name"], f"{where}.name")
        schema(tool["parameters"], f"{where}.parameters", tool.get("strict") is True)
        names.append(tool["name"])
    choice = request.get("tool_choice", "auto")
    if isinstance(choice, dict):
        one_of(choice.get("name"), names, "tool_choice")
    else:
        one_of(choice, ("none", "auto", "required"), "tool_choice")
    if choice == "required" and not names:
        reject("Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice")


def check_input(fake, items, stateless):
    if not items:
        reject("Invalid 'input': empty array. Expected an array with minimum length 1.", code="empty_array")
    for index, item in enumerate(items):
        where = f"input[{index}]"
        kind = (item.get("type") or "message") if isinstance(item, dict) else None
        one_of(kind, tuple(ITEMS), f"{where}.type")
        ITEMS[kind](item, where)
    check_pairs(items)
    check_reasoning(fake, items, stateless)


def check_id(item, prefix, where):
    if item.get("id") is not None and not str(item["id"]).startswith(prefix):
        reject(f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with '{prefix}'.",
               code="invalid_value", param=f"{where}.id")


def check_message(item, where):
    fields(item, where, ("role", "content"), ("type", "id", "status", "phase"))
    one_of(item["role"], tuple(PARTS), f"{where}.role")
    check_id(item, "msg", where)
    if isinstance(item["content"], str):
        return
    for number, part in enumerate(typed(item["content"], list, f"{where}.content")):
        check_part(part, PARTS[item["role"]], f"{where}.content[{number}]")


def check_part(part, kinds, where):
    one_of(part.get("type") if isinstance(part, dict) else None, kinds, f"{where}.type")
    if part["type"] in ("input_text", "output_text"):
        fields(part, where, ("type", "text"), ("annotations", "logprobs") if part["type"] == "output_text" else ())
        typed(part["text"], str, f"{where}.text")
    elif part["type"] == "input_image":
        fields(part, where, ("type", "image_url"), ("detail",))
        one_of(part.get("detail", "auto"), ("auto", "low", "high", "original"), f"{where}.detail")
        data_url(part["image_url"], f"{where}.image_url")
    elif part["type"] == "refusal":
        fields(part, where, ("type", "refusal"))


def check_call_id(item, where):
    if not typed(item["call_id"], str, f"{where}.call_id") or len(item["call_id"]) > CALL_ID_MAX:
        reject(f"Invalid '{where}.call_id': string of {len(item['call_id'])} characters, between 1 and {CALL_ID_MAX} "
               "expected.", code="string_above_max_length", param=f"{where}.call_id")


def check_call(item, where):
    fields(item, where, ("type", "call_id", "name", "arguments"), ("id", "status", "caller", "namespace"))
    check_id(item, "fc", where)
    check_call_id(item, where)
    tool_name(item["name"], f"{where}.name")
    arguments(item["arguments"], f"{where}.arguments")


def check_output(item, where):
    fields(item, where, ("type", "call_id", "output"), ("id", "status"))
    check_call_id(item, where)
    if isinstance(item["output"], str):
        return
    for number, part in enumerate(typed(item["output"], list, f"{where}.output")):
        check_part(part, PARTS["user"], f"{where}.output[{number}]")


def check_reason(item, where):
    fields(item, where, ("type", "id", "summary"), ("content", "encrypted_content", "status"))
    check_id(item, "rs", where)


ITEMS = {"message": check_message, "function_call": check_call, "function_call_output": check_output,
         "reasoning": check_reason}


def check_pairs(items):
    """Each call has one output, after it."""
    calls, answered = set(), set()
    for item in items:
        if item.get("type") == "function_call":
            if item["call_id"] in calls:
                reject(f"Duplicate function call with call_id {item['call_id']}.", param="input")
            calls.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            if item["call_id"] not in calls:
                reject(f"No tool call found for function call output with call_id {item['call_id']}.", param="input")
            if item["call_id"] in answered:
                reject(f"Duplicate output for function call {item['call_id']}.", param="input")
            answered.add(item["call_id"])
    if missing := calls - answered:
        reject(f"No tool output found for function call {min(missing)}.", param="input")


def check_reasoning(fake, items, stateless):
    """Reasoning comes back as it was given, with the item that followed it; and that item with it."""
    given = {item["id"] for item in items if item.get("type") == "reasoning"}
    for index, item in enumerate(items):
        if item.get("type") == "reasoning":
            known = fake.issued.get(item["id"])
            if known is None or (stateless and not item.get("encrypted_content")):
                reject(f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false.",
                       status=404 if known is None else 400, param="input")
            if item.get("encrypted_content") != known.get("encrypted_content") or item["summary"] != known["summary"]:
                reject(f"The encrypted content for item {item['id']} could not be verified.",
                       code="invalid_encrypted_content")
            after = items[index + 1] if index + 1 < len(items) else {}
            if after.get("type") not in ("function_call", "reasoning") and after.get("role") != "assistant":
                reject(f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                       param="input")
        wanted = fake.issued.get(item.get("id")) if item.get("type") != "reasoning" else None
        if isinstance(wanted, str) and wanted not in given:
            reject(f"Item '{item['id']}' of type '{item.get('type', 'message')}' was provided without its required "
                   f"'reasoning' item: '{wanted}'.", param="input")
