"""`cupel ask` under test: a question, files, and a model that says what the test wants.

The model is either a file of replies (replay:) or a program (exec:) that serves the same replies and
writes down what it was sent, or any program that a test gives."""
import json
import re
import shutil
from pathlib import Path

import stored

PYTHON = "/usr/bin/python3"
EXIT = {"verified": 0, "computed": 0, "failed": 1, "unverified": 3, "stuck": 4, "budget_exhausted": 5, "denied": 6,
        "unanswerable": 7}
ASK_S = 90  # a task of these tests that takes longer hangs

# Serves replies.json in order and keeps what it was sent in sent.jsonl; the last reply is repeated.
SERVER = '''#!/usr/bin/python3 -Ss
import json, os, sys
here = os.path.dirname(os.path.realpath(__file__))
sent = sys.stdin.read()
with open(here + "/sent.jsonl", "a+") as log:
    log.seek(0)
    turn = len(log.readlines())
    log.write(json.dumps(json.loads(sent)) + "\\n")
replies = json.load(open(here + "/replies.json"))
print(json.dumps(replies[min(turn, len(replies) - 1)]))
'''


def fence(code, before=""):
    """A reply with one cell."""
    return f"{before}\n```python\n{code.strip()}\n```\n"


def plan(*steps):
    return "<plan>\n" + "\n".join(steps or ["compute it"]) + "\n</plan>\n"


def reply(one):
    return {"text": one} if isinstance(one, str) else one


class Answer(dict):
    """The report, with what was told beside it."""

    done = sent = None

    @property
    def kinds(self):
        return [(check["check"], check["outcome"]) for check in self["checks"]]

    def outcome(self, name):
        """Of all checks of that name: the worst."""
        found = [outcome for check, outcome in self.kinds if check == name]
        return next((word for word in ("fail", "no_verdict", "skip", "pass") if word in found), None)

    def observation(self, step=-1):
        return self["evidence"][step]["observation"]

    def request(self, turn=-1):
        """What the model was sent before that turn, as one text; its last message alone: `told`."""
        return self.sent[turn]["system"] + "\n" + "\n".join(map(text_of, self.sent[turn]["messages"]))

    def told(self, turn=-1):
        return text_of(self.sent[turn]["messages"][-1])


def text_of(message):
    content = message["content"]
    if isinstance(content, str):
        return content
    texts = []
    for part in content:
        inner = part.get("content")
        texts.append(part.get("text") or (text_of({"content": inner}) if inner else ""))
    return "\n".join(texts)


class Asker:
    """Asks as one user; `engine` serves it."""

    def __init__(self, engine, place):
        self.engine, self.cupel, self.place = engine, engine.cupel, place

    def folder(self, files):
        """A fresh folder with these files and an empty one for the model."""
        folder = self.place.fresh("ask", 0o777)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            path.chmod(0o644)
        return folder

    def model(self, folder, replies, name="model"):
        """The --model of such replies, a watching program, and where it writes down."""
        own = folder / name
        own.mkdir()
        own.chmod(0o777)
        (own / "replies.json").write_text(json.dumps([reply(one) for one in replies]))
        return self.program(own, SERVER), own / "sent.jsonl"

    @staticmethod
    def program(folder, text):
        path = Path(folder) / "model.py"
        path.write_text(text)
        path.chmod(0o755)
        return f"exec:{path}"

    @staticmethod
    def replay(folder, replies):
        path = Path(folder) / "replies.jsonl"
        path.write_text("".join(json.dumps(reply(one)) + "\n" for one in replies))
        path.chmod(0o644)
        return f"replay:{path}"

    def __call__(self, question, replies=None, files=None, args=(), watch=False, model=None, env=None, folder=None,
                 **options):
        """The report of one task. `replies` are served from a file, or with `watch` by a program that
        notes what it was sent; `model` is any other."""
        files = files or {}
        folder = folder or self.folder(files)
        seen = None
        if model is None and watch:
            model, seen = self.model(folder, replies)
        elif model is None:
            model = self.replay(folder, replies)
        done = self.cupel.run(["ask", "--json", "--model", model, *args, question, *(folder / name for name in files)],
                              env={**self.engine.use(), **(env or {})}, timeout=ASK_S, **{"cwd": folder, **options})
        try:
            answer = Answer(json.loads(done.stdout))
        except ValueError:
            raise AssertionError(f"no JSON: exit {done.returncode}, stdout {done.stdout[:500]!r}, "
                                 f"stderr {done.stderr[-2000:]!r}") from None
        answer.done, answer.folder = done, folder
        if seen and seen.exists():
            answer.sent = [json.loads(line) for line in seen.read_text().splitlines()]
        assert "status" not in answer or done.returncode == EXIT[answer["status"]], (done.returncode, answer)
        return answer

    def transcript(self, answer):
        """The events of a task, as they are stored."""
        return stored.events(self.cupel.env["CUPEL_STATE"], answer["task"])

    def sessions(self):
        """Those that live in the engine."""
        done = self.cupel.run(["session", "ls", "--json"], env=self.engine.use())
        return [row for row in json.loads(done.stdout)["sessions"] if row["status"] != "ended"]


def copy_case(case, folder):
    """A shipped case where every user can read it: its input files, sorted."""
    for path in case.iterdir():
        shutil.copy(path, folder / path.name)
        (folder / path.name).chmod(0o644)
    return sorted(path.name for path in folder.iterdir() if path.name not in OF_A_CASE)


OF_A_CASE = {"question.txt", "replies.jsonl", "expect.json"}


def words(text):
    return re.sub(r"\s+", " ", text or "")
