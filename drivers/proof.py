# The agent's proof run: the kept cells of a session one by one in a fresh interpreter, as cells.py
# runs them, then the tests. Runs as the occupant. cupel sends this file as the program's first
# lines, and one more line with the call (src/agent/verify/script_proof.c).
#
# 1. The cells see the names of __main__ and nothing of ours: the function takes its own name away.
# 2. A mark goes into stdout and, as a shown value, into the results: so both can be cut apart.
def __cupel_proof(parts, tests, tag):
    import builtins
    import sys
    driver, main = builtins.display.__globals__["this"], sys.modules["__main__"].__dict__
    cells, names = driver.load("cells"), driver.load("names")
    del main["__cupel_proof"]
    cells.names, cells.scope, names.scope = names, main, main
    names.open_history(cells.sources)
    driver.Hooks.after["linecache"] = cells.fill_linecache
    cells.main_thread = __import__("_thread").get_ident()
    cells.await_asyncio()

    class Mark:
        def __init__(self, text):
            self.text = text

        def __repr__(self):
            return tag + self.text

    def mark(text):
        try:
            sys.stdout.flush()
        except Exception:
            pass   # replaced by the code
        sys.__stdout__.write(f"\x1e{tag}{text}\x1e")
        sys.__stdout__.flush()
        driver.show(Mark(text))

    def run(number, code):
        cells.take({"cell": number, "code": code})
        value = driver.run_codes(*driver.compile_program(), main)
        if value is not None:
            driver.show(value)
            names.keep(number, value)

    for at, (number, code, may_fail) in enumerate(parts):
        mark(f"begin {at}")
        try:
            run(number, code)
        except SystemExit:
            pass
        except BaseException:
            if not may_fail:
                raise
        driver.show_figures()
        mark(f"end {at}")
    for at, code in enumerate(tests):
        mark(f"begin {len(parts) + at}")
        try:
            run(f"of test {at + 1}", code)
            said = "ok"
        except BaseException as problem:
            said = f"{type(problem).__name__}: {problem}"[:500]
        mark(f"end {len(parts) + at}")
        driver.show(Mark(f"test {at} {said}"))


