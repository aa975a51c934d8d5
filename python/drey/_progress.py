"""Progress of what takes long: for a function of the program, or as a bar."""
import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional

from ._errors import UsageError
from ._library import ffi, lib
from ._sizes import size_text

ProgressFn = Callable[[str, int, int], Any]
_LABELS = {"load target": "loading", "load draft": "loading the draft", "prompt": "reading the prompt",
           "pull": "downloading"}


class Progress:
    """Calls a program's function(what, done, total) from within passes. What it raises ends the pass."""

    def __init__(self, call: Optional[ProgressFn], verbose: bool) -> None:
        if call is not None and not callable(call):
            raise UsageError("progress is a function of (what, done, total), not %.60r" % (call,))
        self._call = call or (Bar() if verbose and shows_bars() else None)
        self._session: Any = None  # whose pass is under way
        self._failed: List[BaseException] = []
        self.callback = ffi.callback("drey_progress_fn", self._take, onerror=self._on_error) if self._call else ffi.NULL

    def _take(self, _user: Any, what: int, done: int, total: int) -> None:
        if self._call and not self._failed:
            self._call(ffi.string(lib.drey_progress_name(what)).decode(), done, total)

    def _on_error(self, _kind: Any, error: BaseException, _trace: Any) -> None:
        self._failed.append(error)
        if self._session and self._session[0]:
            lib.drey_session_cancel(self._session[0])

    def clear(self) -> None:
        """Removes the bar: a text follows, or an error, or nothing."""
        if isinstance(self._call, Bar):
            self._call.clear()

    @contextmanager
    def of(self, session: Any) -> Iterator[None]:
        """The time of a pass of a session (a drey_session **)."""
        self._session = session
        try:
            yield
        finally:
            self._session = None
        if self._failed:
            failed, self._failed = self._failed, []
            raise failed[0]


def shows_bars() -> bool:
    """Returns whether standard error is a terminal, or a notebook's."""
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())


class Bar:
    """One line on standard error, drawn again and again, but not more often than people see: in a
    notebook each time is a message to the browser."""
    _WIDTH = 30
    _PAUSE_S = 0.1

    def __init__(self) -> None:
        self._drawn = ""
        self._next = 0.0  # when it is drawn again

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next and done < total:
            return
        self._next = now + self._PAUSE_S
        share = min(1.0, done / total) if total else 0.0
        full = round(share * self._WIDTH)
        bar = "#" * full + "." * (self._WIDTH - full)
        size = ("%d of %d tokens" % (done, total) if what == "prompt" else
                "%s of %s" % (size_text(done), size_text(total)))
        self._draw("%s [%s] %3.0f %%  %s" % (_LABELS.get(what, what), bar, 100 * share, size))

    def clear(self) -> None:
        self._draw("")

    def _draw(self, line: str) -> None:
        if line != self._drawn:
            sys.stderr.write("\r%s%s%s" % (line, " " * (len(self._drawn) - len(line)), "" if line else "\r"))
            sys.stderr.flush()
            self._drawn = line
