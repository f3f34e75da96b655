"""Intervals of quantiles from the law of single ranks, instead of bars that hold for all ranks together.

Let F_i be the true number of rows up to value i, N that of all rows, and p the share of the ranks. The quantile is at
the first i with F_i >= p N (for DISC), so for this very i

    F_i - p N >= 0    and    F_(i-1) - p N < 0.                                                                  (1)

i is a fixed number, whatever the noise. So the estimates f and n of F and N have

    f_i - p n >= -h_i    and    f_(i-1) - p n <= h_(i-1),                                                        (2)

but for a chance of beta/2 each, where the error of f_i - p n is beyond h_i, on either side, with probability at most
beta: its law is symmetric. The quantile lies between the first value with the first property and the last value with
the second. For CONT, between two ranks, (1) and (2) hold with -p instead of 0 for the value at the lower rank, and with
1 - p for that at the upper one.

Guarantees: with probability at least 1 - beta the true quantiles of all lines lie within their ends together. A line
without rows has no quantile, and nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.derived import ROUNDING_OF_COUNTS, Form, Quantile
from bursar.estimation.estimate import ErrorLaw, NearlyNormal, RepeatedRows
from bursar.estimation.joint_ratios import JointRows
from bursar.lazy_dataclass import dataclass
from bursar.tails import GaussianSums, LaplaceSums, Noises, covering_half_widths, tail

MANY_WEIGHTS, MOST_TOGETHER = 2**10, 0.5
"""From this many on, errors are bounded all at once; made for this chance of any at most."""

MOST_WIDTHS = 2**17
"""Up to so many weights, errors that are not bounded closely all at once are bounded one by one as well."""

MOST_EXACT_STEPS = 8
"""Values at each end that are looked at again with an exact tail."""

REMEMBERED_LINES = 4
"""Of how many quantiles of a plan the errors are remembered."""


def quantile_ends(quantile: Quantile, columns: Reals, rows: JointRows, beta: float) -> tuple[Reals, Reals]:
    """The ends of a quantile on every line, from estimates of the columns."""
    return ends_of(quantile, columns, rank_errors(quantile, rows, beta / len(columns)))


def ends_of(quantile: Quantile, columns: Reals, lines: Sequence[RankErrors]) -> tuple[Reals, Reals]:
    """The ends on every line from the errors of its ranks."""
    ranks, share = quantile.up_to(columns[:, list(quantile.columns)]), float(quantile.share)
    ends = np.empty((2, len(ranks)))
    for line, errors in enumerate(lines):
        numbers = ranks[line]
        places = _places(quantile, numbers - share * numbers[-1], errors)
        ends[:, line] = sorted(quantile.points[place] for place in places)
    return ends[0], ends[1]


@dataclass(frozen=True, eq=False)
class RankErrors:
    """How far f_i - p n can be off, for each i alone but for a chance of beta."""

    weights: Reals
    noises: Sequence[Noise]
    beta: float
    sums: LaplaceSums | GaussianSums | None  # of these weights, where one noise is drawn for all

    @staticmethod
    def of(weights: Reals, noises: Sequence[Noise], beta: float) -> RankErrors:
        if weights.size < MANY_WEIGHTS or len(set(noises)) > 1:
            return RankErrors(weights, noises, beta, None)
        together = min(beta * len(weights), MOST_TOGETHER)
        laplace = noises[0].kind is NoiseKind.LAPLACE
        return RankErrors(
            weights, noises, beta, LaplaceSums.of(weights, together) if laplace else GaussianSums.of(weights)
        )

    @property
    def settled(self) -> bool:
        """Whether bounds are close, so that looking again would not help."""
        return self.sums is not None and self.sums.close_at(self.noises[0].scale)

    def within(self, distances: Reals) -> NDArray[np.bool_]:
        """Where f_i - p n is off by no more than a distance but for its chance, by bounds that are soon found."""
        if self.sums is None:
            return self._widths <= distances
        inside = np.asarray(self.sums.tails(self.noises[0].scale, distances) <= self.beta)
        return inside if self.settled or self.weights.size > MOST_WIDTHS else inside | (self._widths <= distances)

    @cached_property
    def _widths(self) -> Reals:
        return covering_half_widths(self.weights, self.noises, self.beta * len(self.weights), exact=False)

    def exactly_within(self, place: int, distance: float) -> bool:
        """Whether the error of a rank stays within a distance but with probability beta, by its exact tail."""
        return tail(self.weights[place], self.noises, distance, self.beta) <= self.beta


def transform_ranks(forms: Sequence[Form], law: ErrorLaw | None, index: Integers, beta: float) -> RankErrors | None:
    """The errors of one quantile of all rows that a transform was measured for; None for anything else."""
    if not isinstance(law, NearlyNormal) or len(forms) != 1 or not isinstance(forms[0], Quantile):
        return None
    quantile = forms[0]
    if not np.array_equal(index[:, list(quantile.columns)], np.arange(len(law.lengths))[None]):
        return None
    errors = RankErrors(np.zeros((0, 0)), (law.noise,), beta, law.ranks(float(quantile.share)))
    return errors if errors.settled else None


def rank_errors(quantile: Quantile, rows: JointRows, beta: float) -> list[RankErrors]:
    """The errors of each line. Lines often have the same law, which is then looked at once."""
    by_key: dict[object, RankErrors] = {}
    lines: list[RankErrors] = []
    for line in range(len(rows.index)):
        key = rows.law_key(line, quantile.columns)
        if key not in by_key:
            by_key[key] = _of_line(line, key, quantile, rows, beta)
        lines.append(by_key[key])
    return lines


def _of_line(line: int, key: object, quantile: Quantile, rows: JointRows, beta: float) -> RankErrors:
    law, remembered_as = rows.law, (key, quantile.share, quantile.apart, beta)
    if isinstance(law, RepeatedRows) and remembered_as in law.combined:
        weights, sums = law.combined[remembered_as]
        return RankErrors(weights, Noises.alike(law.noise, weights.shape[1]), beta, sums)
    weights, noises = rows.of_line(line, quantile.columns)
    weights = quantile.up_to(weights, axis=0)
    weights -= float(quantile.share) * weights[-1]
    errors = RankErrors.of(weights, noises, beta)
    if isinstance(law, RepeatedRows) and errors.sums is not None:
        if len(law.combined) >= REMEMBERED_LINES:
            law.combined.clear()
        law.combined[remembered_as] = errors.weights, errors.sums
    return errors


def _places(quantile: Quantile, numbers: Reals, errors: RankErrors) -> tuple[int, int]:
    """The first value with the first property of (2), and the last one with the second, for f - p n on one line.

    A value lacks the property where the error would have to be beyond what is between, and that has a chance of at most
    beta. The rounding of counts keeps an error of just that much apart from one beyond it.
    """
    share = float(quantile.share)
    below, above = (share, 1 - share) if quantile.between else (0.0, 0.0)
    first = _first(errors, -(numbers + below + ROUNDING_OF_COUNTS), np.arange(len(numbers)))
    last = _first(errors, numbers - above - ROUNDING_OF_COUNTS, np.arange(len(numbers) - 1)[::-1])
    return len(numbers) - 1 if first is None else first, 0 if last is None else last + 1


def _first(errors: RankErrors, distances: Reals, order: Integers) -> int | None:
    """The first of the places at which the error may be that large; after a few exact looks the next one, as it is."""
    places = order[~errors.within(distances)[order]]
    for place in places[:MOST_EXACT_STEPS].tolist():
        if errors.settled or distances[place] < 0 or not errors.exactly_within(place, float(distances[place])):
            return int(place)
    return int(places[MOST_EXACT_STEPS]) if len(places) > MOST_EXACT_STEPS else None
