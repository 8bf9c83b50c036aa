"""TypeScript, R and Java: the contract of the other languages, where the host has them; else a refusal that names the
package."""
import base64
import os
import shutil

import pytest

import host
from sessions import Refused, Session

LIMITS = {"timeout_s": 60}
ESBUILD, COMPILER = "/usr/bin/esbuild", "/usr/share/nodejs/typescript/lib/typescript.js"
R, JAVAC = "/usr/lib/R/bin/exec/R", "/usr/bin/javac"
needs_types = pytest.mark.skipif(not os.path.exists(ESBUILD) and not os.path.exists(COMPILER),
                                 reason="neither esbuild nor node-typescript is installed")
needs_r = pytest.mark.skipif(not os.path.exists(R), reason="r-base-core is not installed")
needs_java = pytest.mark.skipif(not os.path.exists(JAVAC), reason="no JDK is installed")


def run(cupel, language, code, **fields):
    return cupel.run_json(code, language, limits={**LIMITS, **fields.pop("limits", {})}, **fields)


def where(result):
    error = result["error"]
    return error["kind"], error["name"], error["line"], error["column"]


# ---- TypeScript ----
TYPES = """interface Point { x: number; label?: string }
enum Color { Red, Green = 5 }
class Box<T> { constructor(private readonly held: T) {} get(): T { return this.held; } }
const point: Point = { x: 1 };
new Box<number>(point.x as number).get() + Color.Green
"""


@needs_types
def test_types_are_removed_and_the_last_value_is_shown(cupel_as):
    result = run(cupel_as, "typescript", TYPES)
    assert result["status"] == "ok" and result["results"][0]["text/plain"] == "6", result


@needs_types
@pytest.mark.parametrize("code, spot", [
    ("type A = { a: number }\n\nfunction f(a: A): never {\n    throw new TypeError('no');\n}\n\n  f({ a: 1 });",
     ("exception", "TypeError", 4, 11)),
    ("let é: string = 'x';\nlet y: = 3;", ("syntax", "SyntaxError", 2, 8)),
    ("type A = string;\nconst a: A = await Promise.resolve('x');\n(null as any).foo;",
     ("exception", "TypeError", 3, 15)),
    ("type A = string;\n\nimport x from 'left-pad-of-nowhere';\nconsole.log(x)", ("import", "Error", 3, 1)),
], ids=["exception", "syntax", "module", "import"])
def test_errors_have_the_places_of_the_typescript(cupel, code, spot):
    result = run(cupel, "ts", code)
    assert where(result) == spot, result["error"]
    assert result["error"]["snippet"] == code.split("\n")[spot[2] - 1]


@needs_types
def test_typescript_has_call_arguments_and_stdin(cupel):
    result = run(cupel, "typescript", "function add(a: number, b: number): number { return a + b }",
                 call={"function": "add", "args": [1, 2]})
    assert result["results"][-1]["application/json"] == 3
    code = "const all: string[] = process.argv.slice(2);\n" \
           "console.log(all.join(), require('fs').readFileSync(0, 'utf8'))"
    assert run(cupel, "typescript", code, args=["a", "b"], stdin="in")["stdout"] == "a,b in\n"


@needs_types
def test_typescript_is_run_by_a_script_and_by_a_waiting_node(cupel, client, folder):
    script = folder / "a.ts"
    script.write_text("const x: number = 20;\nconsole.log(x + 22)\n")
    assert cupel.run(["run", "--cold", "-t", "60", script]).stdout == "42\n"
    assert host.wait_until(lambda: any(pool["ready"] for pool in client.info()["state"]["pools"]
                                       if pool["name"] == "javascript"), 60, 0.1)
    result = client.run({"language": "typescript", "code": TYPES, "limits": LIMITS})[1]["result"]
    assert result["metrics"]["warm"] and result["results"][0]["text/plain"] == "6", result


