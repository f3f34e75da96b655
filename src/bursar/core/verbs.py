"""The verbs as an offer sees them: four look at the data, one keeps budget aside for them.

An offer is given this protocol, never the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Noise, Opened
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap

NONE_BARRED: NDArray[np.int64] = np.zeros(0, np.int64)
NONE_BARRED.setflags(write=False)


@dataclass(frozen=True, kw_only=True)
class Tested:
    """The outcome of one test of a sparse vector, which is all that a test reveals."""

    instance: int  # the position of its `Opened` in the log
    above: bool  # closed by this test


class Verbs(Protocol):
    """Guarantees: each verb admits, draws, records and commits in one transaction before it returns a value; of a
    sparse vector, opening it is such a transaction, and so is every test, which costs nothing more."""

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        """Answer every row of the strategy with independent noise."""

    def refine(self, block: int, rows: Sequence[int], noise: Noise) -> Record:
        """Make rows of an earlier measurement, which stands at position `block` of the log, more accurate.

        The rows rise and have one and the same noise now, as the `Refined` of the plan says; rows of different noise
        take several calls. Raises Stale where a row has got finer since the plan was made.
        """

    def above(self, instance: Opened | int, query: LinearMap, estimate: int) -> Tested:
        """Test of a sparse vector: is |q(D) - estimate| + noise at or above its noisy threshold?

        With an `Opened` of the plan, the instance is opened for its whole price and tested; with a position, one is
        tested that is open already, and that a `Failed` of the plan names. A test that is above closes the instance.
        Raises Stale where it is not open any more.
        """

    def select(
        self,
        candidates: LinearMap,
        estimates: NDArray[np.int64],
        *,
        count: int,
        scale: float,
        barred: NDArray[np.int64] = NONE_BARRED,
    ) -> Record:
        """Noisy top-k: the numbers of rows that are far from their estimates, as the values of the record.

        `count` rows are picked one after the other, without replacement, each with a probability in proportion to
        exp(|q_i(D) - estimates_i| / scale); rows whose numbers are `barred` are never picked.
        """

    def renew(self) -> None:
        """Put off the end of the hold where it is near: for a plan that takes its time between its verbs."""
