"""Objects of the C library, which ends the process if one is used after it was closed, or closed while
it is used. Python programs do both: they close in any order and from any thread, drop texts in the
middle, fork, and run finalizers and signal handlers between any two lines of this package.

    Held    counts who uses an object: calls while they last, and objects that borrow it. Closing it
            refuses new uses at once; it is freed when the last use ends.
    Turns   lets one call at a time into an engine. What has to be freed in a call's middle (a
            finalizer may run there) is left to that call, which does it when it ends.

After a fork, and when the interpreter ends, nothing is freed: a child has no threads of its parent's
engines, and the system takes the memory anyway.
"""
import atexit
import os
import threading
import weakref
from collections import deque
from contextlib import contextmanager
from typing import Callable, Deque, Iterator, List, Optional, TypeVar

from ._errors import UsageError

T = TypeVar("T")
_ended: List[bool] = []  # of the interpreter
atexit.register(_ended.append, True)


class _Here(threading.local):
    """Counts what this thread does with objects. In its middle, as in a signal handler, it does not
    wait for their uses to end: they may be its own."""
    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


_here = _Here()


class Turns:
    """Calls into an engine, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._inside = False
        self._left: Deque[Callable[[], None]] = deque()

    def take(self, call: Callable[[], T]) -> T:
        """Waits for the calls of other threads, and calls."""
        try:
            with self._lock:
                if self._inside:
                    raise UsageError("the model is in the middle of a pass: a signal handler or a finalizer that "
                                     "interrupts it can close or cancel texts, and nothing else")
                try:
                    self._inside = True
                    self._do_left()
                    return call()
                finally:
                    self._inside = False
        finally:
            self._sweep()

    def leave(self, job: Callable[[], None]) -> None:
        """Calls a job now, or leaves it to the call that is under way. Never waits."""
        with _here:  # before _inside is set: a signal handler between the two would wait for itself
            self._left.append(job)
            self._sweep()

    def _do_left(self) -> None:
        with _here:
            while self._left:
                self._left.popleft()()

    def _sweep(self) -> None:
        """Does what was left, unless another call does so when it ends."""
        while self._left and self._lock.acquire(blocking=False):
            try:
                if self._inside:
                    return
                try:
                    self._inside = True
                    self._do_left()
                finally:
                    self._inside = False
            finally:
                self._lock.release()


class Held:
    """An object of the C library. A subclass has its name for messages, opens it within _using, and
    says how to free it (also if it was not opened). `needs` is what it borrows, and stays until it
    is freed; closing that closes it first."""
    _name = ""
    _closed = True  # until __init__ has run

    def __init__(self, needs: Optional["Held"] = None, turns: Optional[Turns] = None) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._uses = 0
        self._unfreed = [True]  # emptied by the one who frees
        self._freed = threading.Event()
        self._turns = turns
        self._borrowers: "weakref.WeakValueDictionary[int, Held]" = weakref.WeakValueDictionary()
        self._needs = needs
        with _here:
            if needs:
                needs._take()
                needs._borrowers[id(self)] = self
            self._closed = False

    # ---- What a subclass says ----

    def _free(self) -> None:
        raise NotImplementedError

    def _interrupt(self) -> None:
        """Stops what takes long in the object, if anything does."""

    # ---- Uses ----

    @contextmanager
    def _using(self) -> Iterator[None]:
        """The time of a call. UsageError: it is closed, or of another process."""
        with _here:
            self._take()
            try:
                yield
            finally:
                self._drop()

    def _alive(self) -> bool:
        """Returns whether the object can be freed here and now."""
        return self._process == os.getpid() and not _ended

    def _check(self) -> None:
        if self._needs:
            self._needs._check()
        if self._closed:
            raise UsageError("the %s is closed" % self._name)
        if self._process != os.getpid():
            raise UsageError("the %s belongs to the process that opened it, before a fork: open the model in this "
                             "one" % self._name)

    def _take(self) -> None:
        self._check()
        with self._lock:
            self._uses += 1
        try:
            self._check()  # it may have been closed meanwhile, and freed
        except UsageError:
            self._drop()
            raise

    def _drop(self) -> None:
        with self._lock:
            self._uses -= 1
        self._settle()

    def _settle(self) -> None:
        """Frees what is closed and has no more uses."""
        if not self._alive():
            return
        with _here:
            with self._lock:
                if not self._closed or self._uses:
                    return
                try:
                    self._unfreed.pop()
                except IndexError:
                    return
            if self._turns:
                self._turns.leave(self._finish)
            else:
                self._finish()

    def _finish(self) -> None:
        self._free()
        if self._needs:
            self._needs._drop()
        self._freed.set()

    # ---- The end ----

    def _shut(self) -> None:
        """Closes without waiting."""
        if self._closed:
            return
        if not self._alive():
            self._closed = True
            return
        with _here:
            with self._lock:
                self._uses += 1
            try:
                self._closed = True
                for borrower in self._borrowers.valuerefs():
                    held = borrower()
                    if held:
                        held._shut()
                self._interrupt()
            finally:
                self._drop()

    def close(self) -> None:
        """Closes, and waits for calls of other threads to end."""
        open_here = not self._closed and self._alive()
        self._shut()
        if open_here and not _here.depth:
            self._freed.wait()

    def __del__(self) -> None:
        if not _ended:
            self._shut()
