"""GET /v1/languages, /v1/images, /v1/profiles, /v1/health, /metrics and /openapi.json."""
import json
import re
import threading

import pytest

import host

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9.e+-]+|\+Inf|NaN)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\"n])*)"(?:,|$)')


def listed(server, command):
    done = server.cupel.run([command, "--json"])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_languages_are_those_of_the_command_line(http, server):
    answer = http.get("/v1/languages")
    assert answer.status == 200 and answer.json == listed(server, "languages")
    assert "numpy" in answer.json["languages"][0]["packages"]


@pytest.mark.full
def test_the_images_are_those_of_the_command_line(http, server):
    """The command line tells of each how Python starts, too."""
    here = listed(server, "images")
    here["images"] = [{key: value for key, value in image.items() if key not in ("python_start", "python_why")}
                      for image in here["images"]]
    assert http.get("/v1/images").json == here


def test_many_ask_at_once_while_the_image_is_probed(server):
    """The first request probes it in the background: each of them is answered, and the loop goes on."""
    told, threads = [], []
    for path in ["/v1/languages", "/v1/images", "/v1/health"] * 4:
        def ask(path=path):
            with server.client() as client:
                told.append(client.get(path).status)
        threads.append(threading.Thread(target=ask))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert told == [200] * 12


def test_the_profiles_have_their_limits(http):
    rows = {row["name"]: row for row in http.get("/v1/profiles").json["profiles"]}
    assert rows["baseline"]["limits"]["timeout_s"] == 5 and rows["baseline"]["allowed"]
    used = http.run("1")["provenance"]["limits"]
    assert rows["baseline"]["limits"] == used


def test_a_profile_that_a_token_may_not_use_says_so(server):
    with server.client("plain", "--profile", "baseline") as client:
        rows = {row["name"]: row for row in client.get("/v1/profiles").json["profiles"]}
    assert rows["baseline"]["allowed"] and not rows["analysis"]["allowed"] and rows["analysis"]["reason"]


def test_the_contract_is_served_as_it_is_written(http):
    answer = http.get("/openapi.json")
    assert answer.body == (host.REPO / "api/openapi.json").read_bytes()


# --- health ---

def test_health_needs_no_token_and_tells_no_secret(server):
    with server.nobody() as client:
        answer = client.get("/v1/health")
    assert answer.status == 200 and answer.json["status"] == "ok" and answer.json["reason"] is None
    assert all(answer.json["checks"].values()) and answer.json["warm"]
    assert set(answer.json) == {"status", "warm", "reason", "checks"}


def test_health_fails_while_the_state_cannot_be_written(server):
    state = server.cupel.home / "state"
    mode = state.stat().st_mode & 0o777
    with server.nobody() as client:
        state.chmod(0o500 if mode & 0o200 else mode)
        owner = state.stat().st_uid
        try:
            state.chmod(0o555)
            assert host.wait_until(lambda: client.get("/v1/health").status == 503, 10), owner
            answer = client.get("/v1/health")
            assert answer.json["status"] == "failing" and "state" in answer.json["reason"]
            assert not answer.json["checks"]["state"] and answer.json["checks"]["engine"]
            assert str(state) not in answer.body.decode()
        finally:
            state.chmod(mode)
        assert host.wait_until(lambda: client.get("/v1/health").status == 200, 10)


# --- metrics ---

def parse(text):
    """{(name, labels): value}, and {name: type}. Strict: as Prometheus reads it."""
    samples, types, helps, family = {}, {}, set(), None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in helps, line
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, family, kind = line.split()
            assert family not in types and kind in ("counter", "gauge", "histogram"), line
            types[family] = kind
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            labels = LABEL.findall(found[2] or "")
            assert ",".join(f'{name}="{value}"' for name, value in labels) == (found[2] or ""), line
            base = re.sub("_(bucket|sum|count)$", "", found[1]) if types[family] == "histogram" else found[1]
            assert base == family and family in helps, line
            key = found[1], tuple(sorted(labels))
            assert key not in samples, line
            samples[key] = float(found[3])
    return samples, types


