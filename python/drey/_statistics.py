"""Costs of a text: drey_statistics, whose header says what each member means (times in seconds,
sizes in bytes, shares of decode_s)."""
from dataclasses import dataclass, fields
from typing import Any, Type, TypeVar

from ._library import ffi, lib
from ._sizes import number_text, rate_text, size_text

T = TypeVar("T")
UNLIMITED = (1 << 64) - 1
_NAMES = {"kv": lib.drey_kv_name, "finish": lib.drey_finish_name}


def from_struct(kind: Type[T], struct: Any) -> T:
    """A dataclass of a structure's members of the same names; enums by their names."""
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if not hasattr(struct, field.name):  # what is added to it
            continue
        value = getattr(struct, field.name)
        if field.name in _NAMES:
            value = ffi.string(_NAMES[field.name](value)).decode()
        elif isinstance(value, ffi.CData):
            value = ffi.string(value).decode(errors="replace")
        values[field.name] = value
    return kind(**values)


class Numbers:
    """A dataclass of many numbers, which repr shows with three digits."""

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join(
            "%s=%s" % (field.name, number_text(getattr(self, field.name))) for field in fields(self)))  # type: ignore

    def _repr_pretty_(self, page: Any, _cycle: bool) -> None:
        """Shows in a notebook what print does."""
        page.text(str(self))


@dataclass(frozen=True, repr=False)
class Statistics(Numbers):
    """Costs of one text. print shows two lines of them."""
    prompt_tokens: int
    generated_tokens: int
    prompt_s: float
    decode_s: float
    first_token_s: float
    tokens_per_s: float
    ceiling_tokens_per_s: float
    disk_bytes_per_s: float
    tokens_per_pass: float
    n_passes: int
    drafted: int
    accepted: int
    read_bytes: int
    read_bytes_per_s: float
    stall_share: float
    verify_share: float
    draft_share: float
    load_bytes: int
    budget_bytes: int
    pinned_bytes: int
    streamed_bytes_per_pass: int
    session_bytes: int
    peak_memory_bytes: int
    decode_major_faults: int
    sidecar: bool
    direct: bool
    uring: bool
    registered: bool
    kv: str
    finish: str
    provisional_share: float
    sidecar_tokens_per_s: float
    cached_tokens: int
    stop_text: int
    experts_used: int
    experts_read: int
    experts_guessed: int
    guesses_used: int
    copied_tokens: int
    restored_tokens: int
    folder_tokens: int
    restore_s: float
    same_tokens: int
    joules: float
    ranks_share: float

    def __str__(self) -> str:
        """The lines that drey run ends with."""
        text = "%d token%s" % (self.generated_tokens, "" if self.generated_tokens == 1 else "s")
        if self.tokens_per_s > 0:
            text += ", %s/s" % rate_text(self.tokens_per_s)
        if self.accepted > 0:
            text += " (drafting guessed %d of them)" % min(self.accepted, self.generated_tokens)
        if self.first_token_s > 0:
            text += "; first word after %.2f s" % self.first_token_s
        text += "\nmemory %s" % size_text(self.peak_memory_bytes)
        if self.budget_bytes != UNLIMITED:
            text += " of %s" % size_text(self.budget_bytes)
        if self.read_bytes and self.n_passes:
            text += ", read %s per pass" % size_text(self.read_bytes / self.n_passes)
        if self.kv == "q8_0":
            text += "\nlossy: the cache is q8_0, with f16 the text may be another"
        return text
