"""Which tests belong to which form of the suite. CUPEL_TESTS names the form:

short  one representative for each promise: `make test`
full   the tests that the short form leaves out: `make test-full`
long   everything, with the large counts: `make test-long`
Without the variable: short and full together. A test that is named (FILE::TEST) is always run.

Rules, in this order:
1. `@pytest.mark.long`: the long form alone.
2. `@pytest.mark.full`: not in the short form.
3. `@pytest.mark.sample(short=n, full=m)`: of the tests of a file that have the mark, the short form runs one
   in n, and short and full together one in m. With `of="user"` the mark counts only rows with that parameter.
4. A test that runs as root and as a user runs once in the short form. The checksum of its name decides as
   whom, and so both users meet about half of the tests. Mark `both` keeps the two together.
5. A wall test (tests/wall/conftest.py) runs on image `host` in the short form. In the other
   kinds of boxes it runs as one user in the full form, as the other in the long one; with mark `every_box` it
   is in the short form and the full one."""
import os
import zlib

FORM = os.environ.get("CUPEL_TESTS", "")
LONG = FORM == "long"
# The files that take longest, so that no worker begins one when the others are done.
FIRST = {"test_quick.py", "test_session_soak.py", "test_warm_soak.py", "test_warm_chaos.py", "test_build.py",
         "test_session_attacks.py", "test_session_walls.py", "test_warm_walls.py", "test_wall.py", "test_collect.py",
         "test_session.py", "test_bench.py", "test_session_chaos.py", "test_failing_calls.py"}
MARKERS = ["long: belongs to the long form alone", "full: not in the short form",
           "sample(short, full, of): the forms run one row in so many", "both: as root and as a user in each form",
           "alone: no other test may run at the same time",
           "boxes(kind, ..., why): the kinds of boxes that this wall test can run in",
           "every_box: in boxes of each kind in the short form"]


def params_of(item):
    return item.callspec.params if getattr(item, "callspec", None) else {}


class Sampler:
    """Says of each test in turn to which form it belongs."""

    def __init__(self, users):
        self.users, self.seen = users, {}

    def is_one_in(self, count, *key):
        """True for the first of so many with this key, and for every so many after it."""
        self.seen[key] = self.seen.get(key, -1) + 1
        return self.seen[key] % count == 0

    def is_other_user(self, item):
        """The same test as the other user is the representative."""
        params = params_of(item)
        if "who" not in params or len(self.users) < 2 or item.get_closest_marker("both"):
            return False
        if any(mark.kwargs.get("of") == "user" for mark in item.iter_markers("sample")):
            return params["who"] != self.users[0]
        name, _, row = item.name.partition("[")
        if params.get("boxed") == "strict":
            return params["who"] != "root"
        row = row.replace(params["who"], "", 1).replace("host-", "", 1)
        number = zlib.crc32((item.path.name + name + row).encode())
        return params["who"] != self.users[number % len(self.users)]

    def form_of(self, item):
        boxed = params_of(item).get("boxed", "host")
        usual = boxed == "host" or item.get_closest_marker("every_box")
        other = self.is_other_user(item)
        if item.get_closest_marker("long") or (other and not usual):
            return "long"
        form = "full" if item.get_closest_marker("full") or other or not usual else "short"
        for mark in item.iter_markers("sample"):
            of = mark.kwargs.get("of")
            if of and of not in params_of(item).values():
                continue
            if not self.is_one_in(mark.kwargs.get("full", 1), "full", item.path, of, boxed):
                return "long"
            if form == "short" and not self.is_one_in(mark.kwargs.get("short", 1), "short", item.path, of, boxed):
                form = "full"
        return form


def select(config, items, users):
    items.sort(key=lambda item: item.path.name not in FIRST)
    if LONG or any("::" in arg for arg in config.args):
        return
    wanted = {"short": {"short"}, "full": {"full"}}.get(FORM, {"short", "full"})
    sampler = Sampler(users)
    forms = [sampler.form_of(item) if hasattr(item, "originalname") else "short" for item in items]
    config.hook.pytest_deselected(items=[item for item, form in zip(items, forms) if form not in wanted])
    items[:] = [item for item, form in zip(items, forms) if form in wanted]
