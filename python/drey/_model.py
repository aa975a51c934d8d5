"""Models, sessions, texts."""
import asyncio
import json
import threading
from typing import Any, AsyncIterator, Dict, Iterator, List, Optional, Sequence, Union

from ._errors import Error, UsageError, check, new_error
from ._library import ffi, lib
from ._options import Opened
from ._plan import Plan
from ._sampling import Sampling
from ._statistics import Statistics, from_struct

Prompt = Union[str, Sequence[int]]
Messages = Sequence[Dict[str, Any]]


class Grammar:
    """What a text may be: a JSON schema (a dict, or its text), GBNF, a regular expression, or choices."""

    def __init__(self, model: "Model", *, json_schema: Union[None, str, Dict[str, Any]] = None,
                 gbnf: Optional[str] = None, regex: Optional[str] = None,
                 choices: Optional[Sequence[str]] = None) -> None:
        given = [(lib.DREY_GRAMMAR_JSON_SCHEMA, json_schema), (lib.DREY_GRAMMAR_GBNF, gbnf),
                 (lib.DREY_GRAMMAR_REGEX, regex), (lib.DREY_GRAMMAR_CHOICES, choices)]
        given = [(kind, value) for kind, value in given if value is not None]
        if len(given) != 1:
            raise UsageError("a grammar is made of one of json_schema, gbnf, regex and choices")
        kind, value = given[0]
        text = (value if isinstance(value, str) else json.dumps(value)).encode()
        err = new_error()
        self._model = model
        self._grammar = ffi.new("drey_grammar **")
        check(lib.drey_grammar_open(self._grammar, model._opened.target, kind, text, len(text), err), err)

    def close(self) -> None:
        """After the texts that it was given to have ended."""
        lib.drey_grammar_close(self._grammar)

    def __del__(self) -> None:
        if hasattr(self, "_grammar") and not self._model.closed:
            self.close()


