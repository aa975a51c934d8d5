"""What a text cost: drey_statistics, whose header says what each member means (times in seconds,
sizes in bytes, shares of decode_s)."""
from dataclasses import dataclass, fields
from typing import Any, Type, TypeVar

from ._library import ffi, lib

T = TypeVar("T")
_NAMES = {"kv": lib.drey_kv_name, "finish": lib.drey_finish_name}


def from_struct(kind: Type[T], struct: Any) -> T:
    """A dataclass of a structure's members of the same names; enums by their names."""
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        value = getattr(struct, field.name)
        if field.name in _NAMES:
            value = ffi.string(_NAMES[field.name](value)).decode()
        elif isinstance(value, ffi.CData):
            value = ffi.string(value).decode(errors="replace")
        values[field.name] = value
    return kind(**values)


@dataclass(frozen=True)
class Statistics:
    """Of one text."""
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
