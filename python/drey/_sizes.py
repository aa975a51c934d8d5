"""Sizes as people write them, and as drey does: "1.04G"."""
import re
from typing import Union

from ._errors import UsageError
from ._library import ffi, lib

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LEAST = 1 << 20  # bytes; below, a number without a unit is not meant as bytes
_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)
_SHARE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*")


def memory_bytes(memory: Union[str, int, float]) -> int:
    """A budget in bytes: a number, "2G", "2 GB", "800MiB", a share of the machine's memory (0.8, "80%"), "auto"
    or "unlimited"."""
    if memory == "auto":
        return 0
    if memory == "unlimited":
        return (1 << 64) - 1
    n_bytes = memory
    try:
        if memory is None or isinstance(memory, bool):
            raise ValueError
        if isinstance(memory, str):
            size, share = _SIZE.fullmatch(memory), _SHARE.fullmatch(memory)
            n_bytes = (_share_bytes(float(share[1]) / 100) if share else
                       int(float(size[1]) * _UNITS[size[2].upper()]) if size else -1)
        elif isinstance(memory, float) and memory <= 1:
            n_bytes = _share_bytes(memory)
        n_bytes = int(ffi.new("uint64_t *", int(n_bytes))[0])
        if n_bytes == 0:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        raise UsageError('memory takes a size as "2G" or "800 MB", a share as "80%%", a number of bytes, "auto" '
                         'or "unlimited", not %r' % (memory,)) from None
    unit = str(memory).strip()
    if n_bytes < _LEAST and unit[-1] in "0123456789.":
        raise UsageError('memory=%r is %d byte%s; did you mean "%sG"?' % (memory, n_bytes, "s"[:n_bytes != 1], unit))
    return n_bytes


def _share_bytes(share: float) -> int:
    """Returns a share of the machine's memory, or of what its control groups leave."""
    if not 0 < share <= 1:
        raise ValueError
    return int(share * lib.drey_memory_machine())


def size_text(n_bytes: float) -> str:
    """Three digits and a binary unit: "1.04G", "800M", "12.5K", "17"."""
    n, unit = float(n_bytes), 0
    while n >= 999.5 and unit < 6:
        n, unit = n / 1024, unit + 1
    if unit == 0:
        return "%.0f" % n
    return three_digits(n) + " KMGTPE"[unit]


def three_digits(n: float) -> str:
    return "%.*f" % (2 if n < 9.995 else 1 if n < 99.95 else 0, n)


def size_text_up(n_bytes: float) -> str:
    """The same of what is needed at least: no fewer bytes than that."""
    text = size_text(n_bytes)
    number = text.rstrip("KMGTPE")
    unit, digits = text[len(number):], len(number.partition(".")[2])
    if float(number) * 1024 ** " KMGTPE".index(unit or " ") >= n_bytes:
        return text
    return "%.*f%s" % (digits, float(number) + 10 ** -digits, unit)


def rate_text(per_s: float) -> str:
    """Tokens per second to three digits, as the command shows them: "0.354", "2.50", "128"."""
    digits, least = 2, 0.9995
    while 0 < per_s < least and digits < 9:
        digits, least = digits + 1, least / 10
    return "%.*f" % (digits, per_s) if per_s < 0.9995 else three_digits(per_s)


def number_text(value: object) -> str:
    """A value as repr has it, floating ones with three digits."""
    return "%.3g" % value if isinstance(value, float) else repr(value)
