"""cupel mcp config: the lines for each client, and a file that keeps all else or is left alone."""
import json
import tomllib

import pytest

PLACES = {"claude-code": ".claude.json", "claude-desktop": ".config/Claude/claude_desktop_config.json",
          "cursor": ".cursor/mcp.json", "codex": ".codex/config.toml"}


def config(cupel, client, *args, home=None):
    return cupel.run(["mcp", "config", client, *args], env={"HOME": str(home)} if home else None)


def server_of(client, text):
    if client == "codex":
        return tomllib.loads(text)["mcp_servers"]["cupel"]
    return json.loads(text)["servers" if client == "vscode" else "mcpServers"]["cupel"]


@pytest.mark.parametrize("client", [*PLACES, "vscode"])
def test_the_lines_start_this_program(cupel, client):
    done = config(cupel, client)
    server = server_of(client, done.stdout)
    assert done.returncode == 0 and server["args"] == ["mcp"] and server["command"] == cupel.program
    assert server.get("type") == ("stdio" if client in ("claude-code", "vscode") else None)


@pytest.mark.parametrize("client", PLACES)
def test_written_to_the_clients_own_file_it_is_there_and_again_changes_nothing(cupel_as, folder, client):
    folder.chmod(0o777)
    done = config(cupel_as, client, "--write", home=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / PLACES[client]).read_text()
    assert server_of(client, text)["args"] == ["mcp"]
    assert "already" in config(cupel_as, client, "--write", home=folder).stderr
    assert (folder / PLACES[client]).read_text() == text and not [*folder.rglob("*backup*")]


def test_all_else_in_a_json_file_stays_and_a_backup_is_kept(cupel, folder):
    before = {"theme": "dark", "z": [1, 2.5, None, "é"], "mcpServers": {"a": {"command": "x"}, "cupel": {"old": 1}}}
    path = folder / "c.json"
    path.write_text(json.dumps(before))
    path.chmod(0o640)
    assert config(cupel, "cursor", "--write", "--file", path).returncode == 0
    after = json.loads(path.read_text())
    assert after["mcpServers"].pop("cupel")["args"] == ["mcp"]
    del before["mcpServers"]["cupel"]
    assert after == before and list(after) == list(before) and path.stat().st_mode & 0o777 == 0o640
    assert json.loads((folder / "c.json.cupel-backup").read_text())["mcpServers"]["cupel"] == {"old": 1}
    path.write_text("{}")
    config(cupel, "cursor", "--write", "--file", path)
    assert (folder / "c.json.cupel-backup-1").read_text() == "{}"


def test_a_link_stays_a_link(cupel, folder):
    (folder / "real.json").write_text("{}")
    (folder / "link.json").symlink_to("real.json")
    assert config(cupel, "cursor", "--write", "--file", folder / "link.json").returncode == 0
    assert (folder / "link.json").is_symlink() and "cupel" in (folder / "real.json").read_text()


def test_all_else_in_a_toml_file_stays(cupel, folder):
    path = folder / "c.toml"
    path.write_text('model = "m"\n[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.cupel]\ncommand = "old"\n'
                    '[projects."/home/cupel"]\ntrust = 1\n')
    assert config(cupel, "codex", "--write", "--file", path).returncode == 0
    after = tomllib.loads(path.read_text())
    assert after["mcp_servers"]["cupel"]["args"] == ["mcp"] and after["mcp_servers"]["other"] == {"command": "x"}
    assert after["model"] == "m" and after["projects"] == {"/home/cupel": {"trust": 1}}


@pytest.mark.parametrize("client, text", [
    ("cursor", '{"a": 1, // comment\n}'), ("cursor", '{"a":1,"a":2}'), ("cursor", "[]"),
    ("cursor", '{"mcpServers": 3}'),
    ("cursor", '{"a": 1} x'), ("cursor", b'{"a": "\xff"}'), ("codex", 'a = """\n[mcp_servers.cupel]\n"""\n'),
    ("codex", "mcp_servers = {}\n"), ("codex", "[ mcp_servers.cupel ]\n"), ("codex", '[mcp_servers."cupel"]\n'),
    ("codex", "[mcp_servers.cupel.env]\nA = 1\n"), ("codex", "[[mcp_servers.cupel]]\n"),
])
def test_a_file_that_is_not_understood_is_left_alone(cupel, folder, client, text):
    path = folder / "file"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = config(cupel, client, "--write", "--file", path)
    assert done.returncode == 2 and "left as it is" in done.stderr and "hint" in done.stderr
    assert path.read_bytes() == (text if isinstance(text, bytes) else text.encode())
    assert [one.name for one in folder.iterdir()] == ["file"]


@pytest.mark.parametrize("args, said", [
    ([], "one client"), (["claude-cod"], "claude-code"), (["emacs"], "unknown client"),
    (["cursor", "codex"], "one client"),
])
def test_a_wrong_command_line_is_refused(cupel, args, said):
    done = cupel.run(["mcp", "config", *args])
    assert done.returncode == 2 and said in done.stderr
