"""cupel's HTTP API with Python's own library: python3 api.py URL TOKEN"""
import json
import sys
import urllib.error
import urllib.request

URL, TOKEN = sys.argv[1:3]


def ask(method, path, body=None, accept="application/json"):
    """The open response; its error body is an exception's text."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, method=method, headers={
        "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Accept": accept})
    try:
        return urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        raise SystemExit(json.load(error)["error"]["message"]) from None


result = json.load(ask("POST", "/v1/run", {"code": "print('hello'); 6 * 7"}))
print(result["status"], repr(result["stdout"]), result["text"])

# The same run as a stream: one JSON object a line, the last has the result.
for line in ask("POST", "/v1/run", {"code": "for i in range(3): print(i, flush=True)"}, "application/x-ndjson"):
    event = json.loads(line)
    print(event["event"], *event.get("text", "").split())

# A session keeps its names from cell to cell.
session = json.load(ask("POST", "/v1/sessions", {}))["session"]
ask("POST", f"/v1/sessions/{session}/run", {"code": "x = 20"})
print(json.load(ask("POST", f"/v1/sessions/{session}/run", {"code": "x + 1"}))["text"])
ask("DELETE", f"/v1/sessions/{session}")
