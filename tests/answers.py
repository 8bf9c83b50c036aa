"""Values of an answer (drivers/values.py): how each is told in JSON, with which types, and its text. The tests of the
module and those in a box read the same rows."""
import importlib.util
import json

from host import REPO

PRELUDE = """
import collections, datetime as D, decimal, enum, fractions, pathlib
import numpy as np, pandas as pd, sympy
P = collections.namedtuple("P", "a b")
class E(enum.IntEnum): A = 1
class F(enum.Enum): A = 1
ring = {}
ring["a"] = ring
"""

# (the expression; its JSON; its type, then those of members: their path and their type; its text)
ROWS = [
    ("None", None, "none", "None"),
    ("True", True, "bool", "True"),
    ("5", 5, "integer", "5"),
    ("2**70", "1180591620717411303424", "integer", "1180591620717411303424"),
    ("-2**63", -9223372036854775808, "integer", "-9223372036854775808"),
    ("1.5", 1.5, "number", "1.5"),
    ("0.1+0.2", 0.30000000000000004, "number", "0.3"),
    ("715.0", 715.0, "number", "715"),
    ("-0.0", -0.0, "number", "0"),
    ("1e20", 1e+20, "number", "1e+20"),
    ("1e-7", 1e-07, "number", "1e-07"),
    ("123456789012.5", 123456789012.5, "number", "123456789012.5"),
    ("12345678.123456789", 12345678.12345679, "number", "12345678.12"),
    ("float('nan')", None, "nan", "nan"),
    ("float('-inf')", None, "-inf", "-inf"),
    ("1+2j", "(1+2j)", "complex", "1+2j"),
    ("complex('nan')", "(nan+0j)", "complex", "nan+0j"),
    ("'a\\ud800b\\0c'", "a?b�c", "text", "a?b�c"),
    ("decimal.Decimal('1.10')", "1.10", "decimal", "1.10"),
    ("decimal.Decimal('NaN')", None, "nan", "nan"),
    ("decimal.Decimal('sNaN')", None, "nan", "nan"),
    ("decimal.Decimal('-Infinity')", None, "-inf", "-inf"),
    ("fractions.Fraction(1,3)", "1/3", "fraction", "1/3"),
    ("D.date(2024,3,1)", "2024-03-01", "date", "2024-03-01"),
    ("D.datetime(2024,3,1)", "2024-03-01T00:00:00", "datetime", "2024-03-01"),
    ("D.datetime(2024,3,1,12,30,tzinfo=D.timezone.utc)", "2024-03-01T12:30:00+00:00", "datetime",
     "2024-03-01 12:30:00+00:00"),
    ("D.time(12,30)", "12:30:00", "time", "12:30:00"),
    ("D.timedelta(days=1,seconds=5)", 86405.0, "timedelta", "1 day, 0:00:05"),
    ("np.float32(0.1)", 0.1, "number", "0.1"),
    ("np.float64(0.1)", 0.1, "number", "0.1"),
    ("np.float16(0.1)", 0.1, "number", "0.1"),
    ("np.longdouble(0.1)", 0.1, "number", "0.1"),
    ("np.int8(5)", 5, "integer", "5"),
    ("np.uint64(2**64-1)", "18446744073709551615", "integer", "18446744073709551615"),
    ("np.bool_(True)", True, "bool", "True"),
    ("np.str_('x')", "x", "text", "x"),
    ("np.complex64(1+2j)", "(1+2j)", "complex", "1+2j"),
    ("np.datetime64('2024-03-01')", "2024-03-01", "date", "2024-03-01"),
    ("np.datetime64('2024-03-01T12:00')", "2024-03-01T12:00:00", "datetime", "2024-03-01 12:00:00"),
    ("np.datetime64('2024-03-01T12:00:00.123456789')", "2024-03-01T12:00:00.123456", "datetime",
     "2024-03-01 12:00:00.123456"),
    ("np.datetime64('2024-03')", "2024-03", "text", "2024-03"),
    ("np.datetime64('NaT')", None, "nan", "nan"),
    ("np.timedelta64(90,'m')", 5400.0, "timedelta", "1:30:00"),
    ("np.array(5)", 5, "integer", "5"),
    ("np.array([1,2.5,np.nan])", [1.0, 2.5, None], "list, /* nan,number", "1, 2.5, nan"),
    ("np.array([[1,2],[3,4]])", {'columns': ['', ''], 'rows': [[1, 2], [3, 4]]}, "table",
     "|  |  |\n|---:|---:|\n| 1 | 2 |\n| 3 | 4 |"),
    ("np.array(['2024-01-01','NaT'],dtype='M8[ns]')", ['2024-01-01T00:00:00', None], "list, /* datetime,nan",
     "2024-01-01, nan"),
    ("pd.Timestamp('2024-03-01')", "2024-03-01T00:00:00", "datetime", "2024-03-01"),
    ("pd.Timestamp('2024-03-01 10:00',tz='Europe/Oslo')", "2024-03-01T10:00:00+01:00", "datetime",
     "2024-03-01 10:00:00+01:00"),
    ("pd.NaT", None, "nan", "nan"),
    ("pd.NA", None, "nan", "nan"),
    ("pd.Timedelta('1h')", 3600.0, "timedelta", "1:00:00"),
    ("pd.Period('2024-03','M')", "2024-03", "text", "2024-03"),
    ("pd.Interval(0,1)", "(0, 1]", "text", "(0, 1]"),
    ("pd.Series([1,2,3])", [1, 2, 3], "list", "1, 2, 3"),
    ("pd.Series([1.5,None],index=['a','b'],name='t')", {'columns': ['', 't'], 'rows': [['a', 1.5], ['b', None]]},
     "table, /1/* nan,number", "|  | t |\n|---|---:|\n| a | 1.5 |\n| b | nan |"),
    ("pd.Series([1,2],index=[2023,2024])", {'columns': ['', ''], 'rows': [[2023, 1], [2024, 2]]}, "table",
     "|  |  |\n|---:|---:|\n| 2023 | 1 |\n| 2024 | 2 |"),
    ("pd.Series([1,2],index=pd.MultiIndex.from_tuples([('a',1),('b',2)],names=['k','n']),name='v')",
     {'columns': ['k', 'n', 'v'], 'rows': [['a', 1, 1], ['b', 2, 2]]}, "table",
     "| k | n | v |\n|---|---:|---:|\n| a | 1 | 1 |\n| b | 2 | 2 |"),
    ("pd.Series(['x','y'],dtype='category')", ['x', 'y'], "list", "x, y"),
    ("pd.Series([1,None],dtype='Int64')", [1, None], "list, /* integer,nan", "1, nan"),
    ("pd.Index(['a','b'])", ['a', 'b'], "list", "a, b"),
    ("pd.Categorical(['a','b'])", ['a', 'b'], "list", "a, b"),
    ("pd.DataFrame({'a':[1,2],'b':['x|y','z\\nw']})", {'columns': ['a', 'b'], 'rows': [[1, 'x|y'], [2, 'z\nw']]},
     "table", "| a | b |\n|---:|---|\n| 1 | x\\|y |\n| 2 | z w |"),
    ("pd.DataFrame({'a':[]})", {'columns': ['a'], 'rows': []}, "table", "| a |\n|---|"),
    ("pd.DataFrame()", {'columns': [''], 'rows': []}, "table", "|  |\n|---|"),
    ("pd.DataFrame([[1,2]],columns=['a','a'])", {'columns': ['a', 'a'], 'rows': [[1, 2]]}, "table",
     "| a | a |\n|---:|---:|\n| 1 | 2 |"),
    ("pd.DataFrame([[1,2]],columns=pd.MultiIndex.from_tuples([('a','x'),('a','y')]))",
     {'columns': ['a / x', 'a / y'], 'rows': [[1, 2]]}, "table", "| a / x | a / y |\n|---:|---:|\n| 1 | 2 |"),
    ("pd.DataFrame({'d':pd.to_datetime(['2024-01-01',None]),'v':[1.0,np.nan]},index=['p','q'])",
     {'columns': ['', 'd', 'v'], 'rows': [['p', '2024-01-01T00:00:00', 1.0], ['q', None, None]]},
     "table, /1/* datetime,nan, /2/* nan,number",
     "|  | d | v |\n|---|---|---:|\n| p | 2024-01-01 | 1 |\n| q | nan | nan |"),
    ("pd.DataFrame({'d':pd.to_datetime(['2024-01-01 10:00'],utc=True)})",
     {'columns': ['d'], 'rows': [['2024-01-01T10:00:00+00:00']]}, "table, /0/* datetime",
     "| d |\n|---|\n| 2024-01-01 10:00:00+00:00 |"),
    ("pd.DataFrame({'c':pd.Categorical(['a','b'])}).groupby('c').size()",
     {'columns': ['c', ''], 'rows': [['a', 1], ['b', 1]]}, "table", "| c |  |\n|---|---:|\n| a | 1 |\n| b | 1 |"),
    ("pd.DataFrame({'k':['a','a','b'],'v':[1,2,3]}).groupby('k')['v'].agg(['mean','sum'])",
     {'columns': ['k', 'mean', 'sum'], 'rows': [['a', 1.5, 3], ['b', 3.0, 3]]}, "table",
     "| k | mean | sum |\n|---|---:|---:|\n| a | 1.5 | 3 |\n| b | 3 | 3 |"),
    ("[]", [], "list", "[]"),
    ("{}", {}, "dict", "|  |  |\n|---|---|"),
    ("[1,'a',None,2.5]", [1, 'a', None, 2.5], "list", "1, a, None, 2.5"),
    ("[D.date(2024,1,1),None]", ['2024-01-01', None], "list, /* date,none", "2024-01-01, None"),
    ("[D.date(2024,1,1),'2024-01-01']", ['2024-01-01', '2024-01-01'], "list, /0 date", "2024-01-01, 2024-01-01"),
    ("[2**70,1]", ['1180591620717411303424', 1], "list, /* integer", "1180591620717411303424, 1"),
    ("[1.5,float('nan')]", [1.5, None], "list, /* nan,number", "1.5, nan"),
    ("[float('inf'),float('nan'),None]", [None, None, None], "list, /0 inf, /1 nan", "inf, nan, None"),
    ("{'b':1,'a':[1,2]}", {'b': 1, 'a': [1, 2]}, "dict", "|  |  |\n|---|---|\n| b | 1 |\n| a | 1, 2 |"),
    ("{(1,'a'):2}", {'1 / a': 2}, "dict", "|  |  |\n|---|---:|\n| 1 / a | 2 |"),
    ("{D.date(2024,1,1):5}", {'2024-01-01': 5}, "dict", "|  |  |\n|---|---:|\n| 2024-01-01 | 5 |"),
    ("{'x':float('nan'),'y':decimal.Decimal('1.0')}", {'x': None, 'y': '1.0'}, "dict, /* decimal,nan",
     "|  |  |\n|---|---|\n| x | nan |\n| y | 1.0 |"),
    ("[{'a':1},{'b':2}]", {'columns': ['a', 'b'], 'rows': [[1, None], [None, 2]]}, "table",
     "| a | b |\n|---|---|\n| 1 | None |\n| None | 2 |"),
    ("[(1,2),(3,4)]", {'columns': ['', ''], 'rows': [[1, 2], [3, 4]]}, "table",
     "|  |  |\n|---:|---:|\n| 1 | 2 |\n| 3 | 4 |"),
    ("[(1,2),(3,)]", [[1, 2], [3]], "list", "[1, 2], [3]"),
    ("[[1,[2]],[3,[4]]]", [[1, [2]], [3, [4]]], "list", "[1, [2]], [3, [4]]"),
    ("collections.Counter('aab').most_common()", {'columns': ['', ''], 'rows': [['a', 2], ['b', 1]]}, "table",
     "|  |  |\n|---|---:|\n| a | 2 |\n| b | 1 |"),
    ("collections.Counter('aab')", {'a': 2, 'b': 1}, "dict", "|  |  |\n|---|---:|\n| a | 2 |\n| b | 1 |"),
    ("P(1,2)", {'a': 1, 'b': 2}, "dict", "|  |  |\n|---|---:|\n| a | 1 |\n| b | 2 |"),
    ("[P(1,2),P(3,4)]", {'columns': ['a', 'b'], 'rows': [[1, 2], [3, 4]]}, "table",
     "| a | b |\n|---:|---:|\n| 1 | 2 |\n| 3 | 4 |"),
    ("{3,1,2}", [1, 2, 3], "list", "1, 2, 3"),
    ("{'b','a',1,None,2.5}", [None, 1, 2.5, 'a', 'b'], "list", "None, 1, 2.5, a, b"),
    ("frozenset()", [], "list", "[]"),
    ("range(3)", [0, 1, 2], "list", "0, 1, 2"),
    ("collections.deque([1,2])", [1, 2], "list", "1, 2"),
    ("{'a':1}.items()", {'columns': ['', ''], 'rows': [['a', 1]]}, "table", "|  |  |\n|---|---:|\n| a | 1 |"),
    ("{'t':pd.DataFrame({'d':[D.date(2024,1,1)]})}", {'t': {'columns': ['d'], 'rows': [['2024-01-01']]}},
     "dict, /0 table, /0/0/* date", "|  |  |\n|---|---|\n| t | 2024-01-01 |"),
    ("pd.DataFrame({'a': [1], 'c': pd.Categorical(['x'])}).dtypes",
     {'columns': ['', ''], 'rows': [['a', 'int64'], ['c', 'category']]}, "table",
     "|  |  |\n|---|---|\n| a | int64 |\n| c | category |"),
    ("pathlib.Path('a/b')", "a/b", "text", "a/b"),
    ("E.A", 1, "integer", "1"),
    ("sympy.Integer(3)", 3, "integer", "3"),
    ("sympy.Rational(1,3)", "1/3", "fraction", "1/3"),
    ("sympy.Float(0.5)", 0.5, "number", "0.5"),
    ("sympy.sqrt(2)", "sqrt(2)", "text", "sqrt(2)"),
    ("sympy.true", True, "bool", "True"),
    ("sympy.Matrix([1,2])", "Matrix([[1], [2]])", "text", "Matrix([[1], [2]])"),
    ("[sympy.Integer(3)]", [3], "list", "3"),
    ("[None]*3", [None, None, None], "list", "None, None, None"),
    ("[True,False]", [True, False], "list", "True, False"),
    ("{'a':{'b':{'c':1}}}", {'a': {'b': {'c': 1}}}, "dict", "|  |  |\n|---|---|\n| a | b: c: 1 |"),
]

