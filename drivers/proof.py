# The agent's rerun: the kept cells of a session one by one in a fresh interpreter, as cells.py runs them. Runs as the
# occupant; src/agent/verify/rerun.c sends the program, which is one call of `run`.
#
# 1. The cells see the names of __main__ and nothing of ours.
# 2. Only answers are sent, and no figure is drawn: nothing else is compared.
# 3. A cell that failed in the session, but whose state stands, may fail again; another error ends the program.
import sys

driver = None   # the module; set by the loader of this file


def run(text):
    """`text` is JSON: [[number, code, may fail], ...]."""
    cells, names, show = driver.load("cells"), driver.load("names"), driver.load("show")
    cells.driver, cells.names, cells.scope, names.scope = driver, names, driver.world, driver.world
    names.open_history(cells.sources)
    driver.sources, driver.Hooks.after["linecache"] = cells.sources, cells.fill_linecache
    cells.main_thread = __import__("_thread").get_ident()
    cells.await_asyncio()
    answer, show.draw = driver.load("answer"), close
    answer.open()
    answer.silent = True
    for number, code, may_fail in driver.scan(text, 0)[0]:
        driver.sent_results = show.RESULTS_MAX   # others are not sent
        cells.take({"cell": number, "code": code})
        try:
            value = driver.run_codes(*driver.compile_program(), driver.world)
            if value is not None:
                names.keep(number, value)
            cells.begin_tasks()
        except SystemExit:
            pass
        except Exception:
            if not may_fail:
                raise
        finally:
            "magics" in driver.loaded and driver.loaded["magics"].over()
        driver.show_figures()


def close(figure):
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)
    return b""
