"""What the wires judge alike: fields, tools' names and schemas, pictures."""
import base64
import binascii
import json
import re

from models.server import Rejected

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8",
            "image/webp": b"RIFF"}
PICTURE_MAX = 10 << 20  # of base64


def reject(message, **rest):
    raise Rejected(rest.pop("status", 400), message, **rest)


def fields(value, where, required=(), optional=()):
    """An object with these fields and no other."""
    if not isinstance(value, dict):
        reject(f"{where}: should be an object", param=where)
    for name in required:
        if name not in value:
            reject(f"Missing required parameter: '{where}.{name}'.", code="missing_required_parameter",
                   param=f"{where}.{name}")
    for name in value:
        if name not in required and name not in optional:
            reject(f"Unknown parameter: '{where}.{name}'.", code="unknown_parameter", param=f"{where}.{name}")


def typed(value, kinds, where):
    """Of one of these Python types; bool is no number."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in (kinds if isinstance(kinds, tuple)
                                                                                 else (kinds,))):
        reject(f"Invalid type for '{where}'.", code="invalid_type", param=where)
    return value


def one_of(value, allowed, where):
    if value not in allowed:
        reject(f"Invalid value: '{value}'. Supported values are: {', '.join(map(repr, allowed))}.",
               code="invalid_value", param=where)


def tool_name(value, where):
    if not isinstance(value, str) or not TOOL_NAME.fullmatch(value):
        reject(f"Invalid '{where}': string does not match pattern '^[a-zA-Z0-9_-]{{1,64}}$'.", param=where)


def schema(value, where, strict=False):
    """A JSON Schema of an object; strict ones name all that they hold."""
    if not isinstance(value, dict) or value.get("type") != "object":
        reject(f"Invalid schema: '{where}' must be a JSON Schema of 'type: \"object\"'.", param=where)
    if strict and (value.get("additionalProperties") is not False
                   or set(value.get("required", ())) != set(value.get("properties", {}))):
        reject(f"Invalid schema: '{where}': 'additionalProperties' is required to be false and 'required' to "
               "have every key in properties.", code="invalid_function_parameters", param=where)


def picture(mime, data, where):
    """Of a kind that is known, whole, and what it says it is."""
    if mime not in PICTURES:
        reject(f"{where}: unsupported image: media type '{mime}' is none of {', '.join(PICTURES)}",
               code="invalid_image_format")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        reject(f"{where}: invalid base64 data", code="invalid_base64_image")
    if len(data) > PICTURE_MAX:
        reject(f"{where}: image exceeds 10 MB maximum: {len(data)} bytes", code="image_too_large")
    if not content.startswith(PICTURES[mime]):
        reject(f"{where}: the image was specified using the {mime} media type, but does not appear to be one",
               code="invalid_image_format")


def data_url(url, where):
    """Only data: a fake fetches nothing."""
    typed(url, str, where)
    match = re.fullmatch(r"data:([^;,]*);base64,(.*)", url, re.S)
    if not match:
        reject(f"{where}: failed to download image from '{url[:60]}'", code="invalid_image_url")
    picture(match[1], match[2], where)


def arguments(value, where):
    """A string that holds a JSON object."""
    typed(value, str, where)
    try:
        decoded = json.loads(value)
    except ValueError:
        decoded = None
    if not isinstance(decoded, dict):
        reject(f"Invalid '{where}': not a JSON object: {value[:60]!r}", param=where)


def pieces(text, size=7):
    """Text as it streams."""
    return [text[at:at + size] for at in range(0, len(text), size)]