# (the expression, the template, the text)
FORMATS = [
    ("3.14159", "{x:.2f}", "3.14"), ("3", "{x:.1f}", "3.0"), ("1234567.891", "{x:,}", "1,234,567.891"),
    ("1234.0", "{x:,}", "1,234"), ("0.1 + 0.2", "{x:>6}", "   0.3"), ("0.123", "{x:.1%}", "12.3%"),
    ("7.0", "{x:d}", "7"), ("12", "{x:05d}", "00012"), ("5", "{x:{x}d}", "    5"), ("5", "{{x}} {x}", "{x} 5"),
    ("True", "{x:d}", "1"), ("float('nan')", "{x:.1f}", "nan"), ("1+2j", "{x:.1f} {x.imag}", "1.0+2.0j 2"),
    ("decimal.Decimal('1.5')", "{x:.2f}", "1.50"), ("fractions.Fraction(1, 3)", "{x:.3f}", "0.333"),
    ("'abc'", "{x!r} {x:>6} {x!s:<5}|", "'abc'    abc abc  |"), ("D.date(2024, 3, 1)", "{x:%d.%m.%Y}", "01.03.2024"),
    ("D.date(2024, 3, 1)", "{x.year}", "2024"), ("D.timedelta(days=2)", "{x.days}", "2"),
    ("[1.234, 2]", "{x:.1f}", "1.2, 2.0"), ("[1.234, 2]", "{x[0]:.1f}", "1.2"),
    ("[D.date(2024, 1, 1), None]", "{x:%d.%m}", "01.01, None"), ("[D.date(2024, 1, 1)]", "{x[0].month}", "1"),
    ("{'Oslo': 1.25}", "{x[Oslo]:.1f} {x.Oslo}", "1.2 1.25"), ("{2023: 1}", "{x[2023]}", "1"),
    ("pd.Series([1.5, 2], index=['a', 'b'])", "{x[a]} {x[b]:.2f}", "1.5 2.00"),
    ("pd.Series([1.5, 2], index=[2023, 2024])", "{x[2023]}", "1.5"),
    ("pd.DataFrame({'a': [1, 2], 'b': [1.234, 2]})", "{x[0][a]} {x[b]}", "1 1.234, 2"),
    ("pd.DataFrame({'a': [1, 2], 'b': [1.234, 2]})", "{x:.1f}",
     "| a | b |\n|---:|---:|\n| 1 | 1.2 |\n| 2 | 2.0 |"),
    ("pd.DataFrame({'a': [1234], 'b': [True]})", "{x:,}", "| a | b |\n|---:|---:|\n| 1,234 | True |"),
    ("{'a': 1}", "T: {x} end", "T: \n\n|  |  |\n|---|---:|\n| a | 1 |\n\n end"),
    ("{'a': 1}", "{x}{x}", "|  |  |\n|---|---:|\n| a | 1 |\n\n|  |  |\n|---|---:|\n| a | 1 |"),
    ("{'a': 1}", "A\n{x}\nB", "A\n\n|  |  |\n|---|---:|\n| a | 1 |\n\nB"),
    ("{'a': 1}", "A\n\n{x}\n\n\nB", "A\n\n|  |  |\n|---|---:|\n| a | 1 |\n\n\nB"),
]

