"""build/load, which drives a service with real connections: its JSON, its refusals, and that it notices a wrong answer.
No figure is asserted: the machine of a test is not quiet."""
import http.server
import json
import threading

import pytest
import wild

import host

LOAD = host.BUILD / "load"


@pytest.fixture(scope="module")
def service(cold_cupels, place):
    cupel = cold_cupels[next(iter(cold_cupels))]
    folder = place.fresh("load", 0o755, cupel.uid if cupel.switch else None)
    with wild.Service(cupel, folder / "engine" / "socket") as made:
        made.folder = folder
        yield made


def run_load(service, args, port=None, token=None, env=None):
    program = service.cupel.program
    service.cupel.program = str(LOAD)
    try:
        return service.cupel.run(["--quick", service.folder, port or service.port, service.process.pid, *args],
                                 env={"LOAD_TOKEN": token or service.token, **(env or {})}, timeout=120)
    finally:
        service.cupel.program = program


@pytest.mark.full
@pytest.mark.parametrize("row", ["run", "rate", "streams", "upload", "hit", "once"])
def test_a_row_is_measured(service, row):
    done = run_load(service, [row])
    assert done.returncode == 0, done.stderr
    figure, = json.loads(done.stdout)["rows"]
    assert figure["name"] == row and figure["gate"] and (figure["figure"] is not None), figure


@pytest.mark.full
@pytest.mark.parametrize("row", ["recorded", "recorded-rate", "page"])
def test_a_row_that_compares_two_services_is_measured(service, row):
    done = run_load(service, [row])
    assert done.returncode != 0 and "LOAD_BESIDE" in done.stderr
    done = run_load(service, [row], env={"LOAD_BESIDE": f"{service.folder},{service.port},{service.token}"})
    assert done.returncode == 0, done.stderr
    figure, = json.loads(done.stdout)["rows"]
    assert figure["name"] == row and figure["gate"] and (figure["figure"] is not None), figure


def test_a_wrong_token_is_noticed(service):
    done = run_load(service, ["run"], token="cupel_" + "x" * 43)
    assert done.returncode != 0 and "status 401" in done.stderr, done


def test_a_wrong_answer_is_noticed(service):
    """A door that runs something else."""
    class Liar(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b'{"status":"ok","stdout":"1\\n"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar) as door:
        door.daemon_threads = True
        thread = threading.Thread(target=door.serve_forever)
        thread.start()
        done = run_load(service, ["run"], port=door.server_address[1])
        door.shutdown()
        thread.join()
    assert done.returncode != 0 and "an answer with status 200" in done.stderr, done
