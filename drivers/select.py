# What the inputs hold, beside what a program selects in them: columns and their values, names of the question that must
# take part in a slice, selections that no row fulfils, files that the question names. Runs in the box of trace.py, on
# files that anybody may have written: at most READ_MAX bytes and ROWS_MAX rows of each are looked at.
import ast
import collections
import csv
import io
import itertools
import json
import re

origin = facts = driver = None   # set by the loader of this file

READ_MAX, ROWS_MAX, DISTINCT_MAX = 4 << 20, 50_000, 2_000
FILES_MAX, COLUMNS_MAX = 20, 200
BLANK = (None, "", " ", "NA", "NaN", "nan", "null", "None")
NAMED = re.compile(r"[\w-]+\.(?:csv|tsv|txt|jsonl?|xlsx?|png|jpe?g|svg|pdf|html|md|parquet|docx|pptx|zip|xml|ya?ml|gif|"
                   r"db|sqlite|npy|pkl|ics|geojson)\b", re.I)
DATE = re.compile(r"(?:\d{1,2}[./-]){0,2}((?:1[89]|20|21)\d\d)(?:[./-]\d{1,2}){0,2}(?:[T ][\d:.]+Z?)?")
LOOSE = frozenset("lower upper casefold title capitalize strip swapcase".split())   # calls after which case is free
COMPARERS = {"isin": "is", "eq": "is", "contains": "part", "startswith": "start", "endswith": "end", "get": "get",
             **dict.fromkeys("ne gt ge lt le between".split(), "")}
FITS = {"part": str.__contains__, "start": str.startswith, "end": str.endswith}
QUERIED = re.compile(r"[`\"]?([^\W\d]\w*)[`\"]?\s*(?:==?|\bin\b|\bIN\b|\blike\b|\bLIKE\b)\s*[\[(]?\s*'([^'\n]{1,80})'"
                     r"|[`]?([^\W\d]\w*)[`]?\s*(?:==?|\bin\b)\s*[\[(]?\s*\"([^\"\n]{1,80})\"")


class Column:
    """The distinct values of a column as texts, and whether these are all."""

    def __init__(self, file, name):
        self.file, self.name, self.values, self.missing, self.whole = file, name, {}, 0, True
        self.made = self.dated = None

    def fill(self, cells, whole):
        found = collections.Counter(cells)
        self.missing = sum([found.pop(one, 0) for one in BLANK])
        texts = [str(value)[:200].strip() for value in itertools.islice(found, DISTINCT_MAX)]
        self.values = dict.fromkeys([text for text in texts if text])
        self.whole = whole and len(found) <= DISTINCT_MAX

    def forms(self):
        """The values folded, as words, and as numbers; made when they are needed."""
        if not self.made:
            numbers = [origin.spellings(text) for text in self.values]
            signed = {-one if text[0] == "-" else one for text, found in zip(self.values, numbers) for one in found}
            self.made = ({text.casefold() for text in self.values}, {words(text): text for text in self.values},
                         signed, all(numbers))
        return self.made

    def has(self, constant, loose=True, how="is"):
        """Whether a row has the constant: exactly, or but for case; numbers by value; or as a part, start or end."""
        text, number = str(constant).strip(), origin.number_of(constant)
        if how in FITS:
            fits, among = FITS[how], self.forms()[0] if loose else self.values
            return any([fits(one, text.casefold() if loose else text) for one in among])
        return text in self.values or loose and text.casefold() in self.forms()[0] or (
            number is not None and number in self.forms()[2])

    def near(self, constant, how="is"):
        """A value that differs in case or marks alone."""
        text = words(str(constant))
        parts = [one for one in self.values if text in words(one)] if how in FITS else []
        return self.forms()[1].get(text) or next(iter(parts), None)

    def years(self):
        """The years of a column of dates."""
        if self.dated is None:
            self.dated = {int(found[1]) for found in map(DATE.fullmatch, self.values) if found and len(found[0]) > 4}
        return self.dated


