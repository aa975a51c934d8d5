"""Texts while they are written, for loops and for asyncio."""
import asyncio
import functools
from typing import Any, AsyncIterator, Callable, Generic, Iterator, TypeVar, TYPE_CHECKING

from ._errors import UsageError
from ._writer import Text, Writer

if TYPE_CHECKING:
    from typing import Coroutine
    from typing_extensions import ParamSpec
    P = ParamSpec("P")

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
_END = object()


class Stream(Iterator[T], Generic[T]):
    """A text while it is written: an iterator of its pieces, or of OpenAI's chunks. It begins with the
    first piece that is asked for. close(), the end of a `with`, and dropping it end it early."""

    def __init__(self, of: str, writer: Writer, text: Text, pieces: Iterator[T]) -> None:
        self._of, self._writer, self._text = of, writer, text
        self._pieces: Any = pieces  # a generator, which ends the text when it is closed or dropped

    def __next__(self) -> T:
        return next(self._pieces)  # type: ignore[no-any-return]

    @property
    def closed(self) -> bool:
        """Returns whether it has ended, by itself or by close()."""
        return self._pieces.gi_frame is None or self._writer._closed

    def __repr__(self) -> str:
        return "<drey.Stream of %s: %s>" % (self._of, self._state())

    def _state(self) -> str:
        ended = self._text.result
        if ended:
            return "%s, closed (%s)" % (_n_tokens(ended.generated_tokens), ended.finish)
        if self.closed:
            return "closed"
        return "%s so far" % _n_tokens(self._text.n_tokens) if self._text.begun else "not begun"

    def cancel(self) -> None:
        """Ends the text without an error: its loop ends. Any thread may call it."""
        self._writer.cancel(self._text)

    def close(self) -> None:
        """Ends the text here."""
        self._pieces.close()

    def __enter__(self) -> "Stream[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _n_tokens(n: int) -> str:
    return "%d token%s" % (n, "" if n == 1 else "s")


class AsyncStream(AsyncIterator[T], Generic[T]):
    """A Stream for asyncio: each step runs in a thread, so that the loop is free meanwhile. A task that
    is cancelled ends its text."""

    def __init__(self, stream: Stream[T]) -> None:
        self._stream = stream
        self._step: Any = None  # the future of the one that is under way

    async def __anext__(self) -> T:
        step = self._step = asyncio.get_running_loop().run_in_executor(None, next, self._stream, _END)
        try:
            piece = await asyncio.shield(step)
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if piece is _END:
            raise StopAsyncIteration
        return piece  # type: ignore[return-value]

    @property
    def closed(self) -> bool:
        """Returns whether it has ended, by itself or by aclose()."""
        return self._stream.closed

    def __repr__(self) -> str:
        return "<drey.AsyncStream of %s: %s>" % (self._stream._of, self._stream._state())

    def cancel(self) -> None:
        """Ends the text without an error: its loop ends. Any thread may call it."""
        self._stream.cancel()

    async def aclose(self) -> None:
        """Ends the text here, also in the middle of another task's step."""
        if self._step and not self._step.done():
            try:
                self._stream.cancel()
            except UsageError:
                pass  # the session was closed, which ends it as well
            await asyncio.wait([self._step])
            if not self._step.cancelled():
                self._step.exception()  # nobody else asks for it
        self._stream.close()

    async def __aenter__(self) -> "AsyncStream[T]":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        """Ends a text that was left: its last thread may still refer to the iterator for a moment."""
        try:
            self._stream.close()
        except (AttributeError, ValueError):
            pass  # a step is under way, in the thread that refers to it last


# ---- Answers that are whole ----

def returns_answer(method: F) -> F:
    """For a method that returns a Stream: of one item, the answer, which callers get instead, or with
    stream=True of the chunks."""
    @functools.wraps(method)
    def call(self: Any, *given: Any, **options: Any) -> Any:
        stream = method(self, *given, **options)
        if options.get("stream"):
            return stream
        with stream:
            return next(stream)
    call.streams = method  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def awaited(method: "Callable[P, R]") -> "Callable[P, Coroutine[Any, Any, R]]":
    """Such a method for asyncio. What comes before the text, as of a long prompt or a schema, runs in the
    thread as well."""
    @functools.wraps(method)
    async def call(*given: Any, **options: Any) -> Any:
        stream = AsyncStream(await asyncio.to_thread(method.streams, *given, **options))  # type: ignore[attr-defined]
        if options.get("stream"):
            return stream
        async with stream:
            return await stream.__anext__()
    del call.__wrapped__  # type: ignore[attr-defined]  # it is a coroutine, and that is none
    call.__name__ = "a" + method.__name__
    call.__qualname__ = call.__qualname__.replace(method.__name__, call.__name__)
    call.__doc__ = "%s for asyncio: await it. A task that is cancelled ends its text." % method.__name__
    return call
