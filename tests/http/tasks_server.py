"""`cupel serve --listen` with a model that plays by the question, and a client of its tasks.

The model is a program: it reads [[WORD]] in the last question and does what WORD says, so that any number of tasks
may ask it at the same time."""
import os
import re

import engine
import host
from http_client import Http
from http_contract import CONTRACT
from watched import Watched

PASSING = {"running", "asking"}
ADDRESS = re.compile(r"http://(127\.0\.0\.1):(\d+)")
SALES = {"path": "sales.csv", "text": "item,amount\na,1\nb,2\nc,3.5\n"}

MODEL = r'''#!/usr/bin/python3 -Ss
import json, os, re, sys, time
asked = json.load(sys.stdin)
texts = [(message["role"], message["content"] if isinstance(message["content"], str) else
          "\n".join(part.get("text", "") for part in message["content"])) for message in asked["messages"]]
if asked["system"].startswith("You judge"):
    print("PASS")
    sys.exit()
users = [text for role, text in texts if role == "user"]
told = [(i, word) for i, (role, text) in enumerate(texts) if role == "user"
        for word in re.findall(r"\[\[(\w+)\]\]", text)]
at, word = told[-1]
turn = sum(role == "assistant" for role, text in texts[at:])
SUM = """import csv
rows = list(csv.DictReader(open("sales.csv")))
total = sum(float(row["amount"]) for row in rows)
answer("The total is {total}.", total=total)"""
PLAY = {
    "sum": [SUM],
    "more": ["answer('It has {count} rows.', count=len(rows))"],
    "both": ["import csv\nrows = list(csv.DictReader(open('sales.csv')))\n"
             "more = list(csv.DictReader(open('more.csv')))\nanswer('{n} rows.', n=len(rows) + len(more))"],
    "file": ["open('out.txt', 'w').write('hello')\nimport csv\n" + SUM],
    "ask": ["ask_user('Which column?')", "REPLIED"],
    "late": [SUM.replace('answer("The total is {total}.", total=total)', "print(total)"), SUM.splitlines()[-1]],
    "tool": ["from tools import stock\nfound = stock.find('tea')\nn = sum(row['pieces'] for row in found)\n"
             "answer('{n} pieces.', n=n)"],
    "note": ["import tools\ntry:\n    made = tools.notes.add(text='hello')\nexcept tools.ToolDenied as e:\n"
             "    made = None\n    print(e.reason)\nprint('made', made)", SUM],
    "cell": ["import time\nprint('begun', flush=True)\ntime.sleep(1000)"],
}
awake = os.path.join(os.path.dirname(os.path.realpath(__file__)), "awake")
if word == "stuck" or (word == "late" and turn == 1 and not os.path.exists(awake)):
    time.sleep(1000)
code = PLAY[word][min(turn, len(PLAY[word]) - 1)]
if code == "REPLIED":
    last = users[-1]
    column = "amount" if "amount" in last else "nobody"
    code = SUM.replace("The total", "By " + column + " the total")
print(json.dumps({"text": "```python\n" + code + "\n```\n"}))
'''


class Server(Watched):
    """Its tokens are made by name; `model` is the program above."""

    def __init__(self, cupel, place, args=(), env=None, model=None):
        folder = place.fresh("model", 0o755)
        program = folder / "model.py"
        program.write_text(MODEL)
        program.chmod(0o755)
        self.model = f"exec:{program}" if model is None else model
        self.folder, self.secrets = folder, {}
        super().__init__(cupel, engine.socket_path(place, cupel), ("--listen", "127.0.0.1:0", *args),
                         {"CUPEL_MODEL": self.model, **(env or {})})

    def __enter__(self):
        super().__enter__()
        assert host.wait_until(lambda: ADDRESS.search(self.told()), 20), self.told()
        found = ADDRESS.search(self.told())
        self.address = found[1], int(found[2])
        return self

    def secret(self, name, *args):
        if name not in self.secrets:
            done = self.cupel.run(["token", "new", f"{name}-{self.process.pid}", *args])
            assert done.returncode == 0, done.stderr
            self.secrets[name] = done.stdout.strip()
        return self.secrets[name]

    def http(self, name="tasks", *args):
        return Client(self.address, self.secret(name, *args), CONTRACT)

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def programs(self):
        """Programs of the model that run."""
        return [row["pid"] for row in host.descendants(self.process.pid) if row["comm"].startswith("model.py")]


class Client(Http):
    """Each response and event is checked against api/openapi.json. A connection for each request: threads share it."""

    def __call__(self, method, path, body=None):
        """(status, JSON)."""
        with Http(self.address, self.token, self.contract) as once:
            answer = once.ask(method, path, body)
        return answer.status, answer.json

    def begin(self, word, **fields):
        """The id of a new task."""
        answer = self.post("/v1/tasks", self.body(word, **fields))
        assert answer.status == 202 and answer.headers["location"] == f"/v1/tasks/{answer.json['task']}", answer
        return answer.json["task"]

    @staticmethod
    def body(word, **fields):
        return {"question": f"What is the total? [[{word}]]", "files": [SALES], "judge": False, **fields}

    def show(self, task):
        status, told = self("GET", f"/v1/tasks/{task}")
        assert status == 200, told
        return told

    def news(self, task, query=""):
        """The events, as they come."""
        with self.follow(f"/v1/tasks/{task}/events{query}", form="application/x-ndjson") as stream:
            for event in stream:
                if event["event"] != "ping":
                    yield event

    def events(self, task, query=""):
        return list(self.news(task, query))

    def report(self, task):
        """Waits for the end."""
        last = self.events(task)[-1]
        assert last["event"] == "end", last
        return last["report"]

    def wait_for(self, task, status):
        assert host.wait_until(lambda: self.show(task)["status"] not in PASSING - {status}, 30)
        assert self.show(task)["status"] == status, self.show(task)
