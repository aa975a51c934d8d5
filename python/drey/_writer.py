"""A session of the library, and what it computes: texts, log probabilities, vectors."""
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple, TypeVar

from ._arguments import numbers, path
from ._asked import Asked
from ._engine import Engine
from ._errors import UsageError, check, new_error
from ._grammar import Grammar
from ._held import Held
from ._library import ffi, lib
from ._statistics import Statistics, from_struct

T = TypeVar("T")


@dataclass(frozen=True)
class Token:
    """A token of a text, the natural log probability of it (None: it is the first of a prompt), and
    those of the likeliest ones at its place."""
    id: int
    logprob: Optional[float]
    top: Sequence[Tuple[int, float]] = ()


class Text:
    """A text, and all that it borrows until it ends: options, stop texts, the place of its statistics, a
    grammar."""

    def __init__(self, engine: Engine, ids: Sequence[int], asked: Asked) -> None:
        self.ids = numbers("int32_t[]", ids, "a prompt is a text, or a list of token ids (messages are for chat)")
        self.pieces: List[bytes] = []
        self.tokens: List[Token] = []  # with asked.n_top
        self.failed: List[BaseException] = []
        self.begun = self.cancelled = False
        self.n_tokens = 0  # that were written
        self.result: Optional[Statistics] = None  # when it has ended
        self.statistics, self.err = ffi.new("drey_statistics *"), new_error()
        self.done = ffi.new("bool *")
        self.grammar = _of_engine(asked.grammar, engine)
        self.options = o = ffi.new("drey_generate_options *")
        lib.drey_generate_options_init(o)
        o.n_predict = asked.max_tokens
        o.ignore_eos = asked.ignore_eos
        o.special = asked.special
        self._take_lists(asked)
        o.on_text = self._take = ffi.callback("bool(void *, const char *, size_t)", self._on_text, error=False,
                                              onerror=self._on_error)
        if asked.n_top >= 0:
            o.n_top = asked.n_top
            o.on_logprobs = self._take_logprobs = logprobs_callback(self.tokens, self._on_error)

    def _take_lists(self, asked: Asked) -> None:
        o = self.options
        try:
            self._penalties = asked.sampling._fill(o.sampling)
        except OverflowError as error:
            raise UsageError("%r: %s" % (asked.sampling, error)) from None
        texts = [ffi.new("char[]", text) for text in asked.stops]
        self._stops = texts, ffi.new("char *[]", texts)
        o.stops = ffi.cast("const char *const *", self._stops[1])
        o.n_stops = len(texts)
        self._biases = ffi.new("drey_bias[]", [{"id": token, "bias": bias} for token, bias in asked.biases])
        o.biases = self._biases
        o.n_biases = len(asked.biases)

    def _on_text(self, _user: Any, data: Any, n: int) -> bool:
        self.pieces.append(ffi.buffer(data, n)[:])
        return True

    def _on_error(self, _kind: Any, error: BaseException, _trace: Any) -> None:
        self.failed.append(error)

    def begin(self) -> None:
        if self.grammar:
            self.grammar._take()
            self.options.grammar = self.grammar._grammar[0]

    def end(self) -> None:
        """The library borrows nothing any more."""
        self.result = from_struct(Statistics, self.statistics)
        if self.options.grammar:
            self.options.grammar = ffi.NULL
            assert self.grammar
            self.grammar._drop()

    def statistics_now(self) -> Statistics:
        """Statistics of the text that has ended. They are there before result is, where another thread's
        call is left to end it."""
        return self.result or from_struct(Statistics, self.statistics)

    def take(self) -> List[bytes]:
        """Returns what was written since the last call: whole characters, or bytes that can never become one."""
        taken = self.pieces[:]
        del self.pieces[:len(taken)]
        return taken

    def take_tokens(self) -> List[Token]:
        """The tokens since the last call."""
        taken = self.tokens[:]
        del self.tokens[:len(taken)]
        return taken


