# The driver of languages whose interpreter is no driver itself: R and Java. Runs as the occupant:
#     python3 -S -s foreign.py r|java MEMORY_BYTES
# It starts the interpreter with the code in a file below /tmp, waits, and reports what it left: values, pictures, the
# error with its place (PROTOCOL.md). The interpreter has the box's stdin, stdout and arguments; it does not inherit
# the channel. If a signal ends it, the driver dies of the same one, so that the engine sees it.
import base64
import json
import os
import re
import signal
import subprocess
import sys
import time

WORDS, REQUESTS = 3, 4
TEXT_MAX, IMAGE_MAX, SAID_MAX, PLOTS_MAX = 64 << 10, 8 << 20, 64 << 10, 64
START_S = 1735689600   # 2025-01-01T00:00:00Z
FOLDER, HERE = "/tmp/.foreign", os.path.dirname(os.path.abspath(__file__))
interrupted = False

R_HOME, R_FOLDER = "/usr/lib/R", FOLDER + "/R"
# /etc/R is not in a box. These are the variables without which R's own packages do not load.
R_SETTINGS = "EDITOR=vi\nPAGER=/usr/bin/pager\nTAR=/bin/tar\nR_PAPERSIZE=a4\nR_BROWSER=false\nR_PDFVIEWER=false\n"
R_ENV = {"R_HOME": R_FOLDER, "LD_LIBRARY_PATH": R_HOME + "/lib", "R_SHARE_DIR": "/usr/share/R/share",
         "R_INCLUDE_DIR": "/usr/share/R/include", "R_DOC_DIR": "/usr/share/R/doc", "R_LIBS_USER": "/workspace/.R",
         "R_LIBS_SITE": "/usr/lib/R/site-library:/usr/lib/R/library"}
# Neither is /etc/java-*, without which no class of java.security loads.
JAVA_SECURITY = """security.provider.1=SUN
security.provider.2=SunRsaSign
security.provider.3=SunEC
security.provider.4=SunJSSE
security.provider.5=SunJCE
securerandom.source=file:/dev/urandom
securerandom.strongAlgorithms=NativePRNGBlocking:SUN,DRBG:SUN
keystore.type=pkcs12
crypto.policy=unlimited
"""
JAVA_POLICY = "grant { permission javax.crypto.CryptoAllPermission; };\n"


def read_line():
    parts = []
    while not parts or b"\n" not in parts[-1]:
        parts.append(os.read(REQUESTS, 1 << 16))
        if not parts[-1]:
            os._exit(1)   # the engine is gone
    return b"".join(parts)


def send(**line):
    rest = b"\n" + json.dumps(line).encode() + b"\n"
    while rest:
        rest = rest[os.write(WORDS, rest):]


def cut(text, most=TEXT_MAX):
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return raw.decode()
    note = f"\n[cut: {len(raw)} bytes, the maximum is {most}]"
    return raw[:most - len(note)].decode("utf-8", "ignore") + note


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(name, most=TEXT_MAX):
    try:
        with open(f"{FOLDER}/{name}", "rb") as file:
            return file.read(most + 1)
    except OSError:
        return None


def link_all(source, target, but=()):
    os.makedirs(target, exist_ok=True)
    for name in os.listdir(source):
        if name not in but:
            os.symlink(f"{source}/{name}", f"{target}/{name}")


def send_error(kind, name, message, lines, line=None, column=None, traceback=""):
    snippet = lines[line - 1][:1000] if line and 0 < line <= len(lines) else None
    send(op="error", kind=kind, name=cut(name, 256), message=cut(message), line=line or None, column=column or None,
         snippet=snippet, traceback=cut(traceback), interrupted=interrupted)


# ---- R ----
def start_r(args, memory):
    link_all(R_HOME, R_FOLDER, but=("etc",))
    put(R_FOLDER + "/etc/Renviron", R_SETTINGS)
    os.environ.update({**R_ENV, "CUPEL_R": FOLDER})
    return [R_HOME + "/bin/exec/R", "--no-echo", "--vanilla", f"--file={HERE}/main.R", "--args", *args]


