"""What the three fakes share: HTTP, the script, the record of requests, keys, faults.

Threads of the test's own process; port 0. A request is judged before any fault comes to pass:
what is sent must be right even where the answer is not. What a fake's own code gets wrong
fails the test at the end of its block."""
import hashlib
import hmac
import json
import socket
import threading
import time
import traceback
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from models.faults import Cut, Fault, Pipe

BODY_MAX = 32 << 20
SCRIPT_END = "the script has no further reply"


class Rejected(Exception):
    """The server does not take the request."""

    def __init__(self, status, message, kind="invalid_request_error", code=None, param=None):
        super().__init__(message)
        self.status, self.message, self.kind, self.code, self.param = status, message, kind, code, param


@dataclass
class Seen:
    """One request, as it came."""

    method: str
    path: str
    headers: dict
    body: bytes
    at: float
    json: object = None
    status: int = None          # what it got
    sent: list = field(default_factory=list)  # the JSON values of the answer


class FakeModel:
    """One server. Used as a block; `say` and `fail` put replies and faults in the queue."""

    BASE_PATH = "/v1"
    COMPLETE = ()  # paths that are answered from the script
    NOISE = {"type": "noise", "of": "tomorrow"}  # an event that no client knows
    MODELS = ()

    def __init__(self, script=(), faults=(), key="sk-fake-5ecre7-key-of-this-test", window=200_000,
                 turns=None, always=None):
        """`turns`: the reply by how many the conversation has already, for many at once;
        `always`: the fault where the queue has none."""
        self.key, self.window, self.turns, self.always = key, window, turns, always
        self.secret = hashlib.sha256(f"{id(self)}".encode()).digest()
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.crashes = []
        self.known_models = set(self.MODELS)
        self.reset()
        self.say(*script)
        self.fail(*faults)

    def reset(self):
        self.replies, self.faults, self.seen, self.count = [], [], [], 0
        self.issued = {}  # ids of calls: what came before them in the same reply

    def say(self, *replies):
        self.replies += replies

    def fail(self, *faults):
        """None lets a request through."""
        self.faults += faults

    @property
    def completions(self):
        return [seen for seen in self.seen if seen.path in self.COMPLETE]

    @property
    def rejected(self):
        """Requests that were no good, with what was said of them."""
        return [(seen.status, seen.sent) for seen in self.completions if seen.status in (400, 404, 405, 413, 415)]

    # Life.

    def __enter__(self):
        self.http = Http(("127.0.0.1", 0), Handler)
        self.http.fake = self
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.closing.set()
        self.http.shutdown()
        self.http.hang_up()
        self.http.server_close()
        self.thread.join()
        if kind is None:
            assert not self.crashes, "\n".join(self.crashes)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    @property
    def base_url(self):
        return self.url + self.BASE_PATH

    # Names and seals.

    def name(self, prefix):
        with self.lock:
            self.count += 1
            return f"{prefix}{self.count:04d}{self.secret.hex()[:12]}"

    def seal(self, text):
        """A signature of thinking that nobody else can make."""
        return hmac.new(self.secret, text.encode(), "sha256").hexdigest()

    # Answers.

    def answer(self, handler, seen):
        """(status, headers, JSON) or (status, headers, iterator of frames)."""
        self.check_key(seen)
        path = seen.path
        if path in self.COMPLETE:
            if seen.method != "POST":
                raise Rejected(405, "method not allowed")
            return self.complete(handler, seen)
        if seen.method == "GET" and path == self.BASE_PATH + "/models":
            return 200, {}, self.model_list()
        return self.other(seen, path)

    def other(self, seen, path):
        raise Rejected(404, f"no such path: {seen.method} {path}", "not_found_error")

    def complete(self, handler, seen):
        self.judge(seen)
        fault = self.next_fault()
        handler.fault = fault
        if fault.drop:
            raise Cut
        Pipe(handler, fault, False).pause(fault.slow_s)
        while fault.hold and not fault.hold.wait(0.02) and not self.closing.is_set():
            pass
        if fault.redirect:
            return 307, {"location": fault.redirect}, {}
        if fault.body is not None:
            return fault.status or 200, fault.headers, fault.body
        if fault.error:
            return self.error_answer(fault)
        reply = self.next_reply(seen.json)
        if seen.json.get("stream"):
            return 200, self.headers(), self.frames(reply, seen.json, fault)
        return 200, self.headers(), self.whole(reply, seen.json, fault)

    def error_answer(self, fault):
        status, body = self.error(fault.error)
        asked = {name: value() if callable(value) else value for name, value in fault.headers.items()}
        headers = {**self.headers(), **asked}
        if fault.retry_after is not None:
            headers["retry-after"] = str(fault.retry_after)
        return fault.status or status, headers, body

    def next_fault(self):
        with self.lock:
            return (self.faults.pop(0) if self.faults else self.always) or Fault()

    def next_reply(self, request):
        if self.turns is not None:
            done = self.replies_in(request)
            if done < len(self.turns):
                return self.turns[done]
            raise Rejected(400, SCRIPT_END)
        with self.lock:
            if not self.replies:
                raise Rejected(400, SCRIPT_END)
            return self.replies.pop(0)

    def judge(self, seen):
        """Everything that is wrong with any request, then with this wire's."""
        if len(seen.body) > BODY_MAX:
            raise Rejected(413, "request exceeds the maximum size", "request_too_large")
        kind = seen.headers.get("content-type", "")
        if kind.split(";")[0].strip().lower() != "application/json":
            raise Rejected(415 if kind else 400, f"content-type must be application/json, not '{kind}'")
        try:
            seen.json = json.loads(seen.body.decode("utf-8"))
            json.dumps(seen.json, ensure_ascii=False).encode("utf-8")  # a lone surrogate is no text
        except ValueError as error:
            raise Rejected(400, f"the request body is not valid JSON: {error}") from None
        if not isinstance(seen.json, dict):
            raise Rejected(400, "the request body must be a JSON object")
        self.check(seen.json, seen.headers)

    def overflow(self, body):
        """(tokens, True if the window is too small for them); four bytes a token."""
        tokens = len(json.dumps(body)) // 4
        return tokens, tokens > self.window

    def usage_of(self, reply, request):
        told = reply.get("usage", {})
        return {"input_tokens": told.get("input_tokens", len(json.dumps(request)) // 4),
                "cache_read_tokens": told.get("cache_read_tokens", 0),
                "cache_write_tokens": told.get("cache_write_tokens", 0),
                "output_tokens": told.get("output_tokens", len(json.dumps(reply)) // 4),
                "reasoning_tokens": told.get("reasoning_tokens", 0)}


class Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, *args):
        self.connections, self.guard = set(), threading.Lock()
        super().__init__(*args)

    def hang_up(self):
        with self.guard:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def handle_error(self, request, client_address):
        """Clients that leave early are everyday business."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server.guard:
            self.server.connections.add(self.connection)

    def finish(self):
        with self.server.guard:
            self.server.connections.discard(self.connection)
        super().finish()

    def log_message(self, *_):
        pass

    def read_body(self):
        if "chunked" in self.headers.get("transfer-encoding", ""):
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def respond(self):
        fake, self.fault = self.server.fake, Fault()
        if "100-continue" in self.headers.get("expect", "").lower():
            self.send_response_only(100)
            self.end_headers()
        seen = Seen(self.command, self.path.split("?")[0], {k.lower(): v for k, v in self.headers.items()},
                    self.read_body(), time.monotonic())
        with fake.lock:
            fake.seen.append(seen)
        try:
            self.give(seen, *fake.answer(self, seen))
        except Rejected as no:
            self.give(seen, no.status, fake.headers(), fake.rejection(no))
        except Cut:
            self.close_connection = True
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        except OSError:
            self.close_connection = True
        except Exception:
            fake.crashes.append(traceback.format_exc())
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = respond

    def give(self, seen, status, headers, body):
        seen.status = status
        if isinstance(body, (dict, list)):
            seen.sent.append(body)
            body = json.dumps(body, ensure_ascii=False).encode()
            kind = "application/json"
        elif isinstance(body, bytes):
            kind = "application/octet-stream"
        else:
            return self.give_stream(seen, headers, body)
        if self.fault.content_type or (self.fault.body is not None and seen.json.get("stream")):
            kind = self.fault.content_type or "text/event-stream"
        self.send_response(status)
        self.send_headers({"content-type": kind, "content-length": str(len(body)), **headers})
        Pipe(self, self.fault, False).write(body)

    def give_stream(self, seen, headers, frames):
        self.send_response(200)
        self.send_headers({"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache",
                           "transfer-encoding": "chunked", **headers})
        pipe = Pipe(self, self.fault, True)
        for number, frame in enumerate(disturbed(frames, self.fault, self.server.fake)):
            if number and self.fault.pace_s:
                pipe.pause(self.fault.pace_s)
            event, value = frame
            if isinstance(value, dict):
                if event == "noise":
                    event = value.get("type")
                else:
                    seen.sent.append(value)
                value = "data: " + json.dumps(value, ensure_ascii=False)
            lines = ([f"event: {event}"] if event else []) + [value, "", ""]
            pipe.write("\n".join(lines).replace("\n", self.fault.newline).encode())
            if self.server.fake.closing.is_set():
                raise Cut
        pipe.end()

    def send_headers(self, headers):
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def disturbed(frames, fault, fake):
    """The frames with the fault's own ones among them."""
    for number, frame in enumerate(frames):
        if fault.error_event is not None and number >= fault.error_event:
            yield fake.error_frame()
            return
        if fault.noise:
            yield None, ": keep-alive"
            yield "noise", fake.NOISE
            if isinstance(frame[1], dict):
                frame = (frame[0], {**frame[1], "unheard_of": {"deep": [1, None, {}]}})
        yield frame
