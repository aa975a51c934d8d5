"""Values of Python programs as the library takes them; UsageError: they cannot be."""
import json
import os
import sys
import warnings
from typing import Any

from ._errors import UsageError
from ._library import ffi


def encoded(text: Any, what: str) -> bytes:
    """UTF-8. `what` is the name for messages."""
    if not isinstance(text, str):
        raise UsageError("%s is a text, not %.60r" % (what, text))
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("%s has half a character (U+%04X) at place %d" % (
            what, ord(text[error.start]), error.start)) from None


def terminated(text: Any, what: str) -> bytes:
    """UTF-8 for a function to which a NUL is the end."""
    data = encoded(text, what)
    if b"\0" in data:
        raise UsageError("%s has a NUL, where it would end: %.60r" % (what, text))
    return data


def path(name: Any, what: str) -> bytes:
    """A file's name."""
    try:
        data = os.fsencode(name)
    except TypeError:
        raise UsageError("%s is a file's name, not %.60r" % (what, name)) from None
    if b"\0" in data:
        raise UsageError("%s has a NUL, which no file's name has: %.60r" % (what, name))
    return data


def numbers(kind: str, value: Any, what: str) -> Any:
    """New memory of a kind, as "int32_t *" or "int32_t[]", with whole numbers in it. `what` says what
    they are."""
    try:
        return ffi.new(kind, list(value) if kind.endswith("[]") else value)
    except (TypeError, OverflowError):
        raise UsageError("%s, not %.60r" % (what, value)) from None


_package = os.path.dirname(os.path.abspath(__file__))


def warn(message: str) -> None:
    """Warns about the program's line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == _package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def as_json(value: Any, what: str) -> bytes:
    try:
        return json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError("%s cannot be written as JSON: %s" % (what, error)) from None
