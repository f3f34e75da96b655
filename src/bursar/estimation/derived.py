"""Outputs that follow from estimated rows: linear combinations, ratios, variances, quantiles, with their intervals.

Every output is computed from columns of numbers that are each known within a bar; the bars hold together with the
stated confidence. The interval of an output is the range of its formula over all numbers within the bars that rows can
have. So the intervals hold whenever the bars do, all of them together, whatever the formula is, and small counts make
them wide: up to all values that are possible by what is public. (Shorter ones follow from the joint law of rows, where
it is known: `joint_ratios.py`, `joint_variances.py`, `joint_quantiles.py`.) Where a formula may have no value (an
average of no rows, which is NULL in SQL) nothing is claimed of that. Where the bars leave no row for it, its value is
NULL, which is NaN here, and its ends are those of all values that are possible.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.lazy_dataclass import dataclass

ROUNDING_OF_ENDS = 1e-12
"""Ends are moved outwards by this part: more than the few operations that made them can have lost."""

ROUNDING_OF_COUNTS = 1e-6
"""Numbers of rows are whole; this much is left to the rounding of the ends of their bars."""

MOST_STEPS = 50
"""Most steps towards the largest ratio; each takes the best corner of the box, and there are few corners."""


@dataclass(frozen=True, eq=False)
class Box:
    """Estimates, one column for each number that outputs are made of, and the ends of their bars."""

    values: Reals  # (lines, columns)
    low: Reals
    high: Reals

    def columns(self, which: tuple[int, ...]) -> Box:
        chosen = list(which)
        return Box(self.values[:, chosen], self.low[:, chosen], self.high[:, chosen])

    def times(self, units: Reals) -> Box:
        """In other units, all of them positive."""
        return Box(self.values * units, self.low * units, self.high * units)

    def at_least(self, least: Reals) -> Box:
        """What is left of the bars where the numbers are known to be at least these; estimates move along."""
        return Box(np.maximum(self.values, least), np.maximum(self.low, least), np.maximum(self.high, least))


@dataclass(frozen=True, eq=False)
class Derived:
    """One output on every line: value, low and high."""

    value: Reals  # NaN where it is NULL
    low: Reals
    high: Reals
    sure: NDArray[np.bool_] | None = None  # where there is certainly somebody that it is about; None: it needs nobody
    finer: Reals | None = None  # how many times finer its rows must be known where nothing is known yet; else 0
    absent: NDArray[np.bool_] | None = None  # where it is NULL whatever the numbers are: LAG on the first line

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Where nothing is known of it, not even whether there is anybody that it is about."""
        if self.finer is not None:
            return self.finer > 0
        doubted = np.zeros(len(self.value), np.bool_) if self.sure is None else ~self.sure
        return doubted & np.isinf(self.low) & np.isinf(self.high)

    def judged(self, form: Form, box: Box) -> Derived:
        """The same with what is certain about it, and what it would take to know something where nothing is known."""
        sure = form.sure(box)
        if sure is None or not form.columns:
            return replace(self, sure=sure)
        least, most = form.reach
        nothing = ~sure & (self.low <= least) & (self.high >= most) & ~np.isnan(self.value)
        rows = form.rows.of(box)
        with np.errstate(divide="ignore", invalid="ignore"):
            finer = np.where(rows.value > 0, (rows.high - rows.low) / rows.value, np.inf)
        return replace(self, sure=sure, finer=np.where(nothing, np.maximum(finer, 1.0), 0.0))


