"""Options of an engine, from what Python programs give."""
import os
import warnings
from typing import Any, Dict, Optional, Union

from ._arguments import numbers, path, terminated
from ._errors import UsageError, check, new_error
from ._library import ffi, lib

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def memory_bytes(memory: Union[str, int]) -> int:
    """A budget in bytes: a number, "2G", "800M", "auto" or "unlimited"."""
    if memory == "auto":
        return 0
    if memory == "unlimited":
        return (1 << 64) - 1
    try:
        if isinstance(memory, str):
            unit = memory[-1:].upper() if memory[-1:].isalpha() else ""
            memory = int(float(memory[:-1] if unit else memory) * _UNITS[unit])
        return int(ffi.new("uint64_t *", memory)[0])
    except (KeyError, ValueError, TypeError, OverflowError):
        raise UsageError('memory takes a size as "2G" or "800M", a number of bytes, "auto" or '
                         '"unlimited", not %r' % (memory,)) from None


def _cache_folder() -> bytes:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.fsencode(os.path.join(base, "drey"))


def _text(chars: Any) -> str:
    return ffi.string(chars).decode(errors="replace")


def _count(value: int, what: str) -> int:
    return int(numbers("int32_t *", value, "%s is a whole number" % what)[0])


class Opened:
    """The target and its draft, open, and engine options that borrow them. Closes both at the end."""

    def __init__(self, target: str, *, draft: Optional[str] = "auto", memory: Union[str, int] = "auto",
                 context: int = 4096, threads: int = 0, sessions: int = 1, policy: str = "auto",
                 kv: str = "f16", cpu: Optional[str] = None, fallback: str = "mean",
                 **drafting: float) -> None:
        self._target = ffi.new("drey_model **")
        self._draft = ffi.new("drey_model **")
        self._choice = ffi.new("drey_draft_choice *")
        self._tier = ffi.new("char[]", terminated(cpu, "cpu")) if cpu else ffi.NULL
        self.options = ffi.new("drey_engine_options *")
        self._more = ffi.new("drey_more_options *")
        self._speeds = ffi.new("drey_speeds *")
        self.outlook = ffi.new("drey_outlook *")
        lib.drey_engine_options_init(self.options)
        try:
            self._take_drafting(fallback, drafting)
            self._open(target, draft, context, threads, sessions, memory, policy, kv)
        except BaseException:
            self.close()
            raise

    def _open(self, target: str, draft: Optional[str], context: int, threads: int, sessions: int,
              memory: Union[str, int], policy: str, kv: str) -> None:
        o, err = self.options, new_error()
        check(lib.drey_model_open(self._target, path(target, "the model"), err), err)
        o.target = self._target[0]
        o.memory_bytes = memory_bytes(memory)
        o.n_context = self._context(context)
        o.n_threads = _count(threads, "threads")
        o.n_sessions = _count(sessions, "sessions")
        o.cpu_tier = self._tier
        o.policy = self._named("policy", policy)
        o.kv = self._named("kv", kv)
        if draft == "auto":
            check(lib.drey_choose_draft_at(o, self._speeds, lib.DREY_MEASURE_MISSING, _cache_folder(), self._choice,
                                           err), err)
        elif draft is not None:
            self._take_draft(draft)
        check(lib.drey_look_ahead(o, lib.DREY_MEASURE_MISSING, _cache_folder(), self._speeds, self.outlook, err), err)
        if self.outlook.warning[0] != b"\0":
            warnings.warn(_text(self.outlook.warning), ResourceWarning, stacklevel=5)

    def _take_drafting(self, fallback: str, drafting: Dict[str, float]) -> None:
        """The numbers of policies; 0: as is usual."""
        self.options.fallback = self._named("fallback", fallback)
        self.options.more = self._more
        for name, value in drafting.items():
            if name not in ("alpha", "fallback_step", "ahead", "bld_fallback", "bld_rollback"):
                raise TypeError("there is no option %r" % name)
            try:
                setattr(self.options if name == "alpha" else self._more, name, value)
            except TypeError:
                raise UsageError("%s is a number, not %.60r" % (name, value)) from None

    def _context(self, context: int) -> int:
        info = ffi.new("drey_model_info *")
        lib.drey_model_describe(self._target[0], info)
        trained = info.n_context_train
        asked = _count(context, "context")
        return min(asked, trained) if trained > 1 else asked

    @staticmethod
    def _named(what: str, name: str) -> int:
        out = ffi.new("drey_%s *" % what)
        if not getattr(lib, "drey_%s_parse" % what)(terminated(name, what), out):
            raise UsageError("there is no %s %r" % (what, name))
        return int(out[0])

    def _take_draft(self, draft: str) -> None:
        """A drafter without a model by its name, or a model's file."""
        o, err, info = self.options, new_error(), ffi.new("drey_drafter_info *")
        i = 0
        while lib.drey_drafter_describe(i, info):
            if not info.takes_model and ffi.string(info.name).decode() == draft:
                o.drafter = i
                return
            i += 1
        check(lib.drey_model_open(self._draft, path(draft, "the draft"), err), err)
        o.draft = self._draft[0]
        o.drafter = lib.DREY_DRAFTER_MODEL

    @property
    def target(self) -> Any:
        return self._target[0]

    @property
    def why(self) -> str:
        """Why the draft was chosen; "" if it was named."""
        return _text(self._choice.why)

    @property
    def verdict(self) -> str:
        """What to expect: the model, what of it stays in memory, how fast it writes."""
        return _text(self.outlook.verdict)

    def close(self) -> None:
        lib.drey_draft_choice_close(self._choice)
        lib.drey_model_close(self._draft)
        lib.drey_model_close(self._target)

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
