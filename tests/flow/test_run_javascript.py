"""JavaScript by node's own parser: both module systems, await, values, errors."""
import resource
import statistics
import subprocess

import pytest


def run(cupel, code, **fields):
    return cupel.run_json(code, "javascript", **fields)


def value(result, kind="text/plain"):
    assert result["status"] == "ok", result["error"] or result["stderr"]
    return result["results"][-1][kind]


@pytest.mark.parametrize("code,shown", [
    ("const x = 20; x + 22", "42"), ("[1, 2].map(x => x * 2)", "[ 2, 4 ]"),
    ("({ a: 1 })", "{ a: 1 }"), ("'text'", "text")])
def test_the_value_of_a_last_expression_is_a_result(cupel_as, code, shown):
    assert shown in value(run(cupel_as, code))


@pytest.mark.parametrize("code", ["let a = 1;", "undefined", "function f() {}", "if (true) { }", ""])
def test_no_value_means_no_result(cupel, code):
    result = run(cupel, code)
    assert result["status"] == "ok" and result["results"] == [], result


def test_common_modules_work(cupel_as):
    code = "const path = require('path');\nconst fs = require('node:fs');\n" \
           "console.log(path.join('a', 'b'), typeof fs.readFileSync, typeof module, typeof __filename)"
    assert run(cupel_as, code)["stdout"] == "a/b function object string\n"


def test_es_imports_of_nodes_modules_work(cupel_as):
    code = "import path, { join } from 'path';\nimport * as os from 'node:os';\n" \
           "console.log(join('a', 'b'), path.sep, typeof os.EOL);"
    result = run(cupel_as, code)
    assert result["stdout"] == "a/b / string\n", result["error"]


def test_es_imports_and_await_and_a_last_value(cupel):
    code = "import { setTimeout as pause } from 'timers/promises';\nawait pause(10);\nconst x = 6;\nx * 7"
    assert value(run(cupel, code)) == "42"


def test_await_at_the_top_works(cupel_as):
    assert value(run(cupel_as, "const x = await Promise.resolve(7); x")) == "7"
    assert value(run(cupel_as, "const fs = require('fs').promises;\n"
                               "(await fs.readdir('/')).includes('usr')")) == "true"


def test_dynamic_import_works(cupel):
    assert run(cupel, "const m = await import('node:path'); console.log(m.basename('/a/b'))")["stdout"] \
        == "b\n"


@pytest.mark.parametrize("code", [
    "// import x from 'y'\nconsole.log('ok')", "const s = `import x from 'y'; await 1`; console.log('ok')",
    "const re = /await import/; console.log('ok')", "console.log('ok') /* export default 1 */",
    "const await_ = 1; console.log('ok')", "label: for (;;) { break label }\nconsole.log('ok')"])
def test_words_in_texts_and_comments_mean_nothing(cupel, code):
    result = run(cupel, code)
    assert result["stdout"] == "ok\n", result["error"]


def test_modules_given_as_files_can_be_imported(cupel):
    files = [{"path": "c.js", "text": "module.exports = 5"}, {"path": "e.mjs", "text": "export default 6"}]
    result = run(cupel, "const c = require('./c.js'); console.log(c)", files=files)
    assert result["stdout"] == "5\n", result["error"]
    result = run(cupel, "import e from './e.mjs'; console.log(e)", files=files)
    assert result["stdout"] == "6\n", result["error"]


def test_an_exception_has_its_line_and_column(cupel_as):
    code = "const a = 1;\nfunction f(x) {\n  return x.y.z;\n}\nf({});\n"
    error = run(cupel_as, code)["error"]
    assert (error["kind"], error["name"]) == ("exception", "TypeError")
    assert error["line"] == 3 and error["column"] == 14, error
    assert "x.y.z" in error["snippet"] and "undefined" in error["message"]
    assert "driver" not in error["traceback"] and "node:internal" not in error["traceback"]


def test_an_exception_in_an_es_module_has_its_line_too(cupel):
    error = run(cupel, "import 'path';\n\nthrow new RangeError('far');\n")["error"]
    assert (error["name"], error["line"], error["message"]) == ("RangeError", 3, "far")


def test_a_syntax_error_has_line_and_source(cupel_as):
    error = run(cupel_as, "let a = 1;\nlet b = ;\n")["error"]
    assert error["kind"] == "syntax" and error["name"] == "SyntaxError" and error["line"] == 2
    assert "let b" in error["snippet"]