def words(text):
    """The text folded, one space between its words."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


# ---- reading ----
def read_all(names):
    """The columns of all inputs that are tables of text."""
    columns = []
    for name in names[:FILES_MAX]:
        try:
            with open(name, "rb") as file:
                data = file.read(READ_MAX)
                whole = not file.read(1)
            columns += read_table(name, data, whole)
        except Exception:   # no table, or one that is made to be none
            continue
    return columns


def decode(data):
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "ignore")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        cut = problem.start > len(data) - 4
        return data[:problem.start].decode("utf-8-sig") if cut else data.decode("latin-1")


def read_database(name):
    """The columns of all tables of an SQLite file."""
    import sqlite3
    from urllib.parse import quote
    columns, steps = [], iter(range(2000))
    base = sqlite3.connect(f"file:{quote(name)}?mode=ro&immutable=1", uri=True)
    base.set_progress_handler(lambda: next(steps, None) is None, 10_000)
    base.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        for table, in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 50").fetchall():
            rows = base.execute('SELECT * FROM "{}" LIMIT {}'.format(table.replace('"', '""'), ROWS_MAX))
            found = [Column(name, one[0]) for one in rows.description[:COLUMNS_MAX]]
            fill(found, rows, True)
            columns += found
    except sqlite3.Error:
        pass
    finally:
        base.close()
    return columns


def read_book(name):
    """The columns of the first sheets of an xlsx file: the first row of each is its header."""
    import zipfile
    columns = []
    with zipfile.ZipFile(name) as book:
        there = book.namelist()
        parts = {part: book.open(part).read(READ_MAX).decode("utf-8", "replace") for part in sorted(there)[:500]
                 if part == "xl/sharedStrings.xml" or re.fullmatch(r"xl/worksheets/sheet[1-5]\.xml", part)}
    shared = [text_in(one) for one in re.findall(r"<si>(.*?)</si>", parts.pop("xl/sharedStrings.xml", ""), re.S)]
    for sheet in parts.values():
        rows = []
        for row in re.findall(r"<row\b.*?</row>", sheet, re.S)[:ROWS_MAX]:
            cells = re.findall(r'<c r="([A-Z]+)\d+"([^>]*?)(?:/>|>(.*?)</c>)', row, re.S)
            rows.append({at: shared[int(text_in(text))] if 't="s"' in kind else text_in(text)
                         for at, kind, text in cells})
        header = rows.pop(0) if rows else {}
        found = [Column(name, title) for title in list(header.values())[:COLUMNS_MAX]]
        columns += fill(found, [[row.get(at, "") for at in header] for row in rows], len(sheet) < READ_MAX // 2)
    return columns


def text_in(xml):
    import html
    return html.unescape(re.sub(r"<f\b.*?</f>|<[^>]*>", "", xml))


def fill(columns, rows, whole):
    rows = list(itertools.islice(rows, ROWS_MAX))
    for at, column in enumerate(columns):
        column.fill([row[at] for row in rows if len(row) > at], whole and len(rows) < ROWS_MAX)
    return columns


def read_table(name, data, whole):
    if data.startswith(b"SQLite format 3\0"):
        return read_database(name)
    if data.startswith(b"PK\3\4"):
        return read_book(name)
    if b"\0" in data[:1000] and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return []
    text = decode(data)
    start = text.lstrip()[:1]
    if start in ("{", "["):
        rows = read_json(text, whole)
        header = list(dict.fromkeys([key for row in rows[:1000] for key in row]))[:COLUMNS_MAX]
        records = ([cell if isinstance(cell, (str, int, float)) or cell is None else str(cell)[:200]
                    for cell in map(row.get, header)] for row in rows)
    else:
        lines = text.splitlines()[:ROWS_MAX + 1]
        mark = max(",;\t|", key=lambda one: min([line.count(one) for line in lines[:5] if line.strip()] or [0]))
        csv.field_size_limit(1 << 20)
        records = csv.reader(io.StringIO("\n".join(lines)), delimiter=mark)
        header = [one.strip() for one in next(records, [])][:COLUMNS_MAX]
    return fill([Column(name, str(one)) for one in header], records, whole)


def read_json(text, whole):
    """The records of a JSON list, of an object's first list of objects, or of JSON lines."""
    try:
        found = json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines()[:ROWS_MAX] if line.strip()]
        found = [json.loads(line) for line in (lines if whole else lines[:-1])]
    for _ in range(3):
        if isinstance(found, dict):
            found = next((one for one in found.values() if isinstance(one, (list, dict)) and one), [found])
    if isinstance(found, dict):
        found = [found]
    return [row for row in found[:ROWS_MAX] if isinstance(row, dict)] if isinstance(found, list) else []


