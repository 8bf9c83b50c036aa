"""docs/tools.md lists the keywords and fields that the program knows."""
import re

from host import REPO

PAGE = (REPO / "docs/tools.md").read_text()


def rows(path, table):
    """The names of a table of rows in a C source."""
    text = (REPO / path).read_text()
    body = re.search(rf"{table}\[\] = {{\n(.*?)\n}};", text, re.S)[1]
    return re.findall(r'{ "([^"]+)"', body)


def test_the_keywords_of_the_page_are_those_of_the_program():
    section = PAGE[PAGE.index("## Schema keywords"):]
    checked, noted = re.findall(r"^- \*\*(?:checked|read and not checked)\*\*: (.*?)(?=^- |^$)", section, re.M | re.S)
    listed = re.findall(r"`([^`]+)`", checked + noted)
    assert sorted(set(listed) - {"x-"}) == rows("src/tool/define/schema_compile.c", "keywords")
    assert len(listed) == len(set(listed))


def test_the_fields_of_the_page_are_those_of_the_program():
    first, second = re.findall(r"^\| field \| \|\n\|---\|---\|\n(.*?)^$", PAGE, re.M | re.S)
    fields = [re.findall(r"^\| `(\w+)`", table, re.M) for table in (first, second)]
    assert len(fields[0]) == 8
    assert fields[0] + ["source"] == rows("src/tool/define/define.c", "fields")
    assert fields[1] == rows("src/tool/host/command.c", "members")
    caps = re.findall(r"^\| `caps\.(\w+)`", PAGE, re.M)
    text = (REPO / "src/tool/define/define.c").read_text()
    assert caps == re.findall(r'"(\w+)"', re.search(r"names\[\] = ({ \"calls.*?});", text, re.S)[1])
