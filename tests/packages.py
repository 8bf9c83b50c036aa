"""Tiny packages for tests of builds: wheels, packages of npm and of Debian, made here."""
import base64
import gzip
import hashlib
import http.server
import io
import json
import subprocess
import tarfile
import threading
import zipfile


def wheel(folder, name, version="1.0", files=None, requires=(), scripts=None, tag="py3-none-any", links=None):
    """A wheel with these files (path: text or bytes); `scripts` are its console scripts. The path."""
    plain = name.replace("-", "_")
    info = f"{plain}-{version}.dist-info"
    whole = {f"{plain}/__init__.py": f"version = {version!r}\n"} if files is None else dict(files)
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    whole[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    whole[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"
    if scripts:
        rows = "".join(f"{key} = {value}\n" for key, value in scripts.items())
        whole[f"{info}/entry_points.txt"] = f"[console_scripts]\n{rows}"
    whole = {path: text.encode() if isinstance(text, str) else text for path, text in whole.items()}
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in whole.items())
    whole[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = folder / f"{plain}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for at, data in whole.items():
            archive.writestr(zipfile.ZipInfo(at, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        for at, target in (links or {}).items():
            entry = zipfile.ZipInfo(at, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = 0o120777 << 16
            archive.writestr(entry, target)
    path.chmod(0o644)
    return path


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def source(folder, name, version="1.0", setup=""):
    """A source package: a tar whose setup.py would run."""
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for at, text in {"setup.py": setup or f"from setuptools import setup\nsetup(name={name!r})\n",
                         "PKG-INFO": f"Metadata-Version: 1.0\nName: {name}\nVersion: {version}\n"}.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{at}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    path.chmod(0o644)
    return path


def debian(folder, name, version="1.0-1", files=None, scripts=None):
    """A repository of one package below `folder`: the environment that makes apt use it alone."""
    root, repository = folder / f"{name}.d", folder / "repo"
    (root / "DEBIAN").mkdir(parents=True)
    repository.mkdir(exist_ok=True)
    (root / "DEBIAN/control").write_text(f"Package: {name}\nVersion: {version}\nArchitecture: all\n"
                                         f"Maintainer: A <a@b.example>\nDescription: x\n")
    for at, text in (files or {f"usr/bin/{name}": "#!/bin/sh\necho tiny\n"}).items():
        (root / at).parent.mkdir(parents=True, exist_ok=True)
        (root / at).write_text(text)
        (root / at).chmod(0o755)
    for script, text in (scripts or {}).items():
        (root / "DEBIAN" / script).write_text(text)
        (root / "DEBIAN" / script).chmod(0o755)
    path = repository / f"{name}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, path], check=True, capture_output=True)
    control = (root / "DEBIAN/control").read_text()
    (repository / "Packages").write_text(
        f"{control}Filename: ./{path.name}\nSize: {path.stat().st_size}\n"
        f"SHA256: {hashlib.sha256(path.read_bytes()).hexdigest()}\n")
    return apt(folder, f"deb [trusted=yes] copy:{repository} ./\n")


def apt(folder, sources, more=""):
    (folder / "sources").write_text(sources)
    (folder / "apt.conf").write_text(f'Dir::Etc::sourcelist "{folder}/sources";\nDir::Etc::sourceparts "-";\n{more}')
    return {"APT_CONFIG": str(folder / "apt.conf")}


class Registry:
    """A registry of npm on loopback: {name: {version: {path: text}}}. `env` makes npm use it."""

    def __init__(self, packages, fields=None):
        self.files, fields = {}, fields or {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                data = outer.files.get(self.path.replace("%2f", "/").replace("%2F", "/"))
                self.send_response(200 if data is not None else 404)
                self.end_headers()
                self.wfile.write(data or b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.env = {"npm_config_registry": f"{self.url}/"}
        for name, versions in packages.items():
            about = {"name": name, "dist-tags": {"latest": list(versions)[-1]}, "versions": {}}
            for version, files in versions.items():
                data = self.archive(name, version, files, fields.get(name, {}))
                at = f"/{name}/-/{name.split('/')[-1]}-{version}.tgz"
                self.files[at] = data
                integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
                about["versions"][version] = {"name": name, "version": version, **fields.get(name, {}),
                                              "dist": {"tarball": self.url + at, "integrity": integrity}}
            self.files[f"/{name}"] = json.dumps(about).encode()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def archive(name, version, files, fields):
        out = io.BytesIO()
        with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, \
                tarfile.open(fileobj=packed, mode="w") as archive:
            whole = {"package.json": json.dumps({"name": name, "version": version, **fields}), **files}
            for at, text in whole.items():
                entry = tarfile.TarInfo(f"package/{at}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        return out.getvalue()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