@needs_types
def test_cells_of_typescript_keep_their_names(client):
    session = Session(client, "typescript")
    for code, wanted in [("interface P { x: number }\nlet p: P = { x: 41 };", None), ("p.x + 1 as number", "42"),
                         ("import path from 'path';", None), ("path.join('a', 'b') as string", "'a/b'"),
                         ("let p: P = { x: 1 };\np.x", "1"), ("enum E { A = 7 }\nE.A", "7")]:
        result = session.run(code, limits={"timeout_s": 30})
        assert result["status"] == "ok", result["error"]
        assert (result["results"][-1]["text/plain"] if result["results"] else None) == wanted, (code, result)
    result = session.run("interface Q {}\n\nfunction f(q: Q): void { throw new Error('no'); }\nf({});")
    assert where(result)[:3] == ("exception", "Error", 3) and result["state"] == "kept"
    result = session.run("let y: number = ;")
    assert where(result) == ("syntax", "SyntaxError", 1, 17)
    assert session.run("p.x")["results"][-1]["text/plain"] == "1"
    session.end()


@pytest.mark.skipif(os.path.exists(ESBUILD) or os.path.exists(COMPILER), reason="TypeScript is installed")
def test_absent_typescript_names_its_package(cupel):
    result = run(cupel, "typescript", "const x: number = 1;\nx")
    if result["status"] != "ok":   # this node cannot strip types
        assert "apt-get install esbuild" in result["error"]["message"], result


# ---- R ----
@needs_r
def test_r_shows_the_last_value_and_prints_the_others(cupel_as):
    result = run(cupel_as, "r", "x <- c(1, 2, 3)\nmean(x)\ny <- 4\nsum(x)")
    assert result["stdout"] == "[1] 2\n" and result["results"] == [{"text/plain": "[1] 6"}], result


@needs_r
def test_plots_of_r_are_pictures_and_its_files_artifacts(cupel):
    result = run(cupel, "R", "plot(1:3)\nhist(c(1, 2, 2))\nwrite.csv(cars, 'cars.csv')\ninvisible(1)")
    pictures = [base64.b64decode(bundle["image/png"]) for bundle in result["results"]]
    assert len(pictures) == 2 and all(picture.startswith(b"\x89PNG") for picture in pictures), result["error"]
    assert [row["path"] for row in result["artifacts"]] == ["cars.csv"]


@needs_r
@pytest.mark.parametrize("code, spot, message", [
    ("x <- 1\nf <- function(a) {\n  stop('boom é')\n}\nf(2)", ("exception", "Error", 3, 3), "boom é"),
    ("x <- 1\ny <- (2 +\nz) z", ("syntax", "SyntaxError", 3, 4), "unexpected symbol"),
    ("x <- 1\nlibrary(nowhere)", ("import", "packageNotFoundError", 2, 1), "nowhere"),
    ("x <- 1\n\nprint(undefined_name)", ("exception", "Error", 3, 1), "undefined_name"),
], ids=["exception", "syntax", "import", "name"])
def test_errors_of_r_have_their_place(cupel, code, spot, message):
    result = run(cupel, "r", code)
    assert where(result) == spot and message in result["error"]["message"], result["error"]
    assert result["status"] == "error" and result["exit_code"] == 1 and result["stderr"] == ""


@needs_r
def test_r_has_arguments_stdin_and_an_exit_code(cupel):
    code = "cat(commandArgs(TRUE), readLines('stdin'), sep = '|')\nquit(status = 7)"
    result = run(cupel, "r", code, args=["a", "b c"], stdin="l1\nl2\n")
    assert (result["stdout"], result["exit_code"]) == ("a|b c|l1|l2", 7), result


@needs_r
def test_the_statistics_of_r_work(cupel):
    result = run(cupel, "r", "coef(lm(dist ~ speed, cars))[['speed']]")
    assert result["results"][0]["text/plain"].startswith("[1] 3.932"), result


@needs_r
@pytest.mark.full
def test_limits_hold_for_r(cupel):
    assert run(cupel, "r", "while (TRUE) {}", limits={"timeout_s": 3})["status"] == "timeout"
    assert run(cupel, "r", "x <- numeric(2^30)\nx[1] <- 1\nsum(x)")["status"] in ("memory_limit", "error")
    assert run(cupel, "r", "system('kill -9 $PPID')")["status"] == "killed"