class Form(Protocol):
    """How one output follows from columns."""

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it is made of."""

    @property
    def steps(self) -> tuple[float, ...]:
        """For each column, the error that it may have where an error of 1 is asked for the output."""

    def of(self, box: Box) -> Derived: ...

    @property
    def reach(self) -> tuple[float, float]:
        """The ends of what it can be at all, by what is public."""

    @property
    def rows(self) -> Combination:
        """The number that must be above 0 for it to be about somebody."""

    def sure(self, box: Box) -> NDArray[np.bool_] | None:
        """The lines that certainly have rows to be about; None where none are needed, as for a count."""

    def facts(self) -> list[object]:
        """What identifies the form, as plain JSON values."""


@dataclass(frozen=True, kw_only=True)
class Combination:
    """The sum of weights times columns, and a constant."""

    columns: tuple[int, ...]
    weights: tuple[float, ...]
    constant: float = 0.0
    steps: tuple[float, ...]

    def of(self, box: Box) -> Derived:
        inputs = box.columns(self.columns)
        up = np.array(self.weights) >= 0
        low, high = np.where(up, inputs.low, inputs.high), np.where(up, inputs.high, inputs.low)
        return Derived(self.at(inputs.values), self.at(low), self.at(high))

    @property
    def reach(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @property
    def rows(self) -> Combination:
        return self

    def sure(self, box: Box) -> NDArray[np.bool_] | None:
        return None

    def at(self, numbers: Reals) -> Reals:
        result: Reals = numbers @ np.array(self.weights) + self.constant
        return result

    def facts(self) -> list[object]:
        return ["linear", list(self.columns), list(self.weights), self.constant]


def single(column: int) -> Combination:
    """A column as it is."""
    return total((column,))


def total(columns: tuple[int, ...]) -> Combination:
    """The sum of columns."""
    ones = (1.0,) * len(columns)
    return Combination(columns=columns, weights=ones, steps=ones)


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """One combination over another, both of the same columns; an error that is asked for is one in rows.

    The ends: f(r) = (a . r + c)/(b . r + d) over a box with b . r + d > 0 is greatest at a corner, and t is below that
    exactly if some corner has (a - t b) . r + c - t d > 0 (Dinkelbach 1967). So t is raised to the ratio at the corner
    that is best for t until nothing is better. Where the denominator can be 0, the ends are `lowest` and `highest`.
    """

    above: Combination
    below: Combination
    least: tuple[float, ...]  # what columns cannot be below: 0 for a count, 1 for one that is divided by
    lowest: float = -math.inf  # what the ratio can be at all, by what is public
    highest: float = math.inf

    @property
    def columns(self) -> tuple[int, ...]:
        return self.above.columns

    @property
    def steps(self) -> tuple[float, ...]:
        return self.above.steps

    @property
    def reach(self) -> tuple[float, float]:
        return self.lowest, self.highest

    @property
    def rows(self) -> Combination:
        return self.below

    def of(self, box: Box, ends: tuple[Reals, Reals] | None = None) -> Derived:
        """From the bars, or with ends that were found otherwise (`joint_ratios`)."""
        inputs = box.columns(self.columns).at_least(np.array(self.least))
        sure = self._below(inputs) > 0
        ends = self._ends(inputs, sure) if ends is None else ends
        low, high = (np.clip(end, self.lowest, self.highest) for end in ends)
        middle = _middle(low, high)
        value = np.divide(self.above.at(inputs.values), self.below.at(inputs.values), where=sure, out=middle)
        return _null(self._nothing(box), Derived(np.clip(value, low, high), low, high), self.lowest, self.highest)

    def _nothing(self, box: Box) -> NDArray[np.bool_]:
        """Where the denominator is 0 for sure: a count that is below 1, or anything that can be nothing but 0."""
        terms = [place for place, weight in enumerate(self.below.weights) if weight]
        if self.below.constant == 0 and [self.least[place] for place in terms] == [1.0]:
            return np.asarray(box.high[:, self.columns[terms[0]]] < 1 - ROUNDING_OF_COUNTS)
        ends = self.below.of(box)
        return np.asarray((ends.low == 0) & (ends.high == 0))

    def sure(self, box: Box) -> NDArray[np.bool_] | None:
        return self._below(box.columns(self.columns)) > 0

    def _below(self, inputs: Box) -> Reals:
        """The least that the denominator can be."""
        weights = np.array(self.below.weights)
        return self.below.at(np.where(weights >= 0, inputs.low, inputs.high))

    def _ends(self, inputs: Box, sure: NDArray[np.bool_]) -> tuple[Reals, Reals]:
        high = np.where(sure, self._most(inputs, 1.0, sure), np.inf)
        low = np.where(sure, -self._most(inputs, -1.0, sure), -np.inf)
        return low - ROUNDING_OF_ENDS * np.abs(low), high + ROUNDING_OF_ENDS * np.abs(high)

    def _most(self, inputs: Box, sign: float, sure: NDArray[np.bool_]) -> Reals:
        """The greatest value over the box of the ratio, or of its negative."""
        above, below = sign * np.array(self.above.weights), np.array(self.below.weights)
        best = np.where(sure, -np.inf, 0.0)
        corner = inputs.low
        for _ in range(MOST_STEPS):
            bottom = np.where(sure, self.below.at(corner), 1.0)
            ratio = sign * self.above.at(corner) / bottom
            if not np.any(sure & (ratio > best)):
                break
            best = np.maximum(best, ratio)
            corner = np.where(above - best[:, None] * below > 0, inputs.high, inputs.low)
        return best

    def facts(self) -> list[object]:
        return ["ratio", self.above.facts(), self.below.facts()]


@dataclass(frozen=True, kw_only=True)
class Variance:
    """From the number of rows N, the sum S and the sum of squares Q of values less a constant: Q/N - (S/N)^2.

    The sample's own variance is N/(N - 1) times that; a deviation is the root.

    The ends: with u = 1/N it is Q u - S^2 u^2, which rises in Q, falls in |S|, and is concave in u. So it is least at
    the least Q, the greatest |S| and one end of u; and greatest at the greatest Q, the least |S| and the u nearest to
    Q/(2 S^2). It is never below 0, nor above a quarter of the square of the range of values.
    """

    columns: tuple[int, int, int]
    units: tuple[float, float, float]  # what one is, in each column
    steps: tuple[float, ...]
    width: float  # the range of the values
    sample: bool
    root: bool

    @property
    def largest(self) -> float:
        """The largest variance that there can be: half of the values at each end; of two values for the sample's."""
        return self.width**2 / (2 if self.sample else 4)

    def of(self, box: Box, ends: tuple[Reals, Reals] | None = None) -> Derived:
        """From the bars, or with ends that were found otherwise (`joint_variances`)."""
        moments = box.columns(self.columns).times(np.array(self.units))
        needed = 2.0 if self.sample else 1.0
        nothing = moments.high[:, 0] < needed - ROUNDING_OF_COUNTS
        moments = moments.at_least(np.array([needed, -np.inf, 0.0]))
        fewest, most = moments.low[:, 0], moments.high[:, 0]
        inner = np.where((moments.low[:, 1] <= 0) & (moments.high[:, 1] >= 0), 0.0, np.abs(moments.low[:, 1]))
        inner = np.where(moments.high[:, 1] < 0, -moments.high[:, 1], inner)
        outer = np.maximum(np.abs(moments.low[:, 1]), np.abs(moments.high[:, 1]))
        least = np.minimum(_spread(moments.low[:, 2], outer, 1 / fewest), _spread(moments.low[:, 2], outer, 1 / most))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            peak = np.where(inner > 0, moments.high[:, 2] / (2 * inner**2), np.inf)
        greatest = _spread(moments.high[:, 2], inner, np.clip(peak, 1 / most, 1 / fewest))
        value = _spread(moments.values[:, 2], moments.values[:, 1], 1 / moments.values[:, 0])
        highest = self.width**2 / 4
        rows = (moments.values[:, 0], most, fewest)
        shown = [self._shown(np.clip(v, 0.0, highest), n) for v, n in zip((value, least, greatest), rows, strict=True)]
        low, high = (shown[1], shown[2]) if ends is None else ends
        low, high = low * (1 - ROUNDING_OF_ENDS), high * (1 + ROUNDING_OF_ENDS)
        return _null(nothing, Derived(np.clip(shown[0], low, high), low, high), *self.reach)

    @property
    def reach(self) -> tuple[float, float]:
        return 0.0, math.sqrt(self.largest) if self.root else self.largest

    @property
    def rows(self) -> Combination:
        return single(self.columns[0])

    def sure(self, box: Box) -> NDArray[np.bool_] | None:
        fewest = box.columns(self.columns).low[:, 0]
        return fewest > (1 if self.sample else 0)

    def _shown(self, spread: Reals, rows: Reals) -> Reals:
        variance = spread * (rows / (rows - 1) if self.sample else 1.0)
        return np.sqrt(variance) if self.root else variance

    def facts(self) -> list[object]:
        return ["variance", list(self.columns), list(self.units), self.width, self.sample, self.root]


