"""How far answers are from the truth, in fractions of the people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from benchmarks.rap_data import Coded, Codes, joint
from benchmarks.rap_workloads import Sets

Reals = NDArray[np.float64]


@dataclass(kw_only=True)
class Errors:
    """Added up threshold by threshold, so that millions of answers need not be there at once."""

    queries: int = 0
    total: float = 0.0
    largest: list[float] = field(default_factory=list)  # of each threshold
    distances: list[float] = field(default_factory=list)  # half the L1 distance of each threshold

    def add(self, truth: Reals, answers: Reals) -> None:
        gaps = np.abs(answers - truth)
        summed = float(gaps.sum())
        self.queries += gaps.size
        self.total += summed
        self.largest.append(float(gaps.max()))
        self.distances.append(summed / 2)

    @property
    def max_error(self) -> float:
        """Present error (RAP, Def. 3.1)."""
        return max(self.largest)

    @property
    def mean_error(self) -> float:
        return self.total / self.queries

    @property
    def tv(self) -> float:
        """Total variation, a mean over the thresholds; of marginals alone it is a distance between distributions."""
        return fmean(self.distances)


def fractions(codes: Codes, sizes: Sequence[int], features: Sequence[int], least: int) -> Reals:
    """For each joint value y, the share of rows that agree with y on at least `least` of the features; C order."""
    return at_least(joint(codes, sizes, features) / len(codes), least).ravel()


def at_least(table: Reals, least: int) -> Reals:
    """r-of-k thresholds from the shares of a marginal, by inclusion and exclusion over its own marginals.

    sum over i = r..k of (-1)^(i-r) C(i-1, i-r) times the sum over all sets of i axes of the marginal there: RAP,
    Def. 4.4, where a product over the features of a one-hot row says whether the row agrees on all of them.
    """
    k = table.ndim
    if least == k:
        return table
    found = np.zeros_like(table)
    for i in range(least, k + 1):
        coefficient = (-1) ** (i - least) * math.comb(i - 1, i - least)
        for kept in combinations(range(k), i):
            gone = tuple(axis for axis in range(k) if axis not in kept)
            found += coefficient * table.sum(axis=gone, keepdims=True)
    return found


def compare(data: Coded, sets: Sets, least: int, answers: Iterable[Reals]) -> Errors:
    """Answers, one array per feature set, against the truth."""
    errors = Errors()
    for features, given in zip(sets, answers, strict=True):
        errors.add(fractions(data.codes, data.sizes, features, least), given)
    return errors


def of_table(data: Coded, sets: Sets, least: int, codes: Codes) -> Errors:
    """A synthetic table of any number of rows against the truth."""
    return compare(data, sets, least, (fractions(codes, data.sizes, features, least) for features in sets))


def total_variation(left: Reals, right: Reals) -> float:
    """Half the L1 distance of two distributions."""
    return float(np.abs(left - right).sum() / 2)


def half_width(deviation: float, number: int, level: float = 0.95) -> float:
    """Half the width of Student's interval for the mean of so many values; a single value has none."""
    from scipy.stats import t as student  # here, so that a run's memory is its own

    if number < 2:
        return 0.0
    return float(student.ppf((1 + level) / 2, number - 1)) * deviation / math.sqrt(number)