def logprobs_callback(to: List[Token], on_error: Callable[..., None]) -> Any:
    """A drey_logprobs_fn that appends to a list."""
    def take(_user: Any, written: Any, top: Any, n_top: int) -> None:
        to.append(Token(written.id, written.logprob, [(top[i].id, top[i].logprob) for i in range(n_top)]))
    return ffi.callback("void(void *, const drey_logprob *, const drey_logprob *, int32_t)", take, onerror=on_error)


class Writer(Held):
    """One text after the other."""
    _name = "session"

    def __init__(self, engine: Engine) -> None:
        self._session = ffi.new("drey_session **")
        self._text: Optional[Text] = None  # that is being written
        self.statistics: Optional[Statistics] = None
        super().__init__(engine, engine.turns)
        self.engine = engine
        try:
            with self._using():
                engine.turns.take(self._open)
            self._check()
        except BaseException:
            self._shut()
            raise

    def _open(self) -> None:
        err, n = new_error(), self.engine.opened.options.n_sessions
        status = lib.drey_session_open(self._session, self.engine.engine[0], err)
        if status == lib.DREY_ERR_USAGE:
            own = self.engine.own_session()
            used = (" (the model's own, of its generate and chat, is one)" if own and not own._closed else
                    ", and generate, complete and chat of the model itself need one more" if own is None else "")
            raise UsageError("the model has as many sessions as it was opened for (%d)%s: close one, or open the "
                             "model with sessions=%d" % (n, used, n + 1))
        check(status, err)

    def _free(self) -> None:
        if self._text:
            self._finish_text(self._text)
        lib.drey_session_close(self._session)

    def _interrupt(self) -> None:
        if self._session[0]:
            lib.drey_session_cancel(self._session[0])

    # ---- One text ----

    def begin(self, text: Text) -> None:
        """UsageError: another one is being written."""
        with self._using():
            self.engine.turns.take(lambda: self._begin(text))

    def _begin(self, text: Text) -> None:
        self._refuse_while_writing()
        self.statistics = None
        text.begun = True
        check(lib.drey_session_sync(self._session[0], text.ids, len(text.ids), ffi.NULL, text.err), text.err)
        text.begin()
        status = lib.drey_session_begin(self._session[0], text.options, text.statistics, text.err)
        if status != lib.DREY_OK:
            text.end()
            check(status, text.err)
        self._text, self._n_before = text, self._n_timeline()
        if text.cancelled:
            self._interrupt()

    def _refuse_while_writing(self) -> None:
        if self._text:
            this = "the model's own session" if self.engine.own_session() is self else "this session"
            raise UsageError("%s is writing another text: end that one first (its close()), or open the model with "
                             "sessions=2 and give each text its own model.session()" % this)

    def step(self, text: Text) -> Tuple[bool, List[bytes]]:
        """One pass: whether the text has ended, and what was written."""
        with self._using():
            status = self.engine.turns.take(lambda: self._step(text))
        if text.failed:
            raise text.failed[0]
        if status == lib.DREY_ERR_CANCELLED:
            self._check()  # closing it cancels as well
            return True, text.take()
        check(status, text.err)
        return text.done[0], text.take()

    def _step(self, text: Text) -> int:
        progress, status = self.engine.progress, lib.DREY_ERR_CANCELLED  # where a program's function fails
        try:
            with progress.of(self._session):
                status = lib.drey_session_step(self._session[0], text.done, text.err)
        finally:
            if text.pieces or text.done[0] or status != lib.DREY_OK:
                progress.clear()
        text.n_tokens = max(0, self._n_timeline() - self._n_before)
        if status == lib.DREY_OK and text.done[0]:
            self._finish_text(text)
        return int(status)

    def end(self, text: Text) -> None:
        """Ends the text, if it has begun and has not ended. Never waits."""
        if self._alive():
            self.engine.turns.leave(lambda: self._finish_text(text))

    def _finish_text(self, text: Text) -> None:
        if self._text is not text:
            return
        self._text = None
        if self._session[0]:
            lib.drey_session_end(self._session[0])
        text.end()
        self.statistics = text.result

    def cancel(self, text: Optional[Text] = None) -> None:
        """Cancels this text, which may not have begun; None: the one that is being written."""
        if text:
            text.cancelled = True  # _begin looks at it once the text is self._text
        with self._using():
            if not text or self._text is text:
                self._interrupt()

    # ---- Other work ----

    def call(self, work: Callable[[Any, Any], int]) -> None:
        """Calls a function of the library with the session and a drey_error, while no text is written."""
        err = new_error()

        def alone() -> int:
            self._refuse_while_writing()
            try:
                with self.engine.progress.of(self._session):
                    return work(self._session[0], err)
            finally:
                self.engine.progress.clear()
        with self._using():
            status = self.engine.turns.take(alone)
        if status == lib.DREY_ERR_CANCELLED:
            self._check()
        check(status, err)

    def reset(self) -> None:
        self.call(lambda session, err: lib.drey_session_reset(session) or lib.DREY_OK)

    def save(self, name: Any) -> None:
        file = path(name, "the file of a session")
        self.call(lambda session, err: lib.drey_session_save(session, file, ffi.NULL, 0, err))

    def load(self, name: Any) -> None:
        file = path(name, "the file of a session")
        self.call(lambda session, err: lib.drey_session_load(session, file, ffi.NULL, err))

    def timeline(self) -> List[int]:
        with self._using():
            return self.engine.turns.take(self._timeline)

    def _timeline(self) -> List[int]:
        ids, n = ffi.new("const int32_t **"), ffi.new("size_t *")
        lib.drey_session_timeline(self._session[0], ids, n)
        return list(ids[0][0:n[0]])

    def _n_timeline(self) -> int:
        n = ffi.new("size_t *")
        lib.drey_session_timeline(self._session[0], ffi.new("const int32_t **"), n)
        return int(n[0])

    def score(self, ids: Sequence[int], n_top: int) -> List[Token]:
        """The tokens of a prompt; its first has no log probability."""
        given = numbers("int32_t[]", ids, "a prompt is a text, or a list of token ids")
        found = [Token(given[0], None)] if len(given) else []
        if len(given) < 2:
            return found
        failed: List[BaseException] = []
        take = logprobs_callback(found, lambda kind, error, trace: failed.append(error))
        self.call(lambda session, err: lib.drey_session_score_top(session, given, len(given), n_top, take, ffi.NULL,
                                                                  err))
        if failed:
            raise failed[0]
        return found

    def embed(self, texts: Sequence[Sequence[int]], pooling: int, width: int, norm: int) -> List[List[List[float]]]:
        """For each text its vectors: one, or with DREY_POOLING_NONE one for each token."""
        given = [numbers("int32_t[]", ids, "a text is a str, or a list of token ids") for ids in texts]
        vectors: List[List[List[float]]] = []
        while len(vectors) < len(given):
            at = len(vectors)
            vectors.extend(self._embed_some(given[at:at + 64], pooling, width, norm))
        return vectors

    def _embed_some(self, texts: List[Any], pooling: int, width: int, norm: int) -> List[List[List[float]]]:
        rows = [len(ids) if pooling == lib.DREY_POOLING_NONE else 1 for ids in texts]
        of = ffi.new("drey_text_ids[]", [{"ids": ids, "n": len(ids)} for ids in texts])
        out, n_done = ffi.new("float[]", max(1, sum(rows)) * width), ffi.new("size_t *")
        self.call(lambda session, err: lib.drey_session_embed_texts(session, of, len(texts), pooling, out, n_done,
                                                                    err))
        vectors, at = [], 0
        for n in rows[:n_done[0]]:
            for row in range(at, at + n):
                lib.drey_embed_normalize(out + row * width, width, norm)
            vectors.append([list(out[row * width:(row + 1) * width]) for row in range(at, at + n)])
            at += n
        return vectors


def _of_engine(grammar: Optional[Grammar], engine: Engine) -> Optional[Grammar]:
    if grammar is None:
        return None
    if not isinstance(grammar, Grammar):
        raise UsageError("grammar is made by model.grammar(...), and is not %.60r" % (grammar,))
    if grammar._needs is not engine:
        raise UsageError("the grammar was made for another model: make it by this one's grammar(...)")
    grammar._check()
    return grammar
