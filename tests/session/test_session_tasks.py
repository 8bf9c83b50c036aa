"""Tasks of asyncio in the cells of a Python session: they go on between cells, and the session stays protected."""
import time

import pytest

from one_engine import client, engine  # noqa: F401
from sessions import Session

TICK = """import asyncio
n = 0
async def tick():
    global n
    while True:
        n += 1
        await asyncio.sleep(0.005)
task = asyncio.create_task(tick())
n"""


@pytest.fixture(params=["warm", "cold"])
def session(request, client):
    env = {} if request.param == "warm" else {"env": {"LANG": "C.UTF-8"}}
    one = Session(client, request={"limits": {"timeout_s": 30}, **env})
    one.is_warm = request.param == "warm"
    return one


def number(session, code="n"):
    return int(session.value(code))


def grows(session, code="n", above=None):
    """Does the number grow between cells?"""
    first = number(session, code) if above is None else above
    until = time.monotonic() + 30
    while number(session, code) < first + 3:
        assert time.monotonic() < until, "it does not grow"
        time.sleep(0.02)
    return True


def test_a_task_goes_on_between_cells(session):
    assert session.value(TICK) == "0"   # it begins after the cell's own code
    assert grows(session)
    session.wait_until_idle()
    assert session.info()["protected"] is session.is_warm
    assert session.run("task.cancel()\nawait asyncio.sleep(0)")["status"] == "ok"
    last = number(session)
    time.sleep(0.1)
    assert number(session) == last and session.value("task.cancelled()") == "True"


def test_the_first_part_of_a_task_prints_in_its_cell(session):
    result = session.run("import asyncio\nasync def f():\n    print('begun')\n    await asyncio.sleep(0)\n"
                         "    print('over')\ntask = asyncio.create_task(f())")
    assert (result["status"], result["stdout"]) == ("ok", "begun\nover\n")
    assert session.value("task.done()") == "True"


def test_the_loop_of_a_cell_is_the_sessions(session):
    session.run("import asyncio\nasync def f(): return asyncio.get_running_loop()")
    assert session.value("loop = asyncio.get_running_loop()\nloop is asyncio.get_event_loop() is await f()") == "True"
    assert session.value("asyncio.run(asyncio.sleep(0, 5))") == "5"
    assert session.value("asyncio.get_event_loop().run_until_complete(asyncio.sleep(0, 6))") == "6"
    assert session.value("asyncio.get_event_loop() is loop") == "True"
    assert session.value("future = asyncio.ensure_future(asyncio.sleep(0, 7))\nawait future") == "7"
    assert session.value("await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))") == "[1, 2]"
    result = session.run("import threading, queue\nsaid = queue.Queue()\ndef f():\n"
                         "    try: asyncio.get_running_loop()\n"
                         "    except RuntimeError as problem: said.put(str(problem))\n"
                         "threading.Thread(target=f).start(); said.get()")
    assert result["results"][0]["text/plain"] == "'no running event loop'"
    session.run("loop.close()")
    assert session.value("await asyncio.sleep(0, 8)") == "8"


def test_timers_servers_and_failures_go_on(session):
    session.run("import asyncio\nseen = []\nasyncio.get_running_loop().call_later(0.05, seen.append, 1)\n"
                "async def answer(reader, writer):\n    writer.write(await reader.readline())\n    writer.close()\n"
                "server = await asyncio.start_server(answer, '127.0.0.1', 7007)")
    until = time.monotonic() + 30
    while session.value("seen") != "[1]":
        assert time.monotonic() < until
        time.sleep(0.02)
    program = "import socket\none = socket.create_connection(('127.0.0.1', 7007))\none.send(b'hi\\n')\n" \
              "print(one.recv(9))"
    session.run(f"import subprocess\nchild = subprocess.Popen(['python3', '-c', {program!r}], stdout=-1)")
    time.sleep(0.5)   # the server answers while no cell runs
    assert session.value("child.communicate()[0]") == r"b\"b'hi\\n'\n\"".replace('\\"', '"')
    session.run("server.close()\nasync def bad():\n    raise SystemExit(3)\nasync def late():\n"
                "    await asyncio.sleep(0.02)\n    raise SystemExit(4)\ntask = asyncio.create_task(late())")
    time.sleep(0.1)
    assert session.value("1 + 1") == "2"   # the end of a task is not that of the session


def test_a_cell_waits_for_no_task(session):
    session.run("import asyncio, time\nasync def hog():\n    while True:\n        await asyncio.sleep(0)\n"
                "task = asyncio.create_task(hog())")
    assert session.value("40 + 2") == "42"
    assert session.run("task.cancel()")["status"] == "ok"


def test_tasks_come_back_with_their_state(client):
    session = Session(client, request={"limits": {"timeout_s": 30}})
    session.run(TICK)
    assert grows(session)
    session.run("n = 10 ** 6")
    session.wait_until_idle()
    session.ask("undo")
    assert number(session) < 10 ** 6 and grows(session)
    child = Session(client, id=session.ask("fork")["session"]["session"])
    assert grows(child) and grows(session)
    session.run("import os; os.abort()")
    assert grows(session)
    session.wait_until_idle()
    assert session.info()["protected"] is True
    assert child.value("await asyncio.sleep(0, 'awake')") == "'awake'"
