"""The law of rows that are measured with noises of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.estimation.estimate import each_of
from bursar.tails.tails import half_width, single_tail
from bursar.core.accounting import Noise

Drawn = tuple[Noise, int]
"""A noise, and how many times it is in a row: a row that is m times a measured one errs m times as much."""


@dataclass(frozen=True, kw_only=True)
class SeveralNoises:
    """Every row has its own draw of a noise of its own: Pr[some |error_i| >= alpha] = 1 - prod_i (1 - p_i)."""

    rows: tuple[Drawn, ...]

    def tail(self, alpha: float, enough: float) -> float:
        each = {(noise, times): single_tail(noise, alpha / times) for noise, times in set(self.rows)}
        if max(each.values(), default=0.0) >= 1:
            return 1.0
        return -math.expm1(sum(math.log1p(-each[row]) for row in self.rows))

    def half_widths(self, beta: float) -> NDArray[np.float64]:
        share = each_of(beta, len(self.rows))
        each = {(noise, times): times * half_width(noise, share) for noise, times in set(self.rows)}
        return np.array([each[row] for row in self.rows])

    def mean_square(self) -> float:
        return float(np.mean([times**2 * noise.variance() for noise, times in self.rows]))
