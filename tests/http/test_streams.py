"""Events of runs over HTTP: in order, from any event on, and to the end."""
import pytest

import host

FORMS = ["text/event-stream", "application/x-ndjson"]
STEPS = "import time\nfor i in range(6):\n    print(i, flush=True)\n    time.sleep(0.05)\n'done'"
SLOW = {"code": "import time\nfor i in range(400):\n    print(i, flush=True)\n    time.sleep(0.05)",
        "limits": {"timeout_s": 60}}


def texts(events, name="stdout"):
    return "".join(event["text"] for event in events if event["event"] == name)


@pytest.mark.parametrize("form", FORMS)
def test_a_run_tells_its_events_and_then_its_result(http, form):
    with http.follow("/v1/run", {"code": STEPS}, form) as stream:
        events = [event for event in stream if event["event"] != "ping"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["event"] == "start" and events[-1]["event"] == "end"
    assert texts(events) == "0\n1\n2\n3\n4\n5\n" == events[-1]["result"]["stdout"]
    assert [event["data"] for event in events if event["event"] == "result"] == events[-1]["result"]["results"]


@pytest.mark.parametrize("form", FORMS)
def test_events_are_followed_from_any_on(http, form):
    run = http.run({"code": STEPS})["run"]
    all_of_them = http.events(run, form=form)
    for since in (1, 2, len(all_of_them)):
        assert http.events(run, since, form=form) == all_of_them[since - 1:]
    assert http.events(run, 1000, form=form) == all_of_them[-1:], "a stream always ends with the end"


def test_a_lost_connection_goes_on_after_the_last_event(http):
    run = http.begin({"code": STEPS})
    with http.follow(f"/v1/runs/{run}/events") as stream:
        first = stream.until("stdout")
    with http.follow(f"/v1/runs/{run}/events", headers={"Last-Event-ID": str(first[-1]["seq"])}) as stream:
        rest = [event for event in stream if event["event"] != "ping"]
    assert rest[0]["seq"] == first[-1]["seq"] + 1
    assert texts(first + rest) == "0\n1\n2\n3\n4\n5\n" and rest[-1]["result"]["run"] == run


def test_a_client_that_goes_from_a_stream_leaves_the_run_alone(http, server):
    with http.follow("/v1/run", SLOW) as stream:
        run = stream.headers["x-run"]
        first = stream.until("stdout")
    assert host.holds_for(lambda: server.state()["runs"] == 1, 0.5)
    with http.follow(f"/v1/runs/{run}/events?from={first[-1]['seq'] + 1}") as stream:
        assert stream.until("stdout")[-1]["seq"] == first[-1]["seq"] + 1
    assert http.delete(f"/v1/runs/{run}").status == 202
    server.wait_for(runs=0)


def test_many_follow_one_run_each_at_its_speed(http):
    run = http.begin({"code": STEPS})
    streams = [http.follow(f"/v1/runs/{run}/events", form=FORMS[i % 2]) for i in range(8)]
    told = [[event for event in stream if event["event"] != "ping"] for stream in streams]
    for stream in streams:
        stream.wire.close()
    assert all(events == told[0] for events in told) and told[0][-1]["event"] == "end"


def test_a_stream_where_nothing_happens_is_pinged(http):
    with http.follow("/v1/run", {"code": "import time; time.sleep(7)", "limits": {"timeout_s": 30}}) as stream:
        names = [event["event"] for event in stream]
    assert "ping" in names and names[-1] == "end"


def test_a_refused_request_is_no_stream(http):
    answer = http.post("/v1/run", {"code": 1}, headers={"Accept": FORMS[0]})
    assert answer.status == 400 and answer.error["field"] == "code"


@pytest.mark.parametrize("since", ["0", "-1", "x", "99999999999999999999", ""])
def test_a_wrong_place_in_the_events_is_refused(http, since):
    run = http.run("1")["run"]
    answer = http.get(f"/v1/runs/{run}/events?from={since}", headers={"Accept": FORMS[0]})
    assert answer.status == 400 and answer.error["field"] == "from"


def test_a_place_after_the_end_gives_the_end_alone(http):
    run = http.run("print(1)")["run"]
    events = http.events(run, 1000)
    assert [event["event"] for event in events] in ([], ["end"])


def test_bytes_that_are_no_text_come_in_base64(http):
    with http.follow("/v1/run", {"code": "import sys; sys.stdout.buffer.write(b'\\xff\\xfe')"}) as stream:
        events = list(stream)
    assert "//4=" in [event.get("base64") for event in events]
    assert events[-1]["result"]["stdout_base64"] == "//4="


def test_values_are_told_when_they_are_shown(http):
    code = "from IPython.display import display, clear_output\nhandle = display(1, display_id=True)\n" \
           "handle.update(2)\nclear_output()\n3"
    with http.follow("/v1/run", {"code": code}) as stream:
        events = [event for event in stream if event["event"] in ("result", "clear")]
    assert [event["event"] for event in events][:2] == ["result", "result"] and events[1].get("update")
    assert events[-1]["main"] and events[-1]["data"]["text/plain"] == "3"


def test_a_cancelled_run_ends_its_streams(http):
    run = http.begin(SLOW)
    with http.follow(f"/v1/runs/{run}/events") as stream:
        stream.until("stdout")
        http.delete(f"/v1/runs/{run}")
        assert stream.until("end")[-1]["result"]["status"] in ("interrupted", "killed")
