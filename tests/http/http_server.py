"""`cupel serve --listen` for the tests: a lent engine of tests/shared.py, its address and its tokens."""
import re

import host
from http_client import Http, Wire

LISTEN = ("--listen", "127.0.0.1:0")
ADDRESS = re.compile(r"http://(127\.0\.0\.1):(\d+)")


class Server:
    def __init__(self, engine, contract):
        self.engine, self.contract, self.cupel = engine, contract, engine.cupel
        found = ADDRESS.search(engine.told())
        assert found, f"it does not say where it listens: {engine.told()}"
        self.address = (found[1], int(found[2]))
        self.url = f"http://{found[1]}:{found[2]}"

    def state(self):
        return self.engine.state()

    def new_token(self, name, *args):
        """The secret of a new token; a name that is taken is made free first."""
        self.cupel.run(["token", "rm", name])
        done = self.cupel.run(["token", "new", name, *args])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def token(self, name="tests", *args):
        """The same token for all tests of the engine; another one where there are arguments."""
        kept = self.engine.__dict__.setdefault("tokens", {})
        if (name, args) not in kept:
            kept[name, args] = self.new_token(name, *args)
        return kept[name, args]

    def client(self, name="tests", *args):
        return Http(self.address, self.token(name, *args), self.contract)

    def nobody(self):
        """A client without a token."""
        return Http(self.address, None, self.contract)

    def wire(self):
        return Wire(self.address)

    def wait_for(self, **figures):
        """The engine's figures become these."""
        def is_so():
            state = self.state()
            return all(state[name] == value for name, value in figures.items())
        assert host.wait_until(is_so, 20), (figures, self.state())
