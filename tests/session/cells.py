"""Cells in place of runs: cupel whose every run is a cell of a session, first or woken, so that
tests written for one-shot boxes meet sessions; and small things that all tests of sessions use."""
import copy
import json
import types

import host
import watched
from engine import Started, socket_path
from sessions import Session

OF_THE_SESSION = {"memory_bytes", "disk_bytes", "pids", "cpus"}  # limits that a cell cannot have
DIE = {"python": "import os; os._exit(1)", "javascript": "process.kill(process.pid, 'SIGKILL')", "bash": "kill -9 $$"}
POOL = ("--pool", "1")  # what is not asked for is not made
LIVES = ("first", "woken")


def engines(cupels, place):
    """{who: an engine with ready zygotes}: sessions that are made earlier cannot be protected."""
    return Started(cupels, lambda who: watched.Watched(cupels[who], socket_path(place, cupels[who]), POOL))


def end(session):
    if session.info()["status"] != "ended":
        session.end()


def is_protected(session):
    session.wait_until_idle()
    return session.info()["protected"]


def die(session, language="python"):
    """The interpreter dies; the session goes on with another, as it promises."""
    protected = is_protected(session)
    result = session.run(DIE[language])
    assert result["state"] == ("rolled_back" if protected else "lost"), result
    session.wait_until_idle()
    return result


class CellCupel(host.Cupel):
    """cupel as tests of one-shot runs know it. `life` says whether a cell is its session's first,
    or runs in a copy that was woken after a death (where nothing is kept: in the next interpreter)."""

    life = "first"

    def __new__(cls, cold, running):
        made = copy.copy(cold)
        made.__class__, made.running = cls, running
        return made

    def __init__(self, *_):
        pass

    def run_json(self, code, language="python", args=None, cli=(), options=None, limits=None, **fields):
        assert not cli, "a cell has no command line"
        limits = limits or {}
        own = {name: value for name, value in limits.items() if name in OF_THE_SESSION}
        with self.running.client() as client:
            session = Session(client, language, request={"limits": own})
            try:
                if self.life == "woken":
                    die(session, language)
                before = self.running.told_bytes()
                result = session.run(code, args=list(args or ()), **fields,
                                     limits={name: value for name, value in limits.items() if name not in own})
                trace = self.running.told(before)
            finally:
                end(session)
        answer = host.Result(result)
        answer.process = types.SimpleNamespace(stdout=json.dumps(result), stderr=trace, returncode=0)
        return answer

    def request(self, request, args=(), **options):
        raise AssertionError("not in a session")
