"""The JavaScript driver on its own: what it tells the engine, and the world that the code sees."""
import signal

import pytest

from driver_box import run

pytestmark = pytest.mark.sample(short=3)


def node(code, **options):
    return run("javascript", code, **options)


@pytest.mark.parametrize("code, texts", [
    ("1 + 1", ["2"]), ("'日本'", ["'日本'"]), ("let x = 5", []), ("undefined", []),
    ("const a = [1, {b: 2}]; a", ["[ 1, { b: 2 } ]"]), ("({a: 1}).a;", ["1"]), ("", []),
    ("for (let i = 0; i < 3; i++) i", []), ("if (true) { 5 }", []), ("function f() {}", []),
    ("await 5", ["5"]), ("await (async () => 7)()", ["7"]), ("import 'fs'\n5, 6 // six", ["6"]),
    ("import fs from 'fs'\nlet x = 1\n;(x + 1);", ["2"]), ("await 1\nlet x = 2", []),
    ("async function f() { return 3 }\nf()", ["3"]), ("new Promise(() => {})", []),
    ("return 5", ["5"]), ("#!/usr/bin/env node\n4", ["4"]), ("'use strict'; 8", ["8"])])
def test_last_value(code, texts):
    outcome = node(code)
    assert (outcome.texts, outcome.error, outcome.stderr, outcome.done) == (texts, None, "", 0)


def test_commonjs():
    outcome = node("const path = require('path'); var crypto = require('crypto')\n"
                   "console.log(require.main === module, path.basename(__filename), exports === module.exports)\n"
                   "console.log(__dirname === process.cwd(), process.argv.slice(2), process.execArgv)\n"
                   "console.log(crypto.createHash('md5').update('').digest('hex').length)", args=["a", "ü"])
    assert outcome.stdout == "true main.js true\ntrue [ 'a', 'ü' ] []\n32\n"


def test_modules_of_node_and_of_the_work_folder():
    files = {"own.mjs": "export const x = 1; export default 2", "own.cjs": "module.exports = {y: 3}",
             "data.json": "{\"z\": 4}"}
    code = ("import fs, { readFileSync as read } from 'node:fs'\nimport * as os from 'os'\n"
            "import two, { x } from './own.mjs'\nimport own from './own.cjs'\n"
            "const data = require('./data.json')\nconst again = await import('./own.mjs')\n"
            "console.log(typeof read, typeof os.cpus, x, two, own.y, data.z, again.x, fs.existsSync('own.cjs'))\n"
            "console.log(import.meta.url.endsWith('/workspace/main.js'))")
    outcome = node(code, files=files)
    assert outcome.stdout == "function function 1 2 3 4 1 true\ntrue\n" and outcome.stderr == ""
    assert node("import('./own.mjs').then((m) => console.log(m.x))", files=files).stdout == "1\n"


@pytest.mark.parametrize("code, name, line, column", [
    ("function f() {\n  null.x\n}\nf()", "TypeError", 2, 8),
    ("import 'fs'\nfs.nope()", "ReferenceError", 2, 1), ("await 1\n  y.z", "ReferenceError", 2, 3),
    ("async function f() {\n  throw new RangeError('r')\n}\nf()", "RangeError", 2, 9),
    ("setTimeout(() => {\n  throw new Error('late') }, 5)", "Error", 2, 9),
    ("throw 'text'", "Uncaught", None, None)])
def test_errors_have_type_and_place(code, name, line, column):
    outcome = node(code)
    error = outcome.error
    assert (error["kind"], error["name"]) == ("exception", name)
    assert (error["line"], error["column"]) == (line, column) and outcome.stderr == ""
    assert "driver" not in error["traceback"] and "node:" not in error["traceback"]
    assert outcome.done == 1


def test_cause_is_told():
    error = node("try { null.x } catch (e) { throw new Error('outer', { cause: e }) }").error
    assert "caused by: TypeError" in error["traceback"] and error["message"] == "outer"


@pytest.mark.parametrize("code, line, column", [
    ("let x = ;", 1, 9), ("let a\nlet a", 2, 5), ("foo(", 1, 5), ("import 'fs'\nlet x = ;", 2, 9),
    ("await 1\n\n  if (", 3, 7), ("\tlet 日本 = ;", 1, 11)])
def test_syntax_errors(code, line, column):
    outcome = node(code)
    assert (outcome.error["kind"], outcome.error["name"]) == ("syntax", "SyntaxError")
    assert (outcome.error["line"], outcome.error["column"]) == (line, column)
    assert outcome.error["snippet"] == code.split("\n")[line - 1] and outcome.done == 1


@pytest.mark.parametrize("code, line", [
    ("\nrequire('nope')", 2), ("import 'fs'\nimport x from 'nope'", 2), ("import './nope.mjs'", 1),
    ("import { nope } from 'fs'", None)])
