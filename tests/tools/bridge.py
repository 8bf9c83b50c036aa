"""A client that gives code its tools and answers their calls."""
import itertools
import time

READY_S = 30


def tool(name, properties=None, required=None, **more):
    """A definition; a property is a type or a whole schema."""
    properties = {key: {"type": value} if isinstance(value, str) else value
                  for key, value in (properties or {}).items()}
    return {"name": name, "description": f"does {name}", **more,
            "input_schema": {"type": "object", "properties": properties, "additionalProperties": False,
                             "required": list(properties) if required is None else required}}


ECHO = tool("echo", {"value": {}})
ADD = tool("math.add", {"a": "integer", "b": "integer"}, effect="read")
SLEEP = tool("never")   # nobody answers it

# Writes lines as the driver would: `words` is the channel of a run or session, `mark` the nonce of the cell.
FORGE = """
import os, sys, json
words = [fd for fd in (250, 3) if os.path.exists(f"/proc/self/fd/{fd}")][0]
driver = sys.meta_path[0].find_spec.__func__.__globals__
def write(text, fd=words):
    data = ("\\n" + text + "\\n").encode()
    while data:
        data = data[os.write(fd, data):]
def frame(**members):
    return "{" + driver["mark"] + json.dumps(members)[1:]
def answers(count):
    import select
    fd, data = [fd for fd in (251, 4) if os.path.exists(f"/proc/self/fd/{fd}")][0], []
    poll = select.poll(); poll.register(fd, 1)
    while count > 0 and poll.poll(5000):
        data.append(os.read(fd, 1 << 20))
        count -= data[-1].count(b"\\n")
    return [json.loads(line) for line in b"".join(data).splitlines()]
"""


class Silent(Exception):
    """An answer that does not come."""


def answer(call):
    """What the tools above do."""
    arguments = call["arguments"]
    if call["tool"] == "echo":
        return {"value": arguments["value"]}
    if call["tool"] == "math.add":
        return {"value": arguments["a"] + arguments["b"]}
    raise Silent


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.error = error


class Bridge:
    """Runs code and answers its calls; `told` has the events of the last run, `errors` what the engine refused."""
    ids = itertools.count(1)

    def __init__(self, client):
        self.client = client

    def start(self, request, **fields):
        self.id, self.told, self.errors = f"b{next(self.ids)}", [], []
        request = {"code": request} if isinstance(request, str) else request
        self.client.start(self.id, request, events=True, **fields)

    def say(self, call, **outcome):
        self.client.send({"op": "tool_result", "id": self.id, "call": call, **outcome})

    def next(self, answer=answer):
        """The next frame of the run; a call is answered first."""
        while True:
            frame = self.client.receive()
            if frame.get("event") in ("session", "output"):
                continue
            if frame.get("id") != self.id:
                assert "error" in frame, frame
                self.errors.append(frame["error"])
                continue
            self.told.append(frame)
            if frame.get("event") == "tool_call":
                try:
                    outcome = answer(frame)
                except Silent:
                    outcome = None
                if outcome is not None:
                    self.say(frame["call"], **outcome)
            return frame

    def until(self, event, answer=answer):
        while True:
            frame = self.next(answer)
            if frame.get("event") == event:
                return frame
            assert "event" in frame, frame

    def finish(self, answer=answer):
        """The result; Refused where there is none."""
        while True:
            frame = self.next(answer)
            if "result" in frame and "event" not in frame:
                return frame["result"]
            if "error" in frame:
                raise Refused(frame["error"])

    def run(self, code, tools=(ECHO, ADD, SLEEP), answer=answer, **fields):
        request = {"code": code, "limits": {"timeout_s": 30}, **fields}
        if tools is not None:
            request["tools"] = list(tools)
        self.start(request)
        return self.finish(answer)

    def calls(self):
        return [frame for frame in self.told if frame.get("event") == "tool_call"]


class Cells(Bridge):
    """A session with tools."""

    def __init__(self, client, tools=(ECHO, ADD, SLEEP), language="python", wait=True, **request):
        super().__init__(client)
        request = {"language": language, "tools": list(tools), "limits": {"timeout_s": 30}, **request}
        self.session = self.ask("new", request=request)["session"]["session"]
        if wait:
            self.wait_until_idle()

    def ask(self, do, **fields):
        own = f"a{next(self.ids)}"
        if do != "new":
            fields = {"session": self.session, **fields}
        self.client.send({"op": "session", "id": own, "do": do, **fields})
        while (frame := self.client.receive()).get("id") != own:
            assert frame.get("event") in ("session", "output"), frame
        if "error" in frame:
            raise Refused(frame["error"])
        return frame

    def info(self):
        return self.ask("info")["session"]

    def wait_until_idle(self):
        until = time.monotonic() + READY_S
        while self.info()["status"] == "busy":
            assert time.monotonic() < until, self.info()
            time.sleep(0.002)

    def cell(self, code, answer=answer, **fields):
        self.start({"session": self.session, "code": code, **fields})
        return self.finish(answer)

    def value(self, code, answer=answer, **fields):
        result = self.cell(code, answer, **fields)
        assert result["status"] == "ok" and result["state"] == "kept", result
        return result["text"]

    def end(self):
        self.ask("end")
