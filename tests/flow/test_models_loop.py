"""cupel against the fake model servers: a whole task on each wire, with what a provider's
cache, a thinking model and a seeing one need. The fakes refuse what the services refuse, so
that a task which comes to its answer has sent only what they take."""
import json

import pytest

from models.asking import PASS, SETUPS, png, python, told
from models.fixtures import asker, fakes, ready  # noqa: F401

pytestmark = pytest.mark.sample(short=3)
USAGE = {"input_tokens": 100, "cache_read_tokens": 4000, "cache_write_tokens": 30, "output_tokens": 20,
         "reasoning_tokens": 5}
STEPS = [
    python("product = 6 * 7\nproduct", text="I will multiply.", thinking="Better computed than guessed.", usage=USAGE),
    python("print(product)", thinking="And printed.", usage=USAGE),
    {**told("Six times seven is {product}.", product="product"), "usage": USAGE},
    {**PASS, "usage": USAGE},
]
DRAWING = f"""
class Drawing:
    def _repr_png_(self):
        return {png()!r}
    def __repr__(self):
        return "a drawing"
Drawing()
"""
TALK = {"anthropic": "messages", "responses": "input", "chat": "messages", "home": "messages"}


@pytest.fixture(params=SETUPS)
def setup(request):
    return request.param


def sent(asker):
    return [seen.json for seen in asker.fake.completions]


def test_a_task_comes_to_its_answer(asker):
    asker.fake.say(*STEPS)
    asked = asker()
    assert not asker.fake.rejected, asker.fake.rejected
    assert asked.status == "verified" and asked.done.returncode == 0, asked.why()
    assert asked.answers("Six times seven is 42.") and asked.report["steps"] == 3
    assert len(sent(asker)) == 4 and not asker.fake.replies
    assert all(request["stream"] is True for request in sent(asker))
    assert "42" in json.dumps(sent(asker)[1][TALK[asker.setup]][-1])


def test_the_headers_are_those_of_the_wire(asker):
    asker.fake.say(*STEPS)
    asker()
    for seen in asker.fake.completions:
        assert seen.headers["content-type"] == "application/json" and seen.headers["user-agent"].startswith("cupel/")
        assert seen.headers.get("accept-encoding", "identity") == "identity"
        assert seen.headers.get("anthropic-version") == ("2026-10-21" if asker.setup == "anthropic" else None)


def test_a_server_can_be_named_by_its_address(asker):
    wire, base = {"anthropic": ("anthropic", asker.fake.url), "responses": ("responses", asker.fake.base_url),
                  "chat": ("chat", asker.fake.base_url), "home": ("chat", asker.fake.base_url)}[asker.setup]
    asker.fake.say(*STEPS)
    name = SETUPS[asker.setup][1].split("/")[1]
    asked = asker(model=f"{wire}+{base}#{name}")
    assert asked.answers("42") and not asker.fake.rejected, (asked.why(), asker.fake.rejected)


@pytest.mark.parametrize("setup", ["home"])
def test_ollama_is_found_where_it_listens(asker):
    asker.fake.say(*STEPS)
    asked = asker(model="ollama/qwen3-coder", env={"OLLAMA_HOST": asker.fake.url.removeprefix("http://")})
    assert asked.answers("42") and len(sent(asker)) == 4 and not asker.fake.rejected, asked.why()


def test_tools_are_offered_to_models_that_are_known_to_call_them(asker):
    asker.fake.say(*STEPS)
    asker()
    offered = json.dumps(sent(asker)[0].get("tools", []))
    assert ('"python"' in offered and '"answer"' in offered) == (asker.setup != "home")


def test_code_in_a_fence_is_run_as_well(asker):
    asker.fake.say({"text": "I compute it.\n\n```python\nproduct = 6 * 7\nanswer('{p}', p=product)\n```\n"}, PASS)
    asked = asker()
    assert asked.status == "verified" and asked.answers("42") and asked.report["steps"] == 1, asked.why()
    assert not asker.fake.rejected, asker.fake.rejected


