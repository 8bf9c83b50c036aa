"""A box looks like a system: tools and libraries find what they expect, sized by the box's limits."""
import shutil

import pytest

LIMITS = {"memory_bytes": 300 << 20, "cpus": 2, "pids": 50, "timeout_s": 30}


def run(cupel, code, language="bash", **limits):
    result = cupel.run_json(code, language, limits={**LIMITS, **limits})
    assert result["status"] == "ok", (result["error"], result["stderr"])
    return result["stdout"]


def tool(name):
    return pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"no {name}"))


TOOLS = {
    "free": ("free -k | awk '/Mem/ {print $2}'", "307200"),
    "uptime": ("uptime", "load average: 0.00"),
    "ps": ("ps aux | head -1; ps -eo comm", "COMMAND"),
    "top": ("top -b -n1", "MiB Mem :    300.0 total"),
    "lscpu": ("lscpu; lscpu --parse=core | grep -vc '#'", "Core(s) per socket:  2"),
    "script": ("script -qc 'tty; echo hi' /dev/null </dev/null", "/dev/pts/0\r\nhi"),
    "tmux": ("export TERM=xterm LC_ALL=C.UTF-8; tmux new-session -d 'tty > name; sleep 20'; "
             "until [ -s name ]; do sleep 0.1; done; cat name; tmux kill-server", "/dev/pts/0"),
    "df": ("df /workspace; cat /etc/mtab", "/workspace"),
}


@pytest.mark.parametrize("name", [tool(name) for name in TOOLS])
def test_the_tool_works(cupel_as, name):
    code, want = TOOLS[name]
    assert want in run(cupel_as, code)


def test_pools_have_the_size_of_the_limits(cupel_as):
    said = run(cupel_as, "import os, multiprocessing\n"
               "print(os.cpu_count(), multiprocessing.cpu_count())\n"
               "for n in 'cpu.max memory.max pids.max cgroup.controllers'.split():\n"
               "    print(open('/sys/fs/cgroup/' + n).read(), end='')\n", "python")
    assert said == f"2 2\n200000 100000\n{300 << 20}\n50\ncpu memory pids\n"
    assert run(cupel_as, "import os; print(os.cpu_count())", "python", cpus=0.5) == "1\n"


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_node_sees_the_processors_and_the_memory(cupel_as):
    code = "const os = require('os'); console.log(os.cpus().length, os.totalmem(), os.loadavg()[0])"
    assert run(cupel_as, code, "javascript") == f"2 {300 << 20} 0\n"


TERMINALS = """
import os, pty, sys
pid, leader = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "-c", "tty; echo $((6 * 7)) > /dev/tty; stty size"])
text = b""
try:
    while data := os.read(leader, 1000):
        text += data
except OSError:
    pass
print(text, os.waitpid(pid, 0)[1])
"""


def test_a_program_gets_a_terminal(cupel_as):
    assert run(cupel_as, TERMINALS, "python") == "b'/dev/pts/0\\r\\n42\\r\\n0 0\\r\\n' 0\n"


def test_authorities_and_the_release_are_known(cupel_as):
    code = ("import ssl, platform\n"
            "ssl.create_default_context().load_verify_locations('/etc/ssl/certs/ca-certificates.crt')\n"
            "context = ssl.create_default_context()\n"
            "print(context.verify_mode.name, platform.freedesktop_os_release()['ID'] != '')\n")
    assert run(cupel_as, code, "python") == "CERT_REQUIRED True\n"
    assert run(cupel_as, "ls /etc/ssl") == "certs\nopenssl.cnf\n", "the host's keys are not there"


ERRORS = """
import errno, os, socket, tempfile
def said(call, *args):
    try:
        return call(*args)
    except OSError as error:
        return errno.errorcode[error.errno]
print(said(os.setuid, 0), said(os.setgid, 65534), said(os.seteuid, 0), said(os.setreuid, 7, 7),
      said(os.chown, "/workspace", 0, 0), said(os.setuid, os.getuid()), said(os.setreuid, -1, -1))
print(said(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 132),
      said(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 262),
      said(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, 0))
with tempfile.TemporaryFile() as a, tempfile.TemporaryFile() as b:
    a.write(b"x" * 100000), a.flush()
    print(os.sendfile(b.fileno(), a.fileno(), 0, 100000))
"""


def test_errors_are_those_of_an_ordinary_user(cupel_as):
    assert run(cupel_as, ERRORS, "python") == (
        "EPERM EPERM EPERM EPERM EPERM None None\nEPROTONOSUPPORT EPROTONOSUPPORT EAFNOSUPPORT\n100000\n")
