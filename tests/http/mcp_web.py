"""A client of /mcp that knows nothing of MCP but headers."""
import json
import sys

import host
from http_client import Http
from http_contract import CONTRACT

sys.path.insert(0, str(host.REPO / "tests/mcp"))
from mcp_client import MODERN, text  # noqa: E402, F401


class Web:
    """One token's client; `server` makes its token, or it is given."""

    def __init__(self, server, name="mcp", *args, secret=None):
        self.client = Http(server.address, secret or server.token(name, *args), CONTRACT)
        self.session, self.last = None, 0

    def send(self, body, method="POST", **headers):
        """(status, headers, the body's text)"""
        sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.session:
            sent.update({"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"})
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        if body is not None:
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        answer = self.client.ask(method, "/mcp", body=body, headers=sent)
        self.client.close()
        return answer.status, answer.headers, answer.body.decode()

    def begin(self, version="2025-11-25"):
        status, headers, said = self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        assert status == 200, said
        self.session = headers["mcp-session-id"]
        assert self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})[::2] == (202, "")
        return self

    def ask(self, method, params=None, meta=None, **headers):
        """The answer's message, with its status."""
        self.last += 1
        status, _, said = self.send({"jsonrpc": "2.0", "id": self.last, "method": method,
                                     "params": {**(params or {}), **({"_meta": meta} if meta else {})}}, **headers)
        return status, json.loads(said)

    def call(self, name, /, **arguments):
        status, said = self.ask("tools/call", {"name": name, "arguments": arguments})
        assert status == 200, said
        return said["result"]

    def modern(self, method, params=None, name=None, version="2026-07-28", **headers):
        headers = {"MCP_Protocol_Version": version, "Mcp_Method": method, "Mcp_Name": name, **headers}
        return self.ask(method, params, MODERN, **headers)
