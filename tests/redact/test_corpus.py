"""The corpus of redaction: every secret is replaced, exactly, and nothing that only looks like one."""
import base64
import json
import re
import subprocess

import pytest

from host import BUILD, REPO

FOLDER = REPO / "tests/redact"
MARKER = re.compile(r"\[redacted:([a-z-]+):[0-9a-f]{8}\]")
ESCAPES = {"\\n": "\n", "\\\\": "\\", "\\e": "\x1b"}


def redact(*asked, patterns=()):
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    done = subprocess.run([BUILD / "redact", *patterns], input=lines, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked)
    return answers


def lines(name):
    for line in (FOLDER / name).read_text().splitlines():
        yield re.sub(r"\\[n\\e]", lambda m: ESCAPES[m[0]], line.replace("¦", ""))


def secrets():
    """(kind, text, its secrets, the text around them) of each line."""
    for line in lines("secrets.txt"):
        kind, _, text = line.partition("\t")
        parts = re.split("[«»]", text)
        assert len(parts) % 2 == 1 and len(parts) > 1, line
        yield kind, "".join(parts), parts[1::2], parts[0::2]


def check(kind, text, inner, around, answer):
    found = MARKER.findall(answer)
    assert found and found[0] == kind, (text, answer)
    assert MARKER.split(answer)[0::2] == around, (text, answer)
    assert len(found) == len(inner)


SECRETS = list(secrets())
PLAIN = list(lines("plain.txt"))


def test_every_secret_becomes_a_marker_and_the_text_around_it_stays():
    answers = redact(*({"text": text} for _, text, _, _ in SECRETS))
    for row, answer in zip(SECRETS, answers):
        assert answer["count"] == len(row[2]) and answer["may"], (row[1], answer)
        check(*row, answer["text"])


def test_nothing_that_only_looks_like_a_secret_is_touched():
    for text, answer in zip(PLAIN, redact(*({"text": text} for text in PLAIN))):
        assert (answer["count"], answer["text"]) == (0, text)


def test_all_texts_of_the_corpus_in_one_give_the_same_markers():
    alone = [answer["text"] for answer in redact(*({"text": text} for _, text, _, _ in SECRETS))]
    whole = redact({"text": "\n\n".join(text for _, text, _, _ in SECRETS)})[0]
    assert whole["text"] == "\n\n".join(alone)
    assert whole["count"] == sum(len(inner) for _, _, inner, _ in SECRETS)


def test_redacting_twice_changes_nothing():
    once = [answer["text"] for answer in redact(*({"text": text} for _, text, _, _ in SECRETS))]
    for text, answer in zip(once, redact(*({"text": text} for text in once))):
        assert (answer["count"], answer["text"]) == (0, text)


@pytest.mark.parametrize("before,after", [(b"\xff\xfe\0", b"\0\xff"), (b"\n", b"\n"), ("é ".encode(), " é".encode())])
def test_bytes_around_a_secret_do_not_hide_it(before, after):
    asked = [{"base64": base64.b64encode(before + text.encode() + after).decode()} for _, text, _, _ in SECRETS]
    for row, answer in zip(SECRETS, redact(*asked)):
        out = base64.b64decode(answer["base64"])
        assert out.startswith(before) and out.endswith(after), row[1]
        check(*row, out[len(before):len(out) - len(after)].decode())


def test_strings_of_json_are_searched_like_texts():
    asked = [{"json": {"stdout": text, "list": [text], text: 1}} for _, text, _, _ in SECRETS]
    for row, answer in zip(SECRETS, redact(*asked)):
        assert answer["count"] == 3 * len(row[2]), (row[1], answer)
        value = answer["json"]
        check(*row, value["stdout"])
        check(*row, value["list"][0])
        check(*row, [key for key in value if key not in ("stdout", "list")][0])


def test_json_as_text_is_changed_only_where_something_is_found():
    asked = [{"dumped": json.dumps({"stdout": text, "n": 1.50}, ensure_ascii=False)} for text in PLAIN]
    for one, answer in zip(asked, redact(*asked)):
        assert (answer["count"], answer["dumped"]) == (0, one["dumped"])
    for ascii_only in (True, False):
        asked = [{"dumped": json.dumps({"x": [text]}, ensure_ascii=ascii_only)} for _, text, _, _ in SECRETS]
        for row, answer in zip(SECRETS, redact(*asked)):
            check(*row, json.loads(answer["dumped"])["x"][0])
            assert answer["may"]


