"""Recorded cases: what a model said to a question, in files that people read (wrong/, right/).

A file is one kind or style: its opening lines say which. A case begins with `== NAME`. Then come lines `key: value`:
ask      the question; a second line goes on with it
files    its inputs, of data/ or made below
status   how the task ends, where that is not as usual in its folder
text     the answer has it; made: a file that is there at the end
problem  the kinds of problem of which the trace must name one (or more)
error    answer() refuses with this in its message
judge    the judge's request has it; fail: what the judge says
Then the replies in order: `-- cell` (a cell, fenced when it is sent) or `-- says` (words as they are)."""
import io
import sqlite3
from pathlib import Path

from asking import fence

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
MANY = {"text", "judge", "made"}
KEYS = MANY | {"ask", "files", "problem", "status", "error", "fail"}


class Case(dict):
    def __init__(self, kind, name):
        super().__init__({key: [] for key in MANY}, ask="", files=[], problem=[])
        self.kind, self.name, self.replies = kind, name, []

    def add(self, key, value):
        assert key in KEYS, f"{self.kind}/{self.name}: no key '{key}'"
        if key in MANY:
            self[key].append(value)
        elif key == "ask":
            self["ask"] = f"{self['ask']} {value}".strip()
        else:
            self[key] = value.split() if key in ("files", "problem") else value

    @property
    def told(self):
        """The replies as the model sends them."""
        return [fence(text) if how == "cell" else text.strip() for how, text in self.replies]

    @property
    def files(self):
        return {name: content_of(name) for name in self["files"]}

    @property
    def cells(self):
        return [text.strip("\n") for how, text in self.replies if how == "cell"]


def parse(path):
    """The cases of one file."""
    cases = []
    for line in path.read_text().splitlines():
        case = cases[-1] if cases else None
        if line.startswith("== "):
            cases.append(Case(path.stem, line[3:].strip()))
        elif not case:
            assert not line or line.startswith("#"), f"{path.name}: '{line}' stands before the first case"
        elif line in ("-- cell", "-- says"):
            case.replies.append([line[3:], ""])
        elif case.replies:
            case.replies[-1][1] += line + "\n"
        elif line:
            key, _, value = line.partition(":")
            case.add(key, value.strip())
    return cases


def load(folder):
    """All cases of a folder; their names are unique in their file."""
    cases = [case for path in sorted((HERE / folder).glob("*.txt")) for case in parse(path)]
    names = [(case.kind, case.name) for case in cases]
    assert len(set(names)) == len(names), "two cases have one name"
    return cases


def name_of(case):
    return f"{case.kind}-{case.name}"


def content_of(name):
    """Bytes of an input: a file of data/, or one that is made here."""
    return MADE[name]() if name in MADE else (DATA / name).read_bytes()


def budget():
    """A workbook with two sheets: what was planned, and what it became."""
    import openpyxl
    book = openpyxl.Workbook()
    plan, actual = book.active, book.create_sheet("Actual")
    plan.title = "Plan"
    for sheet, rows in ((plan, PLAN), (actual, ACTUAL)):
        sheet.append(["team", "Q1", "Q2", "Q3", "Q4"])
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


PLAN = [["Design", 120, 130, 110, 140], ["Build", 300, 310, 305, 330], ["Test", 90, 95, 100, 105]]
ACTUAL = [["Design", 131, 128, 117, 150], ["Build", 288, 322, 340, 329], ["Test", 84, 97, 99, 121]]


def library():
    """A SQLite database of books and loans; a loan that is not over has no day of return."""
    base = sqlite3.connect(":memory:")
    base.executescript("""
        create table books (id integer primary key, title text, author text, year integer, pages integer);
        create table loans (id integer primary key, book_id integer, reader text, lent text, back text);
        insert into books values (1, 'The Long Shore', 'Vidal', 1998, 312), (2, 'Salt and Iron', 'Okafor', 2007, 441),
            (3, 'Night Ferry', 'Vidal', 2011, 268), (4, 'A Small Orchard', 'Lind', 1987, 190),
            (5, 'The Cartographer', 'Okafor', 2015, 523), (6, 'Winter Bees', 'Lind', 2019, 234);
        insert into loans values (1, 1, 'Ada', '2024-01-08', '2024-01-29'), (2, 3, 'Ben', '2024-01-10', '2024-01-20'),
            (3, 3, 'Cleo', '2024-02-01', '2024-02-11'), (4, 5, 'Ada', '2024-02-05', null),
            (5, 2, 'Hana', '2024-02-14', '2024-03-15'), (6, 3, 'Ivo', '2024-02-20', '2024-03-01'),
            (7, 6, 'Ben', '2024-03-02', null), (8, 1, 'Hana', '2024-03-04', '2024-03-30'),
            (9, 4, 'Ada', '2024-03-11', '2024-03-18');
        """)
    return base.serialize()


MADE = {"budget.xlsx": budget, "library.db": library}