def report_r(said, lines, status):
    value = read("value")
    if value and not os.path.exists(FOLDER + "/error"):
        text = value.decode("utf-8", "replace")
        send(op="result", data={"text/plain": cut(text.removesuffix("\n"))}, main=True)
    plots = sorted(name for name in os.listdir(FOLDER) if name.startswith("plot-"))
    for name in plots[:PLOTS_MAX]:
        picture = read(name, IMAGE_MAX)
        if picture and len(picture) <= IMAGE_MAX:
            send(op="result", data={"text/plain": "<R plot>", "image/png": base64.b64encode(picture).decode()})
    told = (read("error") or b"").decode("utf-8", "replace").split("\n")
    if len(told) > 3:
        told = [text.replace("\\n", "\n").replace("\\\\", "\\") for text in told]
        name, line, column, message, *calls = told
        line, column = [int(number) if number.isdigit() else None for number in (line, column)]
        missing = re.search(r"there is no package called .(\w[\w.]*)", message)
        kind = "syntax" if name == "SyntaxError" else "import" if missing else "exception"
        trace = [f"Error: {message}", *[f"  in {call}" for call in reversed(calls) if call]]
        send_error(kind, "Error" if name == "simpleError" else name, message, lines, line, column, "\n".join(trace))


# ---- Java ----
def start_java(args, memory):
    home = os.path.dirname(os.path.dirname(os.path.realpath("/usr/bin/javac")))
    own, security = FOLDER + "/home", FOLDER + "/home/conf/security"
    link_all(home, own, but=("conf",))
    put(security + "/java.security", JAVA_SECURITY)
    for name in ("default_US_export.policy", "default_local.policy"):
        put(f"{security}/policy/unlimited/{name}", JAVA_POLICY)
    # Half of the memory is heap: the compiler, classes and stacks need the rest. One collector thread and one compiler:
    # threads count as processes.
    return [home + "/bin/java", f"-Djava.home={own}", f"-Xmx{max(memory // 2 >> 20, 16)}m", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto", "-XX:+DisableAttachMechanism",
            "-Djava.awt.headless=true", f"{FOLDER}/Main.java", *args]


def report_java(said, lines, status):
    bad = re.search(r"^\S*Main\.java:(\d+): error: (.*)\n(.*)\n( *)\^", said, re.M)
    if bad:
        kind = "import" if re.match(r"package \S+ does not exist", bad[2]) else "syntax"
        return send_error(kind, "CompileError", bad[2], lines, int(bad[1]), len(bad[4]) + 1, said[bad.start():])
    thrown = re.search(r'^Exception in thread "[^"\n]*" ([\w.$]+)(?:: (.*))?$', said, re.M)
    if thrown and status:
        at = re.search(r"\(Main\.java:(\d+)\)", said[thrown.end():])
        send_error("exception", thrown[1].rpartition(".")[2], thrown[2] or "", lines, at and int(at[1]),
                   traceback=said[thrown.start():])


def begin_seeded(seed, language):
    """The start of the clock (src/box/seed/seed.c), and R's seed, of 31 bits. Java's waits are no timeouts that the
    clock knows: it shows whole true seconds from the first on."""
    if not START_S <= time.time() < START_S + 30 * 86400:
        raise RuntimeError("the clock of this box cannot be fixed: its programs do not load seed.so")
    os.environ["CUPEL_R_SEED"] = str(seed % 0x7FFFFFFF)
    with open("/dev/shm/.cupel-clock", "r+b", buffering=0) as page:
        words = 1, 0, 10 ** 9 * (language == "java")   # the cell, its step and grace
        page.write(b"".join(word.to_bytes(8, sys.byteorder) for word in words))


LANGUAGES = {"r": ("main.R", start_r, report_r), "java": ("Main.java", start_java, report_java)}


def run(command, keep):
    """The exit status, negative for a signal, and the end of stderr, which is passed on as it comes."""
    def interrupt(*_):
        global interrupted
        interrupted = True
        child.send_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)   # until there is a child
    child = subprocess.Popen(command, stderr=subprocess.PIPE if keep else None, restore_signals=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    signal.signal(signal.SIGINT, interrupt)
    said = b""
    while keep:
        part = os.read(child.stderr.fileno(), 1 << 16)
        if not part:
            break
        os.write(2, part)
        said = said + part if len(said) < SAID_MAX else said
    return child.wait(), said.decode("utf-8", "replace")


def main():
    language, memory = sys.argv[1], int(sys.argv[2])
    request = json.loads(read_line())
    os.environ.update(request.get("env") or {})
    for fd in (WORDS, REQUESTS):
        os.set_inheritable(fd, False)
    program, start, report = LANGUAGES[language]
    put(f"{FOLDER}/{program}", request["code"])
    if "seed" in request:
        begin_seeded(request["seed"], language)
    status, said = run(start(request["args"], memory), keep=language == "java")
    lines = request["code"].split("\n")
    if interrupted:
        send_error("exception", "Interrupted", "the run was interrupted", lines)
        status = 130
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    if not interrupted:
        report(said, lines, status)
    send(op="done", exit_code=status & 255)
    sys.exit(status & 255)


main()
