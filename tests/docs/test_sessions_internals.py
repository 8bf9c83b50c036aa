"""docs/sessions-internals.md shows the tables of session_table.h, and every invariant names a test that exists."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "src/engine/session"
PAGE = (ROOT / "docs/sessions-internals.md").read_text()
LISTS = {"Stages": "STAGES", "Other events": "EXTRAS", "Tasks": "TASKS"}


def rows_of_code(name):
    text = (FOLDER / "session_table.h").read_text()
    body = text.partition(f"#define SESSION_{name}(X)")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in row.split(",", 5)] for row in re.findall(r"^ +X\((.*)\) *\\?$", body, re.M)]


def rows_of_page(title):
    part = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in row] for row in rows]


def test_the_page_shows_the_tables_of_the_code():
    for title, name in LISTS.items():
        code = [[cell.strip('"') for cell in row] for row in rows_of_code(name)]
        assert code and rows_of_page(title) == code, title


def test_every_action_is_defined_once():
    sources = "".join(path.read_text() for path in FOLDER.glob("*.c"))
    actions = {action for name in LISTS.values() for row in rows_of_code(name)
               for action in (row[3:5] if name == "STAGES" else row[2:3])}
    for action in actions:
        assert len(re.findall(rf"^void session_{action}\(struct session \*\w+\)\n{{", sources, re.M)) == 1, action


def test_every_invariant_names_a_test_that_exists():
    head = (FOLDER / "session.h").read_text().partition("*/")[0]
    invariants = re.findall(r"\n \* +\d+\. .*?(?=\n \* +\d+\. | *$)", head, re.S)
    tests = "".join(path.read_text() for pattern in ("**/*.py", "unit/*.c") for path in (ROOT / "tests").glob(pattern))
    assert len(invariants) >= 10
    for invariant in invariants:
        name = re.search(r"(\w+)\W*$", invariant)[1]
        assert re.search(rf"(def |TEST\(){name}\(?", tests), invariant
