#!/usr/bin/python3
"""The cost of images and folders, as ratios in the same interleaved rounds: part of `make bench`.
1. A warm run on an engine's pool, image `data` (on the host, with a package of its own) against image `host`.
2. A cold run in an image of five layers and 60,000 files against image `host`.
3. The import of a `docker save` archive of 1 GB against `tar -xf` of its layers.
4. The start of a run with `--dir` on a folder of 100,000 files against one on an empty folder.
IMAGES_QUICK=1 is a first look with a tenth of the sizes."""
import hashlib
import io
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import common

QUICK = bool(os.environ.get("IMAGES_QUICK"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", 60))
FILES, FOLDER_FILES, ARCHIVE_MIB = (6_000, 10_000, 100) if QUICK else (60_000, 100_000, 1_000)
WARM_MOST, COLD_MOST, IMPORT_MOST, FOLDER_MOST = 1.15, 1.3, 1.5, 1.3
GAP_S = 0.05  # between warm runs, so that the pools refill


def run(argv, env, **ids):
    done = subprocess.run([str(word) for word in argv], env=env, capture_output=True, text=True, **ids)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, argv))} ended with {done.returncode}: {done.stderr[-800:]}")
    return done.stdout


# ---- archives ----

def python_files():
    """What Python needs, as its own image: the interpreter, its libraries, its standard library, a shell."""
    programs = ["/usr/bin/python3.11", "/usr/bin/bash"]
    wanted = [*programs, "/usr/bin/python3", "/usr/bin/sh", "/usr/bin/dash", "/lib64/ld-linux-x86-64.so.2"]
    folders = [Path("/usr/lib/python3.11")]
    libraries = [*programs, *map(str, Path("/usr/lib/python3.11/lib-dynload").glob("*.so"))]
    said = subprocess.run(["ldd", *libraries], capture_output=True, text=True).stdout
    wanted += sorted({word for word in said.split() if word.startswith("/") and not word.endswith(":")})
    return [Path(path) for path in wanted if os.path.exists(path)], folders


def base_layer(path):
    files, folders = python_files()
    with tarfile.open(path, "w") as tar:
        for name, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"), ("sbin", "usr/sbin")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        seen = set()
        for file in files:
            name = str(file)[1:]
            name = name if name.startswith("usr/") else f"usr/{name}"
            if name not in seen:
                seen.add(name)
                tar.add(os.path.realpath(file), name, recursive=False)
        for folder in folders:
            tar.add(folder, str(folder)[1:], filter=lambda info: None if "__pycache__" in info.name else info)


def many_files_layer(path, number, count):
    with tarfile.open(path, "w") as tar:
        for n in range(count):
            info = tarfile.TarInfo(f"opt/layer{number}/d{n // 200}/f{n}.txt")
            text = f"file {number} {n}\n".encode()
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))


def large_layer(path, mib):
    """Files of many sizes that do not compress, as packages have them."""
    chance = random.Random(mib)
    left, n = mib << 20, 0
    block = chance.randbytes(4 << 20)
    with tarfile.open(path, "w") as tar:
        while left > 0:
            size = min(left, int(2 ** chance.uniform(10, 22)))
            at = chance.randrange(len(block) - size + 1) if size < len(block) else 0
            info = tarfile.TarInfo(f"usr/lib/big/d{n // 100}/f{n}.so")
            info.size = size
            tar.addfile(info, io.BytesIO(block[at:at + size - 8] + struct.pack("<Q", n)))
            left, n = left - size, n + 1


def docker_save(path, layers, tag):
    """The layout of `docker save`."""
    sums = [hashlib.sha256(Path(layer).read_bytes()).hexdigest() for layer in layers]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    config = json.dumps({"architecture": machine, "os": "linux", "config": {"Env": ["PATH=/usr/bin:/bin"]},
                         "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in sums]}}).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag],
                            "Layers": [f"{one}/layer.tar" for one in sums]}]).encode()
    with tarfile.open(path, "w") as tar:
        for member, text in ((name, config), ("manifest.json", manifest)):
            info = tarfile.TarInfo(member)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
        for one, layer in zip(sums, layers):
            tar.add(layer, f"{one}/layer.tar", recursive=False)


