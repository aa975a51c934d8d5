"""Texts for asyncio."""
import asyncio
from typing import Any, Callable, Iterator

from ._errors import UsageError

_END = object()


class InThread:
    """An iterator of a text, which `cancel` ends, whose steps run in a thread."""

    def __init__(self, cancel: Callable[[], None], pieces: Iterator[str]) -> None:
        self._cancel = cancel
        self._pieces: Any = pieces

    def __aiter__(self) -> "InThread":
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
            self._cancel()
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
