"""Engines that test files use one after another. To start one costs some seconds of processor time, most of it for
the packages that its zygotes import; a file has a part of that for all of its tests.

A file gives an engine back as it was: the sessions that it left are ended here, and a run or a box that stays is the
file's failure. An engine that a file broke is ended, and the next file gets another."""
import collections
import contextlib

import engine
import host
from watched import Watched

REST_S = 10


class Shared:
    def __init__(self, cupels, place):
        self.cupels, self.place, self.running = cupels, place, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.ExitStack() as stack:
            for key in [*self.running]:
                stack.callback(self.end, key)

    def end(self, key):
        one = self.running.pop(key)
        try:
            one.__exit__(None, None, None)
        finally:
            host.LASTING.discard(one.process.pid)

    @contextlib.contextmanager
    def lend(self, who, args=()):
        """An engine with these arguments and ready zygotes, for one test file."""
        key = who, tuple(args)
        if key not in self.running:
            one = Watched(self.cupels[who], engine.socket_path(self.place, self.cupels[who]), args).__enter__()
            self.running[key] = one
            host.LASTING.add(one.process.pid)
        one = self.running[key]
        try:
            yield one
            come_to_rest(one)
        except BaseException:
            one.process.kill()
            one.ends_with = None
            self.end(key)
            raise

    def lend_all(self, args=()):
        """{who: an engine}, each lent when a test first asks for it."""
        return engine.Started(self.cupels, lambda who: self.lend(who, args))


def come_to_rest(one):
    assert one.process.poll() is None, f"the engine has ended: {one.told()[-2000:]}"
    with one.client() as client:
        for row in client.ask({"op": "session", "id": "l", "do": "list"})["sessions"]:
            client.send({"op": "session", "id": "e", "do": "end", "session": row["session"]})
            collections.deque(iter(lambda: client.receive().get("id"), "e"), 0)
    assert host.wait_until(lambda: is_at_rest(one), REST_S), one.state()


def is_at_rest(one):
    """Boxes are those of the pools, each with its zygote's help."""
    state = one.state()
    return not (state["runs"] or state["queued"] or state["sessions"] or one.spare_boxes())
