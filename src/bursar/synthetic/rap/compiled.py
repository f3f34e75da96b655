"""The compiler of the inner loops, which is an optional part of the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from bursar.errors import Unsupported

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function as machine code, made at its first call and kept on disk for the next process.

    Sums may be reordered, so results differ in their last digits between processors: nothing exact is computed here.
    Edge cases: without the package `numba` this is refused with the command that installs it.
    """
    try:
        from numba import njit
    except ImportError:
        raise Unsupported("synthetic data need a compiler: pip install numba") from None
    return cast(Function, njit(cache=True, fastmath=True, nogil=True)(function))