# ---- warm ----

class Engine:
    """`cupel serve` and one connection to it."""

    def __init__(self, program, env, ids):
        self.path = Path(env["XDG_RUNTIME_DIR"]) / "bench-socket"
        self.log = open(Path(env["HOME"]) / "serve.log", "w")
        self.process = subprocess.Popen([program, "serve", "--socket", self.path], env=env, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, **ids)
        until = time.monotonic() + 60
        while not self.path.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"cupel serve does not start: {Path(self.log.name).read_text()[-500:]}")
            time.sleep(0.05)
        self.link = socket.socket(socket.AF_UNIX)
        self.link.connect(str(self.path))
        self.number = 0
        self.read_frame()  # hello

    def close(self):
        self.link.close()
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def read(self, count):
        got = b""
        while len(got) < count:
            part = self.link.recv(count - len(got))
            if not part:
                raise SystemExit("the engine closed the connection")
            got += part
        return got

    def read_frame(self):
        return json.loads(self.read(struct.unpack("<I", self.read(4))[0]))

    def run(self, request):
        """Milliseconds from request to result, and the result."""
        self.number += 1
        frame = json.dumps({"op": "run", "id": str(self.number), "request": request}).encode()
        started = time.perf_counter()
        self.link.sendall(struct.pack("<I", len(frame)) + frame)
        said = self.read_frame()
        took = (time.perf_counter() - started) * 1000
        if said.get("result", {}).get("status") != "ok":
            raise SystemExit(f"a run failed: {said}")
        return took, said["result"]


def measure_warm(program, env, ids):
    engine = Engine(program, env, ids)
    times, warm = {"data": [], "host": []}, {"data": 0, "host": 0}
    try:
        for image in list(times) * 5:  # the pool of an image comes with its use
            engine.run({"code": "1 + 1", "image": image})
            time.sleep(0.5)
        time.sleep(3)
        for _ in range(ROUNDS):
            for image in times:
                took, result = engine.run({"code": "1 + 1", "image": image})
                times[image].append(took)
                warm[image] += result["metrics"]["warm"]
                time.sleep(GAP_S)
    finally:
        engine.close()
    return times, warm


# ---- cold ----

def rounds(commands, env, count):
    times, names, order = {name: [] for name in commands}, list(commands), random.Random(1)
    for _ in range(count):
        order.shuffle(names)
        for name in names:
            took, code = common.timed(commands[name], env)
            if code:
                raise SystemExit(f"{name} ended with {code}: {commands[name]}")
            times[name].append(took)
    return times


def measure(home):
    """As whoever we are, in a state with the images `data` and `layered`."""
    env = {**common.ENV, "HOME": home, "CUPEL_STATE": f"{home}/state", "XDG_RUNTIME_DIR": f"{home}/run"}
    program, out = common.CUPEL, {}
    cold = {image: [program, "run", "--cold", "--image", image, "-c", "pass"] for image in ("layered", "host")}
    out["cold"] = rounds(cold, env, ROUNDS)
    folders = {name: [program, "run", "--cold", "--dir", f"{home}/{name}", "-c", "pass"] for name in ("many", "none")}
    out["folder"] = rounds(folders, env, ROUNDS)
    out["warm"], out["were_warm"] = measure_warm(program, env, {})
    return out


def fill_home(home, owner, archives, program, ids):
    env = {**common.ENV, "HOME": str(home), "CUPEL_STATE": f"{home}/state", "XDG_RUNTIME_DIR": f"{home}/run"}
    (home / "none").mkdir()
    for n in range(FOLDER_FILES):
        folder = home / f"many/d{n // 100}"
        if n % 100 == 0:
            folder.mkdir(parents=True)
        (folder / f"f{n}.py").touch()
    if owner is not None:
        for folder in (home / "none", home / "many"):
            subprocess.run(["chown", "-R", f"{owner}:{owner}", folder], check=True)
    run([program, "images", "import", "-q", "--name", "layered", archives / "layered.tar"], env, **ids)
    run([program, "images", "add", "-q", "data", "--pip", "cupel-bench-row"], {
        **env, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(archives / "wheels")}, **ids)