# ---- what a slice selects ----
class Used:
    """The constants of slices, the columns they compare with a constant, and those they use as a whole."""

    def __init__(self, parts, names):
        self.names, self.texts, self.numbers = names, [], set()
        self.compared, self.whole, self.indexed, self.words, self.attributes = [], set(), [], "", set()
        self.years, self.looked = [], []
        self.parts, self.mentions = parts, None
        stack = list(parts)
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Constant):
                self.constant(node.value)
            elif isinstance(node, ast.Assign) and self.derived(node):
                continue
            elif isinstance(node, ast.Call) and facts.dotted(node.func).rpartition(".")[2].startswith("read_"):
                stack += node.args
                continue
            elif isinstance(node, ast.Attribute):
                self.attributes.add(node.attr)
                self.whole |= {node.attr} & names if isinstance(node.value, ast.Name) else set()
            elif isinstance(node, ast.Compare) and self.compare(node):
                stack += [one for one in (node.left, *node.comparators) if not self.column_of(one)]
                continue
            elif isinstance(node, ast.Call) and self.is_in(node):
                stack += node.args
                continue
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                self.indexed += [] if node.slice.value in names else [node.slice.value]
            stack += list(facts.children(node))
        self.text = "\n".join(self.texts).casefold()

    def derived(self, node):
        """`df["year"] = df.date...`: a new column that nothing else uses, so that its sources are not used either."""
        target = node.targets[0]
        key = facts.key_of(target) if isinstance(target, ast.Subscript) else getattr(target, "attr", None)
        if type(key) is not str or len(node.targets) > 1:
            return False
        self.mentions = self.mentions or mentions(self.parts)
        return mentions([node]).get(key) == self.mentions.get(key)

    def constant(self, value):
        if type(value) is str:
            if value in self.names:
                self.whole.add(value)
            elif len(value) < 100_000:
                self.texts.append(value)
                self.queried(value)
        elif type(value) in (int, float):
            self.numbers.add(value)

    def queried(self, text):
        """Comparisons in the text of a query; other names of columns in it are used as a whole."""
        spans = []
        for found in QUERIED.finditer(text):
            name, value = found[1] or found[3], found[2] or found[4]
            if name in self.names:
                self.compared.append((name, value, "is"))
                spans.append(name)
        if " " in text:
            for name in set(re.findall(r"[^\W\d]\w*", text)) & self.names:
                if len(re.findall(rf"\b{re.escape(name)}\b", text)) > spans.count(name):
                    self.whole.add(name)

    def column_of(self, node):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in self.names:
            return node.slice.value
        if isinstance(node, ast.Attribute) and node.attr in self.names and isinstance(node.value, ast.Name):
            return node.attr
        return None

    def compare(self, node):
        """Note `column == constant`; True if it was one."""
        sides = [node.left, *node.comparators]
        column = next((name for name in map(self.column_of, sides) if name), None)
        constants = [one for side in sides for one in literals(side)]
        if any([getattr(side, "attr", None) == "year" for side in sides]) and isinstance(node.ops[0], ast.Eq):
            self.years += [one for one in constants if type(one) is int]
        if column is None or not constants:
            return False
        kinds = {type(one) for one in node.ops}
        part = kinds == {ast.In} and isinstance(node.left, ast.Constant)   # "Os" in row["city"]
        how = "part" if part else "is" if kinds <= {ast.Eq, ast.In} else ""
        self.compared += [(column, one, how) for one in constants]
        return True

    def is_in(self, node):
        """Note `column.isin([constant])` and the like; True if it was one."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in COMPARERS:
            return False
        of, how = node.func.value, COMPARERS[node.func.attr]
        column = self.column_of(of.value if isinstance(of, ast.Attribute) and of.attr == "str" else of)
        constants = [one for arg in node.args for one in literals(arg)]
        if how == "get":
            self.looked += [one for one in constants[:1] if type(one) is str]
            return False
        if column and constants:
            simple = not node.keywords and all([re.fullmatch(r"[\w -]+", str(one)) for one in constants])
            plain = how in ("is", "") or simple
            self.compared += [(column, one, how if plain else "") for one in constants]
        return bool(column and constants)

    def has(self, value):
        """Whether a value of the question takes part as a constant."""
        number = origin.number_of(value)
        self.words = self.words or words(self.text)
        return words(value) in self.words or number is not None and (
            number in self.numbers or f"{number:.15g}" in self.text)


def mentions(parts):
    """How often each word stands in code, as an attribute or in a text."""
    count = {}
    for node in [one for part in parts for one in ast.walk(part)]:
        text = node.attr if isinstance(node, ast.Attribute) else getattr(node, "value", None)
        for word in [text, *text.split()] if type(text) is str and len(text) < 2000 else ():
            word = word.strip("`'\"()=<>,;@")
            count[word] = count.get(word, 0) + 1
    return count


def literals(node):
    if isinstance(node, ast.Constant) and type(node.value) in (str, int, float):
        return [node.value]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [one for each in node.elts[:200] if isinstance(each, ast.Constant) for one in literals(each)]
    return []


def named_values(question, columns):
    """The values of columns that the question names: {value: [columns]}."""
    folded, split = question.casefold(), re.findall(r"[^\W_]+", question)
    first = re.findall(r"(?:^|[.?!:\n])\W*([^\W_]+)", question)   # in capitals anyway: may be no name
    grams = set(collections.Counter(split) - collections.Counter(first))
    for size in range(2, 6):
        grams |= {" ".join(split[at:at + size]) for at in range(len(split) - size + 1)}
    own = {words(column.name) for column in columns}
    integers = {int(one) for one in origin.numbers(question) if one == int(one) and 100 <= one < 1e15}
    found, spoken = {}, f" {words(question)} "
    for column in columns:
        if len(column.values) < 2:
            continue
        asked = f" {words(column.name)} " in spoken
        if len(column.values) < 50 and all([f" {words(value)} " in spoken for value in column.values]):
            continue   # all of them: nothing to choose
        for value in column.values:
            spelled = " ".join(re.findall(r"[^\W_]+", value))
            plain_word = spelled.islower() and not asked and (len(spelled) < 4 or len(column.values) > 12)
            if spelled in grams and not plain_word and spelled.casefold() not in own and len(spelled) > 1 and (
                    origin.number_of(value) is None and value.casefold() in folded):
                found.setdefault(value, []).append(column)
        years = column.years()
        for number in integers if not years or years - integers else ():
            if str(number) in column.values or f"{number}.0" in column.values:
                found.setdefault(str(number), []).append(column)
            elif number in years:
                found.setdefault(str(number), []).append(column)
    return found


def check(task):
    """Names of the question that no slice selects; selections without rows, or that the question does not name."""
    columns = task.columns
    names = {column.name for column in columns}
    own = names - task.changed
    question = task.question
    for name in task.inputs:
        question = question.replace(name.rpartition("/")[2], " ")
    values = [one for one in task.traced if one.origin == "data"]
    if not values or not columns:
        return
    each = [Used(one.parts, names) for one in values]
    used = Used([], names)
    for one in each + [Used(one.parts, names) for one in task.made_values]:
        used.texts += one.texts
        used.numbers |= one.numbers
        used.whole |= one.whole
    used.text = "\n".join(used.texts).casefold()
    for value, places in list(named_values(question, columns).items())[:50]:
        if not used.has(value) and not any([column.name in used.whole for column in places]):
            where = places[0]
            task.problem("selection", None, f"the question names {value!r}, a value of {where.name} in {where.file}, "
                         "but no value of the answer selects it", f"select {value!r} in {where.name}")
    for one, of in zip(values, each):
        one.warnings += warn(task, of, columns, own, words(question), one)


def warn(task, used, columns, own, question, value):
    """Selections of one value: a problem where no row fulfils it, else a warning if the question does not name it."""
    said, calls = {}, {last for _, last, _ in value.scan.calls}
    loose = used.attributes & LOOSE or re.search(r"lower *\(|upper *\(|nocase|like", used.text)
    for name, constant, how in used.compared:
        places = [column for column in columns if column.name == name]
        named = words(str(constant)) in question or constant in task.free or str(constant).strip() == ""
        if not how or not places or like(constant) or how == "is" and any([one.years() for one in places]):
            continue
        there = any([one.has(constant, loose, how) and not other_type(one, constant, calls) for one in places])
        if not there and name in own and all([one.whole for one in places]):
            near = next((one for column in places for one in [column.near(constant, how)] if one), None)
            if named and not near:
                task.notes.append(f"no row has {constant!r} in {name}, which the question names")
                continue
            hint = f" (it has {near!r})" if near else ""
            task.problem("empty", value.name, f"{value.name} selects {constant!r} in {name}, and no row of "
                         f"{places[0].file} has it{hint}", f"select a value as it stands in {name}")
        elif there and not named and type(constant) is str:
            said[f"selects {constant!r} in {name}, which the question does not name"] = None
    for constant in used.looked if not loose else ():
        near = next((one for one in [column.near(constant) for column in columns] if one), None)
        if near and not any([constant in column.values for column in columns]) and constant not in task.changed:
            task.problem("empty", value.name, f"{value.name} looks up {constant!r}, and the data has {near!r}",
                         f"look up {near!r} as it stands in the data")
    dates = [column for column in columns if column.years()]
    for year in used.years if dates and all([column.whole for column in dates]) else ():
        if not any([year in column.years() for column in dates]):
            found = f"no row of {dates[0].file} has a date in {year}"
            if year in task.free:
                task.notes.append(found)
            else:
                task.problem("empty", value.name, f"{value.name}: {found}", f"select a year of {dates[0].name}")
    for constant in used.indexed:
        place = next((one for one in columns if type(constant) is str and constant in one.values), None)
        if place and words(constant) not in question and len(constant) > 1:
            said[f"selects {constant!r} in {place.name}, which the question does not name"] = None
    return list(said)[:5]


def other_type(column, constant, calls):
    """A text beside a column of numbers that pandas read, or a number beside the texts of the csv module."""
    if type(constant) is str:
        read = "read_csv" in calls and not calls & {"astype", "DictReader", "reader", "map", "apply"}
        return read and column.forms()[3] and constant.isdigit()
    return bool(calls & {"DictReader", "reader"}) and not calls & {"read_csv", "int", "float", "map", "astype"}


def like(constant):
    return type(constant) is str and ("%" in constant or "*" in constant)


def check_files(task):
    """Files that the question names and that nobody made."""
    there = {str(one).rpartition("/")[2].casefold() for one in task.inputs + task.made}
    there |= {str(one.get("path")).rpartition("/")[2].casefold() for one in task.payload["files"]}
    for name in dict.fromkeys(NAMED.findall(task.question)):
        if name.casefold() not in there and not any([one.endswith(name.casefold()) for one in there]):
            task.problem("file", None, f"the question names the file {name}, and there is none",
                         f"write {name} and pass files=[\"{name}\"] to answer()")


# ---- for the judge ----
AGGREGATES = frozenset("mean sum median std var count max min average corr nlargest nsmallest cumsum quantile".split())


def notes(task):
    """Doubts that are no problems: doubled keys, shares that do not add up, missing values, a zero behind a filter."""
    for name in task.inputs:
        found = [column.name for column in task.columns if column.file == name]
        if found and re.search(r"\.(xlsx|xlsm|db|sqlite3?)$", name, re.I):
            yield f"{name} has the columns {', '.join(found[:40])}"
    for name, value in task.given.items():
        if task.types.get(name) == "table" and isinstance(value, dict):
            yield from of_table(name, value.get("columns") or [], value.get("rows") or [])
    for value in task.traced:
        if task.given.get(value.name) == 0 and any([part == "select" for _, part, _ in value.scan.constants]):
            yield f"{value.name} is 0, behind a selection"
        if AGGREGATES & {last for _, last, _ in value.scan.calls}:
            used = Used(value.parts, {column.name for column in task.columns}).whole
            for column in task.columns:
                if column.missing and column.name in used:
                    yield f"{value.name} uses {column.name}, which lacks {column.missing} values in {column.file}"


def of_table(name, columns, rows):
    keys = [json.dumps(row[0]) for row in rows if isinstance(row, list) and row]
    twice = next((key for at, key in enumerate(keys) if key in keys[:at]), None)
    if twice:
        yield f"{name} has {json.loads(twice)!r} twice in its first column"
    missing = sum([cell is None for row in rows if isinstance(row, list) for cell in row])
    if missing:
        yield f"{name} has {missing} missing values"
    for at, column in enumerate(columns):
        cells = [row[at] for row in rows if isinstance(row, list) and len(row) > at]
        if re.search(r"%|percent|share|pct", str(column), re.I) and all([type(one) in (int, float) for one in cells]):
            total = sum(cells)
            if len(cells) > 1 and abs(total - 100) > 0.5 and abs(total - 1) > 0.005:
                yield f"{column} of {name} add up to {total:.6g}"
