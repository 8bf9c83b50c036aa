"""What the figures share: starting programs with little overhead, percentiles, a word
about the machine, and the results as text and as JSON lines in build/bench.jsonl."""
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
CUPEL = os.environ.get("CUPEL", str(REPO / "build/cupel"))
RESULTS = Path(os.environ.get("BENCH_RESULTS", REPO / "build/bench.jsonl"))
ORDINARY = 12345  # a uid that no Debian system gives to anybody
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
BUSY_MOST = 0.25  # of all cores: above, figures are shown but not judged

_null = os.open("/dev/null", os.O_RDWR)


def busy(seconds=1.0):
    """The share of all cores that others use, measured now; the load average lags."""
    def look():
        fields = [int(n) for n in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return sum(fields), fields[3] + fields[4]
    total, idle = look()
    time.sleep(seconds)
    total2, idle2 = look()
    return 1 - (idle2 - idle) / max(1, total2 - total)


def timed(argv, env, stderr=None, cwd=None):
    """Milliseconds from spawn to reaped, and the exit status. vfork, no shell, no pipes."""
    actions = [(os.POSIX_SPAWN_DUP2, _null, 0), (os.POSIX_SPAWN_DUP2, _null, 1),
               (os.POSIX_SPAWN_DUP2, _null if stderr is None else stderr, 2)]
    before = os.getcwd()
    if cwd:
        os.chdir(cwd)
    started = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    took = (time.perf_counter() - started) * 1000
    if cwd:
        os.chdir(before)
    return took, os.waitstatus_to_exitcode(status)


def spread(values):
    """Median, p10 and p90."""
    tenths = statistics.quantiles(values, n=10) if len(values) > 1 else [values[0]] * 9
    return statistics.median(values), tenths[0], tenths[-1]


def machine():
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "unknown processor")
    return f"{os.cpu_count()} × {model}, Linux {os.uname().release}"


def record(row):
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a") as out:
        out.write(json.dumps(row) + "\n")


class Figures:
    """The verdicts of one program of bench/."""

    def __init__(self, name, method):
        self.name, self.broken = name, False
        self.busy = busy()
        self.judged = self.busy <= BUSY_MOST
        print(f"\n{name}: {method}")
        if not self.judged:
            print(f"  WARNING: others use {self.busy:.0%} of the processors: figures are shown, not judged")

    def promise(self, what, value, most, unit="", always=False):
        held, judged = value <= most, self.judged or always
        self.broken = self.broken or (not held and judged)
        word = "held" if held else "BROKEN" if judged else "not judged"
        print(f"  {word:>10}  {what}: {value:.4g}{unit}, promised at most {most:g}{unit}")
        self.note(what, value=value, most=most, held=held)

    def note(self, what, **facts):
        record({"bench": self.name, "what": what, "busy": round(self.busy, 3), **facts})


class Scratch:
    """A folder that an ordinary user can reach, gone at the end."""

    def __enter__(self):
        self.root = Path(tempfile.mkdtemp(prefix="cupel-bench-"))
        self.root.chmod(0o755)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def folder(self, name, owner=None):
        path = self.root / name
        path.mkdir()
        if owner is not None:
            os.chown(path, owner, owner)
        return path

    def reachable_copy(self):
        """cupel and these programs where every user can get at them."""
        path = self.root / "programs"
        if not path.exists():
            shutil.copytree(REPO / "bench", path)
            shutil.copy(CUPEL, path / "cupel")
        return path

    def cupel_env(self, name, owner=None):
        """An environment in which cupel keeps its state here."""
        home = self.folder(name, owner)
        (home / "run").mkdir(mode=0o700)
        if owner is not None:
            os.chown(home / "run", owner, owner)
        return {**ENV, "HOME": str(home), "CUPEL_STATE": str(home / "state"), "XDG_RUNTIME_DIR": str(home / "run")}
