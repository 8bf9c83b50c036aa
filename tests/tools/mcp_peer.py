"""An MCP server for tests, by stdio or HTTP, in either era, that misbehaves as its tools ask.

python3 mcp_peer.py [--http] [--era legacy|modern] [--log FILE] [--die-first] [--silent-first] [--pages N] [--bomb]
By HTTP it prints its port first. --log gets a line for each message that came."""
import argparse
import base64
import http.server
import json
import os
import subprocess
import sys
import threading
import time

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
INT = {"type": "integer"}
MODERN = "2026-07-28"
OPEN = {"type": "object"}

parser = argparse.ArgumentParser()
for flag in ("--http", "--die-first", "--silent-first", "--bomb", "--no-resources", "--endless"):
    parser.add_argument(flag, action="store_true")
parser.add_argument("--era", default="legacy")
parser.add_argument("--log")
parser.add_argument("--pages", type=int, default=1)
options = parser.parse_args()
out_lock = threading.Lock()
sessions = set()


def tool(name, properties=None, **more):
    return {"name": name, "description": "Does " + name + ".\x1b[31m\u202e\u200b",
            "inputSchema": {"type": "object", "properties": properties or {}}, **more}


TOOLS = [
    tool("add", {"a": INT, "b": INT}, annotations={"readOnlyHint": True},
         outputSchema={"type": "object", "properties": {"sum": INT}, "required": ["sum"]}),
    tool("echo", {"text": {"type": "string", "pattern": "^[a-z]*$", "x-mcp-header": "Text"}}),
    tool("picture"), tool("fail"), tool("sleep", {"s": {"type": "number"}}), tool("die"), tool("flood"), tool("noise"),
    tool("half"), tool("wrong_id"), tool("giant"), tool("asks"), tool("leave_child"), tool("deaf"), tool("big"),
    tool("2 bad/name!"), tool("x" * 100), tool("link"), tool("env"), tool("lies"),
]
BOMB = {"type": "object"}
for _ in range(52):
    BOMB = {"items": BOMB}
if options.bomb:
    TOOLS += [{"name": "deep", "inputSchema": {"type": "object", "additionalProperties": BOMB}},
              {"name": "no_schema", "inputSchema": [1]}, {"inputSchema": OPEN},
              {"name": "wide", "inputSchema": {"type": "object", "properties": {str(i): OPEN for i in range(9000)}}}]


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def log(entry):
    if options.log:
        with open(options.log, "a") as file:
            file.write(json.dumps(entry) + "\n")


def send(message):
    with out_lock:
        sys.stdout.write(message if isinstance(message, str) else json.dumps(message) + "\n")
        sys.stdout.flush()