def test_tokens_are_counted_alike_on_every_wire(asker):
    asker.fake.say(*STEPS)
    cost = asker().cost
    assert (cost["requests"], cost["output_tokens"]) == (4, 4 * 20)
    assert (cost["input_tokens"], cost["cached_tokens"]) == (4 * 4130, 4 * 4000), cost


def test_the_cost_is_that_of_the_price_list_or_not_known(asker):
    asker.fake.say(*STEPS)
    usd = asker().cost["usd"]
    if asker.setup == "anthropic":  # USD a million tokens: 5 in, 0.50 and 6.25 for the cache, 25 out
        assert usd == pytest.approx(4 * (100 * 5 + 4000 * 0.5 + 30 * 6.25 + 20 * 25) / 1e6)
    elif asker.setup == "responses":
        assert usd > 0
    elif asker.setup == "home":
        assert usd is None


def ordered(body):
    """As it was written: the order of fields counts for a provider's cache."""
    return json.loads(body, object_pairs_hook=lambda pairs: pairs)


def test_each_request_begins_as_the_one_before(asker):
    asker.fake.say(*STEPS)
    asker()
    bodies = [dict(ordered(seen.body)) for seen in asker.fake.completions[:-1]]  # the last is the judge's
    talk = TALK[asker.setup]
    for earlier, later in zip(bodies, bodies[1:]):
        assert list(earlier) == list(later)
        for name in set(earlier) - {talk}:
            assert earlier[name] == later[name], f"'{name}' changed"
        assert len(later[talk]) > len(earlier[talk]) and later[talk][:len(earlier[talk])] == earlier[talk]


@pytest.mark.parametrize("setup", ["anthropic"])  # the other wires cache by themselves
def test_the_providers_cache_is_asked_for(asker):
    asker.fake.say(*STEPS)
    asker()
    for request in sent(asker):
        assert request["system"][-1]["cache_control"]["type"] == "ephemeral"
        assert "cache_control" in request or "cache_control" in json.dumps(request["messages"])


@pytest.mark.parametrize("setup", ["anthropic", "responses"])  # the wires that have seals
def test_thinking_goes_back_unchanged(asker):
    asker.fake.say(*STEPS)
    asked = asker()
    assert asked.answers("42") and not asker.fake.rejected, asker.fake.rejected
    last = json.dumps(sent(asker)[2])
    for seen in asker.fake.completions[:2]:
        marks = [value["delta"]["signature"] for value in seen.sent if "signature" in value.get("delta", {})]
        marks += [value["item"]["encrypted_content"] for value in seen.sent
                  if value.get("type") == "response.output_item.done" and "encrypted_content" in value["item"]]
        assert len(marks) == 1 and marks[0] in last


@pytest.mark.parametrize("setup", ["anthropic"])  # the only one that has it
def test_hidden_thinking_goes_back_too(asker):
    asker.fake.say({**STEPS[0], "redacted": "unreadable"}, *STEPS[1:])
    asked = asker()
    assert asked.answers("42") and not asker.fake.rejected, asker.fake.rejected
    assert "redacted_thinking" in json.dumps(sent(asker)[2])


def test_pictures_of_a_cell_reach_models_that_see(asker):
    asker.fake.say(python("times = 6 * 7\n" + DRAWING), told("It is drawn {n} times.", n="times"), PASS)
    asked = asker(question="Draw something.")
    assert not asker.fake.rejected and len(sent(asker)) >= 2, (asked.why(), asker.fake.rejected)
    body = json.dumps(sent(asker)[1])
    assert ("image/png" in body) == (asker.setup != "home")  # what that one can is not known


def test_several_calls_in_one_reply_are_all_answered(asker):
    calls = [{"name": "python", "arguments": {"code": code}} for code in ("a = 6", "b = 7", "a * b")]
    asker.fake.say({"tool_calls": calls}, python("a = 6; b = 7; c = a * b"), told("{c}", c="c"), PASS)
    asked = asker()
    assert asked.answers("42") and not asker.fake.rejected, (asked.why(), asker.fake.rejected)