@pytest.mark.parametrize("bad", ["a 1", "# TYPE a counter\na 1\n", "# HELP a x\n# TYPE a counter\na{b=1} 1\n",
                                 "# HELP a x\n# TYPE a counter\nb 1\n", "# HELP a x\n# TYPE a counter\na 1\na 1\n",
                                 '# HELP a x\n# TYPE a counter\na{b="\n"} 1\n', "# HELP a x\n# TYPE a thing\na 1\n"])
def test_the_reader_of_metrics_is_strict(bad):
    with pytest.raises((AssertionError, KeyError)):
        parse(bad)


def metrics(client):
    answer = client.get("/metrics")
    assert answer.status == 200 and answer.mime.startswith("text/plain; version=0.0.4")
    return parse(answer.body.decode())


def test_metrics_count_what_was_run(http, operator):
    before, types = metrics(operator)
    http.run("print('12345')\nopen('f', 'w').write('x' * 100)")
    http.run("1/0")
    http.run({"language": "bash", "code": "exit 3"})
    after, _ = metrics(operator)

    def grew(name, **labels):
        key = name, tuple(sorted(labels.items()))
        return after[key] - before[key]
    assert grew("cupel_runs_total", language="python", status="ok") == 1
    assert grew("cupel_runs_total", language="python", status="error") == 1
    assert grew("cupel_runs_total", language="bash", status="error") == 1
    assert grew("cupel_artifact_bytes_total") == 100 and grew("cupel_output_bytes_total") >= 6
    assert grew("cupel_run_cpu_seconds_total") > 0
    for phase in ("queue", "start", "wall"):
        assert grew("cupel_run_seconds_count", phase=phase) == 3
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in types.items())


def test_histograms_add_up(operator):
    samples, types = metrics(operator)
    for name, kind in types.items():
        if kind != "histogram":
            continue
        groups = {}
        for (sample, labels), value in samples.items():
            if sample == f"{name}_bucket":
                rest = tuple(one for one in labels if one[0] != "le")
                groups.setdefault(rest, []).append((float(dict(labels)["le"].replace("+Inf", "inf")), value))
        assert groups
        for rest, rows in groups.items():
            counts = [value for _, value in sorted(rows)]
            assert counts == sorted(counts) and counts[-1] == samples[f"{name}_count", rest]


def test_metrics_show_the_engine_and_the_door(operator):
    samples, _ = metrics(operator)
    names = {name for name, _ in samples}
    for name in ("cupel_runs", "cupel_queued", "cupel_sessions", "cupel_boxes", "cupel_stalls_total",
                 "cupel_http_connections", "cupel_http_exchanges", "cupel_http_streams", "cupel_pool_boxes",
                 "cupel_zygote_forks_total", "process_resident_memory_bytes", "process_open_fds", "cupel_info"):
        assert name in names, name
    assert samples["process_resident_memory_bytes", ()] > 1 << 20
    assert samples["cupel_http_connections", ()] >= 1


def test_refusals_are_counted_by_kind(http, operator):
    key = "cupel_http_refused_total", (("kind", "absent"),)
    before = metrics(operator)[0].get(key, 0)
    http.get("/v1/runs/r_nobody")
    assert metrics(operator)[0][key] == before + 1


def test_figures_of_others_are_for_operators_alone(http, operator):
    http.run("1")
    own = metrics(http)[0]
    assert {name for name, _ in own} <= {"cupel_info", "cupel_token_used", "cupel_token_quota"}
    assert {dict(labels)["token"] for name, labels in own if name == "cupel_token_used"} == {"tests"}
    samples, _ = metrics(operator)
    assert [value for (name, labels), value in samples.items()
            if name == "cupel_token_used" and dict(labels)["token"] == "tests"]
