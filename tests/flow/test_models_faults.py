"""What goes wrong with a model server, on every wire: the outcome that the task reports, and how
often it was asked. Nothing that failed is dressed up, nothing is asked twice that must not be."""
import email.utils
import json
import time

import pytest

import models
from models.asking import PASS, SETUPS, environment, fake_of, python, told
from models.faults import GARBAGE, HTML
from models.fixtures import asker, fakes, ready  # noqa: F401

pytestmark = pytest.mark.sample(short=3)
STEPS = [python("product = 6 * 7"), told("It is {product}.", product="product"), PASS]
USUAL = len(STEPS)  # requests of a task in which nothing is wrong


@pytest.fixture(params=["anthropic", "responses", "chat"])
def setup(request):
    return request.param


def requests(asker):
    return len(asker.fake.completions)


def outcome(asked):
    """The typed outcome, as the report's reason names it."""
    return asked.report["reason"].split(":")[0]


def kinds(asked):
    return [json.loads(line)["kind"] for line in asked.transcript().splitlines()]


def soon():
    """A date in whole seconds, of which at least two are left."""
    return email.utils.formatdate(time.time() + 3, usegmt=True)


# Asked again, and all is well.

PASSING = {
    "rate": models.Fault(error="rate", retry_after=1),
    "overloaded": models.Fault(error="overloaded"),
    "server": models.Fault(error="server"),
    "html": HTML,
    "dropped": models.Fault(drop=True),
}


@pytest.mark.parametrize("name", PASSING)
def test_what_passes_is_tried_again(asker, name):
    asker.fake.say(*STEPS)
    asker.fake.fail(PASSING[name])
    asked = asker()
    assert asked.answers("42") and requests(asker) == USUAL + 1 and not asker.fake.rejected, asked.why()
    first, second = asker.fake.completions[:2]
    assert first.body == second.body
    if name == "rate":
        assert second.at - first.at >= 1
    assert kinds(asked).count("wait") == 1


@pytest.mark.parametrize("setup", ["anthropic"])
@pytest.mark.parametrize("headers,least_s", [({"retry-after-ms": "700"}, 0.7), ({"retry-after": soon}, 1)],
                         ids=["milliseconds", "date"])
def test_a_wait_may_be_asked_for_in_other_ways(asker, headers, least_s):
    asker.fake.say(*STEPS)
    asker.fake.fail(models.Fault(error="rate", headers=headers))
    asked = asker()
    first, second = asker.fake.completions[:2]
    assert asked.answers("42") and requests(asker) == USUAL + 1, asked.why()
    assert second.at - first.at >= least_s


@pytest.mark.parametrize("setup", ["anthropic"])
@pytest.mark.parametrize("error,expected", [("rate", "rate_limit"), ("overloaded", "overloaded")])
def test_what_does_not_pass_is_given_up(asker, error, expected):
    asker.fake.fail(*[models.Fault(error=error, retry_after=0)] * 40)
    asked = asker()
    assert asked.status == "failed" and outcome(asked) == expected and asked.report["hint"], asked.why()
    assert 2 <= requests(asker) <= 10 and kinds(asked).count("wait") == requests(asker) - 1


@pytest.mark.parametrize("setup", ["anthropic"])
def test_who_asks_for_too_long_a_wait_is_not_waited_for(asker):
    asker.fake.fail(models.Fault(error="rate", retry_after=86400))
    asked = asker()
    assert asked.status == "failed" and outcome(asked) == "rate_limit" and requests(asker) == 1, asked.why()


@pytest.mark.parametrize("setup", ["responses"])
def test_a_server_that_says_not_to_is_not_asked_again(asker):
    asker.fake.fail(models.Fault(error="overloaded", headers={"x-should-retry": "false"}))
    asked = asker()
    assert asked.status == "failed" and outcome(asked) == "overloaded" and requests(asker) == 1, asked.why()


# The stream is strange, but whole.