# (the expression, the template, a part of the message)
WRONG = [
    ("10**5000", "{x}", "an integer of 16610 bits"), ("ring", "{x}", "nested deeper than 8"),
    ("np.zeros((2, 2, 2))", "{x}", "3 dimensions"), ("{1: 2, '1': 3}", "{x}", "the same text '1'"),
    ("F.A", "{x}", "str(x) makes it text"), ("b'x'", "{x}", "a bytes cannot be shown"),
    ("object()", "{x}", "cannot be shown"), ("(n for n in [1])", "{x}", "list(x) makes it a list"),
    ("print", "{x}", "call it"), ("{frozenset([1]): 2}", "{x}", "nested deeper"), ("{b'a': 2}", "{x}", "a bytes"),
    ("pd.DataFrame(np.zeros((201, 2)))", "{x}", "201 rows and 2 columns, the maximum is 200 x 50"),
    ("pd.DataFrame(np.zeros((2, 51)))", "{x}", "51 columns"), ("np.zeros((1, 51))", "{x}", "51 columns"),
    ("np.zeros(1001)", "{x}", "1001 items, the maximum is 1000"), ("pd.Series(range(2000))", "{x}", "2000 items"),
    ("{*range(2000)}", "{x}", "2000 items"), ("dict.fromkeys(range(2000))", "{x}", "2000 items"),
    ("[{'a': 1}] * 201", "{x}", "201 rows"), ("[[1] * 60]", "{x}", "60 columns"),
    ("'ä' * 40000", "{x}", "65536 bytes"),
    ("['y' * 70000]", "{x}", "70000 characters"), ("7.5", "{x:d}", "Unknown format code 'd'"),
    ("'warm'", "{x:.1f}", "the value is 'warm'"), ("None", "{x:.1f}", "None has no format"),
    ("D.date(2024, 3, 1)", "{x:.1f}", "needs a format with %"), ("D.timedelta(1)", "{x:d}", "x.total_seconds()"),
    ("D.date(2024, 3, 1)", "{x.isoformat}", "there is no x.isoformat"),
    ("5", "{x.__class__}", "there is no x.__class__"),
    ("[1]", "{x[5]}", "there is no x[5]"), ("[1]", "{x[a]}", "there is no x[a]"), ("5", "{x[0]}", "there is no x[0]"),
    ("{'a': 1}", "{x[b]}", "there is no x[b]"), ("pd.Series([1], index=['a'])", "{x[b]}", "there is no x[b]"),
    ("5", "{y}", "pass y=..."), ("5", "{x:{y}}", "pass y=..."), ("5", "{}", "has no name"), ("5", "{0}", "has no name"),
    ("5", "{x + 1}", "write {x} and pass x="), ("5", "{x", "braces are doubled"), ("5", "x}", "braces are doubled"),
    ("5", "{x:99999d}", "a width of more than 999"), ("5", "{x:.99999f}", "a width of more than 999"),
]


def values():
    """The module, beside no driver."""
    spec = importlib.util.spec_from_file_location("values", REPO / "drivers" / "values.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def world():
    space = {}
    exec(PRELUDE, space)
    return space


def told(module, value):
    """Its JSON, as text that has been read again, and its types."""
    plain, kind = module.encode(value)
    types = {}
    module.note_types("x", plain, kind, types)
    return json.loads(json.dumps(plain, allow_nan=False)), types


def types_of(text):
    """The types of a row."""
    first, *more = text.split(", ")
    return {"x": first, **{"x" + path: kind for path, kind in (one.split(" ") for one in more)}}
