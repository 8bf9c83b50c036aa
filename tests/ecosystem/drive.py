#!/usr/bin/python3
"""The fakes proven by the official SDKs: node's scripts here complete a tool loop on each fake,
then every reply, event and error that a fake can say is compiled against the SDKs' own types,
and so is every request that cupel sends ($CUPEL, or build/cupel).
Usage: drive.py FOLDER, where run has installed the packages."""
import base64
import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True
import host  # noqa: E402
import models  # noqa: E402
import said  # noqa: E402
from models.asking import Asker, fake_of, png, python  # noqa: E402

SCRIPT_S = 60
USAGE = {"input_tokens": 17, "cache_read_tokens": 4000, "output_tokens": 40, "reasoning_tokens": 12}
TURNS = [
    {"thinking": "Better computed than guessed.", "text": "Let me see \u2013 \u00fcn\u00efcode \u2713", "usage": USAGE,
     "tool_calls": [{"name": "python", "arguments": {"code": "print(6 * 7)  # \"quoted\" \u2603\n"}}]},
    {"thinking": "Again, in two ways.", "usage": USAGE,
     "tool_calls": [{"name": "python", "arguments": {"code": "7 * 6"}},
                    {"name": "python", "arguments": {"code": "sum([6] * 7)"}}]},
    {"text": "It is 42, as three runs say.", "usage": USAGE},
]
EXPECTED = {"calls": [[call["arguments"]["code"] for call in turn["tool_calls"]] for turn in TURNS[:2]],
            "text": TURNS[2]["text"]}
NAMES = {"anthropic": "claude-opus-5", "responses": "gpt-6.1-sol", "chat": "gpt-6.1-sol"}
FAULTS = {"split": models.Fault(split=1), "crlf": models.Fault(newline="\r\n"), "noise": models.Fault(noise=True),
          "no_done": models.Fault(no_done=True), "no_end": models.Fault(no_end=True),
          "rate": models.Fault(error="rate", retry_after=0), "quota": models.Fault(error="quota"),
          "overloaded": models.Fault(error="overloaded"), "error_event": models.Fault(error_event=3),
          "cut": models.Fault(cut_after=900)}


def start(stack):
    """Every fake that a script asks for, by name: the wire, or the wire and its fault."""
    fakes = {}
    for wire, kind in models.WIRES.items():
        fakes[wire] = stack.enter_context(kind(turns=TURNS))
        for fault, always in FAULTS.items():
            fakes[f"{wire}_{fault}"] = stack.enter_context(kind(turns=TURNS, always=always))
        fakes[f"{wire}_refusal"] = stack.enter_context(kind(turns=[{"refusal": "I will not.", "usage": USAGE}]))
    fakes["chat_home"] = stack.enter_context(models.Chat(turns=TURNS, key=None))
    return fakes


def addresses(fakes):
    rows = {name: {"url": fake.url, "base_url": fake.base_url, "key": fake.key, "model": NAMES[name.split("_")[0]]}
            for name, fake in fakes.items()}
    rows["chat_home"]["model"] = "qwen3-coder"
    return {**rows, "picture": base64.b64encode(png()).decode(), "expected": EXPECTED}


def path_of(folder):
    """Node as pinned comes first: Debian's is too old for the SDKs."""
    found = sorted(folder.glob("node_modules/node-linux-*/bin"))
    if not found:
        sys.exit(f"'{folder}/node_modules' has no node for this machine")
    return f"{found[0]}:{folder}/node_modules/.bin:{os.environ['PATH']}"


def run(folder, args, env=None):
    env = {"PATH": path_of(folder), "HOME": str(folder), **(env or {})}
    return subprocess.run(args, cwd=folder, timeout=SCRIPT_S, capture_output=True, text=True, env=env)


def must_pass(done):
    if done.returncode:
        sys.exit(f"{' '.join(map(str, done.args))} failed:\n{done.stdout[-6000:]}{done.stderr[-6000:]}")


def loops(folder, fakes):
    env = {"FAKES": json.dumps(addresses(fakes))}
    for script in ("anthropic.mjs", "openai_chat.mjs", "openai_responses.mjs", "ai.mjs"):
        shutil.copy(HERE / script, folder)
        shutil.copy(HERE / "case.mjs", folder)
        must_pass(run(folder, ["node", script], env))
        print(f"ok: {script}")


def compiled(folder, name):
    return run(folder, ["tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution",
                        "nodenext", "--target", "es2022", *sorted(map(str, (folder / name).glob("*.ts")))])


def types(folder, fakes):
    """What went over the wires just now, and every other form that a fake can give."""
    count = said.write(folder / "said", fakes, TURNS)
    must_pass(compiled(folder, "said"))
    said.write_wrong(folder / "wrong", fakes)
    faults = compiled(folder, "wrong").stdout
    if any(f"wrong/{wire}.ts" not in faults for wire in models.WIRES):
        sys.exit(f"a reply without its model was not noticed by the types:\n{faults}")
    print(f"ok: {count} replies, events and errors have the SDKs' types")


def requests(folder):
    """A task of cupel on each wire, with thinking, pictures and an error on the way."""
    picture = f"class P:\n    def _repr_png_(self):\n        return {png()!r}\nP()"
    script = [*TURNS[:2], python(picture), python("1 / 0"), python("answer('It is {n}.', n=6 * 7)"), {"text": "PASS"}]
    asked = []
    with host.Place() as place:
        cupel = host.Cupel("root" if os.getuid() == 0 else "user", place)
        for setup in models.WIRES:  # a server at home has fields of its own, which no SDK knows
            with fake_of(setup, script=script) as fake:
                task = Asker(cupel, setup, fake, {})()
                if fake.rejected or not task.answers("42"):
                    sys.exit(f"{setup}: cupel did not come to its answer: {task.why()} {fake.rejected}")
                asked += [(setup, seen.json) for seen in fake.completions]
    said.write_requests(folder / "asked", asked)
    must_pass(compiled(folder, "asked"))
    print(f"ok: {len(asked)} requests of cupel have the SDKs' types")


def main():
    folder = Path(sys.argv[1]).resolve()
    with ExitStack() as stack:
        fakes = start(stack)
        loops(folder, fakes)
        types(folder, fakes)
    requests(folder)


main()