def _spread(squares: Reals, total: Reals, share: Reals) -> Reals:
    """Q u - S^2 u^2."""
    return squares * share - np.square(total * share)


@dataclass(frozen=True, kw_only=True)
class Quantile:
    """The value at a share of the ranks, from the numbers of rows up to each value in turn; the last is all rows.
    Or from the numbers of rows at each value, which are added up in turn.

    With ranks i from 0 to N - 1, DISC is the value at rank ceil(pN) - 1, CONT lies between those around p(N - 1), in
    proportion. The value at rank i is the first with more than i rows up to it.

    The ends: numbers of rows up to a value never fall from one value to the next, so their bars are drawn together.
    The value at the least rank that is possible then comes no earlier than the first whose number can exceed it, and
    that at the greatest rank no later than the first whose number must.
    """

    columns: tuple[int, ...]
    points: tuple[float, ...]  # the values, increasing
    share: Decimal
    between: bool  # CONT
    apart: bool = False  # the columns are of single values

    @property
    def steps(self) -> tuple[float, ...]:
        return (1.0,) * len(self.columns)

    def up_to(self, columns: Reals, axis: int = -1) -> Reals:
        """The numbers of rows up to each value, or what they are made of, from those of the columns."""
        return np.cumsum(columns, axis=axis) if self.apart else columns

    def of(self, box: Box, ends: tuple[Reals, Reals] | None = None) -> Derived:
        """From the bars, or with ends that were found otherwise (`joint_quantiles`)."""
        if not self.columns:
            value, lowest, highest = (np.full(len(box.values), end) for end in (np.nan, *self.reach))
            return Derived(value, lowest, highest)
        ranks = box.columns(self.columns).at_least(np.zeros(len(self.columns)))
        least, most = self.up_to(ranks.low), self.up_to(ranks.high)
        # Each is 0 or more, but noise must be able to cancel out where many are added up.
        values = np.maximum(self.up_to(box.columns(self.columns).values), 0.0) if self.apart else ranks.values
        low = np.maximum.accumulate(least, axis=1)
        high = np.minimum.accumulate(most[:, ::-1], axis=1)[:, ::-1]
        steady = np.maximum.accumulate(values, axis=1) + np.minimum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
        guess = np.rint(steady / 2)
        lines = np.array([self._line(*line) for line in zip(guess, low, high, strict=True)]).reshape(-1, 3)
        value, nobody = lines[:, 0], np.isnan(lines[:, 0])
        lowest, highest = (lines[:, 1], lines[:, 2]) if ends is None else ends
        return _null(nobody, Derived(np.clip(value, lowest, highest), lowest, highest), *self.reach)

    def sure(self, box: Box) -> NDArray[np.bool_] | None:
        if not self.columns:
            return np.zeros(len(box.values), np.bool_)
        somebody: NDArray[np.bool_] = np.any(box.columns(self.columns).low > 0, axis=1)
        return somebody

    def _line(self, guess: Reals, low: Reals, high: Reals) -> tuple[float, float, float]:
        if high[-1] < 1 - ROUNDING_OF_COUNTS:
            return math.nan, *self.reach
        if np.any(high < low):
            return sum(self.reach) / 2, *self.reach
        value = sum(self.reach) / 2
        if guess[-1] >= 1:
            lower, upper, part = self._ranks(int(guess[-1]))
            ends = [self.points[int(np.argmax(guess > rank))] for rank in (lower, upper)]
            value = ends[0] + float(part) * (ends[1] - ends[0])
        least, _, _ = self._ranks(max(1, math.ceil(low[-1])))
        _, most, _ = self._ranks(max(1, math.floor(high[-1])))
        first, last = high >= least + 1 - ROUNDING_OF_COUNTS, low > most + ROUNDING_OF_COUNTS
        begin = int(np.argmax(first)) if first.any() else len(self.points) - 1
        end = int(np.argmax(last)) if last.any() else len(self.points) - 1
        return value, self.points[begin], self.points[end]

    @property
    def reach(self) -> tuple[float, float]:
        return self.points[0], self.points[-1]

    @property
    def rows(self) -> Combination:
        return total(self.columns) if self.apart else single(self.columns[-1])

    def _ranks(self, rows: int) -> tuple[int, int, Fraction]:
        """The ranks around the one that is asked for, and how far between them it lies."""
        if not self.between:
            rank = max(1, math.ceil(Fraction(self.share) * rows)) - 1
            return rank, rank, Fraction(0)
        exact = Fraction(self.share) * (rows - 1)
        return math.floor(exact), math.ceil(exact), exact - math.floor(exact)

    def facts(self) -> list[object]:
        apart: list[object] = ["apart"] if self.apart else []
        return ["quantile", list(self.columns), list(self.points), str(self.share), self.between, *apart]