def make_wheel(folder):
    folder.mkdir()
    info = "cupel_bench_row-1.0.dist-info"
    import zipfile
    with zipfile.ZipFile(folder / "cupel_bench_row-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("cupel_bench_row.py", "ROW = 1\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: cupel-bench-row\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL",
                       "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"cupel_bench_row.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def measure_import(figures, scratch, program):
    """As whoever we are: three rounds, each into an empty store. Our import ends when its bytes are on the disk; tar's
    are still in memory then, so the flush of those is told beside."""
    layers = [scratch.root / f"big{n}.tar" for n in range(2)]
    for n, layer in enumerate(layers):
        large_layer(layer, ARCHIVE_MIB // 2 + n)
    archive = scratch.root / "big.tar"
    docker_save(archive, layers, "big:1")
    ratios, flushed = [], []
    for n in range(3):
        env = scratch.cupel_env(f"import-{n}")
        into = scratch.folder(f"untar-{n}")
        os.sync()
        plain = sum(common.timed(["/usr/bin/tar", "-xf", str(layer), "-C", str(into)], common.ENV)[0]
                    for layer in layers)
        flush = common.timed(["/usr/bin/sync", "-f", str(into)], common.ENV)[0]
        ours, code = common.timed([str(program), "images", "import", "-q", "--name", "big", str(archive)], env)
        if code:
            raise SystemExit(f"the import ended with {code}")
        ratios.append(ours / plain)
        flushed.append(ours / (plain + flush))
        shutil.rmtree(into)
        shutil.rmtree(env["HOME"])
    figures.promise(f"import of {ARCHIVE_MIB} MiB against tar -xf", sorted(ratios)[1], IMPORT_MOST, " ×")
    print(f"              against tar -xf and sync -f: {sorted(flushed)[1]:.3g} ×")


def show(figures, who, said):
    def judge(what, pair, ours, peer, most):
        ratio, low, high = common.spread([a / b for a, b in zip(pair[ours], pair[peer])])
        middle = common.spread(pair[ours])[0] / common.spread(pair[peer])[0]
        figures.promise(f"{what}, as {who}", middle, most, " ×")
        figures.note(f"{what} as {who}", rounds=len(pair[ours]), ratio=ratio, low=low, high=high,
                     ours_ms=common.spread(pair[ours])[0], peer_ms=common.spread(pair[peer])[0])
    judge("warm run in image data against host", said["warm"], "data", "host", WARM_MOST)
    print(f"              warm: data {said['were_warm']['data']}, host {said['were_warm']['host']} of {ROUNDS}")
    judge(f"cold run in an image of {FILES:,} files against host", said["cold"], "layered", "host", COLD_MOST)
    judge(f"--dir on {FOLDER_FILES:,} files against an empty folder", said["folder"], "many", "none", FOLDER_MOST)


def main():
    figures = common.Figures("images", f"{ROUNDS} interleaved rounds; the medians' ratio")
    with common.Scratch() as scratch:
        program = scratch.reachable_copy()
        archives = scratch.folder("archives")
        layers = [archives / "base.tar", *(archives / f"layer{n}.tar" for n in range(4))]
        base_layer(layers[0])
        for n, layer in enumerate(layers[1:]):
            many_files_layer(layer, n, FILES // 4)
        docker_save(archives / "layered.tar", layers, "layered:1")
        make_wheel(archives / "wheels")
        for who, uid in (("root", None), ("an ordinary user", common.ORDINARY)):
            if who == "root" and os.getuid():
                continue
            switch = uid is not None and not os.getuid()
            owner = uid if switch else None
            home = Path(scratch.cupel_env(f"home-{uid}", owner)["HOME"])
            ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
            fill_home(home, owner, archives, program / "cupel", ids)
            done = subprocess.run(["/usr/bin/python3", program / "images.py", "--one", home],
                                  stdout=subprocess.PIPE, text=True, check=True, cwd=home,
                                  env={**os.environ, "CUPEL": str(program / "cupel")}, **ids)
            show(figures, who, json.loads(done.stdout))
        measure_import(figures, scratch, program / "cupel")
    return figures.broken


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        json.dump(measure(sys.argv[2]), sys.stdout)
    else:
        sys.exit(main())