STRANGE = {
    "every byte alone": models.Fault(split=1), "CRLF": models.Fault(newline="\r\n"), "CR": models.Fault(newline="\r"),
    "noise": models.Fault(noise=True), "slow": models.Fault(slow_s=0.2), "drip": models.Fault(pace_s=0.005),
    "no usage": models.Fault(no_usage=True),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_stream_is_read(asker, name):
    asker.fake.say({**STEPS[0], "text": "Gr\u00fc\u00dfe \u4e16\u754c \U0001f600"}, *STEPS[1:])
    asker.fake.fail(*[STRANGE[name]] * USUAL)
    asked = asker()
    assert asked.answers("42") and requests(asker) == USUAL and not asker.fake.rejected, asked.why()
    assert "\u4e16\u754c \U0001f600" in json.dumps(asker.fake.completions[1].json, ensure_ascii=False)
    if name == "no usage":
        assert asked.cost["usd"] is None


@pytest.mark.parametrize("setup", ["chat", "home"])
@pytest.mark.parametrize("fault", [models.Fault(no_ids=True), models.Fault(odd_arguments=True),
                                   models.Fault(no_done=True)], ids=["no ids", "objects", "no [DONE]"])
def test_servers_at_home_have_ways_of_their_own(asker, fault):
    asker.fake.say(*STEPS)
    asker.fake.fail(*[fault] * USUAL)
    asked = asker()
    assert asked.answers("42") and not asker.fake.rejected, (asked.why(), asker.fake.rejected)


@pytest.mark.parametrize("setup", ["home"])
@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_thinking_aloud_is_not_the_answer(asker, name):
    asker.fake.thinks_in = name
    asker.fake.say({**STEPS[0], "thinking": "hm, 43?"}, {**STEPS[1], "thinking": "surely 43"}, *STEPS[2:])
    asked = asker()
    assert asked.answers("42") and "43" not in asked.report["answer"] and not asker.fake.rejected, asked.why()


# It fails, and is said to.

FATAL = {
    "quota": (models.Fault(error="quota"), "quota"),
    "permission": (models.Fault(error="permission"), "auth"),
    "request": (models.Fault(error="request"), "bad_request"),
    "context": (models.Fault(error="context"), "context_overflow"),
}


@pytest.mark.parametrize("name", FATAL)
def test_what_cannot_be_mended_ends_the_task(asker, name):
    fault, expected = FATAL[name]
    asker.fake.say(*STEPS)
    asker.fake.fail(fault)
    asked = asker()
    assert asked.status == "failed" and asked.done.returncode == 1, asked.why()
    assert outcome(asked) == expected and asked.report["hint"], asked.why()
    assert requests(asker) == 1 and asked.report["answer"] is None


@pytest.mark.parametrize("setup", ["chat", "home"])
@pytest.mark.parametrize("error", ["context_llamacpp", "context_vllm"])
def test_a_full_window_has_many_names(asker, error):
    asker.fake.fail(models.Fault(error=error))
    asked = asker()
    assert asked.status == "failed" and outcome(asked) == "context_overflow" and requests(asker) == 1, asked.why()


@pytest.mark.parametrize("setup", ["home"])
def test_a_model_that_is_still_loading_is_waited_for(asker):
    asker.fake.say(*STEPS)
    asker.fake.fail(models.Fault(error="loading", retry_after=0))
    asked = asker()
    assert asked.answers("42") and requests(asker) == USUAL + 1, asked.why()


BROKEN = {"cut": models.Fault(cut_after=700), "no end": models.Fault(no_end=True),
          "an error within": models.Fault(error_event=4)}


@pytest.mark.parametrize("name", BROKEN)
def test_a_reply_that_breaks_off_is_not_asked_for_again_in_silence(asker, name):
    asker.fake.say({"text": "The beginning of what would be an answer: 43."}, *STEPS)
    asker.fake.fail(BROKEN[name])
    asked = asker()
    assert asked.answers("42") and requests(asker) == USUAL + 1 and "wait" in kinds(asked), asked.why()
    assert asker.fake.completions[0].body == asker.fake.completions[1].body


@pytest.mark.parametrize("name", BROKEN)
def test_a_reply_that_breaks_off_twice_ends_the_task(asker, name):
    asker.fake.say({"text": "The beginning of what would be an answer: 43."}, {"text": "And again: 43."})
    asker.fake.fail(BROKEN[name], BROKEN[name])
    asked = asker()
    assert asked.status == "failed" and asked.report["answer"] is None and requests(asker) == 2, asked.why()
    assert outcome(asked) == "broken_stream" and asked.report["hint"], asked.why()


def test_an_unknown_model_is_said(asker):
    asked = asker(model=SETUPS[asker.setup][1] + "-gone")
    assert asked.status == "failed" and outcome(asked) == "unknown_model", asked.why()
    assert requests(asker) == 1


def test_a_refusal_is_a_denial(asker):
    asker.fake.say({"refusal": "I will not help with that."})
    asked = asker()
    assert asked.status == "denied" and asked.done.returncode == 6 and requests(asker) == 1, asked.why()


def test_a_filter_that_ends_the_reply_is_a_denial(asker):
    asker.fake.say({"text": "The answer would be 43", "stop": "filter"})
    asked = asker()
    assert asked.status == "denied" and not asked.report["answer"] and requests(asker) == 1, asked.why()


@pytest.mark.parametrize("setup", ["anthropic"])  # the only wire that says so
def test_a_window_that_ends_the_reply_is_said(asker):
    asker.fake.say({"text": "The answer would be 43", "stop": "window"})
    asked = asker()
    assert asked.status == "failed" and outcome(asked) == "context_overflow" and not asked.report["answer"], asked.why()


def test_a_silent_server_costs_no_more_than_the_budget(asker):
    for model_s in (1, 5, 25):  # on a busy host the first may pass before anything is sent
        asker.fake.reset()
        asker.fake.say(*STEPS)
        asker.fake.fail(models.Fault(stall_after=300))
        asked = asker(args=["--budget", f"model_s={model_s}"])
        assert asked.status == "budget_exhausted" and asked.done.returncode == 5, asked.why()
        if requests(asker):
            break
    assert requests(asker) == 1


def test_nobody_listens(asker):
    with fake_of(asker.setup) as gone:
        env = environment(asker.setup, gone)
    asked = asker(env=env, args=["--budget", "model_s=1"])
    assert asked.status in ("failed", "budget_exhausted"), asked.why()
    assert "network" in asked.report["reason"] or asked.status == "budget_exhausted"


# Replies that are no good: once is told to the model, twice is enough.

USELESS = {
    "garbage": GARBAGE, "nothing": models.Fault(body=b""), "no json": models.Fault(body=b"data: {\n\n"),
    "a page": models.Fault(body=b"<!doctype html><html>log in</html>", content_type="text/html"),
    "endless": models.Fault(endless=True),
}


@pytest.mark.parametrize("name", USELESS)
def test_a_useless_reply_is_asked_for_again_once(asker, name):
    asker.fake.say(*([{}] if name == "endless" else []), *STEPS)
    asker.fake.fail(USELESS[name])
    asked = asker()
    assert asked.answers("42") and requests(asker) == USUAL + 1 and not asker.fake.rejected, asked.why()


@pytest.mark.parametrize("name", USELESS)
def test_two_useless_replies_are_enough(asker, name):
    asker.fake.say({}, {}, *STEPS)
    asker.fake.fail(USELESS[name], USELESS[name])
    asked = asker()
    assert asked.status == "stuck" and asked.done.returncode == 4 and requests(asker) == 2, asked.why()
    assert "no usable reply" in asked.report["reason"] and asked.report["hint"]


def test_an_empty_reply_is_no_answer(asker):
    asker.fake.say({}, {}, {})
    asked = asker()
    assert asked.status == "stuck" and requests(asker) == 2 and not asker.fake.rejected, (asked.why(),
                                                                                          asker.fake.rejected)


def test_an_empty_reply_can_be_made_good(asker):
    asker.fake.say({}, *STEPS)
    asked = asker()
    assert asked.answers("42") and not asker.fake.rejected, (asked.why(), asker.fake.rejected)


@pytest.mark.parametrize("spoil", [{"cut_arguments": 25}, {"cut_arguments": 25, "no_end": True}], ids=["cut", "broken"])
def test_cut_arguments_are_never_run(asker, spoil):
    asker.fake.say(python("print('half')\nprint('whole')"), *STEPS)
    asker.fake.fail(models.Fault(**spoil))
    asked = asker()
    assert "half" not in json.dumps(asked.report["evidence"]) and not asker.fake.rejected, (asked.why(),
                                                                                            asker.fake.rejected)
    assert "no_end" in spoil or asked.answers("42"), asked.why()


def test_a_call_that_the_length_cut_is_not_run(asker):
    asker.fake.say(python("print('a part of a program')", stop="length"), *STEPS)
    asked = asker()
    assert not asker.fake.rejected, asker.fake.rejected
    assert "a part of a program" not in json.dumps(asked.report["evidence"]) and asked.answers("42"), asked.why()
