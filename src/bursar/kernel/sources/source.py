"""The source's protocol: a database that can count rows by cells, and nothing else."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Source(Protocol):
    """Rows behind the row -> cell rule of the domain, bounded to the unit's contributions.

    Guarantees: rows never leave it, only counts do, and those go to the kernel alone. Any failure after the data
    were touched raises SourceError with one and the same text.
    """

    def fingerprint(self) -> str:
        """Cheap; different whenever the stored data may have changed since they were read (size, time, ...)."""

    def content(self) -> str:
        """A keyed hash of the multiset of (bounded) cells: equal for equal data, whatever their order in storage."""

    def table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        """How many rows fall into each joint cell of the columns, one axis per column in the given order."""

    def close(self) -> None: ...
