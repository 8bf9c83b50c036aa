"""A small HTTP client on a socket, without a library's opinions: keep-alive, pipelining, chunked bodies both ways, and
readers of event streams. Each response that it reads whole is checked against api/openapi.json."""
import json
import socket

ANSWER_S = 60
LARGEST = 1 << 30


class Answer:
    """A response: status, headers (names in lower case), body."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    @property
    def mime(self):
        return self.headers.get("content-type", "")

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:2000]!r}>"


class Wire:
    """One connection. Bytes out, responses in; nothing is checked."""

    def __init__(self, address):
        self.sock = socket.create_connection(address, ANSWER_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")
        self.method = "GET"

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, method, path, headers=(), body=None):
        """body: bytes with a length, or an iterable of chunks."""
        self.method = method
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in dict(headers).items())]
        if body is not None and not isinstance(body, bytes):
            lines.append("Transfer-Encoding: chunked")
        elif body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        try:
            self.send_body(body)
        except ConnectionError:
            pass  # the server has answered already, and takes no more

    def send_body(self, body):
        if isinstance(body, bytes):
            self.sock.sendall(body)
        elif body is not None:
            for chunk in body:
                self.sock.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.sock.sendall(b"0\r\n\r\n")

    def head(self):
        """(status, headers) of the next response; 100 Continue is passed over."""
        line = self.file.readline()
        if not line:
            raise EOFError("the server closed the connection")
        status, headers = int(line.split()[1]), {}
        while (line := self.file.readline().strip()):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return self.head() if status == 100 else (status, headers)

    def pieces(self, status, headers):
        """The body, as it comes."""
        if self.method == "HEAD" or status in (204, 304):
            return
        if headers.get("transfer-encoding") == "chunked":
            while (size := int(self.file.readline(), 16)):
                yield self.file.read(size)
                self.file.readline()
            self.file.readline()
        elif "content-length" in headers:
            left = int(headers["content-length"])
            while left:
                part = self.file.read1(min(left, 1 << 20))
                if not part:
                    raise EOFError(f"the body is cut, {left} bytes are missing")
                left -= len(part)
                yield part
        else:
            while (part := self.file.read1(1 << 16)):
                yield part

    def receive(self):
        status, headers = self.head()
        return Answer(status, headers, b"".join(self.pieces(status, headers)))


class Stream:
    """The events of a response, as SSE or as lines of JSON, in order."""

    def __init__(self, wire, status, headers, check):
        self.wire, self.status, self.headers, self.check = wire, status, headers, check
        self.source = wire.pieces(status, headers)
        self.kept, self.sse = b"", headers.get("content-type", "").startswith("text/event-stream")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def parts(self):
        end = b"\n\n" if self.sse else b"\n"
        for piece in self.source:
            self.kept += piece
            while end in self.kept:
                part, self.kept = self.kept.split(end, 1)
                yield part.decode()

    def __iter__(self):
        for part in self.parts():
            event = self.of_sse(part) if self.sse else json.loads(part)
            if event is not None:
                self.check(event)
                yield event

    @staticmethod
    def of_sse(part):
        fields = {}
        for line in part.split("\n"):
            name, _, value = line.partition(":")
            if name:  # a line that begins with a colon is a comment
                assert name not in fields, part
                fields[name] = value.removeprefix(" ")
        if not fields:
            return None
        event = json.loads(fields["data"])
        assert event["event"] == fields["event"], part
        assert fields.get("id") == (str(event["seq"]) if "seq" in event else None), part
        return event

    def until(self, name):
        """The events up to the next one of that name, and that one."""
        seen = []
        for event in self:
            seen.append(event)
            if event["event"] == name:
                return seen
        raise AssertionError(f"no {name} in {seen}")


class Http:
    """A client with a token. It keeps its connection, and opens another where the server has closed it."""

    def __init__(self, address, token, contract):
        self.address, self.token, self.contract, self.wire = address, token, contract, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.wire:
            self.wire.close()
        self.wire = None

    def headers(self, extra=None):
        own = {"Host": f"{self.address[0]}:{self.address[1]}"}
        if self.token:
            own["Authorization"] = f"Bearer {self.token}"
        own.update(extra or {})
        return {name: value for name, value in own.items() if value is not None}

    def open(self):
        """A connection of its own."""
        return Wire(self.address)

    @staticmethod
    def prepare(json_body, body, headers):
        if json_body is not None:
            return json.dumps(json_body).encode(), {"Content-Type": "application/json", **(headers or {})}
        return body, headers

    def ask(self, method, path, json_body=None, body=None, headers=None):
        """The whole response, checked."""
        body, headers = self.prepare(json_body, body, headers)
        for attempt in range(2):
            fresh = self.wire is None
            self.wire = self.wire or self.open()
            try:
                self.wire.send(method, path, self.headers(headers), body)
                answer = self.wire.receive()
                break
            except (EOFError, ConnectionError):
                self.close()
                if fresh or attempt:
                    raise
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        self.contract.check(method, path, answer)
        return answer

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, json_body=None, **options):
        return self.ask("POST", path, json_body, **options)

    def put(self, path, body, **options):
        return self.ask("PUT", path, body=body, **options)

    def delete(self, path, **options):
        return self.ask("DELETE", path, **options)

    def follow(self, path, json_body=None, form="text/event-stream", method=None, headers=None):
        """A Stream on a connection of its own."""
        body, headers = self.prepare(json_body, None, {"Accept": form, **(headers or {})})
        method = method or ("POST" if json_body is not None else "GET")
        wire = self.open()
        wire.send(method, path, self.headers(headers), body)
        status, got = wire.head()
        if not got.get("content-type", "").startswith(form):
            answer = Answer(status, got, b"".join(wire.pieces(status, got)))
            wire.close()
            self.contract.check(method, path, answer)
            raise AssertionError(f"no stream: {answer}")
        check = self.contract.check_stream(method, path, status, got)
        return Stream(wire, status, got, check)

    # --- the common ways ---

    def run(self, request, **options):
        """The result of a request that must run."""
        if isinstance(request, str):
            request = {"code": request}
        answer = self.post("/v1/run", request, **options)
        assert answer.status == 200, answer
        return answer.json

    def begin(self, request, path="/v1/run"):
        """The id of a run that nobody waits for."""
        if isinstance(request, str):
            request = {"code": request}
        answer = self.post(path, {**request, "wait": False})
        assert answer.status == 202, answer
        assert answer.headers["location"] == f"/v1/runs/{answer.json['run']}"
        return answer.json["run"]

    def events(self, run, since=1, **options):
        """All events of a run, from one on; pings are left out."""
        with self.follow(f"/v1/runs/{run}/events?from={since}", **options) as stream:
            return [event for event in stream if event["event"] != "ping"]

    def session(self, **fields):
        answer = self.post("/v1/sessions", fields)
        assert answer.status == 201, answer
        return answer.json["session"]

    def cell(self, session, code, **fields):
        answer = self.post(f"/v1/sessions/{session}/run", {"code": code, **fields})
        assert answer.status == 200, answer
        return answer.json
