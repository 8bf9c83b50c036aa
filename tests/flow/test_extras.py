"""The packages of dev/image-packages in a box: one real use of each, cold, warm and in a session. One that the host
lacks is skipped."""
import functools
import shutil
import subprocess

import pytest

import host

ROWS = [line.split() for line in (host.REPO / "dev/image-packages").read_text().splitlines()
        if line[:1] not in ("", "#")]
LIMITS = {"timeout_s": 120, "memory_bytes": 1 << 30, "cpus": 2}

# A use that ends in one value, which is the same each time: (code, value).
MODULES = {
    "numpy": ("import numpy as m\nint(m.linalg.det(m.eye(3)) * 6)", "6"),
    "pandas": ("import pandas as m\nm.Series([1, 2, 3]).sum().item()", "6"),
    "matplotlib": ("import matplotlib.pyplot as m\nf = m.figure(); m.plot([1, 2]); f.savefig('a.png'); m.close()\n"
                   "open('a.png', 'rb').read(4)", r"b'\x89PNG'"),
    "scipy": ("import scipy.stats as m\nround(float(m.norm.cdf(0)), 3)", "0.5"),
    "sympy": ("import sympy as m\nx = m.Symbol('x')\nstr(m.integrate(2 * x, x))", "'x**2'"),
    "sklearn": ("from sklearn.linear_model import LinearRegression as L\n"
                "round(float(L().fit([[1], [2]], [2, 4]).predict([[3]])[0]), 6)", "6.0"),
    "openpyxl": ("import openpyxl as m\nb = m.Workbook(); b.active['A1'] = 5; b.save('a.xlsx')\n"
                 "m.load_workbook('a.xlsx').active['A1'].value", "5"),
    "lxml": ("import lxml.etree as m\nm.fromstring('<a><b/></a>').xpath('count(//b)')", "1.0"),
    "bs4": ("import bs4 as m\nm.BeautifulSoup('<p>hi</p>', 'lxml').p.text", "'hi'"),
    "PIL": ("from PIL import Image as m\nm.new('RGB', (2, 3)).resize((4, 6)).size", "(4, 6)"),
    "requests": ("import http.server, threading, requests as m\n"
                 "s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
                 "import sys; sys.stderr = open('/dev/null', 'w')\n"
                 "threading.Thread(target=s.serve_forever, daemon=True).start()\n"
                 "code = m.get(f'http://127.0.0.1:{s.server_port}/').status_code\ns.shutdown()\ncode", "200"),
    "seaborn": ("import seaborn as m, matplotlib.pyplot as p\nm.barplot(x=['a', 'b'], y=[1, 2]); p.savefig('a.png')\n"
                "p.close()\nopen('a.png', 'rb').read(4)", r"b'\x89PNG'"),
    "statsmodels": ("import statsmodels.api as m\nround(float(m.OLS([2., 4., 6.], [1., 2., 3.]).fit().params[0]), 6)",
                    "2.0"),
    "networkx": ("import networkx as m\nm.shortest_path(m.path_graph(4), 0, 3)", "[0, 1, 2, 3]"),
    "xarray": ("import xarray as m\nint(m.DataArray([1, 2, 3]).sum())", "6"),
    "h5py": ("import h5py as m\nwith m.File('a.h5', 'w') as f: f['x'] = [1, 2]\n"
             "with m.File('a.h5') as f: v = f['x'][:].tolist()\nv", "[1, 2]"),
    "tables": ("import pandas\npandas.DataFrame({'a': [1, 2]}).to_hdf('t.h5', 'k')\n"
               "int(pandas.read_hdf('t.h5', 'k').a.sum())", "3"),
    "tabulate": ("import tabulate as m\nm.tabulate([[1]], headers=['a']).split()", "['a', '---', '1']"),
    "jinja2": ("import jinja2 as m\nm.Template('{{ x + 1 }}').render(x=1)", "'2'"),
    "xlsxwriter": ("import xlsxwriter as m\nb = m.Workbook('b.xlsx'); b.add_worksheet().write(0, 0, 7); b.close()\n"
                   "open('b.xlsx', 'rb').read(2)", "b'PK'"),
    "xlrd": ("import xlrd as m\ntry: m.open_workbook(file_contents=b'no')\nexcept m.XLRDError: v = 'XLRDError'\nv",
             "'XLRDError'"),
    "odf": ("from odf.opendocument import OpenDocumentText as m\nm().save('a.odt')\nopen('a.odt', 'rb').read(2)",
            "b'PK'"),
    "docx": ("import docx as m\nd = m.Document(); d.add_paragraph('hi'); d.save('a.docx')\n"
             "m.Document('a.docx').paragraphs[0].text", "'hi'"),
    "pypdf": ("import pypdf as m\nw = m.PdfWriter(); w.add_blank_page(72, 72); w.write('a.pdf')\n"
              "len(m.PdfReader('a.pdf').pages)", "1"),
    "reportlab": ("from reportlab.pdfgen.canvas import Canvas\nc = Canvas('r.pdf'); c.drawString(9, 9, 'hi')\n"
                  "c.save()\nopen('r.pdf', 'rb').read(4)", "b'%PDF'"),
    "sqlalchemy": ("import sqlalchemy as m\n"
                   "m.create_engine('sqlite://').connect().execute(m.text('select 6')).scalar()", "6"),
    "psutil": ("import os, psutil as m\nm.Process().pid == os.getpid()", "True"),
    "tqdm": ("import tqdm as m\nsum(m.tqdm([1, 2, 3], disable=True))", "6"),
    "nltk": ("import nltk as m\nm.edit_distance('kitten', 'sitting')", "3"),
    "numba": ("import numba as m\n@m.njit\ndef f(n):\n    s = 0\n    for i in range(n): s += i\n    return s\nf(4)",
              "6"),
    "imageio": ("import imageio as m, numpy\nm.imwrite('i.png', numpy.zeros((2, 3), 'uint8'))\n"
                "m.imread('i.png').shape", "(2, 3)"),
    "skimage": ("import numpy, skimage.filters as m\nm.gaussian(numpy.ones((3, 3))).shape", "(3, 3)"),
    "cv2": ("import numpy, cv2 as m\nm.resize(numpy.zeros((4, 4, 3), 'uint8'), (2, 2)).shape", "(2, 2, 3)"),
    "aiohttp": ("import aiohttp as m\nfrom aiohttp import web\nasync def hello(r): return web.Response(text='hi')\n"
                "app = web.Application(); app.router.add_get('/', hello)\nrunner = web.AppRunner(app)\n"
                "await runner.setup()\nsite = web.TCPSite(runner, '127.0.0.1', 8089); await site.start()\n"
                "async with m.ClientSession() as s:\n    async with s.get('http://127.0.0.1:8089/') as r:\n"
                "        text = await r.text()\nawait runner.cleanup()\ntext", "'hi'"),
    "html5lib": ("import html5lib as m\nlen(m.parse('<p>a<p>b'))", "2"),
    "yaml": ("import yaml as m\nm.safe_load('a: [1, 2]')", "{'a': [1, 2]}"),
    "IPython": ("import IPython as m\nm.version_info[0] > 0", "True"),
}

