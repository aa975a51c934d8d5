"""Options of an engine, from what Python programs give."""
import os
from dataclasses import dataclass
from typing import Any, Dict, Optional, Union

from ._arguments import numbers, path, terminated, warn
from ._command import model_file
from ._errors import UsageError, check, new_error
from ._library import ffi, lib
from ._names import OPENING, refuse_unknown
from ._sizes import memory_bytes


def cache_folder() -> bytes:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.fsencode(os.path.join(base, "drey"))


_USUAL_CONTEXT = 4096
_DRAFTING = ("alpha", "fallback_step", "ahead", "bld_fallback", "bld_rollback")


def _text(chars: Any) -> str:
    return ffi.string(chars).decode(errors="replace")


def _count(value: int, what: str) -> int:
    return int(numbers("int32_t *", value, "%s is a whole number" % what)[0])


@dataclass(frozen=True)
class ModelInfo:
    """Facts of a model's file."""
    name: str
    path: str
    architecture: str
    n_parameters: int
    file_bytes: int
    n_layers: int
    n_embd: int
    n_vocab: int
    n_context_train: int


def _described(model: Any) -> ModelInfo:
    info = ffi.new("drey_model_info *")
    lib.drey_model_describe(model, info)
    file = os.fsdecode(ffi.string(info.path))
    return ModelInfo(os.path.basename(file).replace(".gguf", ""), file, ffi.string(info.architecture).decode(),
                     info.n_parameters, info.file_bytes, info.n_layers, info.n_embd, info.n_vocab, info.n_context_train)


class Opened:
    """The target and its draft, open, and engine options that borrow them. Closes both at the end."""

    def __init__(self, target: Any, *, draft: Any = "auto", memory: Union[str, int, float] = "auto",
                 context: Optional[int] = None, threads: int = 0, sessions: int = 1, policy: str = "auto",
                 kv: str = "f16", cpu: Optional[str] = None, fallback: str = "mean",
                 **drafting: float) -> None:
        self._target = ffi.new("drey_model **")
        self._draft = ffi.new("drey_model **")
        self._choice = ffi.new("drey_draft_choice *")
        self._tier = ffi.new("char[]", terminated(cpu, "cpu")) if cpu else ffi.NULL
        self.options = ffi.new("drey_engine_options *")
        self._research = ffi.new("drey_research *")
        self._speeds = ffi.new("drey_speeds *")
        self.outlook = ffi.new("drey_outlook *")
        lib.drey_engine_options_init(self.options)
        try:
            self._take_drafting(fallback, drafting)
            self._open(target, draft, context, threads, sessions, memory, policy, kv)
        except BaseException:
            self.close()
            raise

    def _open(self, target: Any, draft: Any, context: Optional[int], threads: int, sessions: int,
              memory: Union[str, int, float], policy: str, kv: str) -> None:
        o, err = self.options, new_error()
        if target is None or target == "":
            raise UsageError('a model\'s file, or the name of one that drey pull has fetched, is missing: '
                             'drey.Model("model.gguf")')
        check(lib.drey_model_open(self._target, path(model_file(target), "the model"), err), err)
        self.info = _described(self._target[0])
        o.target = self._target[0]
        o.memory_bytes = memory_bytes(memory)
        o.n_context = self._context(context)
        o.n_threads = _count(threads, "threads")
        o.n_sessions = _count(sessions, "sessions")
        o.cpu_tier = self._tier
        o.policy = self._named("policy", policy)
        o.kv = self._named("kv", kv)
        if draft == "auto":
            check(lib.drey_choose_draft_at(o, self._speeds, lib.DREY_MEASURE_MISSING, cache_folder(), self._choice, err),
                  err)
        elif draft is not None and draft != "none":
            self._take_draft(draft)
        check(lib.drey_look_ahead(o, lib.DREY_MEASURE_MISSING, cache_folder(), self._speeds, self.outlook, err), err)
        if self.outlook.warning[0] != b"\0":
            warn(_text(self.outlook.warning))

    def _take_drafting(self, fallback: str, drafting: Dict[str, float]) -> None:
        """The numbers of policies; 0: as is usual."""
        self._research.fallback = self._named("fallback", fallback)
        self.options.research = self._research
        refuse_unknown({name: value for name, value in drafting.items() if name not in _DRAFTING}, OPENING,
                       "drey.Model()")
        for name, value in drafting.items():
            try:
                setattr(self._research, name, value)
            except TypeError:
                raise UsageError("%s is a number, not %.60r" % (name, value)) from None

    def _context(self, context: Optional[int]) -> int:
        """4096, or what the model was made for where that is less. As with the command, a longer one that
        is asked for is taken, and said."""
        trained = self.info.n_context_train
        if context is None:
            return min(_USUAL_CONTEXT, trained) if trained > 1 else _USUAL_CONTEXT
        asked = _count(context, "context")
        if 1 < trained < asked:
            warn("context=%d is longer than the %d tokens that the model was made for: what it writes beyond them may "
                 "be of little use" % (asked, trained))
        return asked

    @staticmethod
    def _named(what: str, name: str) -> int:
        out = ffi.new("drey_%s *" % what)
        if not getattr(lib, "drey_%s_parse" % what)(terminated(name, what), out):
            kinds = ffi.typeof("drey_%s" % what).elements
            names = [_text(getattr(lib, "drey_%s_name" % what)(kind)) for kind in sorted(kinds)]
            raise UsageError("there is no %s %r: it is one of %s" % (what, name, ", ".join(names)))
        return int(out[0])

    def _take_draft(self, draft: Any) -> None:
        """A drafter without a model by its name, or a file: of a model, of heads, of an EAGLE layer."""
        o, err, info = self.options, new_error(), ffi.new("drey_drafter_info *")
        i = 0
        while lib.drey_drafter_describe(i, info):
            if not info.takes_model and ffi.string(info.name).decode() == draft:
                o.drafter = i
                return
            i += 1
        self._draft_path = ffi.new("char[]", path(model_file(draft), "the draft"))
        check(lib.drey_draft_open(self._draft, o, self._draft_path, err), err)

    @property
    def target(self) -> Any:
        return self._target[0]

    @property
    def why(self) -> str:
        """Reason that the draft was chosen; "" if it was named."""
        return _text(self._choice.why)

    @property
    def verdict(self) -> str:
        """Outlook: the model, what of it stays in memory, how fast it writes."""
        return _text(self.outlook.verdict)

    def close(self) -> None:
        lib.drey_draft_choice_close(self._choice)
        lib.drey_model_close(self._draft)
        lib.drey_model_close(self._target)

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
