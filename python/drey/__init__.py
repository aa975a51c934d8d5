"""Runs language models that are larger than the memory you give them.

    import drey

    with drey.Model("big.gguf", draft="small.gguf", memory="2G") as model:
        for piece in model.generate("The sky is blue because", max_tokens=64):
            print(piece, end="", flush=True)
        print("\\n%.1f tokens/s" % model.statistics.tokens_per_s)

A Model is a file with its draft in one memory budget. A Session is one text or conversation; those of
a model share its weights and write in turns. The text is the one that the model alone would write:
draft, budget and threads change how long it takes.
"""
from ._asked import TextOptions
from ._errors import (CancelledError, ContextError, Error, FormatError, IOFailure, MemoryBudgetError,
                      MismatchError, NotFound, UnsupportedError, UsageError)
from ._grammar import Grammar
from ._model import Model
from ._options import ModelInfo
from ._plan import Plan, plan
from ._sampling import Sampling
from ._session import Session
from ._statistics import Statistics
from ._streams import AsyncStream, Stream
from ._texts import Completion
from ._library import version

__version__ = version()
__all__ = ["Model", "Session", "Grammar", "Sampling", "TextOptions", "Stream", "AsyncStream", "Completion", "Statistics",
           "Plan", "ModelInfo", "plan", "version", "Error", "UsageError", "MemoryBudgetError", "IOFailure", "FormatError",
           "NotFound", "UnsupportedError", "MismatchError", "ContextError", "CancelledError"]


def __getattr__(name: str) -> object:
    """Says what drey calls what llama-cpp-python has."""
    raise AttributeError("drey has no %s%s" % (name, ": take drey.Model(FILE_OR_NAME)" if name == "Llama" else ""))
