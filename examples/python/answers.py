#!/usr/bin/python3
"""Runs code that calls tools, and answers the calls: the tools are functions of this program.
    python3 answers.py SOCKET FILE"""
import json
import os
import socket
import struct
import sys

PRICES = {"tea": 4.5, "rice": 2.0}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        "additionalProperties": False}
TOOLS = [{"name": "shop.price", "description": "The price of a product.", "effect": "read", "input_schema": NAME},
         {"name": "shop.delete", "description": "Deletes a product.", "effect": "irreversible", "input_schema": NAME}]


def answer(tool, arguments):
    if tool == "shop.delete":
        return {"error": {"kind": "denied", "message": "not while the shop is open"}}
    if arguments["name"] not in PRICES:
        return {"error": {"message": f"no product {arguments['name']!r}"}}
    return {"value": PRICES[arguments["name"]]}


def send(frame):
    data = json.dumps(frame).encode()
    wire.sendall(struct.pack("<I", len(data)) + data)


def receive():
    length, = struct.unpack("<I", take(4))
    return json.loads(take(length))


def take(count):
    data = b""
    while len(data) < count:
        part = wire.recv(count - len(data))
        if not part:
            sys.exit("the engine is gone")
        data += part
    return data


wire = socket.socket(socket.AF_UNIX)
wire.connect(sys.argv[1])
with open(os.path.expanduser(sys.argv[2]), encoding="utf-8") as file:
    send({"op": "run", "id": "a", "events": True, "request": {"code": file.read(), "tools": TOOLS}})
while "result" not in (frame := receive()) or "event" in frame:
    if frame.get("event") == "tool_call":
        send({"op": "tool_result", "id": "a", "call": frame["call"], **answer(frame["tool"], frame["arguments"])})
        print("call", frame["call"], frame["tool"], frame["arguments"], "of line", frame["line"])
    elif "error" in frame:
        sys.exit(frame["error"]["message"])
print(frame["result"]["stdout"], end="")
print(frame["result"]["status"], [(call["tool"], call["verdict"]) for call in frame["result"]["calls"]])