@dataclass(frozen=True, kw_only=True)
class Extreme:
    """The least or the greatest value, from the numbers of rows up to each value in turn; the last is all rows.
    Or from the numbers of rows at each value, which are added up in turn, and so are their bars.

    For the greatest, values go downwards, and the numbers are those of rows from each on. The ends: somebody certainly
    lies at or before a value up to which the number of rows is certainly 1 or more, so the extreme comes no later; and
    no earlier than the first up to which there can be a row at all. What is shown is the end that is certain.

    Guarantees: with bars of E / 2 at most, E whole, at most E rows lie before what is shown: the lower end of their
    number is below 1, the upper one then below 1 + E.
    """

    columns: tuple[int, ...]
    points: tuple[float, ...]  # the values, increasing; decreasing for the greatest
    most: bool
    apart: bool = False  # the columns are of single values

    @property
    def steps(self) -> tuple[float, ...]:
        return (0.5 / len(self.columns) if self.apart else 0.5,) * len(self.columns)

    def of(self, box: Box) -> Derived:
        lines, first, last = len(box.values), min(self.points), max(self.points)
        if not self.columns:
            return Derived(np.full(lines, np.nan), np.full(lines, first), np.full(lines, last))
        ranks = box.columns(self.columns).at_least(np.zeros(len(self.columns)))
        least, most = (np.cumsum(end, axis=1) if self.apart else end for end in (ranks.low, ranks.high))
        low = np.maximum.accumulate(least, axis=1)
        high = np.minimum.accumulate(most[:, ::-1], axis=1)[:, ::-1]
        points = np.array(self.points)
        certain, possible = low >= 1 - ROUNDING_OF_COUNTS, high >= 1 - ROUNDING_OF_COUNTS
        sure = np.where(certain.any(axis=1), points[np.argmax(certain, axis=1)], points[-1])
        furthest = np.where(possible.any(axis=1), points[np.argmax(possible, axis=1)], points[0])
        ends = (sure, furthest) if self.most else (furthest, sure)
        nobody = np.asarray(~possible.any(axis=1))
        return _null(nobody, Derived(sure, ends[0], ends[1]), first, last)

    @property
    def reach(self) -> tuple[float, float]:
        return min(self.points), max(self.points)

    @property
    def rows(self) -> Combination:
        return total(self.columns) if self.apart else single(self.columns[-1])

    def sure(self, box: Box) -> NDArray[np.bool_] | None:
        if not self.columns:
            return np.zeros(len(box.values), np.bool_)
        somebody: NDArray[np.bool_] = np.any(box.columns(self.columns).low >= 1 - ROUNDING_OF_COUNTS, axis=1)
        return somebody

    def facts(self) -> list[object]:
        apart: list[object] = ["apart"] if self.apart else []
        return ["extreme", list(self.columns), list(self.points), self.most, *apart]


