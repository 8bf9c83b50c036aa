# Large values of tools: each is a file of the box, written part by part as tools.py reads them. Runs as the occupant;
# loaded with tools.py. The file is the code's own: a forged handle opens what the code itself may open.
import posix

driver = None            # the module; set by the loader of this file
FOLDER = "/tmp/tools"
FLAGS = posix.O_RDWR | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW | posix.O_CLOEXEC
landed = 0               # values so far


class ToolLarge:
    """A value of more than 1 MiB, in a file: JSON, or the text if the value is one."""
    __module__ = "tools"

    def __init__(self, path, size):
        self.path, self.size = path, size

    def __repr__(self):
        return f"ToolLarge({self.path!r}, {self.size} bytes)"

    def __fspath__(self):
        return self.path

    def open(self, mode="r"):
        """The file, to be read."""
        return open(self.path, mode, encoding=None if "b" in mode else "utf-8")

    def read(self):
        """All of it, as a text."""
        with self.open() as file:
            return file.read()

    def json(self):
        """The value itself."""
        with self.open() as file:
            return __import__("json").load(file)


class Landing:
    """The file of a large value. A fault of the disk is the call's, when its last line has come."""
    fault = fd = None

    def __init__(self, tool):
        global landed
        try:
            try:
                posix.mkdir(FOLDER)
            except FileExistsError:
                pass
            while self.fd is None:
                landed += 1
                self.name = f"{FOLDER}/{tool}-{landed}"
                try:
                    self.fd = posix.open(self.name, FLAGS, 0o600)
                except FileExistsError:
                    pass
        except OSError as fault:
            self.fault = fault

    def forget(self):
        fd, self.fd = self.fd, None
        if fd is not None:
            posix.close(fd)
            try:
                posix.unlink(self.name)
            except OSError:   # the code was faster
                pass

    def add(self, part):
        try:
            while part and not self.fault:
                part = part[posix.write(self.fd, part):]
        except OSError as fault:
            self.fault = fault
            self.forget()

    def finish(self, size):
        if self.fault:
            raise self.fault
        if posix.fstat(self.fd).st_size != size:
            raise OSError("a part of it is missing")
        with open(self.fd, "r+b", 0, closefd=False) as file:
            file.seek(0)
            if file.read(1) == b'"':
                text = driver.scan('"' + file.read().decode(), 0)[0].encode()
                file.seek(0)
                file.truncate()
                self.add(text)
                size = len(text)
        if self.fault:
            raise self.fault
        posix.fchmod(self.fd, 0o444)
        posix.close(self.fd)
        self.fd = None
        return ToolLarge(self.name, size)

    def end(self, size):
        """The value for the code; OSError or MemoryError where the box cannot keep it."""
        try:
            return self.finish(size)
        except BaseException:
            self.forget()
            raise
