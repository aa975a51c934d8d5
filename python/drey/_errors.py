"""Errors, an exception for each code of drey_status. The message is the library's, a sentence that says
what to do, with Python's names of options."""
import re
from typing import Any

from ._library import ffi, lib


class Error(Exception):
    """Any error of the library; `code` is the drey_status."""
    code = 0


class UsageError(Error, ValueError):
    """An argument is out of range, or two contradict each other."""


class MemoryBudgetError(Error, MemoryError):
    """The budget is too small (the message names the smallest), or the system refused memory."""


class IOFailure(Error, OSError):
    """A file cannot be opened, read or written."""


class NotFound(IOFailure, FileNotFoundError):
    """There is no such file, and no model of that name."""


class FormatError(Error):
    """A file is broken, or not what it claims to be."""


class UnsupportedError(Error):
    """A good file that this version cannot run."""


class MismatchError(Error):
    """Files that do not fit together, as a draft with other tokens."""


class ContextError(Error):
    """The prompt does not fit into the context."""


class CancelledError(Error):
    """The text was cancelled."""


_CLASSES = {lib.DREY_ERR_USAGE: UsageError, lib.DREY_ERR_MEMORY: MemoryBudgetError,
            lib.DREY_ERR_IO: IOFailure, lib.DREY_ERR_FORMAT: FormatError,
            lib.DREY_ERR_UNSUPPORTED: UnsupportedError, lib.DREY_ERR_MISMATCH: MismatchError,
            lib.DREY_ERR_CONTEXT: ContextError, lib.DREY_ERR_CANCELLED: CancelledError}


# Names of options in the library's messages, and here.
_NAMES = {"n_sessions": "sessions", "n_context": "context", "n_threads": "threads", "memory_bytes": "memory",
          "n_predict": "max_tokens", "cpu_tier": "cpu", "last_n": "penalty_last_n", "n_top": "logprobs"}
_NAME = re.compile(r"\b(%s)\b" % "|".join(_NAMES))
# The option that a message is about.
_HINTS = {lib.DREY_HINT_N_CONTEXT: "context=", lib.DREY_HINT_MEMORY_BYTES: "memory=",
          lib.DREY_HINT_N_THREADS: "threads=", lib.DREY_HINT_SIDECAR: "drey prepare",
          lib.DREY_HINT_PREPARE: "drey prepare --force", lib.DREY_HINT_PLANES: "drey prepare --planes",
          lib.DREY_HINT_EXIT_FILE: "drey train exit", lib.DREY_HINT_HEADS: "drey train medusa -m MODEL",
          lib.DREY_HINT_CHAT: "generate() instead of chat()"}


def new_error() -> Any:
    return ffi.new("drey_error *")


def check(status: int, err: Any) -> None:
    """Raises the exception for a status that is not DREY_OK."""
    if status != lib.DREY_OK:
        said = ffi.string(err.message).decode(errors="replace")
        hint = _HINTS.get(err.hint)
        error = _CLASSES.get(status, Error)(_NAME.sub(lambda name: _NAMES[name[1]], said) +
                                            (" (%s)" % hint if hint else ""))
        error.code = status
        raise error
