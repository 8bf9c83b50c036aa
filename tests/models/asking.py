"""`cupel ask` with a fake as its model, and all that can be read off it afterwards."""
import json
import zlib

import models
import stored

QUESTION = "What is six times seven?"
#   setup: the fake's wire, the model's name for cupel
SETUPS = {
    "anthropic": ("anthropic", "anthropic/claude-opus-5"),
    "responses": ("responses", "openai/gpt-6.1-sol"),
    "chat": ("chat", "chat/gpt-6.1-sol"),
    "home": ("chat", "chat/qwen3-coder"),
}


def fake_of(setup, **options):
    """The fake of that setup; a server at home asks for no key."""
    if setup == "home":
        options.setdefault("key", None)
    return models.WIRES[SETUPS[setup][0]](**options)


def environment(setup, fake):
    """What cupel must be told to use this fake."""
    base, key, url = {"anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", fake.url),
                      "responses": ("OPENAI_BASE_URL", "OPENAI_API_KEY", fake.base_url),
                      "chat": ("CUPEL_BASE_URL", "CUPEL_API_KEY", fake.base_url)}[SETUPS[setup][0]]
    return {base: url, **({key: fake.key} if fake.key else {})}


class Asked:
    """A task that has ended."""

    def __init__(self, done, state):
        self.done = done
        try:
            self.report = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"no report: exit {done.returncode}, stdout {done.stdout[:500]!r}, "
                                 f"stderr {done.stderr[-2000:]!r}") from None
        self.state = state

    @property
    def status(self):
        return self.report["status"]

    @property
    def cost(self):
        return self.report["cost"]

    def transcript(self):
        """Its events, one a line."""
        return "".join(json.dumps(event) + "\n" for event in stored.events(self.state, self.report["task"]))

    def answers(self, words):
        """It came to an answer; whether that is proven is not the model's affair."""
        return self.status in ("verified", "computed", "unverified") and words in self.report["answer"]

    def why(self):
        """For an assertion: how it ended, in short."""
        return {name: self.report.get(name) for name in ("status", "reason", "hint", "answer", "checks", "cost")}


class Asker:
    """cupel with a fake behind it."""

    def __init__(self, cupel, setup, fake, env):
        self.cupel, self.setup, self.fake = cupel, setup, fake
        self.env = {**environment(setup, fake), **env}

    def __call__(self, question=QUESTION, args=(), env=None, model=None, **options):
        done = self.cupel.run(["ask", "--json", "--model", model or SETUPS[self.setup][1], *args, question],
                              env={**self.env, **(env or {})}, **options)
        return Asked(done, self.cupel.env["CUPEL_STATE"])


def python(code, **fields):
    """A reply that runs this."""
    return {"tool_calls": [{"name": "python", "arguments": {"code": code}}], **fields}


def told(template, **values):
    """A reply that answers with these expressions."""
    return {"tool_calls": [{"name": "answer", "arguments": {"template": template, "values": values}}]}


PASS = {"text": "PASS"}  # the judge's verdict


def fenced(code, **fields):
    return {"text": f"I compute it.\n\n```python\n{code}\n```\n", **fields}


def png(grey=0x80):
    """A picture of one dot."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    header = (1).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes([0, grey])))
            + chunk(b"IEND", b""))
