"""Where a model's key goes, and where it never does."""
import json
import threading

import pytest

import host
import models
from models.asking import PASS, SETUPS, Asker, python, told
from models.fixtures import asker, fakes, ready  # noqa: F401

pytestmark = pytest.mark.sample(short=3)
STEPS = [python("product = 6 * 7"), told("It is {product}.", product="product"), PASS]
NAMES = {"anthropic": "ANTHROPIC_API_KEY", "responses": "OPENAI_API_KEY", "chat": "CUPEL_API_KEY"}
LOOK = """
import os
from pathlib import Path
print(dict(os.environ), os.listdir('/proc/self/fd'))
for path in Path('/proc').glob('[0-9]*/*'):
    if path.name in ('environ', 'cmdline'):
        try:
            print(path, path.read_bytes())
        except OSError:
            pass
"""


@pytest.fixture(params=NAMES)
def setup(request):
    return request.param


def everything_said(asked):
    return {"stdout": asked.done.stdout, "stderr": asked.done.stderr, "transcript": asked.transcript()}


def said_of(asked, secret):
    return [name for name, text in everything_said(asked).items() if secret in text]


def test_the_key_goes_to_the_server_in_its_header_alone(asker):
    asker.fake.say(python(LOOK), {"text": "nothing there"}, {"text": "nothing at all"})
    asked = asker(question="Look around.")
    assert len(asker.fake.completions) == 3, asked.why()
    for seen in asker.fake.completions:
        carriers = [name for name, value in seen.headers.items() if asker.fake.key in value]
        assert len(carriers) == 1 and carriers[0] in ("x-api-key", "authorization")
        assert asker.fake.key.encode() not in seen.body
    assert not said_of(asked, asker.fake.key)


def test_a_wrong_key_is_an_outcome_that_does_not_repeat_it(asker):
    secret = "sk-wrong-0123456789abcdef"
    asked = asker(env={NAMES[asker.setup]: secret})
    assert asked.status == "failed" and asked.done.returncode == 1, asked.why()
    assert asked.report["reason"].startswith("auth") and asked.report["hint"]
    assert len(asker.fake.completions) == 1 and not said_of(asked, secret)


def test_a_server_that_repeats_the_key_is_not_repeated(asker):
    words = {"error": {"type": "invalid_request_error", "message": f"what is {asker.fake.key} about?", "code": None}}
    asker.fake.fail(models.Fault(status=400, body=json.dumps(words).encode(), content_type="application/json"))
    asked = asker()
    assert asked.status == "failed" and asked.report["reason"].startswith("bad_request"), asked.why()
    assert not said_of(asked, asker.fake.key)


@pytest.mark.parametrize("before", range(340, 385, 4))
def test_nor_is_the_beginning_of_one_that_is_cut(asker, before):
    message = "A" * before + asker.fake.key + " and so on"
    words = {"error": {"type": "invalid_request_error", "message": message, "code": None}}
    asker.fake.fail(models.Fault(status=400, body=json.dumps(words).encode(), content_type="application/json"))
    asked = asker()
    assert asked.status == "failed" and "AAAA" in asked.report["reason"], asked.why()
    assert not said_of(asked, "A" + asker.fake.key[:4])


def test_a_reply_that_repeats_the_key_is_not_repeated(asker):
    asker.fake.say({"text": f"You sent {asker.fake.key} to me."})
    asked = asker()
    assert "You sent ***" in asked.report["answer"], asked.why()
    assert not said_of(asked, asker.fake.key)


def test_a_redirect_does_not_take_the_key_elsewhere(asker):
    with models.Chat(key=None) as elsewhere:
        asker.fake.fail(*[models.Fault(redirect=elsewhere.url + asker.fake.COMPLETE[0])] * 4)
        asked = asker()
        assert asked.status in ("failed", "stuck") and not elsewhere.seen, asked.why()


def test_no_process_and_no_box_has_the_key(cupel, fakes):
    """A task with its own engine, all of which inherits the caller's environment; looked at while
    the model thinks, as everybody on the host sees it."""
    fake = fakes["anthropic"]
    fake.reset()
    fake.say(python(LOOK), {"text": "nothing there"})
    seen_enough = threading.Event()
    fake.fail(None, models.Fault(hold=seen_enough))
    asker = Asker(cupel, "anthropic", fake, {})
    child = cupel.popen(["ask", "--json", "--model", SETUPS["anthropic"][1], "Look around."], env=asker.env, text=True)
    try:
        assert host.wait_until(lambda: len(fake.completions) == 2, host.WATCHDOG_S)
        family = [child.pid, *(row["pid"] for row in host.descendants(child.pid))]
        arguments = [read(pid, "cmdline") for pid in family]
        environments = [read(pid, "environ") for pid in family]
        boxed = [read(pid, "environ") for pid in family if host.in_another_pid_namespace(pid)]
        seen_enough.set()
        out, err = child.communicate(timeout=host.WATCHDOG_S)
    finally:
        seen_enough.set()
        if child.poll() is None:
            child.kill()
            child.communicate()
        host.OWN_CHILDREN.discard(child.pid)
    assert any(arguments) and boxed
    assert not any(fake.key.encode() in text for text in arguments), "in argv"
    assert any(environments)
    assert not any(fake.key.encode() in text for text in environments), "in the environment of a process"
    assert fake.key not in out + err


def read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


# Keys in a file.

def config(folder, keys, mode):
    path = folder / "cupel" / "keys.json"
    path.parent.mkdir()
    path.write_text(keys if isinstance(keys, str) else json.dumps(keys))
    path.chmod(mode)
    return {"XDG_CONFIG_HOME": str(folder)}


def without_variable(asker):
    asker.env.pop(NAMES[asker.setup])
    return asker


PROVIDER = {"anthropic": "anthropic", "responses": "openai", "chat": "chat"}


def test_a_key_may_be_in_a_file_of_its_owner(asker, folder):
    asker.fake.say(*STEPS)
    env = config(folder, {PROVIDER[asker.setup]: asker.fake.key}, 0o600)
    asked = without_variable(asker)(env=env)
    assert asked.answers("42") and not said_of(asked, asker.fake.key), asked.why()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(asker, folder, mode):
    env = config(folder, {PROVIDER[asker.setup]: asker.fake.key}, mode)
    without_variable(asker)
    done = asker.cupel.run(["ask", "--json", "--model", SETUPS[asker.setup][1], "?"], env={**asker.env, **env})
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2 and "keys.json" in error["message"] and "chmod 600" in error["hint"], error
    assert asker.fake.key not in done.stdout + done.stderr and not asker.fake.seen


def test_a_file_that_is_no_json_is_refused_without_repeating_it(asker, folder):
    env = config(folder, '{"anthropic": "sk-half-a-key', 0o600)
    without_variable(asker)
    done = asker.cupel.run(["ask", "--json", "--model", SETUPS[asker.setup][1], "?"], env={**asker.env, **env})
    assert done.returncode == 2 and "sk-half" not in done.stdout + done.stderr
    assert "keys.json" in done.stdout and not asker.fake.seen
