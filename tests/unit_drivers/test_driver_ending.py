"""The last expression of a large JavaScript program: what ending.cjs finds must be what acorn finds, which reads the
whole program and takes seconds for a megabyte."""
import json
import subprocess

import pytest

from driver_box import DRIVERS, NODE

FILLER = "var filler = [%s]\n" % ", ".join(["{a: 'x;y', b: `z`, c: /[;]/}"] * 20)
ENDS = [
    "1 + 1", "1 + 1;", "f(2)\n", "'text'", "`template`;", "[1, 2].map((n) => n)", "(1, 2)", "{ a: 1 }",
    "({ a: 1 })", "for (let i = 0; i < 3; i++) i", "for (const i of [1]) {\n  i\n}", "if (true) { 5 }",
    "if (true) 5\nelse 6", "while (false);\n7", "function g() {}", "class A {}", "class A {}\n3", "let x = 1",
    "let x = 1; x", "var y = 2\n;[y][0]", "var y = function () { return 1 }\n(function () { return 2 })()",
    "var y = 1\n+ 2", "var y = 1\n/2/1", "a: 5", "do 1\nwhile (0)", "try { 1 } catch { 2 }",
    "switch (1) { case 1: 5 }", "!function () { return 1 }()", "1 // ;\n(2)", "f // f;\n(2)",
    "f(1) /* ; */\n(3)", "f(1)\n//# sourceMappingURL=x.map", "f(1);\n// one\n// two\n", "`a\n// b\n`",
    "`a\n${f(1)}\nf(1)`", "/* f(1);\nf(1) */", "f(1)\n/* f(1);\n*/", "f(\n1\n)\n", "f(1)\n  .toString()",
    "x = {\n  a: 1,\n  b: 2\n}", "async () => 1", "let\nz = 1", "let\n[q] = [1]",
    "async function h() { await 1 }", "f(1)\nin f", "var y = f\ninstanceof f", "f(1);;", ";", "",
    "'use strict'", "f`x`\n`y`", "y => y\nf(3)", "throw 1", "f(1)\n++y", "var y = 1\n!f(1)", "var y = 1\n!== 2",
    "new f", "var y =\nf(1)", "if (1)\nf(1)", "if (1) f(1)\nelse\nf(2)", "for (;;)\nf(1)", "l:\nf(1)",
    "{\nf(1)\n}", "f(1)\n}\n{", "var y = class {}\n[1]", "1 <!-- ;\n(2)", "f(1)\n--> comment"]
MODULE_ENDS = [
    "await f(1)", "export { f as default }", "export { f as default };\n", "export default 5",
    "import 'fs'\nf(1)", "import.meta", "export const c = 1\nc", "await f(1);\nexport {}",
    "f(1)\nexport\n{ f as default }\nf(2)"]
COMPARE = """
const acorn = require('internal/deps/acorn/acorn/dist/acorn'), ending = require(process.argv[2]), vm = require('vm');
process.emitWarning = () => {};
const attempt = (step) => { try { return step(); } catch { return null; } };
const found = JSON.parse(require('fs').readFileSync(0)).map(({ code, kind }) => {
    const read = (part) => attempt(() => acorn.parse(part, { ecmaVersion: 'latest', sourceType: kind, locations: true,
        allowHashBang: true, allowReturnOutsideFunction: true }));
    const module = (part) => attempt(() => new vm.SourceTextModule(part));
    const script = (part) => attempt(() => new vm.Script(part));
    const compiles = (part) => Boolean(script(part) || (kind === 'module' && module(part)));
    if (!(kind === 'module' ? module : script)(code))
        return null;
    const { last, known } = ending(code, read, compiles);
    const tree = read(code), whole = tree && tree.body.at(-1);
    const place = (node) => node && [node.start, code.slice(0, node.end).replace(/;$/, '').length, node.loc.start];
    return { known, got: place(last), want: place(whole && whole.type === 'ExpressionStatement' ? whole : null) };
});
console.log(JSON.stringify(found));
"""


BEFORE = {
    "nothing": "", "data": FILLER, "a long line": "var g = function (a) { return a + 1; }; " * 50 + "\n",
    "strict": "'use strict';\n" + FILLER, "lines": "f(1)\n" * 60, "an open end": "var open = f\n"}


def node(code, *args, text=None):
    return subprocess.run([NODE, "--expose-internals", "--experimental-vm-modules", "-e", code, "-", *args],
                          input=text, capture_output=True, text=True, check=True).stdout


@pytest.mark.sample(short=3)
@pytest.mark.parametrize("before", BEFORE)
def test_acorn_agrees(before):
    kinds = [(end, "script") for end in ENDS] + [(end, "module") for end in [*ENDS, *MODULE_ENDS]]
    programs = [{"code": f"function f(a) {{ return a }}\n{BEFORE[before]}{end}", "kind": kind} for end, kind in kinds]
    found = json.loads(node(COMPARE, str(DRIVERS / "ending.cjs"), text=json.dumps(programs)))
    rows = [(end, kind, row) for (end, kind), row in zip(kinds, found) if row]
    assert not [row for row in rows if row[2]["known"] and row[2]["got"] != row[2]["want"]]
    assert len(rows) > 80 and sum(row["known"] for *_, row in rows) > 0.8 * len(rows)   # else acorn reads everything
