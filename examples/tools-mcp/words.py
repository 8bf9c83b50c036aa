"""A small MCP server: one tool, by stdio, in Python's standard library."""
import json
import sys

COUNT = {"name": "count", "description": "How often a word occurs in a text.",
         "annotations": {"readOnlyHint": True},
         "inputSchema": {"type": "object", "required": ["text", "word"],
                         "properties": {"text": {"type": "string"}, "word": {"type": "string"}}},
         "outputSchema": {"type": "object", "properties": {"count": {"type": "integer"}}}}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "words", "version": "1"}}
    if method == "tools/list":
        return {"tools": [COUNT]}
    if method == "tools/call":
        given = params["arguments"]
        found = {"count": given["text"].split().count(given["word"])}
        return {"structuredContent": found, "content": [{"type": "text", "text": json.dumps(found)}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        outcome = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
