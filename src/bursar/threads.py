"""One thread for our own linear algebra, whatever the machine has.

Planning multiplies and factors thousands of matrices of some hundred rows. On these, the threads of a BLAS library
mostly wait for each other: it takes several times as long with them, and many times where other processes run as well.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import LibController, ThreadpoolController

LATE = "scipy.linalg._fblas"
"""Loaded when it is first needed, and then scipy's own copy of the library is there beside numpy's."""


class _Limits:
    """What is limited now. The libraries count threads for the whole process, so the last one out puts it all back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._late: bool | None = None
        self._libraries: list[LibController] = []
        self._before: dict[str, tuple[LibController, int]] = {}

    def enter(self) -> None:
        with self._lock:
            if self._late != (LATE in sys.modules):
                self._late = LATE in sys.modules
                every = ThreadpoolController().lib_controllers  # looks through all that is loaded: milliseconds
                self._libraries = [library for library in every if library.user_api == "blas"]
            for library in self._libraries:
                if library.filepath not in self._before:
                    self._before[library.filepath] = library, library.num_threads
                    _set(library, 1)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            while self._inside == 0 and self._before:
                _, (library, threads) = self._before.popitem()
                _set(library, threads)


def _set(library: LibController, threads: int) -> None:
    """Set the number, also where it was another thread that set it last: threadpoolctl leaves it to that one alone."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


_LIMITS = _Limits()


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, BLAS has one thread; outside, as many as the user has set. Also a decorator: `@one_thread()`.

    Guarantees: threads and nested uses may overlap in any way; what was set before the first is set after the last.
    Edge cases: other threads of the process have one BLAS thread meanwhile, too.
    """
    _LIMITS.enter()
    try:
        yield
    finally:
        _LIMITS.leave()
