"""How a fake misbehaves: one Fault spoils the answer to one request."""
import select
import time
from dataclasses import dataclass, field


@dataclass
class Fault:
    """Everything off by default; what is set is done. Bytes are counted in the body."""

    error: str = None            # a row of the server's ERRORS, with its own status and body
    status: int = None           # another status than that row's, or with `body`
    headers: dict = field(default_factory=dict)  # a function as value is asked when it is sent
    body: bytes = None           # instead of any answer; 200 unless `status`
    content_type: str = None
    retry_after: str = None
    redirect: str = None         # a location
    drop: bool = False           # the connection closes before any byte
    slow_s: float = 0            # before the first byte
    hold: object = None          # a threading.Event for which the answer waits
    pace_s: float = 0            # between two events
    cut_after: int = None        # bytes; then the connection breaks
    stall_after: int = None      # bytes; then silence until the client leaves
    split: int = 0               # bytes a write; 1: every byte alone
    newline: str = "\n"          # between lines of the stream
    error_event: int = None      # so many events, then the wire's own error in the stream
    noise: bool = False          # comments, pings, unknown events and fields on the way
    no_usage: bool = False
    no_done: bool = False        # without the wire's last word: [DONE]
    no_end: bool = False         # without its end of reply: message_stop, finish_reason, completed
    cut_arguments: int = None    # characters of a tool call's arguments
    odd_arguments: bool = False  # an object where the wire has a string, or a string for an object
    no_ids: bool = False         # tool calls without an id
    endless: bool = False        # text for ever


HTML = Fault(status=502, content_type="text/html",
             body=b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>")
GARBAGE = Fault(body=b"\x00\xff{{{ this is no reply \xfe\r\n\r\n" * 20)


class Cut(Exception):
    """The connection is to end here."""


class Pipe:
    """The body's way to the client, as the fault has it."""

    def __init__(self, handler, fault, chunked):
        self.handler, self.fault, self.chunked, self.sent = handler, fault, chunked, 0

    def write(self, data):
        fault = self.fault
        for bound in (fault.cut_after, fault.stall_after):
            if bound is not None and self.sent + len(data) > bound:
                self.pass_on(data[:bound - self.sent])
                if fault.stall_after is not None:
                    self.stall()
                raise Cut
        self.pass_on(data)

    def pass_on(self, data):
        step = self.fault.split or len(data) or 1
        for at in range(0, len(data), step):
            part = data[at:at + step]
            self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if self.chunked else part)
        self.sent += len(data)

    def end(self):
        if self.chunked:
            self.handler.wfile.write(b"0\r\n\r\n")

    def stall(self):
        """Until the client hangs up, or the server ends."""
        while not self.handler.server.fake.closing.is_set():
            if select.select([self.handler.connection], [], [], 0.05)[0]:
                return

    def pause(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.handler.server.fake.closing.is_set():
            time.sleep(min(0.02, max(0, end - time.monotonic())))