class Session:
    """One text or conversation. What it has in common with the one before is not computed again."""

    def __init__(self, model: "Model") -> None:
        err = new_error()
        self._model = model
        self._session = ffi.new("drey_session **")
        self.statistics: Optional[Statistics] = None
        with model._lock:
            check(lib.drey_session_open(self._session, model._engine[0], err), err)
        model._sessions.append(self)

    # ---- Texts ----

    def generate(self, prompt: Prompt, *, max_tokens: int = 512, sampling: Sampling = Sampling(),
                 stop: Sequence[str] = (), grammar: Optional[Grammar] = None,
                 ignore_eos: bool = False) -> Iterator[str]:
        """Continues a prompt (a text, or token ids) and yields the text piece by piece, each as soon as
        it is verified. `statistics` is filled at the end. Leaving the loop ends the text."""
        ids = self._model.tokenize(prompt) if isinstance(prompt, str) else list(prompt)
        return self._write(ids, max_tokens, sampling, stop, grammar, ignore_eos)

    def chat(self, messages: Messages, *, tools: Optional[Sequence[Dict[str, Any]]] = None,
             max_tokens: int = 512, sampling: Sampling = Sampling(), stop: Sequence[str] = (),
             grammar: Optional[Grammar] = None) -> Iterator[str]:
        """Answers the last of messages ({"role": ..., "content": ...}) by the model's own template."""
        ids = self._model.tokenize_chat(messages, tools)
        return self._write(ids, max_tokens, sampling, stop, grammar, False)

    async def generate_async(self, prompt: Prompt, **options: Any) -> AsyncIterator[str]:
        """generate for asyncio: passes run in a thread, so that the loop is free meanwhile."""
        async for piece in _in_thread(self.generate(prompt, **options)):
            yield piece

    async def chat_async(self, messages: Messages, **options: Any) -> AsyncIterator[str]:
        """chat for asyncio."""
        async for piece in _in_thread(self.chat(messages, **options)):
            yield piece

    def _write(self, ids: List[int], max_tokens: int, sampling: Sampling, stop: Sequence[str],
               grammar: Optional[Grammar], ignore_eos: bool) -> Iterator[str]:
        pieces: List[bytes] = []
        failed: List[BaseException] = []

        @ffi.callback("bool(void *, const char *, size_t)", error=False,
                      onerror=lambda kind, error, trace: failed.append(error))
        def take(_user: Any, data: Any, n: int) -> bool:
            pieces.append(ffi.buffer(data, n)[:])
            return True

        options, kept = self._options(max_tokens, sampling, stop, grammar, ignore_eos)
        options.on_text = take
        statistics, err, done = ffi.new("drey_statistics *"), new_error(), ffi.new("bool *")
        self.statistics = None
        with self._model._lock:
            check(lib.drey_session_sync(self._session[0], ids, len(ids), ffi.NULL, err), err)
            check(lib.drey_session_begin(self._session[0], options, statistics, err), err)
        try:
            while not done[0]:
                with self._model._lock:
                    status = lib.drey_session_step(self._session[0], done, err)
                if failed:
                    raise failed[0]
                for piece in pieces:
                    yield piece.decode(errors="replace")
                pieces.clear()
                if status == lib.DREY_ERR_CANCELLED:
                    return
                check(status, err)
        finally:
            if self._session[0]:
                with self._model._lock:
                    lib.drey_session_end(self._session[0])
                self.statistics = from_struct(Statistics, statistics)
            del kept

    @staticmethod
    def _options(max_tokens: int, sampling: Sampling, stop: Sequence[str], grammar: Optional[Grammar],
                 ignore_eos: bool) -> Any:
        """drey_generate_options, and what they borrow."""
        options = ffi.new("drey_generate_options *")
        lib.drey_generate_options_init(options)
        options.n_predict = max_tokens
        options.ignore_eos = ignore_eos
        sampling.fill(options.sampling)
        texts = [ffi.new("char[]", text.encode()) for text in stop]
        stops = ffi.new("char *[]", texts)
        options.stops = ffi.cast("const char *const *", stops)
        options.n_stops = len(texts)
        if grammar is not None:
            options.grammar = grammar._grammar[0]
        return options, (texts, stops, grammar)

    def cancel(self) -> None:
        """Ends the text that is being written, without an error; any thread may call it."""
        lib.drey_session_cancel(self._session[0])

    def close(self) -> None:
        with self._model._lock:
            lib.drey_session_close(self._session)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Model:
    """A model's file, with a draft, in one memory budget.

    draft       "auto" (what promises most), a smaller model's file, "lookup", "medusa", "self", or
                None
    memory      "2G", "800M", bytes, "auto" or "unlimited": a bound on everything, Python's own
                memory of the time when it opens included
    context     most tokens of prompt and text; threads: 0 for one per core
    sessions    how many may be open at the same time
    ahead, alpha, fallback_step, bld_fallback, bld_rollback
                numbers of drafting, as the options of `drey run`; 0 or left out: as is usual
    """

    def __init__(self, target: str, *, draft: Optional[str] = "auto", memory: Union[str, int] = "auto",
                 context: int = 4096, threads: int = 0, sessions: int = 1, policy: str = "auto",
                 kv: str = "f16", cpu: Optional[str] = None, fallback: str = "mean",
                 **numbers: float) -> None:
        err = new_error()
        self._lock = threading.RLock()
        self._sessions: List[Session] = []
        self._usual: Optional[Session] = None
        self._engine = ffi.new("drey_engine **")
        self._opened = Opened(target, draft=draft, memory=memory, context=context, threads=threads,
                              sessions=sessions, policy=policy, kv=kv, cpu=cpu, fallback=fallback, **numbers)
        try:
            check(lib.drey_engine_open(self._engine, self._opened.options, err), err)
        except Error:
            self._opened.close()
            raise

    @property
    def plan(self) -> Plan:
        """Where the budget went."""
        out = ffi.new("drey_plan *")
        lib.drey_engine_plan(self._engine[0], out)
        return from_struct(Plan, out)

    @property
    def why(self) -> str:
        """Why the draft was chosen; "" if it was named."""
        return self._opened.why

    @property
    def closed(self) -> bool:
        return not self._engine[0]

    def session(self) -> Session:
        """A new session. UsageError: there are as many as `sessions` says."""
        return Session(self)

    def _session(self) -> Session:
        if self._usual is None:
            self._usual = self.session()
        return self._usual

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
        data = text.encode()
        flags = (lib.DREY_TOKENIZE_BOS if bos else 0) | (lib.DREY_TOKENIZE_SPECIAL if special else 0)
        return _ids(len(data) + 2, lambda ids, n, n_ids, err: lib.drey_tokenize(
            self._opened.target, data, len(data), flags, ids, n, n_ids, err))

    def tokenize_chat(self, messages: Messages,
                      tools: Optional[Sequence[Dict[str, Any]]] = None) -> List[int]:
        """A conversation by the model's template, up to where the answer begins."""
        request = ffi.new("drey_chat_request *")
        lib.drey_chat_request_init(request)
        texts = [ffi.new("char[]", json.dumps(part).encode()) for part in (messages, tools or [])]
        request.messages_json = texts[0]
        if tools:
            request.tools_json = texts[1]
        return _ids(len(texts[0]) + len(texts[1]) + 256, lambda ids, n, n_ids, err: lib.drey_chat_encode(
            self._opened.target, request, lib.DREY_TOKENIZE_BOS, ids, n, n_ids, err))

    def detokenize(self, ids: Sequence[int], *, special: bool = False) -> str:
        flags = lib.DREY_TOKENIZE_SPECIAL if special else 0
        capacity = 64 * len(ids) + 64
        while True:
            out, n, err = ffi.new("char[]", capacity), ffi.new("size_t *"), new_error()
            status = lib.drey_detokenize(self._opened.target, list(ids), len(ids), flags, out, capacity, n, err)
            if status == lib.DREY_OK or n[0] <= capacity:
                check(status, err)
                return ffi.buffer(out, n[0])[:].decode(errors="replace")
            capacity = n[0]

    # ---- The end ----

    def close(self) -> None:
        """Closes all sessions as well."""
        with self._lock:
            for session in self._sessions:
                session.close()
            lib.drey_engine_close(self._engine)
            self._opened.close()

    def __enter__(self) -> "Model":
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


async def _in_thread(pieces: Iterator[str]) -> AsyncIterator[str]:
    """An iterator whose steps run in a thread."""
    end = object()
    try:
        while True:
            piece = await asyncio.to_thread(next, pieces, end)
            if piece is end:
                return
            yield piece  # type: ignore[misc]
    finally:
        close = getattr(pieces, "close", None)
        if close:
            close()
