"""The tool `runs` of a later conversation: results, files and pictures come from the records of this client."""
import pytest

from mcp_client import Talk, text


def link_of(result, name):
    return next(part["uri"] for part in result["content"] if part["type"] == "resource_link" and part["name"] == name)


@pytest.fixture
def earlier(engine, cupel_as):
    """The result of a run whose conversation has ended."""
    with Talk(cupel_as, env=engine.use()) as talk:
        done = talk.run("print('once')\nopen('kept.txt', 'w').write('kept')\n6 * 7", session="none")
    assert not done["isError"], done
    return done["structuredContent"]


@pytest.mark.both
def test_a_later_conversation_shows_a_run_and_its_files(earlier, engine, cupel_as):
    with Talk(cupel_as, env=engine.use()) as talk:
        again = talk.call("runs", do="show", id=earlier["id"])
        facts = again["structuredContent"]
        assert not again["isError"] and "from the records" in text(again)
        assert {name: facts[name] for name in ("id", "value", "stdout", "status", "files")} == {
            name: earlier[name] for name in ("id", "value", "stdout", "status", "files")}
        read = talk.ask("resources/read", {"uri": link_of(again, "kept.txt")})
        assert read["result"]["contents"][0]["text"] == "kept"
        assert "error" in talk.ask("resources/read", {"uri": f"cupel://{earlier['id']}/other.txt"})
        assert "error" in talk.ask("resources/read", {"uri": f"cupel://{earlier['id']}/.shown/9"})


def test_an_id_that_was_never_given_is_an_error_for_the_model(earlier, engine, cupel_as):
    with Talk(cupel_as, env=engine.use()) as talk:
        for wrong in ("r_" + "0" * 24, "last", earlier["id"][:10], "r_", "", "r_" + "%" * 24, "x" * 5000):
            said = talk.call("runs", do="show", id=wrong)
            assert said["isError"] and "absent" in text(said), said
        assert talk.run("1 + 1")["structuredContent"]["value"] == "2"


def test_many_questions_at_once_are_answered_or_refused(earlier, engine, cupel_as):
    with Talk(cupel_as, env=engine.use()) as talk:
        asked = {talk.send("tools/call", {"name": "runs", "arguments": {"do": "show", "id": earlier["id"]}})
                 for _ in range(60)}
        while asked:
            heard = talk.hear()
            asked.remove(heard["id"])
            assert heard["result"]["structuredContent"]["value"] == "42"