def misbehave(name, request):
    """True: the tool is one of those, and gives no answer of its own."""
    if name == "die":
        sys.stderr.write("first line\nout of cheese\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "flood":
        while True:
            send('{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"' + "x" * 4000 + '"}}\n')
    elif name == "half":
        send('{"jsonrpc":"2.0","id":%d,"result":{"content":[' % request["id"])
        os._exit(0)
    elif name == "wrong_id":
        for number in (0, -1, request["id"] + 1000, str(request["id"]), None, 1.5):
            send({"jsonrpc": "2.0", "id": number, "result": text("forged")})
    elif name == "giant":
        send('{"jsonrpc":"2.0","id":%d,"result":"' % request["id"] + "x" * (9 << 20) + '"}\n')
    elif name == "deaf":
        while True:
            time.sleep(100)
    else:
        return False
    return True


def run_tool(request):
    params = request["params"]
    name, args = params["name"], params.get("arguments", {})
    if name == "add":
        return {**text("a sum"), "structuredContent": {"sum": args["a"] + args["b"]}}
    if name == "lies":
        return {"content": {"not": "a list"}, "isError": "perhaps"}
    if name == "echo":
        return text(args.get("text", ""))
    if name == "picture":
        return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
    if name == "fail":
        return {**text("no such city; try 'Berlin'"), "isError": True}
    if name == "sleep":
        time.sleep(args["s"])
    if name == "big":
        return text("x" * (3 << 20))
    if name == "env":
        return text(json.dumps([sorted(os.environ), os.environ.get("TOKEN"), os.getcwd()]))
    if name == "link":
        return {"content": [{"type": "resource_link", "name": "a", "uri": "test://a"},
                            {"type": "resource", "resource": {"uri": "test://b", "text": "inside"}}]}
    if name == "leave_child":
        child = subprocess.Popen(["setsid", "sleep", "7654"])
        return text(str(child.pid))
    if name == "noise":
        for _ in range(50):
            send("starting up... 100%\n")
    if name == "asks":
        send({"jsonrpc": "2.0", "id": "s1", "method": "ping"})
        send({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})
        return text(json.dumps(sorted([next_reply(), next_reply()], key=str)))
    return text(name)


def next_reply():
    reply = json.loads(sys.stdin.readline())
    log(reply)
    return [reply["id"], reply.get("result"), reply.get("error", {}).get("code")]


def complete(result):
    return {"resultType": "complete", **result} if options.era == "modern" else result


def answer(request):
    """The result, or a JSON-RPC error, of a request."""
    method, params = request["method"], request.get("params", {})
    modern = options.era == "modern"
    if modern and params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion") != MODERN:
        return {"error": {"code": -32022, "message": "unsupported", "data": {"supported": [MODERN]}}}
    abilities = {"tools": {"listChanged": True}} | ({} if options.no_resources else {"resources": {}})
    if method == "initialize" and not modern:
        return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": abilities,
                           "serverInfo": {"name": "peer", "version": "1"}}}
    if method == "server/discover" and modern:
        return {"result": complete({"supportedVersions": [MODERN], "capabilities": abilities, "ttlMs": 1000,
                                    "cacheScope": "public"})}
    if method == "tools/list":
        page = int(params.get("cursor") or 0)
        size = -(-len(TOOLS) // options.pages)
        more = {"nextCursor": str(page + 1)} if page + 1 < options.pages else {}
        ttl = {"ttlMs": 60000, "cacheScope": "public"} if modern else {}
        return {"result": complete({"tools": TOOLS[page * size:(page + 1) * size], **more, **ttl})}
    if method == "tools/call":
        return {"result": complete(run_tool(request))}
    if method == "resources/list" and options.endless:   # pages without end
        return {"result": complete({"resources": [{"uri": "test://a", "name": "x" * 1000000}], "nextCursor": "1"})}
    if method == "resources/list":
        return {"result": complete({"resources": [{"uri": "test://a", "name": "a", "mimeType": "text/plain"}]})}
    if method == "resources/read" and params["uri"] == "test://a":
        return {"result": complete({"contents": [{"uri": "test://a", "text": "the text of a"}]})}
    if method == "resources/read" and params["uri"] == "test://png":
        return {"result": complete({"contents": [{"uri": "test://png", "blob": PNG, "mimeType": "image/png"}]})}
    return {"error": {"code": -32601, "message": f"no method '{method}'"}}


def reply(request):
    if not (request["method"] == "tools/call" and misbehave(request["params"]["name"], request)):
        send({"jsonrpc": "2.0", "id": request["id"], **answer(request)})


def stdio():
    first = True
    while line := sys.stdin.readline():
        message = json.loads(line)
        log(message)
        if "id" not in message or "method" not in message:
            continue
        if first and message["method"] == "server/discover":
            first = False
            if options.die_first:
                os._exit(1)
            if options.silent_first:
                continue
        if message["method"] == "tools/call" and message["params"]["name"] in ("sleep", "flood", "wrong_id"):
            threading.Thread(target=reply, args=(message,), daemon=True).start()
        else:
            reply(message)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def finish_with(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.finish_with(405)

    def do_DELETE(self):
        sessions.discard(self.headers.get("Mcp-Session-Id"))
        log({"delete": self.headers.get("Mcp-Session-Id")})
        self.finish_with(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        log({**message, "headers": {key.lower(): value for key, value in self.headers.items()}})
        session = self.headers.get("Mcp-Session-Id")
        if "id" not in message or "method" not in message:
            return self.finish_with(202)
        method = message["method"]
        if options.era == "legacy" and method == "server/discover":
            return self.finish_with(400, b"Bad Request: no session", "text/plain")
        if options.era == "legacy" and method != "initialize" and session not in sessions:
            return self.finish_with(404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}')
        if method == "tools/call" and message["params"]["name"] == "die":
            sessions.clear()  # forgets, and serves on
            return self.finish_with(200, json.dumps({"jsonrpc": "2.0", "id": message["id"],
                                                     "result": complete(text("forgot"))}).encode())
        whole = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)})
        if method == "initialize":
            sessions.add(str(len(sessions) + 1))
            return self.finish_with(200, whole.encode(), Mcp_Session_Id=str(len(sessions)))
        if method != "tools/call":
            return self.finish_with(200, whole.encode())
        return self.stream(message, whole)

    def stream(self, message, whole):
        """Events: a comment, a notification, a message of somebody else, then ours; the stream stays open."""
        other = json.dumps({"jsonrpc": "2.0", "id": message["id"] + 99, "result": text("forged")})
        note = '{"jsonrpc":"2.0","method":"notifications/progress"}'
        body = f": hello\n\nid: 1\nretry: 5\ndata: \n\nevent: message\ndata: {note}\n\ndata: {other}\n\n" \
               f"event: message\ndata: {whole}\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if message["params"]["name"] == "flood":
            while True:
                self.wfile.write(b"data: " + b"x" * 4000 + b"\n\n")
        self.wfile.write(body.encode())
        self.wfile.flush()
        time.sleep(0.2)
        self.close_connection = True


if options.http:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
else:
    stdio()