def test_an_unknown_tool_is_answered_and_the_task_goes_on(asker):
    asker.fake.say({"tool_calls": [{"name": "teleport", "arguments": {"to": "moon"}}]}, *STEPS)
    asked = asker()
    assert asked.answers("42") and not asker.fake.rejected, (asked.why(), asker.fake.rejected)
    assert "teleport" in json.dumps(sent(asker)[1][TALK[asker.setup]])


def test_the_answer_may_be_a_tool_call(asker):
    asker.fake.say(STEPS[0], told("It is {p:.1f}.", p="product / 1"), PASS)
    asked = asker()
    assert asked.status == "verified" and asked.answers("It is 42.0.") and not asker.fake.rejected, asked.why()


def test_an_answer_that_is_typed_is_asked_for_as_a_call(asker):
    typed = {"tool_calls": [{"name": "answer", "arguments": {"text": "It is 42."}}]}
    asker.fake.say(STEPS[0], typed, *STEPS[2:])
    asked = asker()
    assert asked.status == "verified" and not asker.fake.rejected, (asked.why(), asker.fake.rejected)
    asker.fake.say(STEPS[0], {"text": "It is 42."}, {"text": "It is 42, I said."})
    asked = asker()
    assert asked.status == "unverified" and asked.report["reason"] == "typed, not computed", asked.why()


def test_a_failing_cell_is_reported_and_mended(asker):
    """Also with a picture beside the error, which not every wire takes there."""
    asker.fake.say(python(DRAWING.replace("Drawing()", "display(Drawing())\n1 / 0")), *STEPS)
    asked = asker()
    assert asked.answers("42") and not asker.fake.rejected, (asked.why(), asker.fake.rejected)
    assert "division by zero" in json.dumps(sent(asker)[1][TALK[asker.setup]])


def test_everything_that_people_write_passes_the_wire(asker):
    odd = "Grüße, 世界 \U0001f600 \"quotes\" \\ back\\slash \t tab \u2028 line"
    asker.fake.say(python(f"print({odd!r})\ntimes = 6 * 7"), told(f"It prints {odd}, {{n}} times", n="times"), PASS)
    asked = asker(question=f"Print {odd}")
    assert not asker.fake.rejected and odd in asked.report["answer"], asked.why()
    assert odd[:10] in json.dumps(sent(asker)[1], ensure_ascii=False)


@pytest.mark.parametrize("mode", ["code", "tools"])
def test_both_modes_speak_every_wire(asker, mode):
    asker.fake.say(*STEPS)
    asked = asker(args=["--mode", mode])
    assert asked.answers("42") and not asker.fake.rejected, (asked.why(), asker.fake.rejected)


def test_a_long_conversation_stays_within_the_rules(asker):
    asker.fake.say(*[python(f"x{n} = {n}\nprint({n})", thinking=f"Step {n}.") for n in range(7)],
                   told("{x}", x="x6 * 1"), PASS)
    asked = asker()
    assert asked.report["steps"] == 8 and len(sent(asker)) >= 8
    assert not asker.fake.rejected, (asked.why(), asker.fake.rejected)


def test_a_window_that_overflows_is_met_with_a_shorter_conversation(asker):
    """Outputs of earlier cells are what can go."""
    window, asker.fake.window = asker.fake.window, 8_000
    try:
        asker.fake.say(*[python(f"for i in range(800): print('row', {n}, i)", thinking=f"Part {n}.")
                         for n in range(6)], told("done: {i}", i="i + 1"), PASS)
        asked = asker(question="Print much.")
    finally:
        asker.fake.window = window
    statuses = [seen.status for seen in asker.fake.completions]
    assert asked.answers("done") and 400 in statuses, (asked.why(), statuses)
    assert all(status == 200 for before, status in zip(statuses, statuses[1:]) if before == 400)