def test_an_absent_package_is_an_import_error_with_a_hint(cupel):
    for code in ("require('lodash')", "import x from 'lodash'"):
        error = run(cupel, code)["error"]
        assert error["kind"] == "import" and "lodash" in error["message"] and error["hint"], error


def test_a_rejected_promise_is_an_error(cupel):
    error = run(cupel, "Promise.reject(new Error('lost')); await new Promise(r => setTimeout(r, 50))")
    assert error["status"] == "error" and error["error"]["message"] == "lost"
    error = run(cupel, "setTimeout(() => { throw new Error('late') }, 10)")
    assert error["status"] == "error" and error["error"]["message"] == "late"


def test_what_is_thrown_need_not_be_an_error(cupel):
    for code in ("throw 'text'", "throw null", "throw { a: 1 }", "throw 5"):
        result = run(cupel, code)
        assert result["status"] == "error" and result["error"]["kind"] == "exception"


def test_call_gives_the_functions_value_as_json(cupel_as):
    code = "function solve(a, b) { return { sum: a + b } }"
    assert value(run(cupel_as, code, call={"function": "solve", "args": [1, 2]}),
                 "application/json") == {"sum": 3}
    code = "const solve = async (x) => x * 2;"
    assert value(run(cupel_as, code, call={"function": "solve", "args": [4]}), "application/json") == 8


def test_timers_and_streams_finish(cupel):
    assert run(cupel, "setTimeout(() => console.log('late'), 100); console.log('now')")["stdout"] \
        == "now\nlate\n"
    assert run(cupel, "process.stdin.on('data', d => process.stdout.write(d))", stdin="in")["stdout"] == "in"


def test_workers_wasm_and_children_work(cupel):
    code = "const { Worker } = require('worker_threads');\n" \
           "const w = new Worker('require(\"worker_threads\").parentPort.postMessage(5)', { eval: true });\n" \
           "console.log(await new Promise(r => w.on('message', r)));\n" \
           "console.log(require('child_process').execSync('echo hi').toString());\n" \
           "console.log(await WebAssembly.compile(new Uint8Array([0,97,115,109,1,0,0,0])) !== null)"
    result = run(cupel, code, limits={"timeout_s": 20})
    assert result["stdout"].split() == ["5", "hi", "true"], (result["error"], result["stderr"])


def test_the_heap_follows_the_memory_limit(cupel):
    code = "require('v8').getHeapStatistics().heap_size_limit / (1 << 20)"
    small = float(value(run(cupel, code, limits={"memory_bytes": 256 << 20})))
    large = float(value(run(cupel, code, limits={"memory_bytes": 1 << 30})))
    assert small < 256 and small < large


def test_console_error_goes_to_stderr(cupel):
    result = run(cupel, "console.error('e'); console.log('o')")
    assert (result["stdout"], result["stderr"]) == ("o\n", "e\n")


def test_unicode_lines_count_as_characters(cupel):
    error = run(cupel, "const s = '日本語';\nconst t = s.x.y;\n")["error"]
    assert error["line"] == 2 and "s.x.y" in error["snippet"]


BUNDLE = "\n".join(f"""async function f{n}(a, b) {{
  const c = await a; if (c > b) return [c, {{ b, d: c * {n} }}, /[{n};]/.test(`${{a}};`)];
  return `${{a}}`.split(',').map((x) => ({{ x, y: x + {n} }}));
}}""" for n in range(3500))  # some 600 KB, as tools pack a program into one file
LARGE = {"script": BUNDLE + "\n[f1.name, 7];\n//# sourceMappingURL=bundle.map\n",
         "packed": f"(() => {{ {BUNDLE}\nreturn ['f1', 7] }})();",
         "module": f"import fs from 'fs'\n{BUNDLE}\n[f1.name, 7]"}


def node_cpu_ms(path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["/usr/bin/node", path], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


@pytest.mark.sample(short=3)
@pytest.mark.parametrize("kind", LARGE)
def test_a_large_program_costs_little_more_than_in_node(cupel, tmp_path, kind):
    path = tmp_path / ("main.mjs" if kind == "module" else "main.js")
    path.write_text(LARGE[kind])
    costs = []
    for _ in range(5):
        result = run(cupel, LARGE[kind], limits={"timeout_s": 60})
        assert value(result) == "[ 'f1', 7 ]"
        costs.append(result["metrics"]["cpu_ms"] / node_cpu_ms(path))
    assert statistics.median(costs) < 4, costs
