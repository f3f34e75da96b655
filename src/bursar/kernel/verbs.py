"""The four verbs as an offer sees them. An offer is given this protocol, never the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from bursar.kernel.accounting import Noise
from bursar.kernel.ledger import Record
from bursar.queries import LinearMap


class Verbs(Protocol):
    """Guarantees: each verb admits, draws, records and commits in one transaction before it returns a value."""

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        """Answer every row of the strategy with independent noise."""

    def refine(self, block: int, rows: Sequence[int], noise: Noise) -> Record:
        """Make rows of an earlier measurement, which stands at position `block` of the log, more accurate.

        The rows rise and have one and the same noise now, as the `Refined` of the plan says; rows of different noise
        take several calls. Raises Stale where a row has got finer since the plan was made.
        """

    def above(self, query: LinearMap, threshold: int) -> bool:
        """Sparse vector: is the answer above a noisy threshold?"""

    def select(self, candidates: LinearMap, count: int) -> Record:
        """Noisy top-k."""
