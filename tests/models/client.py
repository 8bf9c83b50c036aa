"""A client without any manners, to try the fakes with."""
import http.client
import json

MODEL = {"anthropic": "claude-opus-5", "responses": "gpt-6.1-sol", "chat": "gpt-6.1-sol"}
TIMEOUT_S = 10


def headers(fake, wire):
    if wire == "anthropic":
        return {"x-api-key": fake.key, "anthropic-version": "2026-10-21"}
    return {"authorization": f"Bearer {fake.key}"} if fake.key else {}


def ask(fake, wire, body, path=None, method="POST", without=(), **more):
    """(status, headers, bytes of the body as far as it came)."""
    sent = {"content-type": "application/json", **headers(fake, wire), **more}
    sent = {name: value for name, value in sent.items() if name not in without}
    connection = http.client.HTTPConnection(fake.url.removeprefix("http://"), timeout=TIMEOUT_S)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path or fake.COMPLETE[0], data, sent)
        answer = connection.getresponse()
        try:
            content = answer.read()
        except http.client.IncompleteRead as cut:
            content = cut.partial
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content
    finally:
        connection.close()


def plain(wire, **fields):
    """The smallest request that is right."""
    if wire == "responses":
        return {"model": MODEL[wire], "input": [{"role": "user", "content": "?"}], **fields}
    most = {"max_tokens": 100} if wire == "anthropic" else {}
    return {"model": MODEL[wire], "messages": [{"role": "user", "content": "?"}], **most, **fields}


def events(content):
    """The JSON values of a stream."""
    lines = content.decode().replace("\r\n", "\n").split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
