"""The plainest strategies, and products of strategies."""

from __future__ import annotations

import numpy as np

from bursar.strategies.measure import Reals, checked_size


def identity(size: int) -> Reals:
    """Ask for every cell."""
    return np.eye(checked_size(size))


def total(size: int) -> Reals:
    """Ask for the sum of all cells only: for workloads that ask for nothing else."""
    return np.ones((1, checked_size(size)))


def product(*strategies: Reals) -> Reals:
    """One strategy per column, every row times every row: a strategy over the joint cells, last column fastest.

    Guarantees: both sensitivities are the products of the factors'.
    """
    made = np.ones((1, 1))
    for strategy in strategies:
        made = np.asarray(np.kron(made, strategy), np.float64)
    return made
