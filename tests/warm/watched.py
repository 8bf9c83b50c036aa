"""Engines for the tests of warm boxes: one that writes its trace to a file and whose zygote is
ready, and cupel whose runs go to it, so that tests written for cold runs meet warm boxes."""
import copy
import json
import os
import tempfile

import engine
import host

# The environment that an interpreter reads at its start: such a request is never warm.
AT_START = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG", "TZ", "OMP_", "OPENBLAS_", "MKL_", "NUMEXPR_")
READY_S = 60


class Watched(engine.Engine):
    """`cupel serve` with its stderr in a file, ready to fork."""

    def __enter__(self):
        self.log = tempfile.TemporaryFile("w+")
        self.process = self.cupel.popen(["serve", "--socket", self.path, *self.args], stderr=self.log,
                                        env={"CUPEL_TRACE": "1", **self.env})
        if not host.wait_until(lambda: "ready on" in self.told() or self.process.poll() is not None,
                               engine.START_S) or self.process.poll() is not None:
            self.process.kill()
            self.process.communicate()
            raise AssertionError(f"the engine is not ready: {self.told()}")
        self.wait_until_warm()
        return self

    def __exit__(self, *what):
        try:
            super().__exit__(*what)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.told()[-2000:]}") from None
        self.said = self.told()
        self.log.close()

    def told(self, since=0):
        """What it has said, from a place on."""
        return os.pread(self.log.fileno(), 1 << 24, since).decode(errors="replace")

    def told_bytes(self):
        return os.fstat(self.log.fileno()).st_size

    def state(self):
        with self.client() as client:
            return client.info()["state"]

    def spare_boxes(self):
        """Boxes that are in no pool: of runs, or dying."""
        state = self.state()
        return state["boxes"] - sum(pool["ready"] + pool["making"] for pool in state["pools"])

    def zygotes(self):
        return self.state()["zygotes"]

    def wait_until_warm(self):
        def warm():
            return [row["state"] for row in self.zygotes() if "@" not in row["name"]] == ["ready"] * 2
        assert host.wait_until(warm, READY_S, 0.1), (self.state(), self.told())

    def wait_until_full(self):
        """Every pool has what it wants: the next runs meet occupants that waited."""
        def full():
            return all(pool["ready"] >= pool["wanted"] for pool in self.state()["pools"])
        self.wait_until_warm()
        assert host.wait_until(full, READY_S, 0.1), (self.state(), self.told())


def should_be_warm(request):
    """A Python request whose environment is read late is always served by the zygote."""
    return request.get("language", "python") == "python" and \
        not any(name.startswith(AT_START) for name in request.get("env", {}))


class WarmCupel(host.Cupel):
    """cupel whose runs go to a warm engine, and which insists that they do."""

    def __new__(cls, cold, running):
        warm = copy.copy(cold)
        warm.__class__, warm.cold, warm.running = cls, cold, running
        warm.env = {**cold.env, **running.use()}
        return warm

    def __init__(self, *_):
        pass

    def request(self, request, args=(), **options):
        before = self.running.told_bytes()
        answer = super().request(request, args, **options)
        trace = self.running.told(before)
        if isinstance(answer.process.stderr, str):
            answer.process.stderr += trace
        if "metrics" in answer and "--cold" not in args:
            parsed = request if isinstance(request, dict) else json.loads(request)
            assert answer["metrics"]["warm"] or not should_be_warm(parsed), \
                (answer["status"], answer["metrics"], self.running.state())
        return answer


def is_fixture(value):
    """As old and new pytest mark them."""
    return hasattr(value, "_pytestfixturefunction") or type(value).__name__ == "FixtureFunctionDefinition"


def adopt(namespace, module, without=()):
    """The tests and fixtures of another test file, to be run here. `without` are those that ask
    for something that is not so in a warm engine; each has a counterpart in this folder."""
    names = {name for name, value in vars(module).items() if name.startswith("test_") and callable(value)}
    fixtures = {name for name, value in vars(module).items() if is_fixture(value)}
    assert set(without) <= names, f"{module.__name__} has no {set(without) - names}"
    assert not fixtures & set(namespace), fixtures & set(namespace)
    for name in sorted(names - set(without)):  # in one order: parallel workers compare their lists
        namespace[f"{module.__name__}__{name.removeprefix('test_')}"] = getattr(module, name)
    for name in fixtures:
        namespace[name] = getattr(module, name)
