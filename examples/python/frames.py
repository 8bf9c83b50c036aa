#!/usr/bin/python3
"""Speaks with `cupel serve` without any library: python3 frames.py SOCKET CODE
The protocol is docs/protocol.md."""
import json
import socket
import struct
import sys


class Engine:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)

    def send(self, frame):
        data = json.dumps(frame).encode()
        self.socket.sendall(struct.pack("<I", len(data)) + data)

    def take(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError("the engine ended")
            data += part
        return data

    def receive(self):
        size, = struct.unpack("<I", self.take(4))
        return json.loads(self.take(size))


if __name__ == "__main__":
    engine = Engine(sys.argv[1])
    print(engine.receive())
    engine.send({"op": "run", "id": "a", "request": {"code": sys.argv[2]}, "events": True})
    frame = engine.receive()
    while "event" in frame:
        print(frame)
        frame = engine.receive()
    last = frame.get("result") or frame
    print(last.get("status"), last.get("results"), last["error"])
