"""What a release buys with: two of the kernel's verbs. A grant of the kernel has them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Noise
from bursar.core.extensions.select import NONE_BARRED
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap


class Buyer(Protocol):
    """Guarantees: each verb admits, draws, records and commits before it returns, so whatever a stopped release has
    bought stays in the log. A release sees the records' values and nothing else of the data."""

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        """Answer every row of the strategy with independent noise."""

    def select(
        self,
        candidates: LinearMap,
        estimates: NDArray[np.int64],
        *,
        count: int,
        scale: float,
        barred: NDArray[np.int64] = NONE_BARRED,
    ) -> Record:
        """The numbers of `count` rows that are far from their estimates, none of them barred."""
