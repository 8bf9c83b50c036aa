"""A web server of the test's own, which answers as its paths ask and remembers each request."""
import gzip
import http.server
import json
import threading
import time

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(40))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        seen = {"method": self.command, "path": self.path, "body": self.rfile.read(length).decode(),
                "headers": {key.lower(): value for key, value in self.headers.items()}}
        self.server.seen.append(seen)
        kind = self.path.split("?")[0].strip("/").split("/")[0]
        act = getattr(self, "on_" + kind, None)
        if act:
            return act()
        self.send(200, json.dumps(seen).encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def on_text(self):
        self.send(200, "grün".encode(), "text/plain; charset=utf-8")

    def on_png(self):
        self.send(200, PNG, "Image/PNG; x=y")

    def on_none(self):
        self.send(204, b"", None)

    def on_broken(self):
        self.send(200, b'{"a": ', "application/json")

    def on_deep(self):
        self.send(200, b"[" * 100000 + b"]" * 100000)

    def on_refused(self):
        self.send(404, b'{"detail": "no such item: \x1b[31mred", "auth": "%s"}' % self.headers.get(
            "Authorization", "").encode())

    def on_redirect(self):
        self.send(302, b"", Location="http://169.254.169.254/latest/meta-data")

    def on_bomb(self):
        self.send(200, gzip.compress(bytes(300 << 20), 1), Content_Encoding="gzip")

    def on_packed(self):
        self.send(200, gzip.compress(b'{"packed": true}'), Content_Encoding="gzip")

    def on_endless(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 65536)
        except OSError:
            self.close_connection = True

    def on_slow(self):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        try:
            for _ in range(600):
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.5)
        except OSError:
            self.close_connection = True

    def on_document(self):
        self.send(200, json.dumps(self.server.document).encode())


class Web:
    """For a `with`."""

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.seen = []
        self.seen = self.server.seen
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def last(self):
        return self.seen[-1]