# ---- Java ----
MAIN = "import java.util.*;\npublic class Main {\n    public static void main(String[] args) throws Exception {\n" \
       "%s\n    }\n}\n"


@needs_java
def test_java_has_arguments_stdin_and_an_exit_code(cupel_as):
    code = MAIN % "System.out.println(Arrays.toString(args) + new Scanner(System.in).nextLine());\nSystem.exit(5);"
    result = run(cupel_as, "java", code, args=["a", "b c"], stdin="line\n")
    assert (result["stdout"], result["exit_code"]) == ("[a, b c]line\n", 5), result


@needs_java
@pytest.mark.parametrize("code, spot", [
    (MAIN % "int[] x = {1};\nint y = x[1];", ("exception", "ArrayIndexOutOfBoundsException", 5, None)),
    (MAIN % "int x = 1", ("syntax", "CompileError", 4, 10)),
    ("import org.nowhere.Thing;\n" + MAIN % "", ("import", "CompileError", 1, 19)),
], ids=["exception", "syntax", "import"])
def test_errors_of_java_have_their_place(cupel, code, spot):
    result = run(cupel, "java", code)
    assert where(result) == spot and result["exit_code"] == 1, result["error"]
    assert result["error"]["snippet"] == code.split("\n")[spot[2] - 1]


@needs_java
@pytest.mark.full
def test_limits_hold_for_java(cupel):
    hog = MAIN % "var l = new ArrayList<byte[]>(); while (true) l.add(new byte[1 << 20]);"
    result = run(cupel, "java", hog)
    assert result["error"]["name"] == "OutOfMemoryError" or result["status"] == "memory_limit", result
    threads = MAIN % "for (int i = 0; i < 200; i++) new Thread(() -> { try { Thread.sleep(9000); } " \
                     "catch (Exception e) {} }).start();"
    assert run(cupel, "java", threads)["status"] in ("pids_limit", "error")
    assert run(cupel, "java", MAIN % "while (true) {}", limits={"timeout_s": 8})["status"] == "timeout"


@needs_java
def test_java_has_threads_random_numbers_and_digests(cupel):
    body = "var t = new Thread(() -> System.out.println(\"thread\")); t.start(); t.join();\n" \
           "System.out.println(UUID.randomUUID().toString().length());\n" \
           "System.out.println(java.security.MessageDigest.getInstance(\"SHA-256\").digest().length);\n" \
           "System.out.println(javax.crypto.Cipher.getInstance(\"AES/GCM/NoPadding\").getAlgorithm());"
    assert run(cupel, "java", MAIN % body)["stdout"] == "thread\n36\n32\nAES/GCM/NoPadding\n"


# ---- refusals ----
@pytest.mark.parametrize("language, path, package", [("r", R, "r-base-core"), ("java", JAVAC, "default-jdk-headless")])
def test_an_absent_language_is_refused_with_its_package(cupel, language, path, package):
    if os.path.exists(path):
        pytest.skip(f"{package} is installed")
    done = cupel.run(["run", "-l", language, "-c", "1"])
    assert done.returncode == 2
    assert f'language "{language}" is not installed: apt-get install {package}' in done.stderr, done.stderr


@pytest.mark.parametrize("language", ["r", "java"])
def test_sessions_and_calls_of_r_and_java_are_refused(cupel, client, language):
    with pytest.raises(Refused) as refused:
        Session(client, language)
    assert refused.value.error["field"] == "language" and "without sessions" in refused.value.error["message"]
    refusal = cupel.refusal({"code": "1", "language": language, "call": {"function": "f"}})
    assert refusal["field"] == "call" and language in refusal["message"]


def test_languages_have_versions(cupel):
    done = cupel.run(["languages"])
    for word, program in (("javascript", "/usr/bin/node"), ("typescript", ESBUILD), ("r", R), ("java", JAVAC)):
        found = [line for line in done.stdout.splitlines() if line.startswith(word + " ")]
        assert bool(found) == os.path.exists(program) or word == "typescript", done.stdout
    assert shutil.which("git") is None or "\n  git  " in done.stdout
