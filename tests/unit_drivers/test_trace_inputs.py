"""select.py and schema.py: what the inputs hold beside what is selected, files, notes, and the JSON Schema."""
import json
import sqlite3
import zipfile

import pytest
import tracing

select = tracing.DRIVER.load("select")
select.origin, select.facts = tracing.DRIVER.load("origin"), tracing.DRIVER.load("facts")
schema = tracing.DRIVER.load("schema")
ROWS = "city,n\nOslo,1\nRome,2\n"
FORMS = {
    "commas": ROWS.encode(), "semicolons": ROWS.replace(",", ";").encode(), "tabs": ROWS.replace(",", "\t").encode(),
    "bars": ROWS.replace(",", "|").encode(), "utf-16": ROWS.encode("utf-16"), "a mark": b"\xef\xbb\xbf" + ROWS.encode(),
    "only returns": ROWS.replace("\n", "\r").encode(), "both ends": ROWS.replace("\n", "\r\n").encode(),
    "quotes": b'"city","n"\n"Oslo","1"\n"Rome","2"\n', "json": b'[{"city": "Oslo", "n": 1}, {"city": "Rome", "n": 2}]',
    "json lines": b'{"city": "Oslo", "n": 1}\n{"city": "Rome", "n": 2}\n',
    "json inside": b'{"total": 2, "rows": [{"city": "Oslo", "n": 1}, {"city": "Rome", "n": 2}]}',
}


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_read_from_every_form_of_a_table(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").write_bytes(FORMS[form])
    assert [(one.name, list(one.values), one.whole) for one in select.read_all(["t"])] == [
        ("city", ["Oslo", "Rome"], True), ("n", ["1", "2"], True)]


def test_columns_are_read_from_a_database(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base = sqlite3.connect("a b.db")
    base.executescript('create table "t""x" (city text, n int); insert into "t""x" values ("Oslo", 1), ("Rome", 2)')
    base.close()
    assert [(one.name, list(one.values)) for one in select.read_all(["a b.db"])] == [
        ("city", ["Oslo", "Rome"]), ("n", ["1", "2"])]


def sheet(rows):
    cells = [[f'<c r="{"ABC"[at]}1" {cell}</c>' for at, cell in enumerate(row)] for row in rows]
    return "<sheetData>" + "".join([f'<row r="1">{"".join(row)}</row>' for row in cells]) + "</sheetData>"


def test_columns_are_read_from_a_workbook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("b.xlsx", "w") as book:
        book.writestr("xl/sharedStrings.xml", "<si><t>city</t></si><si><r><t>Os</t></r><r><t>lo</t></r></si>")
        book.writestr("xl/worksheets/sheet1.xml", sheet([
            ['t="s"><v>0</v>', 't="inlineStr"><is><t>A &amp; B</t></is>'],
            ['s="1" t="s"><v>1</v>', "><f>1+1</f><v>2</v>"]]))
    found = [(one.name, list(one.values)) for one in select.read_all(["b.xlsx"])]
    assert found == [("city", ["Oslo"]), ("A & B", ["2"])]
    (tmp_path / "b.xlsx").write_bytes((tmp_path / "b.xlsx").read_bytes()[:200])
    assert select.read_all(["b.xlsx"]) == []


def test_latin_1_and_a_file_that_is_no_table_are_read_or_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.csv").write_bytes("Stadt,n\nMünchen,1\nKöln,2\n".encode("latin-1"))
    (tmp_path / "x.png").write_bytes(b"\x89PNG\0\0" + bytes(range(256)) * 10)
    (tmp_path / "bad.json").write_text("{" * 100000)
    (tmp_path / "bad.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    found = select.read_all(["l.csv", "x.png", "bad.json", "bad.db", "gone.csv", "."])
    assert [(one.name, list(one.values)) for one in found] == [("Stadt", ["München", "Köln"]), ("n", ["1", "2"])]


def test_a_large_table_is_read_up_to_its_bounds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id,k\n" + "".join([f"{n},{n % 3}\n" for n in range(80000)]))
    ids, kinds = select.read_all(["t.csv"])
    assert len(ids.values) == select.DISTINCT_MAX and not ids.whole and not kinds.whole and len(kinds.values) == 3


def test_a_selection_that_the_question_does_not_name_is_a_warning(tmp_path):
    code = 'import pandas as pd\ndf = pd.read_csv("sales.csv")\nanswer("{n}", n=df[df.city == "Rome"].units.sum())'
    found = tracing.trace(code, question="How many units in the capital of Italy?", folder=tracing.plant(tmp_path))
    assert found["problems"] == []
    assert found["values"][0]["warnings"] == ["selects 'Rome' in city, which the question does not name"]


def test_a_name_of_the_question_without_rows_is_a_note(tmp_path):
    code = 'import pandas as pd\ndf = pd.read_csv("sales.csv")\nanswer("{n}", n=df[df.city == "Berlin"].units.sum())'
    found = tracing.trace(code, {"n": 0}, question="How many units in Berlin?", folder=tracing.plant(tmp_path))
    assert found["problems"] == [] and any(["Berlin" in one for one in found["notes"]])


def test_the_judge_is_told_of_doubtful_values(tmp_path):
    code = ('import pandas as pd\ndf = pd.read_csv("sales.csv")\nt = df.groupby("city").sum()\n'
            'answer("{t} {p} {z}", t=t, p=df, z=df.units.mean())')
    table = {"columns": ["city", "units"], "rows": [["Oslo", 5], ["Oslo", None]]}
    shares = {"columns": ["city", "share %"], "rows": [["Oslo", 50.0], ["Rome", 30.0], ["Paris", 8.0]]}
    found = tracing.trace(code, {"t": table, "p": shares}, folder=tracing.plant(tmp_path))
    notes = "\n".join(found["notes"])
    assert "t has 'Oslo' twice" in notes and "t has 1 missing" in notes
    assert "share % of p add up to 88" in notes and "z uses units, which lacks 1 values" in notes


def test_a_file_of_the_question_must_be_made(tmp_path):
    code = 'import pandas as pd\ndf = pd.read_csv("sales.csv")\ndf.to_csv("Out.csv")\nanswer("{n}", n=len(df))'
    ask = {"question": "Clean sales.csv into out.csv.", "folder": tracing.plant(tmp_path)}
    assert [one["kind"] for one in tracing.trace(code, **ask)["problems"]] == ["file"]
    assert tracing.trace(code, made=["Out.csv"], **ask)["problems"] == []
    assert tracing.trace(code, files=["dir/out.csv"], **ask)["problems"] == []


SCHEMAS = [json.loads(line) for line in (tracing.HERE / "trace/schema.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("form, values", [row for row in SCHEMAS if len(row) == 2])
def test_values_that_fit_a_schema_have_no_fault(form, values):
    assert schema.check(values, form) == []


@pytest.mark.parametrize("form, values, path, text", [row for row in SCHEMAS if len(row) == 4])
def test_a_fault_names_its_path_and_bound(form, values, path, text):
    found = schema.check(values, form)
    assert [one[0] for one in found] == [path] and text in found[0][1]


def test_a_schema_that_refers_to_itself_ends():
    form = {"$ref": "#", "properties": {"a": {"$ref": "#"}}, "anyOf": [{"$ref": "#"}] * 3}
    assert isinstance(schema.check({"a": {"a": {}}}, form), list)


def test_a_schema_is_a_problem_of_its_value():
    found = tracing.trace('answer("{x}", x=48 * 2)', {"x": 96}, question="48 * 2?", inputs=[],
                          schema={"properties": {"x": {"maximum": 50}}})
    assert [(one["kind"], one["value"]) for one in found["problems"]] == [("schema", "x")]
    assert json.dumps(found)
