"""Sessions: each has its own text; and texts for asyncio."""
import asyncio
from typing import Any, AsyncIterator, Iterator, Optional, Tuple, TYPE_CHECKING

from ._conversation import Messages
from ._errors import UsageError
from ._grammar import engine_of
from ._statistics import Statistics
from ._texts import Prompt, Texts
from ._writer import Writer

if TYPE_CHECKING:
    from ._model import Model


class Session(Texts):
    """One text or conversation at a time. What it has in common with the one before is not computed
    again."""

    def __init__(self, model: "Model", _writer: Optional[Writer] = None) -> None:
        engine = engine_of(model, "a session")
        self._model = model
        self._writer = _writer or Writer(engine)

    def _of_texts(self) -> Tuple[Any, Writer]:
        self._writer._check()
        return self._model, self._writer

    @property
    def statistics(self) -> Optional[Statistics]:
        """Statistics of the last text; None while one is being written, and before the first."""
        return self._writer.statistics

    @property
    def closed(self) -> bool:
        return self._writer._closed

    def __repr__(self) -> str:
        if self.closed or self._model.closed:
            return "<drey.Session: closed>"
        return "<drey.Session of %s%s>" % (self._model.info.name, ", writing" if self._writer._text else "")

    # ---- asyncio ----

    def generate_async(self, prompt: Prompt, **options: Any) -> AsyncIterator[str]:
        """generate for asyncio: passes run in a thread, so that the loop is free meanwhile."""
        return _InThread(self, self.generate(prompt, **options))

    def chat_async(self, messages: Messages, **options: Any) -> AsyncIterator[str]:
        """chat for asyncio."""
        return _InThread(self, self.chat(messages, **options))

    def cancel(self) -> None:
        """Ends the text that is being written, without an error; any thread may call it."""
        self._writer.cancel()

    # ---- The end ----

    def close(self) -> None:
        """A text that is being written ends there: its next piece is a UsageError."""
        self._writer.close()

    def __enter__(self) -> "Session":
        self._writer._check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_END = object()


class _InThread:
    """An iterator of a session's text whose steps run in a thread."""

    def __init__(self, session: Session, pieces: Iterator[str]) -> None:
        self._session = session
        self._pieces: Any = pieces

    def __aiter__(self) -> "_InThread":
        return self

    async def __anext__(self) -> str:
        step = asyncio.get_running_loop().run_in_executor(None, next, self._pieces, _END)
        try:
            piece = await asyncio.shield(step)
        except asyncio.CancelledError:
            await self._stop(step)
            raise
        if piece is _END:
            raise StopAsyncIteration
        return piece  # type: ignore[return-value]

    async def _stop(self, step: "asyncio.Future[Any]") -> None:
        """Ends the text of a task that is cancelled in the middle of a pass."""
        try:
            self._session.cancel()
        except UsageError:
            pass  # it was closed, which ends it as well
        await asyncio.wait([step])
        if not step.cancelled():
            step.exception()  # nobody else asks for it
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the text."""
        self._pieces.close()

    def __del__(self) -> None:
        """Ends a text that was left: its last thread may still refer to the iterator for a moment."""
        try:
            self._pieces.close()
        except ValueError:
            pass  # a step is under way, in the thread that refers to it last
