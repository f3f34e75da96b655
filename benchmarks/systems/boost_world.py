"""What the simulated systems of Boost's evaluation share: the exact answers, the goal, and what each block has spent.

They draw continuous noise from a seeded generator and charge every block they look at by sequential composition, as
the paper does; they are baselines, not mechanisms to protect anybody with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.boost_questions import Selector

Reals = NDArray[np.float64]

Node = tuple[int, int]
"""The first and the last block of a window."""


class Path(NamedTuple):
    """The ways through Boost (Fig. 4), and the one around it."""

    cached: str = "cache"  # an answer that was bought before
    estimated: str = "R1"  # the histogram's, its test passed
    failed: str = "R2"  # bought after a failed test
    bought: str = "R3"  # bought without a test


PATH = Path()


class System(Protocol):
    """Answers questions about windows of blocks. `spent` is the epsilon of each block so far."""

    @property
    def spent(self) -> Reals: ...

    def answer(self, query: int, first: int, last: int) -> tuple[float, str]:
        """The fraction of the window's rows that the query counts, and which way the answer came."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Blocks of equal public size, a pool of queries, and the accuracy that every answer must have."""

    fractions: Reals  # of each query (row) in each block (column)
    size: int  # rows of one block
    selectors: Sequence[Selector]
    bins: tuple[int, ...]  # shape of the histograms that the selectors index
    alpha: float = 0.05
    beta: float = 0.001

    def __post_init__(self) -> None:
        sums = np.cumsum(self.fractions, axis=1)
        object.__setattr__(self, "_before", np.concatenate([np.zeros((len(sums), 1)), sums], axis=1))

    @property
    def blocks(self) -> int:
        return int(self.fractions.shape[1])

    def truth(self, query: int, node: Node) -> float:
        """The exact answer over a window."""
        first, last = node
        before: Reals = self._before[query]  # type: ignore[attr-defined]
        return float(before[last + 1] - before[first]) / (last - first + 1)

    def rows(self, node: Node) -> int:
        return self.size * (node[1] - node[0] + 1)


def covering(first: int, last: int) -> list[Node]:
    """The fewest nodes of the binary tree over all blocks that make up a window, from left to right.

    A node has 2^k blocks and begins at a multiple of 2^k.
    """
    nodes = []
    while first <= last:
        length = 1
        while first % (2 * length) == 0 and first + 2 * length - 1 <= last:
            length *= 2
        nodes.append((first, first + length - 1))
        first += length
    return nodes


def leaves(first: int, last: int) -> list[Node]:
    """The blocks of a window, one by one."""
    return [(block, block) for block in range(first, last + 1)]
