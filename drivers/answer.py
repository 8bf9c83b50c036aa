# The agent's answer: answer(template, **values), cannot_answer(reason) and ask_user(question), for the code of a
# session whose environment has CUPEL_AGENT=1, and for its rerun. Runs as the occupant; cells.py and proof.py call
# `open`.
#
# 1. The functions are in builtins: the code's own names stay its own.
# 2. An answer is one shown result (MIME below): its values as JSON with their types, its files, and the inputs that the
#    code has opened so far, with the places of the code that did.
# 3. Those notes are part of the process: they go back with it when a cell is undone, and along with a fork.
# 4. The audit hook never fails and costs an event that it does not know one lookup.
import builtins
import posix
import sys

MIME = "application/vnd.cupel.answer+json"
VALUES_MAX, TEXT_MAX, PAYLOAD_MAX, FILES_MAX, RESULTS_MAX = 50, 64 << 10, 1 << 20, 50, 255
INPUTS_MAX, PLACES_MAX, LOOKED_AT_MAX, DEPTH_MAX = 64, 64, 2000, 8
HOME, OTHERS = "/workspace", ("/mnt/data", "/home/user")   # OTHERS lead to HOME
LISTS, CHILDREN = ("os.listdir", "os.scandir"), ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
EVENTS = frozenset(("open", "sqlite3.connect", "glob.glob", *LISTS, *CHILDREN))
OVER_ALL = ("*", "?", "|", "$(", "`", "find ", "xargs")   # a command with one of these may read every input
NAMES = ("answer", "cannot_answer", "ask_user")

driver = None      # the module; set by the loader of this file
inputs = {}        # by path below HOME: {(cell, line)}, None before the first open
opened = False     # is this session the agent's?
answered = None    # the cell that has answered
silent = False     # proof.py: no other results are sent


def values():
    return driver.load("values")


def render(template, values_, types):
    """The text of an answer from its JSON."""
    return values().render(template, values_, types)


# ---- the functions ----
def place():
    """(cell, line) of the innermost code of a cell that is running."""
    return (places(sys._getframe(2)) or [(None, None)])[0]


def places(frame):
    found = []
    while frame:
        name = frame.f_code.co_filename
        if name.startswith("<cell ") and name[6:-1].isdigit():
            found.append((int(name[6:-1]), frame.f_lineno))
        frame = frame.f_back
    return found


def checked_text(text, what, call):
    if not isinstance(text, str):
        raise TypeError(f"{what} is a text, not {type(text).__name__}: {call}")
    text = str.encode(text, "utf-8", "replace").decode().replace("\0", "\ufffd")
    if not text.strip():
        raise ValueError(f"{what} is empty: {call}")
    if len(text.encode()) > TEXT_MAX:
        raise ValueError(f"{what} has {len(text.encode())} bytes, the maximum is {TEXT_MAX}")
    return text


def answer(*template, files=(), **given):
    """Answer the question: the text with {name} for each value, name=value for each of them, files=[...] that belong to
    it."""
    global answered
    call = 'answer("... {x:.1f} ...", x=value)'
    if not template and "template" in given:
        template = (given.pop("template"),)
    if len(template) != 1:
        raise TypeError(f"answer() takes one text, and values by name: {call}")
    text, (cell, line) = checked_text(template[0], "the template", call), place()
    if answered is not None and answered == driver.program:
        raise RuntimeError("this cell has answered already: put all values into one template, in one call")
    if len(given) > VALUES_MAX:
        raise ValueError(f"{len(given)} values, the maximum is {VALUES_MAX}: put those of a kind into a list or table")
    plain, types = {}, {}
    for name, value in given.items():
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name for a value")
        try:
            plain[name], kind = values().encode(value)
        except (TypeError, ValueError) as problem:
            raise type(problem)(f"value '{name}': {problem}") from None
        values().note_types(name, plain[name], kind, types)
    made = driver.load("made").check(files, inputs, FILES_MAX)
    shown = render(text, plain, types)
    send({"kind": "answer", "cell": cell, "line": line, "template": text, "text": shown, "values": plain,
          "types": types, "files": made}, shown)
    answered = driver.program


def cannot_answer(reason):
    """End the task: the data have no answer to the question, for this reason."""
    reason = checked_text(reason, "the reason", 'cannot_answer("the data have no ...")')
    send({"kind": "cannot_answer", "reason": reason}, f"cannot answer: {reason}")


def ask_user(question):
    """Ask whoever asked."""
    question = checked_text(question, "the question", 'ask_user("Which ...?")')
    send({"kind": "ask_user", "question": question}, f"to the user: {question}")