# A use of each program: (script, output).
PROGRAMS = {
    "pandoc": ("echo '# hi' | pandoc -t plain", "hi\n"),
    "pdftotext": ("python3 -c \"import matplotlib.pyplot as p\n"
                  "p.figtext(.5, .5, 'hello'); p.savefig('a.pdf')\"; pdftotext a.pdf - | tr -d '\\f\\n '", "hello"),
    "rg": ("printf 'one\\ntwo\\n' > a.txt; rg -N two .", "./a.txt:two\n"),
    "git": ("git init -q . && git config user.email a@b && git config user.name a && echo x > f && git add f && "
            "git commit -qm first && git log --format=%s", "first\n"),
    "jq": ("echo '{\"a\": [1, 2]}' | jq '.a | add'", "3\n"),
    "sqlite3": ("sqlite3 a.db 'create table t(x); insert into t values(6); select x from t'", "6\n"),
    "convert": ("convert -size 4x3 xc:red a.png && identify -format '%wx%h' a.png", "4x3"),
    "tesseract": ("convert -font /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf -pointsize 48 label:HELLO t.png && "
                  "tesseract t.png - 2>/dev/null | head -1", "HELLO\n"),
    "dot": ("echo 'digraph { a -> b }' | dot -Tsvg | grep -c '<ellipse'", "2\n"),
}


@functools.cache
def has_module(name):
    look = f"import importlib.util as u, sys; sys.exit(not u.find_spec('{name}'))"
    return subprocess.run(["/usr/bin/python3", "-c", look], cwd="/").returncode == 0


def need(kind, name):
    there = has_module(name) if kind == "python" else shutil.which(name, path="/usr/bin:/bin")
    if not there:
        pytest.skip(f"{next(row[3] for row in ROWS if row[2] == name)} is not installed")


def test_every_package_of_the_list_has_its_use():
    assert sorted(row[2] for row in ROWS if row[1] == "python") == sorted(MODULES)
    assert sorted(row[2] for row in ROWS if row[1] == "program") == sorted(PROGRAMS)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.sample(short=6, full=1)
def test_a_package_works_cold_and_in_a_session(cupel, session, name):
    need("python", name)
    code, wanted = MODULES[name]
    result = cupel.run_json(code, limits=LIMITS)
    assert result["status"] == "ok" and result["results"][-1]["text/plain"] == wanted, result["error"] or result
    result = session.run(code, limits={"timeout_s": 120})
    assert result["status"] == "ok" and result["results"][-1]["text/plain"] == wanted, result["error"] or result


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.sample(short=6, full=1)
def test_a_package_works_warm(client, name):
    need("python", name)
    code, wanted = MODULES[name]
    result = client.run({"code": code, "limits": {"timeout_s": 120}})[1]["result"]
    assert result["status"] == "ok" and result["results"][-1]["text/plain"] == wanted, result["error"] or result


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sample(short=3, full=1)
def test_a_program_works(cupel, name):
    need("program", name)
    if name == "tesseract":
        need("program", "convert")
    script, wanted = PROGRAMS[name]
    result = cupel.run_json(script, "bash", limits=LIMITS)
    assert result["status"] == "ok" and result["stdout"] == wanted, result
