"""Sessions of an engine under test, as a client sees them."""
import base64
import itertools
import time

READY_S = 30


class Refused(Exception):
    """An answer that was an error; its members are the contract's."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.error = error


class Session:
    ids = itertools.count(1)

    def __init__(self, client, language="python", id=None, wait=True, **fields):
        request = {"language": language, **fields.pop("request", {})}
        self.client, self.told = client, []
        self.id = id or self.ask("new", request=request, **fields)["session"]["session"]
        if wait and not id:
            self.wait_until_idle()

    def call(self, frame):
        """One frame and its last answer; what belongs to other ids must not come."""
        own = f"s{next(Session.ids)}"
        self.client.send({**frame, "id": own})
        events = []
        while True:
            answer = self.client.receive()
            if answer.get("event") in ("session", "output"):  # of no id: news of a session, late output
                self.told.append(answer)
                continue
            assert answer.get("id") == own, answer
            if "event" not in answer:
                break
            events.append(answer)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer, events

    def ask(self, do, **fields):
        if do not in ("new", "list"):
            fields = {"session": self.id, **fields}
        return self.call({"op": "session", "do": do, **fields})[0]

    def run(self, code, events=False, **fields):
        """The result of a cell."""
        answer, told = self.call({"op": "run", "events": events,
                                  "request": {"session": self.id, "code": code, **fields}})
        return (answer["result"], told) if events else answer["result"]

    def value(self, code, **fields):
        """What a good cell shows as its last value, as text."""
        result = self.run(code, **fields)
        assert result["status"] == "ok" and result["state"] == "kept", result
        return result["results"][-1]["text/plain"] if result["results"] else None

    def info(self, **fields):
        return self.ask("info", **fields)["session"]

    def wait_until_idle(self):
        """Until what follows a cell is done."""
        until = time.monotonic() + READY_S
        while self.info()["status"] == "busy":
            assert time.monotonic() < until, self.info()
            time.sleep(0.002)

    def put(self, **files):
        return self.ask("put", files=[{"path": path, "text": text} for path, text in files.items()])

    def get(self, path):
        answer, events = self.call({"op": "session", "do": "get", "session": self.id, "path": path})
        data = b"".join(base64.b64decode(event["base64"]) for event in events)
        assert len(data) == answer["file"]["size_bytes"]
        return data

    def files(self):
        return {row["path"]: row for row in self.ask("files")["files"]}

    def undo(self, **fields):
        return self.ask("undo", **fields)

    def fork(self):
        return Session(self.client, id=self.ask("fork")["session"]["session"])

    def end(self):
        return self.ask("end")
