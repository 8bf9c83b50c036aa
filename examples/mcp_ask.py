#!/usr/bin/python3
"""The messages of a client of MCP that asks the agent about examples/sales: for the input of `cupel mcp`."""
import json
from pathlib import Path

SALES = Path(__file__).resolve().parent / "sales"
ask = {"question": (SALES / "question.txt").read_text(),
       "files": [{"path": "sales.csv", "text": (SALES / "sales.csv").read_text()}]}
for message in ({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
                {"method": "notifications/initialized"},
                {"id": 2, "method": "tools/call", "params": {"name": "ask", "arguments": ask}}):
    print(json.dumps({"jsonrpc": "2.0", **message}))
