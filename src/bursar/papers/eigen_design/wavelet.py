"""The Haar wavelet: the total, and at every node of a binary tree the difference of its two halves."""

from __future__ import annotations

import numpy as np

from bursar.strategies.measure import Reals, checked_size
from bursar.strategies.simple import product


def wavelet(*sizes: int) -> Reals:
    """The strategy of Xiao et al., with entries 1 and -1 (Eigen-Design, Fig. 2); over several columns the product.

    A node of odd size has the larger half in front.
    Guarantees: as many rows as cells, and of full rank; for a power of two the rows are orthogonal.
    """
    return product(*(_haar(size) for size in sizes))


def _haar(size: int) -> Reals:
    rows = [np.ones(checked_size(size))]
    nodes = [(0, size)]
    while nodes:
        low, high = nodes.pop(0)
        if high - low < 2:
            continue
        middle = (low + high + 1) // 2
        row = np.zeros(size)
        row[low:middle], row[middle:high] = 1.0, -1.0
        rows.append(row)
        nodes += [(low, middle), (middle, high)]
    return np.array(rows)