@dataclass(frozen=True, kw_only=True)
class VarianceOfCounts:
    """The variance of values, or its root, from the numbers of rows at each of them; their bars are added up."""

    columns: tuple[int, ...]
    points: tuple[float, ...]  # the values, increasing
    sample: bool
    root: bool

    @property
    def steps(self) -> tuple[float, ...]:
        return (1.0 / len(self.columns),) * len(self.columns)

    def of(self, box: Box) -> Derived:
        centre = (self.points[0] + self.points[-1]) / 2 if self.points else 0.0
        distances = np.array(self.points) - centre
        counts = box.columns(self.columns)
        low, high = np.maximum(counts.low, 0.0), np.maximum(counts.high, 0.0)
        moments = [
            (counts.values @ weights, low @ up + high @ down, high @ up + low @ down)
            for weights in (distances**0, distances, distances**2)
            for up, down in ((np.maximum(weights, 0.0), np.minimum(weights, 0.0)),)
        ]
        values, lows, highs = (np.stack(part, axis=1) for part in zip(*moments, strict=True))
        return self._variance().of(Box(values, lows, highs))

    @property
    def reach(self) -> tuple[float, float]:
        return self._variance().reach

    @property
    def rows(self) -> Combination:
        return total(self.columns)

    def _variance(self) -> Variance:
        width = self.points[-1] - self.points[0] if self.points else 0.0
        ones = (1.0, 1.0, 1.0)
        return Variance(columns=(0, 1, 2), units=ones, steps=ones, width=width, sample=self.sample, root=self.root)

    def sure(self, box: Box) -> NDArray[np.bool_] | None:
        fewest = np.maximum(box.columns(self.columns).low, 0.0).sum(axis=1)
        return np.asarray(fewest > (1 if self.sample else 0))

    def facts(self) -> list[object]:
        return ["variance of counts", list(self.columns), list(self.points), self.sample, self.root]


def _null(nothing: NDArray[np.bool_], derived: Derived, lowest: float, highest: float) -> Derived:
    """What was found, but NULL with the ends of all that is possible where there is nothing to find a value from."""
    return Derived(
        np.where(nothing, np.nan, derived.value),
        np.where(nothing, lowest, derived.low),
        np.where(nothing, highest, derived.high),
    )


def _middle(low: Reals, high: Reals) -> Reals:
    """The middle of an interval; 0 where it has no ends."""
    finite = np.isfinite(low) & np.isfinite(high)
    return np.where(finite, (np.where(finite, low, 0.0) + np.where(finite, high, 0.0)) / 2, 0.0)