def test_missing_modules_are_kind_import(code, line):
    outcome = node(code)
    assert (outcome.error["kind"], outcome.error["line"]) == ("import", line)
    assert "Require stack" not in outcome.error["message"] and outcome.done == 1


@pytest.mark.parametrize("code, status", [
    ("process.exit(3)", 3), ("process.exitCode = 4", 4), ("await 1; process.exit(0)", 0),
    ("process.exit()", 0), ("setTimeout(() => process.exit(5), 5)", 5)])
def test_exit_codes(code, status):
    outcome = node(code)
    assert (outcome.done, outcome.error) == (status, None)


def test_exit_handlers_come_before_done():
    outcome = node("process.on('exit', (code) => console.log('bye', code)); process.exitCode = 2")
    assert outcome.stdout == "bye 2\n" and outcome.done == 2


def test_await_that_never_settles():
    outcome = node("await new Promise(() => {})")
    assert "never settles" in outcome.error["message"] and outcome.done == 13


def test_own_handlers_keep_their_exceptions():
    outcome = node("process.on('uncaughtException', (e) => console.log('mine', e.message))\n"
                   "setTimeout(() => console.log('on'), 20)\nthrow new Error('x')")
    assert outcome.stdout == "mine x\non\n" and outcome.error is None and outcome.done == 0
    outcome = node("process.on('unhandledRejection', (e) => console.log('mine', e))\nPromise.reject(1)")
    assert outcome.stdout == "mine 1\n" and outcome.error is None


def test_nothing_is_lost_when_the_reader_is_slow():
    outcome = node("for (let i = 0; i < 50000; i++) console.log('x'.repeat(40))\nprocess.exit(0)",
                   slow_reader_s=0.5)
    assert len(outcome.stdout) == 50000 * 41 and outcome.done == 0


def test_stdin():
    code = "console.log(require('fs').readFileSync(0, 'utf8').toUpperCase())"
    assert node(code, stdin="abc").stdout == "ABC\n"
    assert node("process.stdin.on('data', (d) => console.log(String(d)))", stdin="x").stdout == "x\n"
    assert node(code).stdout == "\n"


@pytest.mark.parametrize("code", ["while (true) {}", "setTimeout(() => {}, 30000)",
                                  "await new Promise((r) => setTimeout(r, 30000))"])
def test_interrupt(code):
    outcome = node(code, signal=signal.SIGINT)
    assert outcome.error["interrupted"] and outcome.done == 130


def test_children_get_no_control_channel():
    outcome = node("console.log(require('child_process').execSync('ls /proc/self/fd').toString())")
    assert "3" in outcome.stdout.split()   # the folder that ls itself reads
    outcome = node("require('child_process').execSync('echo forged >&3', {stdio: 'pipe'})")
    assert outcome.error["kind"] == "exception" and "Bad file descriptor" in outcome.error["message"]


# ---- call ----

def call(code, function="f", args=(), **kwargs):
    return node(code, call={"function": function, "args": list(args), "kwargs": kwargs})


@pytest.mark.parametrize("code, value", [
    ("function f(a, b) { return [a, b] }", [1, {"k": 2}]), ("const f = () => new Set([1])", [1]),
    ("const f = async () => new Map([['a', 1n]])", {"a": 1}), ("import 'fs'\nconst f = () => null", None),
    ("await 1\nexport function f() { return {n: NaN, u: undefined, d: new Date(0)} }",
     {"n": None, "d": "1970-01-01T00:00:00.000Z"}), ("var f = () => {}", None),
    ("function f() { return 2n ** 70n }", str(2**70)), ("function f() { return 2 ** 63 }", float(2**63)),
    ("function f() { return '\\ud800' }", "\ufffd"),
    ("exports.f = () => 1\nreturn", 1)])
def test_call_gives_json(code, value):
    outcome = call(code, args=[1], k=2)
    assert outcome.error is None and outcome.results[-1]["application/json"] == value
    assert outcome.done == 0


@pytest.mark.parametrize("code, name, line", [
    ("function f() { return () => 1 }", "TypeError", None), ("let x = 1", "ReferenceError", None),
    ("function f() {\n  throw new RangeError('x') }", "RangeError", 2),
    ("function f() { const a = []; a.push(a); return a }", "TypeError", None),
    ("function f() { return new Promise(() => {}) }", "Error", None)])
def test_call_that_fails(code, name, line):
    outcome = call(code)
    assert (outcome.error["name"], outcome.error["line"]) == (name, line) and outcome.done in (1, 13)


def test_call_of_what_is_no_name():
    assert call("let x = 1", function="console.log(1)").error["name"] == "ReferenceError"


def test_globals_of_the_code_do_not_break_the_driver():
    outcome = node("function process(x) { return x }\nconst require = 1, module = 2, Buffer = 3, JSON = 4\n"
                   "class Map {}\nclass Set {}\nObject.entries = null\nprocess(5)")
    assert outcome.texts == ["5"] and outcome.done == 0
    assert node("String.prototype.split = null\nnull.x").code != 0
