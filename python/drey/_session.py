"""Sessions: each has its own text."""
from typing import Any, Optional, Tuple, TYPE_CHECKING

from ._grammar import engine_of
from ._statistics import Statistics
from ._texts import Texts
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

    # ---- The end ----

    def close(self) -> None:
        """A text that is being written ends there: its next piece is a UsageError."""
        self._writer.close()

    def __enter__(self) -> "Session":
        self._writer._check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