def send(payload, text):
    cell, line = place() if "cell" not in payload else (payload["cell"], payload["line"])
    payload |= {"cell": cell, "line": line}
    if payload["kind"] != "ask_user":
        payload["opened"] = [{"path": path, "at": sorted(at)} for path, at in inputs.items() if at is not None]
    told = driver.to_json(payload)
    if len(told) > PAYLOAD_MAX:
        raise ValueError(f"the answer has {len(told)} bytes, the maximum is {PAYLOAD_MAX}: make it short, or write a "
                         "file and name it in files=")
    if posix.getpid() != driver.main_pid:
        raise RuntimeError("a child process cannot answer: give the values back, and call it in the cell itself")
    if driver.sent_results >= RESULTS_MAX and not silent:
        raise RuntimeError(f"this cell has shown {driver.sent_results} results: answer in a cell of its own")
    driver.sent_results += 1
    driver.send(f'{{"op":"result","data":{{"{MIME}":{told},"text/plain":{driver.to_json(driver.clean(text))}}}}}')


# ---- the inputs ----
def look(folder=HOME, depth=0, left=None):
    """Files below /workspace: [(path, may be written)]."""
    left, found = left or [LOOKED_AT_MAX], []
    try:
        with posix.scandir(folder) as entries:
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    break
                if entry.is_file(follow_symlinks=False):
                    found.append((entry.path, entry.stat().st_mode & 0o222))
                elif depth < DEPTH_MAX and entry.is_dir(follow_symlinks=False):
                    found += look(entry.path, depth + 1, left)
    except OSError:
        pass   # gone, or not ours
    return found


def find_inputs():
    """The inputs are the files that were placed read-only; if there are none, all that are here before the code."""
    found = look()
    fixed = [path for path, writable in found if not writable]
    for path in sorted(fixed or [path for path, _ in found if not opened])[:INPUTS_MAX]:
        inputs.setdefault(path.removeprefix(HOME + "/"), None)


def normal(path):
    """The path below HOME ("" for itself), or None."""
    if type(path) is not str:
        path = sys.modules["os"].fsdecode(path)
    if path.startswith(("/usr/", "/lib", "/proc/", "/tmp/")):
        return None
    path = sys.modules["posixpath"].normpath(path if path[:1] == "/" else f"{posix.getcwd()}/{path}")
    for other in OTHERS:
        path = HOME + path[len(other):] if f"{path}/".startswith(other + "/") else path
    return path[len(HOME) + 1:] if f"{path}/".startswith(HOME + "/") else None


def in_folder(folder):
    return [path for path in inputs if path.rpartition("/")[0] == folder] if folder is not None else []


def read_by_child(parts):
    """The inputs that a command names; all if it may read what it does not name."""
    text = " ".join([sys.modules["os"].fsdecode(one) for one in parts])
    named = [path for path in inputs if path.rpartition("/")[2] in text]
    return named or ([*inputs] if any([sign in text for sign in OVER_ALL]) else [])


def is_import(frame):
    """Does an import of the code read or list files, and not the code itself?"""
    while frame and not frame.f_code.co_filename.startswith("<cell "):
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def read_by(event, args, frame):
    """The inputs that an event reads."""
    caller = frame.f_code.co_filename
    if caller in driver.our_files or is_import(frame):
        return []
    if event == "open":
        if type(args[0]) is int or type(args[2]) is int and args[2] & 3 == 1:   # a descriptor; only for writing
            return []
        return [normal(args[0])]
    if event == "sqlite3.connect":
        return [normal(sys.modules["os"].fsdecode(args[0]).removeprefix("file:").partition("?")[0])]
    if event == "glob.glob":
        pattern = normal(args[0])
        match = __import__("fnmatch").fnmatchcase
        return [path for path in inputs if pattern is not None and match(path, pattern)]
    if event in LISTS:   # glob has told itself what it wants
        return in_folder(normal("." if args[0] is None else args[0])) if not caller.endswith("/glob.py") else []
    command = args[1] if event != "os.system" else args[0]
    return read_by_child([command] if isinstance(command, (str, bytes)) else [args[0], *command])


def hook(event, args):
    if event not in EVENTS:
        return
    try:
        frame = sys._getframe(1)
        found = [path for path in read_by(event, args, frame) if path in inputs]
        for path in found:
            noted = inputs[path] = inputs[path] or set()
            if len(noted) < PLACES_MAX:
                noted.update(places(frame)[:PLACES_MAX - len(noted)])
    except Exception:
        pass   # no path, or no memory or stack left


# ---- the session ----
def explain(own):
    """A hint where the code took the name of a function for a variable."""
    def explained(problem, compiling):
        told = own(problem, compiling)
        if type(problem) is TypeError and str(problem).endswith("object is not callable"):
            line = (told.get("frames") or [{"text": ""}])[-1]["text"]
            for name in NAMES:
                if f"{name}(" in line and name in driver.world and not told.get("hint"):
                    told["hint"] = f"{name} is your own variable now: `del {name}`, or use another name for it"
        return told
    return explained


def open():
    """Give the code the functions, and begin to watch the inputs. Again in a later cell: find new inputs."""
    global opened
    import os   # and posixpath with it
    find_inputs()
    if not opened:
        opened, driver.explain = True, explain(driver.explain)
        vars(builtins).update(answer=answer, cannot_answer=cannot_answer, ask_user=ask_user)
        sys.addaudithook(hook)