TOKEN = "Zq3tP0aLm" + "Wx7RbYc2Ks9"
PICTURE = "AKIA" + "IOSFODNN7QRSTUVW///" + "A" * 88  # base64 whose beginning has the form of a key


@pytest.mark.parametrize("value,want", [
    ({"env": {"DB_PASSWORD": "hunter2", "HOME": "/home/x1", "PATH": "/usr/bin"}},
     {"env": {"DB_PASSWORD": "password", "HOME": "/home/x1", "PATH": "/usr/bin"}}),
    ({"apiKey": TOKEN, "key": TOKEN, "token": 5, "secret": None}, {"apiKey": "secret", "key": TOKEN, "token": 5,
                                                                 "secret": None}),
    (["--token", TOKEN, TOKEN, "-v", "hunter2"], ["--token", "secret", TOKEN, "-v", "hunter2"]),
    ({"tokens": [TOKEN, "word"]}, {"tokens": ["secret", "word"]}),
    ({"name": "password", "text": "'hunter2pass99'"}, {"name": "password", "text": "'password'"}),
    ({"text": "b'hunter2pass99'", "name": "pass"}, {"text": "b'password'", "name": "pass"}),
    ({"name": "password", "text": "hunter2pass99"}, {"name": "password", "text": "password"}),
    ({"name": "tokens", "text": f"['a', '{TOKEN}', '{TOKEN}', 'b']"},
     {"name": "tokens", "text": "['a', 'secret', 'b']"}),
    ({"name": "token", "text": f"'{TOKEN}..."}, {"name": "token", "text": "'secret..."}),
    ({"name": "pass_2", "text": "it's2pass99"}, {"name": "pass_2", "text": "password"}),
    ({"name": "header", "text": f"'{TOKEN}'"}, {"name": "header", "text": f"'{TOKEN}'"}),
    ({"name": "tokens", "text": "['word', 'other']"}, {"name": "tokens", "text": "['word', 'other']"}),
    ({"name": "authorization", "text": f"'Bearer {TOKEN}'"},
     {"name": "authorization", "text": "'Bearer authorization'"}),
    ({"Authorization": "Bearer " + TOKEN}, {"Authorization": "Bearer authorization"}),
    ({"image/png": PICTURE, "image/svg+xml": "sk" + "-ant-" + TOKEN},
     {"image/png": PICTURE, "image/svg+xml": "model-key"}),
    ({"image/foo": PICTURE, "audio/x": PICTURE}, dict.fromkeys(["image/foo", "audio/x"], "cloud-key///" + "A" * 88)),
    ({"image/png": "sk" + "-ant-" + TOKEN, "image/jpeg": "AKIA" + "IOSFODNN7QRSTUVW", "video/mp4": "-" + PICTURE},
     {"image/png": "model-key", "image/jpeg": "cloud-key", "video/mp4": "-cloud-key///" + "A" * 88}),
])
def test_the_name_of_a_member_is_the_context_of_its_value(value, want):
    text = MARKER.sub(r"\1", json.dumps(redact({"json": value})[0]["json"]))
    assert json.loads(text) == want
    dumped = redact({"dumped": json.dumps(value)})[0]["dumped"]
    assert json.loads(MARKER.sub(r"\1", dumped)) == want


def coded(data):
    return base64.b64encode(data).decode()


def test_text_in_base64_is_redacted_and_bytes_of_files_stay():
    data = b"\xff key sk" + b"-ant-" + TOKEN.encode() + b" end"
    value = {"stdout": "x", "stdout_base64": coded(data), "artifacts": [{"path": "a", "base64": coded(data)}],
             "files": [{"path": "b", "base64": coded(data)}]}
    dumped = redact({"dumped": json.dumps(value)})[0]
    assert dumped["may"]
    for answer in (redact({"json": value})[0]["json"], json.loads(dumped["dumped"])):
        out = base64.b64decode(answer["stdout_base64"])
        assert out.startswith(b"\xff key [redacted:model-key:") and out.endswith(b"] end")
        assert {**answer, "stdout_base64": ""} == {**value, "stdout_base64": ""}


