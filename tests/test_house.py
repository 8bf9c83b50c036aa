"""The house rules hold: layers, sizes, style, and scripts that at least parse."""
import subprocess

import pytest

from host import REPO


@pytest.mark.parametrize("check", ["check-layers", "check-size", "check-style"])
def test_the_house_check_passes(check):
    done = subprocess.run([REPO / "dev" / check], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, "\n" + done.stderr


@pytest.mark.parametrize("script", ["dev/bootstrap", ".ci/run", "examples/tour.sh"])
def test_the_script_parses(script):
    done = subprocess.run(["bash", "-n", REPO / script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def broken_house(tmp_path, name, text):
    """A house of one file, with our checks in it."""
    dev = tmp_path / "dev"
    dev.mkdir(exist_ok=True)
    for check in (REPO / "dev").iterdir():
        if check.name.startswith(("check-", "layers")):
            (dev / check.name).write_bytes(check.read_bytes())
            (dev / check.name).chmod(0o755)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return dev


BREAKS = [
    ("check-layers", "src/base/low.c", '/* x */\n#include "engine/engine.h"\n', "may not include"),
    ("check-layers", "src/cli/x.c", "/* x */\nvoid f(void)\n{\n    mount(0, 0, 0, 0, 0);\n}\n",
     "belongs in src/box"),
    ("check-layers", "src/base/a.h", '#include "base/a.h"\n', "circle"),
    ("check-size", "src/base/long.c", "/* x */\n" * 501, "501 lines"),
    ("check-size", "src/base/fn.c", "/* x */\nvoid f(void)\n{\n" + "    ;\n" * 60 + "}\n",
     "62 lines"),
    ("check-style", "src/base/x.c", "int a;\n", "does not open with a comment"),
    ("check-style", "src/base/x.c", "/* x */ \n", "ends in spaces"),
    ("check-style", "src/base/x.c", "/* x */\n\tint a;\n", "tab"),
    ("check-style", "src/base/x.h", "/* x */\n#ifndef X_H\n#define X_H\n#endif\n", "BASE_X_H"),
    ("check-style", "src/base/x.c", "/* TO" "DO: x */\n", "unfinished"),
]


@pytest.mark.parametrize("check,name,text,said", BREAKS)
def test_the_house_check_sees_a_broken_rule(tmp_path, check, name, text, said):
    dev = broken_house(tmp_path, name, text)
    done = subprocess.run([dev / check], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and said in done.stderr, done.stderr


def test_a_comment_or_text_that_names_a_call_is_no_call(tmp_path):
    text = '/* mount(2) */\nconst char *a = "mount(x)";\nvoid f(void) { g.mount(1); }\n'
    dev = broken_house(tmp_path, "src/cli/x.c", text)
    done = subprocess.run([dev / "check-layers"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
