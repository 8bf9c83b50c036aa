"""Artifacts are contents of regular files from the box, whatever the box tries."""
import base64
import os
import stat

import pytest

# With --dir there are no artifacts: changes are kept as a set, which tests/flow/test_dir.py attacks.
ARTIFACTS = pytest.mark.boxes("host", "image", "strict", why="with --dir there are no artifacts")
TRAPS = r"""
import os, socket
os.chdir('/workspace')
with open('good.txt', 'w') as f: f.write('good')
os.symlink('/etc/passwd', 'link')
os.symlink('/proc/1/environ', 'magic')
os.symlink('/proc/self/fd/0', 'magic_fd')
os.symlink('/', 'root')
os.symlink('../../../../etc', 'dots')
os.symlink('good.txt', 'inner')
os.mkdir('sub'); open('sub/a.txt', 'w').write('a'); os.symlink('/etc', 'sub/etc')
os.mkfifo('fifo')
s = socket.socket(socket.AF_UNIX); s.bind('sock')
try:
    os.link('/etc/passwd', 'hard'); print('HARD LINK MADE')
except OSError as e:
    print('hard link:', e.strerror)
with open('setuid', 'w') as f: f.write('#!/bin/sh\n')
os.chmod('setuid', 0o6777)
with open('unreadable', 'w') as f: f.write('x')
os.chmod('unreadable', 0)
os.mkdir('closed'); open('closed/x', 'w').write('x'); os.chmod('closed', 0)
for name in (b'new\nline', b'esc\x1b[31m', b'-rf', b'bad\xff\xfe', b'back\\slash', b'n' * 255,
             '\u2028sep'.encode(), b'quote"', b' ', b'...', b'C:\\x'):
    with open(name, 'wb') as f: f.write(b'odd')
"""


@pytest.fixture
def trapped(cupel_as, folder):
    """(result, out folder, host side) of a run that sets every trap."""
    outside = folder / "outside"
    outside.write_text("before")
    out = folder / "out"
    out.mkdir()
    out.chmod(0o777)
    os.symlink(outside, out / "good.txt")
    os.symlink(folder, out / "sub")
    result = cupel_as.run_json(TRAPS, cli=["-o", str(out)])
    return result, out, outside


@ARTIFACTS
def test_only_regular_files_come_back_and_the_rest_has_its_reason(trapped):
    result, _, _ = trapped
    assert result["status"] == "ok" and "HARD LINK MADE" not in result["stdout"]
    paths = {row["path"] for row in result["artifacts"]}
    skipped = {row["path"]: row["reason"] for row in result["skipped"]}
    assert "good.txt" in paths and "sub/a.txt" in paths and "setuid" in paths
    for name in ("link", "magic", "magic_fd", "root", "dots", "inner", "fifo", "sock", "sub/etc"):
        assert name not in paths and skipped.get(name), name
    assert not any(path.startswith(("root/", "dots/", "sub/etc/")) for path in paths)
    for row in result["artifacts"]:
        assert set(row) >= {"path", "size_bytes", "sha256", "mime"} and len(row["sha256"]) == 64


@ARTIFACTS
def test_odd_names_are_carried_and_none_is_lost(trapped):
    result, out, _ = trapped
    listed = {row["path"] for row in result["artifacts"]} | {row["path"] for row in result["skipped"]}
    for name in ("new\nline", "esc\x1b[31m", "-rf", "back\\slash", "n" * 255, "\u2028sep",
                 'quote"', " ", "...", "C:\\x"):
        assert name in listed, repr(name)
    assert any(name.startswith("bad") for name in listed)


def test_nothing_is_written_through_a_link_or_outside_the_out_folder(trapped, folder):
    _, out, outside = trapped
    assert outside.read_text() == "before"
    assert sorted(os.listdir(folder)) == ["out", "outside"]
    for name in os.listdir(out):
        mode = os.lstat(out / name).st_mode
        assert not mode & (stat.S_ISUID | stat.S_ISGID), name
        assert not mode & 0o111 or stat.S_ISDIR(mode) or stat.S_ISLNK(mode), name


def test_contents_of_the_host_never_come_back(trapped, cupel_as):
    _, out, _ = trapped
    for folder_name, _, names in os.walk(out):
        for name in names:
            path = os.path.join(folder_name, name)
            if not os.path.islink(path):
                assert b"root:x:0" not in open(path, "rb").read(), path


@ARTIFACTS
def test_a_file_of_ten_gigabytes_is_skipped_unread(cupel_as):
    result = cupel_as.run_json("f = open('big', 'wb'); f.truncate(150 << 20); f.close()\n"
                               "open('small', 'w').write('x')")
    assert [row["path"] for row in result["artifacts"]] == ["small"]
    assert [row["path"] for row in result["skipped"]] == ["big"]


@ARTIFACTS
def test_a_thousand_files_are_counted_and_the_list_is_capped(cupel_as):
    result = cupel_as.run_json("for i in range(1000): open(f'f{i:04}', 'w').write('x')")
    assert len(result["artifacts"]) == 64
    assert 1 <= len(result["skipped"]) <= 257
    last = result["skipped"][-1]
    assert any(ch.isdigit() for ch in last["reason"]), last
    assert any("artifact" in hit for hit in result["limits_hit"])


@ARTIFACTS
def test_the_caps_on_bytes_and_count_are_the_requests(cupel_as):
    result = cupel_as.run_json("for i in range(5): open(f'f{i}', 'w').write('x' * 1000)",
                               limits={"artifact_files": 3, "artifact_bytes": 2500})
    assert len(result["artifacts"]) == 2
    assert len(result["skipped"]) == 3


def test_upload_paths_cannot_climb(cupel_as):
    for path in ("../x", "/etc/x", "a/../../b", "a/..", "..", "", "a//b", "./a", "a\u0000b", "a/"):
        cupel_as.refusal({"code": "1", "files": [{"path": path, "text": ""}]})


def test_an_upload_may_not_pass_through_its_own_file(cupel_as):
    error = cupel_as.refusal({"code": "1", "files": [{"path": "a", "text": ""},
                                                     {"path": "a/b", "text": ""}]})
    assert "files" in error["field"]


@ARTIFACTS
def test_bytes_survive_the_way_out(cupel_as, folder):
    data = bytes(range(256)) * 3
    code = f"import base64; open('b.bin', 'wb').write(base64.b64decode({base64.b64encode(data)!r}))"
    folder.chmod(0o777)
    result = cupel_as.run_json(code, cli=["-o", str(folder)])
    assert (folder / "b.bin").read_bytes() == data
    assert result["artifacts"][0]["size_bytes"] == len(data)
    assert (folder / "b.bin").stat().st_uid == cupel_as.uid
