"""Models, and text as tokens."""
import threading
from typing import Any, Iterator, List, Optional, Sequence, Union

from ._arguments import as_json, encoded, messages_json, numbers
from ._engine import Engine
from ._errors import check, new_error
from ._grammar import Grammar
from ._library import ffi, lib
from ._plan import Plan
from ._session import Messages, Prompt, Session
from ._statistics import Statistics, from_struct
from ._writer import Writer


class Model:
    """A model's file, with a draft, in one memory budget.

    draft       "auto" (what is expected to be fastest), a smaller model's file, "lookup", "medusa", "self", or
                None
    memory      "2G", "800M", bytes, "auto" or "unlimited": a bound on everything, Python's own
                memory of the time when it opens included
    context     most tokens of prompt and text; threads: 0 for one per core
    sessions    how many may be open at the same time
    ahead, alpha, fallback_step, bld_fallback, bld_rollback
                numbers of drafting, as the options of `drey run`; 0 or left out: as is usual

    Any thread may use it. After close(), and in a process that was forked from this one, every call
    is a UsageError; what was read before stays (why, verdict, statistics).
    """

    def __init__(self, target: str, *, draft: Optional[str] = "auto", memory: Union[str, int] = "auto",
                 context: int = 4096, threads: int = 0, sessions: int = 1, policy: str = "auto",
                 kv: str = "f16", cpu: Optional[str] = None, fallback: str = "mean",
                 **drafting: float) -> None:
        self._usual: Optional[Writer] = None
        self._making_usual = threading.RLock()
        self._engine = Engine(target, draft=draft, memory=memory, context=context, threads=threads,
                              sessions=sessions, policy=policy, kv=kv, cpu=cpu, fallback=fallback, **drafting)

    @property
    def plan(self) -> Plan:
        """Where the budget went."""
        out = ffi.new("drey_plan *")
        with self._engine._using():
            lib.drey_engine_plan(self._engine.engine[0], out)
        return from_struct(Plan, out)

    @property
    def why(self) -> str:
        """Why the draft was chosen; "" if it was named."""
        return self._engine.opened.why

    @property
    def verdict(self) -> str:
        """What to expect, in a sentence: what of the model stays in memory, how fast it writes."""
        return self._engine.opened.verdict

    @property
    def closed(self) -> bool:
        return self._engine._closed

    # ---- Texts ----

    def session(self) -> Session:
        """A new session. UsageError: there are as many as `sessions` says."""
        return Session(self)

    def _session(self) -> Session:
        with self._making_usual:
            if self._usual is None or self._usual._closed:
                self._usual = Writer(self._engine)
            return Session(self, self._usual)

    def generate(self, prompt: Prompt, **options: Any) -> Iterator[str]:
        """Session.generate in a session that the model keeps for this."""
        return self._session().generate(prompt, **options)

    def chat(self, messages: Messages, **options: Any) -> Iterator[str]:
        """Session.chat in a session that the model keeps for this."""
        return self._session().chat(messages, **options)

    @property
    def statistics(self) -> Optional[Statistics]:
        """Of the last text that generate or chat of the model wrote."""
        return self._usual.statistics if self._usual else None

    def grammar(self, **form: Any) -> Grammar:
        """See Grammar."""
        return Grammar(self, **form)

    # ---- Tokens ----

    def tokenize(self, text: str, *, bos: bool = True, special: bool = False) -> List[int]:
        data = encoded(text, "a text")
        flags = (lib.DREY_TOKENIZE_BOS if bos else 0) | (lib.DREY_TOKENIZE_SPECIAL if special else 0)
        with self._engine._using():
            return _ids(len(data) + 2, lambda ids, n, n_ids, err: lib.drey_tokenize(
                self._engine.target, data, len(data), flags, ids, n, n_ids, err))

    def tokenize_chat(self, messages: Messages, tools: Optional[Sequence[Any]] = None) -> List[int]:
        """A conversation by the model's template, up to where the answer begins, or to the end of a
        last message of the assistant, which the answer continues."""
        request = ffi.new("drey_chat_request *")
        lib.drey_chat_request_init(request)
        texts = [ffi.new("char[]", text) for text in (messages_json(messages), as_json(tools or [], "tools"))]
        request.messages_json = texts[0]
        if tools:
            request.tools_json = texts[1]
        last = messages[-1] if messages else {}
        request.continues = last.get("role") == "assistant" and not last.get("tool_calls")
        with self._engine._using():
            return _ids(len(texts[0]) + len(texts[1]) + 256, lambda ids, n, n_ids, err: lib.drey_chat_encode(
                self._engine.target, request, lib.DREY_TOKENIZE_BOS, ids, n, n_ids, err))

    def detokenize(self, ids: Sequence[int], *, special: bool = False) -> str:
        flags = lib.DREY_TOKENIZE_SPECIAL if special else 0
        given = numbers("int32_t[]", ids, "ids are whole numbers of 32 bits")
        capacity = 64 * len(given) + 64
        with self._engine._using():
            while True:
                out, n, err = ffi.new("char[]", capacity), ffi.new("size_t *"), new_error()
                status = lib.drey_detokenize(self._engine.target, given, len(given), flags, out, capacity, n, err)
                if status == lib.DREY_OK or n[0] <= capacity:
                    check(status, err)
                    return ffi.buffer(out, n[0])[:].decode(errors="replace")
                capacity = n[0]

    # ---- The end ----

    def close(self) -> None:
        """Closes its sessions and grammars as well. A text that is being written ends there: its next
        piece is a UsageError."""
        self._engine.close()

    def __enter__(self) -> "Model":
        self._engine._check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ids(guess: int, call: Any) -> List[int]:
    """Token ids from a function that says how many there are."""
    while True:
        ids, n, err = ffi.new("int32_t[]", guess), ffi.new("size_t *"), new_error()
        status = call(ids, guess, n, err)
        if status == lib.DREY_OK or n[0] <= guess:
            check(status, err)
            return list(ids[0:n[0]])
        guess = n[0]
