"""The shared library inside of the package, by the declarations of its headers (_declarations.py,
which scripts/package/wheel.py makes of include/drey)."""
import os
from typing import Any

from ._declarations import VERSION, ffi

_here = os.path.dirname(os.path.abspath(__file__))
lib: Any = ffi.dlopen(os.path.join(_here, "libdrey.so"))


def version() -> str:
    """The library's version."""
    return ffi.string(lib.drey_version()).decode()


if version() != VERSION:
    raise ImportError("drey for Python %s has a library of version %s next to it: install drey again"
                      % (VERSION, version()))
