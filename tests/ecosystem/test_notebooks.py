"""Notebooks give the same outputs in a session as in a Jupyter kernel: streams, values and errors, in one order."""
import importlib.util
import json
import re
import subprocess

import pytest

import host
from sessions import Session

PEER = host.REPO / "tests/ecosystem/kernel_peer.py"
NOTEBOOKS = sorted((host.REPO / "tests/ecosystem/notebooks").glob("*.ipynb"))
FORMS = ("text/plain", "text/html", "text/markdown", "text/latex", "application/vnd.sample.v1+json")
PICTURES = ("image/png",)   # compared by their presence: two renderers may differ in a byte
# {(notebook, cell): reason} of the outputs that differ on purpose.
DIFFERENCES = {
    ("display", 5): "clear_output takes results away; printed text is never lost",
    ("streams", 1): "the kernel gathers each stream; a session keeps their order",
    ("awaits", 8): "a cell without await is not run by the loop, so that asyncio.run works in it",
}
needs_kernel = pytest.mark.skipif(not all(map(importlib.util.find_spec, ("ipykernel", "jupyter_client"))),
                                  reason="no Jupyter kernel: `make ecosystem` installs it")


def cells_of(notebook):
    return ["".join(cell["source"]) for cell in json.loads(notebook.read_text())["cells"]]


def tidy(output):
    if output["type"] in ("stdout", "stderr"):
        return {**output, "text": output["text"].replace("\r\n", "\n")}   # the kernel's shell has a terminal
    if output["type"] == "error":
        message = re.sub(r" \(\d+\.py, line \d+\)$", "", output["message"])   # the kernel's name for the cell
        return {"type": "error", "name": output["name"], "message": message}
    data = {form: output["data"][form] for form in FORMS if form in output["data"]}
    return {"type": "result", "data": {**data, **{form: "..." for form in PICTURES if form in output["data"]}}}


def in_session(session, code):
    result = session.run(code, limits={"timeout_s": 60, "cpu_s": 60})
    found = []
    for output in result["outputs"]:
        if output["type"] == "result" and "data" not in output:
            output = {"type": "result", "data": result["results"][output["index"]]}
        elif output["type"] == "error":
            output = {"type": "error", **result["error"]}
        found.append(tidy(output))
    return found


@needs_kernel
@pytest.mark.full
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_outputs_of_a_kernel(engines, folder, notebook):
    done = subprocess.run(["/usr/bin/python3", "-B", PEER, notebook], cwd=folder, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", "PYTHONHASHSEED": "0",
                               "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
    assert done.returncode == 0, done.stderr
    expected = json.loads(done.stdout)
    with engines.first().client() as client:
        session = Session(client)
        got = [in_session(session, code) for code in cells_of(notebook)]
        session.ask("end")
    wrong = {}
    for number, (cell, own) in enumerate(zip(expected, got, strict=True), 1):
        cell = [tidy(output) for output in cell]
        if (cell != own) != ((notebook.stem, number) in DIFFERENCES):
            wrong[number] = {"kernel": cell, "cupel": own}
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


def test_there_are_ten_notebooks():
    assert len(NOTEBOOKS) >= 10
    known = {(path.stem, number) for path in NOTEBOOKS for number in range(1, len(cells_of(path)) + 1)}
    assert DIFFERENCES.keys() <= known