@pytest.mark.parametrize("cuts", [(10,), (2,), (1, 2, 3, 4, 5), (30,), (9, 20, 36)])
def test_a_secret_that_portions_of_a_stream_share_is_found(cuts):
    text = "before sk" + "-ant-" + TOKEN + " after é"
    edges = [0, *cuts, len(text)]
    outputs = []
    for from_, until in zip(edges, edges[1:]):
        outputs += [{"type": "stdout", "text": text[from_:until]}, {"type": "stderr", "text": "other\n"},
                    {"type": "result", "text/plain": "1"}]
    dumped = redact({"dumped": json.dumps({"outputs": outputs})})[0]
    assert dumped["may"]
    for answer in (redact({"json": {"outputs": outputs}})[0]["json"], json.loads(dumped["dumped"])):
        out = "".join(one["text"] for one in answer["outputs"] if one["type"] == "stdout")
        assert MARKER.sub("<>", out) == "before <> after é" and len(answer["outputs"]) == len(outputs)
        assert [one for one in answer["outputs"] if one["type"] != "stdout"] == \
               [one for one in outputs if one["type"] != "stdout"]


def test_a_name_that_announces_a_secret_is_never_passed_over_by_the_quick_look():
    names = ["password", "dbPassword", "pass", "db_pass", "pwd", "PASSPHRASE", "accessToken", "client-secret", "apiKey",
             "account_key", "accountKey", "MISTRAL_KEY", "signingKey", "credentials", "Authorization"]
    for name, answer in zip(names, redact(*({"dumped": json.dumps({name: TOKEN})} for name in names))):
        assert answer["count"] == 1 and TOKEN not in answer["dumped"], name


def test_patterns_of_the_configuration_find_beside_the_known_ones():
    text = "acme-12345678 é sk" + "-ant-" + TOKEN + " acme-1234 grün-secret"
    answer = redact({"text": text}, {"base64": coded(b"\xff acme-12345678")},
                    {"json": {"acme-12345678": ["acme-87654321"]}}, patterns=["acme-[0-9]{8}", "gr[üu]n-\\K\\w+"])
    assert MARKER.sub(r"<\1>", answer[0]["text"]) == "<pattern> é <model-key> acme-1234 grün-<pattern>"
    assert b"acme" not in base64.b64decode(answer[1]["base64"]) and answer[2]["count"] == 2


@pytest.mark.parametrize("pattern", ["[0-9a-f]{8}", "redacted", ".", "a*", "(?i)token|\\bx"])
def test_a_pattern_does_not_search_in_markers(pattern):
    once = redact({"text": "a sk" + "-ant-" + TOKEN}, patterns=[])[0]["text"]
    marker = MARKER.search(once)[0]
    assert redact({"text": marker}, patterns=[pattern])[0] == {"count": 0, "may": True, "text": marker}


@pytest.mark.parametrize("pattern,word", [("acme-(", "missing closing parenthesis"), ("[z-a]", "out of order"),
                                          ("\\C", "\\C"), ("(*UTF)x", ""), ("x{99999999}", "too big")])
def test_a_pattern_with_a_mistake_is_refused_by_name(pattern, word):
    done = subprocess.run([BUILD / "redact", "fine", pattern], input="", capture_output=True, text=True)
    assert done.returncode == 1 and json.loads(done.stdout) == {"error": "input"}
    assert json.dumps(pattern) in done.stderr and word in done.stderr and "at offset" in done.stderr


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "a.*a.*a.*a.*b$", "(?=(a+))a*b\\1", "^(([a-z])+.)+[A-Z]$"])
def test_a_pattern_that_would_take_for_ever_closes_the_field(pattern):
    slow = "a" * 60000 + "!bA!"
    answer = redact({"text": slow}, {"json": {"code": slow, "n": "fine"}}, {"text": "fine"}, patterns=[pattern])
    assert re.fullmatch(r"\[redacted:limit:[0-9a-f]{8}\]", answer[0]["text"]), answer[0]["text"][:100]
    assert re.fullmatch(r"\[redacted:limit:[0-9a-f]{8}\]", answer[1]["json"]["code"]) and answer[0]["count"] == 1
    assert answer[1]["json"]["n"] == "fine" and answer[2] == {"count": 0, "may": True, "text": "fine"}
