"""A registry of images for tests, on loopback: the OCI distribution API with the faults that a test asks
for, and images made of a few files."""
import gzip
import hashlib
import io
import json
import ssl
import subprocess
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OCI = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[subprocess.check_output(["uname", "-m"], text=True).strip()]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(files):
    """The tar of a layer: {path: bytes}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o755 if path.startswith("bin/") else 0o644
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Image:
    """Blobs, and a manifest of them, as OCI or Docker spell it."""

    def __init__(self, *layers, env=(), docker=False, machine=MACHINE):
        tars = [layer(files) for files in layers]
        packed = [gzip.compress(tar, mtime=0) for tar in tars]
        config = json.dumps({"os": "linux", "architecture": machine, "config": {"Env": list(env)},
                             "rootfs": {"type": "layers", "diff_ids": [digest(tar) for tar in tars]}}).encode()
        self.blobs = {digest(data): data for data in [config, *packed]}
        self.layers = [digest(data) for data in packed]
        self.type = DOCKER if docker else OCI
        row = (lambda kind, data: {"mediaType": kind, "digest": digest(data), "size": len(data)})
        self.document = {
            "schemaVersion": 2, "mediaType": self.type,
            "config": row("application/vnd.docker.container.image.v1+json" if docker
                          else "application/vnd.oci.image.config.v1+json", config),
            "layers": [row("application/vnd.docker.image.rootfs.diff.tar.gzip" if docker
                           else "application/vnd.oci.image.layer.v1.tar+gzip", data) for data in packed]}

    @property
    def manifest(self):
        return json.dumps(self.document).encode()


class Registry:
    """`faults` is a list of functions of a handler, tried in order: one that returns true has answered."""

    def __init__(self, tls=None):
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return True

            def do_GET(self):
                registry.asked.append((self.path, self.headers))
                try:
                    if not any(fault(self) for fault in registry.faults):
                        registry.serve(self)
                except OSError:
                    self.close_connection = True

        self.asked, self.faults = [], []
        self.manifests, self.blobs = {}, {}  # {"name:tag" or digest: (bytes, type)}, {digest: bytes}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def push(self, image, tag="1", name="team/tool"):
        self.manifests[tag] = self.manifests[digest(image.manifest)] = (image.manifest, image.type)
        self.blobs.update(image.blobs)
        return f"{self.address}/{name}:{tag}"

    def push_list(self, rows, tag="1", kind=OCI_INDEX):
        """rows: [(image, platform)]"""
        entries = []
        for image, platform in rows:
            self.push(image, tag="-")
            entries.append({"mediaType": image.type, "digest": digest(image.manifest),
                            "size": len(image.manifest), "platform": platform})
        data = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": entries}).encode()
        self.manifests[tag] = self.manifests[digest(data)] = (data, kind)
        return f"{self.address}/team/tool:{tag}"

    def serve(self, handler):
        kind, _, name = handler.path.rpartition("/")
        if kind.endswith("/manifests") and name in self.manifests:
            data, mime = self.manifests[name]
            return handler.answer(200, data, Content_Type=mime)
        data = self.blobs.get(name) if kind.endswith("/blobs") else None
        if data is None:
            return handler.answer(404, json.dumps({"errors": [{"message": "manifest unknown"}]}).encode())
        first = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        if first >= len(data) > 0:
            return handler.answer(416)
        extra = {"Content_Range": f"bytes {first}-{len(data) - 1}/{len(data)}"} if first else {}
        return handler.answer(206 if first else 200, data[first:], **extra)

    def paths(self, word):
        return [path for path, _ in self.asked if word in path]


def once(fault, times=1):
    """A fault that goes away."""
    left = [times]

    def wrapped(handler):
        if left[0] > 0 and fault(handler):
            left[0] -= 1
            return True
        return False
    return wrapped


def cut(name, after, whole):
    """The blob breaks off after so many bytes."""
    def fault(handler):
        if not handler.path.endswith(name):
            return False
        first = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        handler.send_response(206 if first else 200)
        if first:
            handler.send_header("Content-Range", f"bytes {first}-{len(whole) - 1}/{len(whole)}")
        handler.send_header("Content-Length", str(len(whole) - first))
        handler.end_headers()
        handler.wfile.write(whole[first:first + after])
        handler.wfile.flush()
        handler.close_connection = True
        return True
    return fault


def trickle(name, whole, pause_s):
    """The blob comes byte by byte."""
    def fault(handler):
        if not handler.path.endswith(name):
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(whole)))
        handler.end_headers()
        for i in range(len(whole)):
            handler.wfile.write(whole[i:i + 1])
            handler.wfile.flush()
            time.sleep(pause_s)
        return True
    return fault


def reply(word, status, body=b"", **headers):
    def fault(handler):
        return word in handler.path and handler.answer(status, body, **headers)
    return fault
