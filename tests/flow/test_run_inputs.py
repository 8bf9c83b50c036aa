"""stdin, args, env, files in and artifacts out, in all three languages."""
import hashlib

import pytest

from host import binary_file, text_file

BYTES = bytes(range(256))
CODE = {
    "python": """
import hashlib, os, sys
print(sys.stdin.read(), sys.argv[1:], os.environ['KEY'])
print(open('in/a.txt', encoding='utf8').read(), hashlib.sha256(open('b.bin', 'rb').read()).hexdigest())
try:
    open('ro.txt', 'a').write('x'); print('written')
except OSError:
    print('refused')
open('in/a.txt', 'a').write('!')
os.makedirs('made/deep'); open('made/deep/c.txt', 'w').write('new')
""",
    "javascript": """
const fs = require('fs'), crypto = require('crypto');
console.log(fs.readFileSync(0, 'utf8'), JSON.stringify(process.argv.slice(2)), process.env.KEY);
const sum = crypto.createHash('sha256').update(fs.readFileSync('b.bin')).digest('hex');
console.log(fs.readFileSync('in/a.txt', 'utf8'), sum);
try {
    fs.appendFileSync('ro.txt', 'x'); console.log('written');
} catch {
    console.log('refused');
}
fs.appendFileSync('in/a.txt', '!');
fs.mkdirSync('made/deep', { recursive: true }); fs.writeFileSync('made/deep/c.txt', 'new');
""",
    "bash": """
echo "$(cat)" "$@" "$KEY"
echo "$(cat in/a.txt)" $(sha256sum < b.bin | cut -d' ' -f1)
if echo x 2>/dev/null >> ro.txt; then echo written; else echo refused; fi
printf '!' >> in/a.txt
mkdir -p made/deep; printf new > made/deep/c.txt
""",
}
ARGS_SHOWN = {"python": "['a b', '日本']", "javascript": '["a b","日本"]', "bash": "a b 日本"}


@pytest.mark.parametrize("language", CODE)
def test_everything_goes_in_and_comes_out(cupel_as, language, folder):
    result = cupel_as.run_json(
        CODE[language], language, args=["a b", "日本"], stdin="héllo", env={"KEY": "välue"},
        files=[text_file("in/a.txt", "tëxt"), binary_file("b.bin", BYTES),
               text_file("ro.txt", "fixed", readonly=True)], cli=["-o", str(folder)])
    assert result["status"] == "ok", result["error"] or result["stderr"]
    lines = result["stdout"].splitlines()
    assert lines[0] == f"héllo {ARGS_SHOWN[language]} välue"
    assert lines[1] == f"tëxt {hashlib.sha256(BYTES).hexdigest()}" and lines[2] == "refused"
    found = {row["path"]: row["size_bytes"] for row in result["artifacts"]}
    assert found == {"in/a.txt": len("tëxt!".encode()), "made/deep/c.txt": 3}
    assert (folder / "made/deep/c.txt").read_text() == "new"
    assert (folder / "in/a.txt").read_text() == "tëxt!"


@pytest.mark.parametrize("language,code", [("py", "print(1)"), ("js", "console.log(1)"),
                                           ("node", "console.log(1)"), ("sh", "echo 1")])
def test_aliases_of_languages_are_accepted(cupel, language, code):
    assert cupel.run_json(code, language)["stdout"] == "1\n"


def test_python_is_the_default(cupel):
    assert cupel.request({"code": "print(1)"})["stdout"] == "1\n"


@pytest.mark.parametrize("language,code", [
    ("python", "import os; print(sorted(os.environ))"),
    ("bash", "env | cut -d= -f1 | sort | tr '\\n' ' '")])
def test_the_environment_is_built_from_nothing(cupel_as, language, code):
    result = cupel_as.run_json(code, language)
    assert "CUPEL" not in result["stdout"] and "XDG_RUNTIME" not in result["stdout"]
    assert "PATH" in result["stdout"] and "HOME" in result["stdout"]


def test_an_unchanged_input_is_no_artifact_and_a_rewritten_one_is(cupel_as):
    files = [text_file("same", "1"), text_file("changed", "1"), text_file("gone", "1")]
    code = "import os\nopen('changed', 'w').write('2')\nos.unlink('gone')\nopen('same').read()"
    paths = [row["path"] for row in cupel_as.run_json(code, files=files)["artifacts"]]
    assert paths == ["changed"]


def test_a_change_that_keeps_size_and_time_is_seen(cupel_as):
    code = "import os\ns = os.stat('a')\nopen('a', 'r+').write('2')\n" \
           "os.utime('a', ns=(s.st_atime_ns, s.st_mtime_ns))"
    assert cupel_as.run_json(code, files=[text_file("a", "1")])["artifacts"][0]["path"] == "a"


def test_artifacts_carry_size_hash_and_type(cupel):
    result = cupel.run_json("open('a.csv', 'w').write('x,y')\nopen('b.json', 'w').write('{}')\n"
                            "open('c.zzz', 'w').write('?')")
    rows = {row["path"]: row for row in result["artifacts"]}
    assert rows["a.csv"]["mime"].startswith("text/csv")
    assert rows["b.json"]["mime"] == "application/json"
    assert rows["c.zzz"]["mime"] == "application/octet-stream"
    assert rows["a.csv"]["sha256"] == hashlib.sha256(b"x,y").hexdigest()


def test_the_habitual_paths_lead_to_the_work_folder(cupel_as):
    code = "open('/mnt/data/a', 'w').write('1')\nopen('/home/user/b', 'w').write('2')\n" \
           "import os; print(os.path.expanduser('~') in ('/workspace', '/home/user'), os.getcwd())"
    result = cupel_as.run_json(code)
    assert [row["path"] for row in result["artifacts"]] == ["a", "b"]
    assert result["stdout"] == "True /workspace\n"


def test_a_late_read_sees_an_end_of_input(cupel):
    assert cupel.run_json("import sys; print(repr(sys.stdin.read()))")["stdout"] == "''\n"
    assert cupel.run_json("cat | wc -c", "bash")["stdout"].strip() == "0"


def test_many_small_files_go_in(cupel_as):
    files = [text_file(f"d{i % 7}/f{i}", str(i)) for i in range(500)]
    code = "import glob; print(sum(int(open(p).read()) for p in glob.glob('d*/f*')))"
    assert cupel_as.run_json(code, files=files)["stdout"] == f"{sum(range(500))}\n"


def test_files_of_megabytes_go_in_and_out(cupel_as, folder):
    data = hashlib.sha256(b"x").digest() * (1 << 16)
    result = cupel_as.run_json("import shutil; shutil.copy('in.bin', 'out.bin')",
                               files=[binary_file("in.bin", data)], cli=["-o", str(folder)])
    assert [row["path"] for row in result["artifacts"]] == ["out.bin"]
    assert (folder / "out.bin").read_bytes() == data
