"""A model's files with an engine: what models, sessions and grammars use together."""
import threading
from typing import Any, Callable, Optional

from ._errors import check, new_error
from ._held import Held, Turns
from ._library import ffi, lib
from ._options import Opened
from ._progress import Progress, ProgressFn


class Engine(Held):
    """Options as for Model."""
    _name = "model"

    def __init__(self, target: Any, progress: Optional[ProgressFn], verbose: bool, **options: Any) -> None:
        self.turns = Turns()
        self.opening_grammars = threading.RLock()  # one at a time: the first sorts the vocabulary
        self.verbose = verbose
        self.progress = Progress(progress, verbose)
        self.own_session: Callable[[], Optional[Held]] = lambda: None  # a weak reference to the model's own
        self.opened = Opened(target, **options)
        self.opened.options.progress = self.progress.callback
        self.engine = ffi.new("drey_engine **")
        super().__init__()
        err = new_error()
        try:
            with self._using():
                check(lib.drey_engine_open(self.engine, self.opened.options, err), err)
        except BaseException:
            self._shut()
            raise

    def _free(self) -> None:
        lib.drey_engine_close(self.engine)
        self.opened.close()

    @property
    def target(self) -> Any:
        return self.opened.target
