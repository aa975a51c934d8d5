"""A session of the library, and the text that it writes."""
from typing import Any, List, Optional, Sequence, Tuple

from ._arguments import numbers, terminated
from ._engine import Engine
from ._errors import UsageError, check, new_error
from ._grammar import Grammar
from ._held import Held
from ._library import ffi, lib
from ._sampling import Sampling
from ._statistics import Statistics, from_struct


class Text:
    """What a text borrows until it ends: options, stop texts, the place of its statistics, a grammar."""

    def __init__(self, engine: Engine, ids: Sequence[int], max_tokens: int, sampling: Sampling,
                 stop: Sequence[str], grammar: Optional[Grammar], ignore_eos: bool) -> None:
        self.ids = numbers("int32_t[]", ids, "a prompt is a text, or a list of token ids")
        self.pieces: List[bytes] = []
        self.failed: List[BaseException] = []
        self.statistics, self.err = ffi.new("drey_statistics *"), new_error()
        self.done = ffi.new("bool *")
        self.grammar = _of_engine(grammar, engine)
        self.options = o = ffi.new("drey_generate_options *")
        lib.drey_generate_options_init(o)
        o.n_predict = numbers("int32_t *", max_tokens, "max_tokens is a number of tokens")[0]
        o.ignore_eos = bool(ignore_eos)
        if not isinstance(sampling, Sampling):
            raise UsageError("sampling is a drey.Sampling(...), not %.60r" % (sampling,))
        try:
            sampling.fill(o.sampling)
        except (TypeError, OverflowError) as error:
            raise UsageError("%r: %s" % (sampling, error)) from None
        stops = [stop] if isinstance(stop, str) else list(stop)
        texts = [ffi.new("char[]", terminated(text, "a stop text")) for text in stops]
        self._stops = texts, ffi.new("char *[]", texts)
        o.stops = ffi.cast("const char *const *", self._stops[1])
        o.n_stops = len(texts)
        o.on_text = self._take = ffi.callback("bool(void *, const char *, size_t)", self._on_text, error=False,
                                              onerror=lambda kind, error, trace: self.failed.append(error))

    def _on_text(self, _user: Any, data: Any, n: int) -> bool:
        self.pieces.append(ffi.buffer(data, n)[:])
        return True

    def begin(self) -> None:
        if self.grammar:
            self.grammar._take()
            self.options.grammar = self.grammar._grammar[0]

    def end(self) -> None:
        """The library borrows nothing any more."""
        if self.options.grammar:
            self.options.grammar = ffi.NULL
            assert self.grammar
            self.grammar._drop()

    def take(self) -> List[str]:
        """What was written since the last call."""
        taken = [piece.decode(errors="replace") for piece in self.pieces]
        self.pieces.clear()
        return taken


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
            raise UsageError("the model has as many sessions as it was opened for (%d): close one, or open the "
                             "model with sessions=%d" % (n, n + 1))
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
        if self._text:
            raise UsageError("this session is writing another text: end that one first (its close()), or open the "
                             "model with sessions=2 and give each text its own model.session()")
        self.statistics = None
        check(lib.drey_session_sync(self._session[0], text.ids, len(text.ids), ffi.NULL, text.err), text.err)
        text.begin()
        status = lib.drey_session_begin(self._session[0], text.options, text.statistics, text.err)
        if status == lib.DREY_OK:
            self._text = text
        else:
            text.end()
        check(status, text.err)

    def step(self, text: Text) -> Tuple[bool, List[str]]:
        """One pass: whether the text has ended, and what was written."""
        with self._using():
            status = self.engine.turns.take(
                lambda: lib.drey_session_step(self._session[0], text.done, text.err))
        if text.failed:
            raise text.failed[0]
        if status == lib.DREY_ERR_CANCELLED:
            self._check()  # closing it cancels as well
            return True, text.take()
        check(status, text.err)
        return text.done[0], text.take()

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
        self.statistics = from_struct(Statistics, text.statistics)
        text.end()

    def cancel(self) -> None:
        with self._using():
            self._interrupt()


def _of_engine(grammar: Optional[Grammar], engine: Engine) -> Optional[Grammar]:
    if grammar is None:
        return None
    if not isinstance(grammar, Grammar):
        raise UsageError("grammar is made by model.grammar(...), and is not %.60r" % (grammar,))
    if grammar._needs is not engine:
        raise UsageError("the grammar was made for another model: make it by this one's grammar(...)")
    grammar._check()
    return grammar
