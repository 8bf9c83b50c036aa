"""Small programs of every kind give the same output, exit code, error and files outside of any box, in a cold run, in
a warm run and in a session, but for the differences that differences.txt gives a reason for."""
import pytest
import snippets

from sessions import Session

pytestmark = [pytest.mark.sample(short=16), pytest.mark.sample(of="user", full=4)]
LIMITS = {"timeout_s": 60, "cpu_s": 60, "memory_bytes": 1 << 30, "pids": 128}
SNIPPETS = [(language, name, code) for language in snippets.LANGUAGES for name, code in snippets.read(language)]


def cold(cupel, client, request):
    return cupel.request(request)


def warm(cupel, client, request):
    return client.run(request)[1]["result"]


def in_session(cupel, client, request):
    session = Session(client, request["language"], request={"limits": request["limits"]}, wait=False)
    try:
        return session.run(request["code"], limits={"timeout_s": 60, "cpu_s": 60})
    finally:
        session.ask("end")


WAYS = {"cold": cold, "warm": warm, "session": in_session}


def compare(cupel, client, folder, language, code):
    """{way: {fact: (outside, inside)}} of the facts that differ."""
    expected = snippets.outside(language, code, folder, cupel.identity())
    found = {}
    for way, run in WAYS.items():
        result = run(cupel, client, {"language": language, "code": code, "limits": LIMITS})
        got = snippets.of_result(language, result)
        found[way] = {fact: (expected[fact], got[fact]) for fact in expected if expected[fact] != got[fact]}
    return found


@pytest.mark.parametrize("language,name,code", SNIPPETS, ids=[f"{row[0]}-{row[1]}" for row in SNIPPETS])
def test_a_snippet_is_the_same_everywhere(cupel_as, client, folder, language, name, code):
    reasons = snippets.differences()
    for way, differs in compare(cupel_as, client, folder, language, code).items():
        if (language, name, way) in reasons:
            assert differs, f"{way}: no difference any more: remove it from differences.txt"
        else:
            assert not differs, (way, differs)


def test_each_difference_belongs_to_a_snippet():
    known = {(language, name, way) for language, name, _ in SNIPPETS for way in WAYS}
    assert snippets.differences().keys() <= known
    assert len(SNIPPETS) >= 150


def test_a_difference_would_be_seen(cupel, engines, folder):
    """The control: the process number differs in a box."""
    with engines.first().client() as client:
        found = compare(cupel, client, folder, "python", "import os\nprint(os.getpid(), open('/proc/1/comm').read())")
    assert all("stdout" in differs for differs in found.values()), found
