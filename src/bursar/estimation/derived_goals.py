"""What a goal asks of averages, quantiles, ratios and deviations, and of counts and sums that stand beside them.

An error of E counts people there. Let A/B be an average of values from a to b, B the number of rows: E people more or
less move it by E (b - a)/B at most, and a quantile by E ranks at most. So the goal is kept where, for every t that the
average can be and for every value i of the quantile,

    Pr[|error of A - t B| > E (b - a)] <= beta,    Pr[|error of F_i - p N| > E] <= beta

each by itself, and beta is shared out among lines and outputs. The ends of averages and quantiles then lie no further
away than E people come to: these errors are all that `joint_ratios` and `joint_quantiles` use, and each of them needs
its beta only at the true average, or next to the true quantile.

Of a ratio A/B that nothing public bounds, one person moves A by a at most and B by b. It is within E (a + |t| b) for
every t where

    Pr[|(1 - s) error of A/a +- s error of B/b| > E] <= beta    for 0 <= s <= 1, s = |t| b/(a + |t| b).

Of a variance v of values from -h to h with the mean m, from N, S and Q as in `joint_variances`, a person at the end
that is further from the mean moves N v by up to (h + |m|)^2. So for all m and v that there can be

    Pr[|error of Q - 2 m S + (m^2 - v) N| > E (h + |m|)^2] <= beta.

Counts, sums, and whatever is read from bars of rows keep these bars: all of them together are within what was asked for
but for some part of beta, and the others share what is left.

Rows that are all within their part of E together keep all of it in another way. That is dearer: about twice for an
average, and more for a quantile, which is read from as many rows as it can have values.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise
from bursar.estimation.derived import Form, Quantile, Ratio, Variance
from bursar.estimation.estimate import ErrorLaw, RepeatedRows
from bursar.estimation.joint_quantiles import RankErrors, rank_errors, transform_ranks
from bursar.estimation.joint_ratios import JointRows
from bursar.estimation.joint_variances import SHARE_OF_MEANS
from bursar.lazy_dataclass import dataclass
from bursar.tails import Noises, covered, half_widths, near_threshold, tail

EDGES = np.array([0.0, 1 / 16, 1 / 4, 1 / 2, 3 / 4, 15 / 16, 1.0])
"""What an average can be is cut into pieces at these shares: in each of them weights are bounded by those at its ends.
Rows are often mixed so that one of them is not needed at an end, and next to it hardly any."""

MEAN_EDGES, SPREAD_EDGES = np.linspace(0.0, 1.0, 13), np.linspace(0.0, 1.0, 7)
"""The same for the mean of a variance, from the middle to an end, and for m^2 - v."""

BARS_SHARE = 0.1
"""Of beta, for bars of counts and sums that are narrower than they have to be."""

WIDEST_SUMS = 4
"""How many speak for all others while a plan is searched for."""

MOST_SUMS_OF_A_GUESS = 64
"""How many are looked at for a first guess."""

SPLITS_OF_BETA = (0.02, 0.1, 0.3, 0.6, 0.85, 0.95)
"""Between bars and all others, for plans to begin with."""


@dataclass(frozen=True, eq=False)
class DerivedGoal:
    """What rows are measured for, and how far each output may be off where rows may be off by 1."""

    forms: tuple[Form, ...]  # all that are read from the joint law of their rows
    spans: tuple[float, ...]
    bars: Reals  # what each row may be off by where it has a bar of its own; infinite where it has none
    index: Integers  # as in `Workload`
    times: Reals  # what each row is a multiple of, and 1 for the number that is 0
    _kept: WeakKeyDictionary[ErrorLaw, dict[tuple[float, float, bool], bool]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    @property
    def apart(self) -> bool:
        """Whether rows that are exact enough by themselves are not enough: their errors add up."""
        return any(isinstance(form, Quantile) and form.apart for form in self.forms)

    def kept_by(self, law: ErrorLaw, amount: float, beta: float, *, searching: bool = False) -> bool:
        """Whether an error law keeps the goal with rows that may err by an amount. Not cheap, so it is remembered.

        For whoever is searching, and makes sure of what is found, the widest of the sums speak for all others.
        """
        alone = self._alone(law, beta)
        if alone is not None:
            return RanksAlone(alone).within(self.spans[0] * amount, None)
        rows = JointRows.of(law, self.index, self.times)
        if rows is None:
            return False
        answers = self._kept.setdefault(law, {})
        if (key := (amount, beta, searching)) not in answers:
            left = beta - self._chance_of_bars(rows, amount, beta)
            most = WIDEST_SUMS if searching else None
            answers[key] = self._worth_it(rows, left / beta) and all(
                errors.within(span * amount, most) for errors, span in self._errors(rows, left)
            )
        return answers[key]

    def reach(self, law: ErrorLaw, beta: float) -> float:
        """About the least amount at which it is kept: a saddlepoint approximation, for plans to begin with."""
        rows = JointRows.of(law, self.index, self.times)
        if rows is None or not self._worth_it(rows, 1.0):
            return math.inf
        others = list(self._errors(rows, beta))
        if not len(self._barred):
            return _reach_of(others, 1.0)
        draws, noises = rows.of_rows(self._barred)
        draws = draws / self.bars[self._barred][:, None]
        splits = (max(near_any(draws, noises, split * beta), _reach_of(others, 1 - split)) for split in SPLITS_OF_BETA)
        return min(splits)

    def widths(self, law: ErrorLaw, amount: float, beta: float) -> Reals | None:
        """One half-width per row, all of them right together but for beta; None where the law does not keep the goal.

        The bars that are asked for are within the goal, and leave to all others what they need of beta.
        """
        if not len(self._barred) or not self.kept_by(law, amount, beta):
            return None
        rows = JointRows.of(law, self.index, self.times)
        assert rows is not None
        together = law.of_rows(self._barred) if isinstance(law, RepeatedRows) else None
        if together is not None and together.sums.close_at(together.noise.scale):
            bar_widths = together.half_widths(BARS_SHARE * beta)
        else:
            bar_widths = half_widths(*rows.of_rows(self._barred), BARS_SHARE * beta)
        chance, most = BARS_SHARE * beta, amount * self.bars[self._barred]
        if np.any(bar_widths > most):
            bar_widths, chance = most, rows.chance_beyond(amount * self.bars, self._barred, beta)
        left = beta - chance
        widths = law.even_bars(left) if isinstance(law, RepeatedRows) else law.half_widths(left)
        widths[self._barred] = bar_widths
        return widths

    def _alone(self, law: ErrorLaw, beta: float) -> RankErrors | None:
        alone = not len(self._barred) and bool(np.all(self.times == 1))
        return transform_ranks(self.forms, law, self.index, beta) if alone else None

    @cached_property
    def _barred(self) -> Integers:
        """The rows that have a bar of their own."""
        return np.flatnonzero(np.isfinite(self.bars))

    def _chance_of_bars(self, rows: JointRows, amount: float, beta: float) -> float:
        """At least the chance that some bar fails, as wide as `widths` has them."""
        if not len(self._barred):
            return 0.0
        return max(BARS_SHARE * beta, rows.chance_beyond(amount * self.bars, self._barred, beta))

    def _worth_it(self, rows: JointRows, share: float) -> bool:
        """Whether ends are made from the joint law where all of them have a share of the failure probability."""
        return share > 0 and rows.worth_it(share / len(self.forms))

    def _errors(self, rows: JointRows, beta: float) -> Iterator[tuple[SumErrors | RanksAlone, float]]:
        """The combinations that must each be within a span, as often as they may be beyond it."""
        each = beta / len(self.forms) / len(self.index)
        for form, span in zip(self.forms, self.spans, strict=True):
            if isinstance(form, Quantile):
                yield from ((RanksAlone(errors), span) for errors in dict.fromkeys(rank_errors(form, rows, each)))
                continue
            chance = (1 - SHARE_OF_MEANS) * each if isinstance(form, Variance) else each
            laws = {rows.law_key(line, form.columns): line for line in range(len(self.index))}
            distinct: dict[bytes, SumErrors] = {}
            seen: set[tuple[bytes, bytes]] = set()
            for line in laws.values():
                drawn, noises = _used_draws(*rows.of_line(line, form.columns))
                if (law := (drawn.tobytes(), noises.which.tobytes())) in seen:
                    continue
                seen.add(law)
                errors = SumErrors.of(_weights(form, drawn), noises, chance)
                distinct.setdefault(errors.weights.tobytes(), errors)
            yield from ((errors, span) for errors in distinct.values())

    @cached_property
    def _digest(self) -> bytes:
        facts = json.dumps([[form.facts() for form in self.forms], self.spans]).encode()
        arrays = (self.index, self.times, self.bars)
        return hashlib.blake2b(facts + b"".join(map(bytes, arrays)), digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DerivedGoal) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


def _reach_of(errors: Sequence[tuple[SumErrors | RanksAlone, float]], share: float) -> float:
    """About the least amount at which all are within their spans with a share of their chances."""
    return max((each.near(share) / span for each, span in errors), default=0.0)


def has_joint_goal(form: Form) -> bool:
    """Whether an output is read from the joint law of its rows, and a goal says what errors of combinations may be."""
    if not form.columns:
        return False
    if isinstance(form, Ratio):
        return _is_average(form) or (form.above.constant == 0 == form.below.constant and not _bounded(form))
    return isinstance(form, Quantile | Variance)


def span_of(form: Form) -> float:
    """What one person comes to, in units of the combinations that `DerivedGoal` looks at."""
    return form.highest - form.lowest if isinstance(form, Ratio) and _is_average(form) else 1.0


def _bounded(ratio: Ratio) -> bool:
    return math.isfinite(ratio.lowest) and math.isfinite(ratio.highest)


def _is_average(ratio: Ratio) -> bool:
    """Whether a ratio is one over a number of rows, of which is public what it can be."""
    counted = [place for place, weight in enumerate(ratio.below.weights) if weight]
    plain = ratio.below.constant == 0 and ratio.above.constant == 0 and ratio.lowest < ratio.highest
    counts_one = [(ratio.below.weights[place], ratio.least[place]) for place in counted] == [(1.0, 1.0)]
    return counts_one and plain and _bounded(ratio)


def _used_draws(drawn: Reals, noises: Sequence[Noise]) -> tuple[Reals, Noises]:
    """Weights of columns, without the draws of other groups, and in one order where all draws are of one noise."""
    used = np.flatnonzero(drawn.any(axis=0))
    drawn, noises = drawn[:, used], Noises.of(noises).take(used)
    return (drawn[:, np.lexsort(drawn)] if len(set(noises.which.tolist())) == 1 else drawn), noises


def _weights(form: Form, columns: Reals) -> Reals:
    """Of the combinations that an error in people is about, each at most as large as one of these, from columns'."""
    if isinstance(form, Variance):
        return _variance_weights(form, columns)
    assert isinstance(form, Ratio)
    return _ratio_weights(form, columns)


def _ratio_weights(ratio: Ratio, columns: Reals) -> Reals:
    """Of A - t B for every t that an average can be, from the weights of columns; else of (1 - s) A/a +- s B/b."""
    above, below = (np.array(side.weights) @ columns for side in (ratio.above, ratio.below))
    if _is_average(ratio):
        ends = ratio.lowest + EDGES * (ratio.highest - ratio.lowest)
        return _between([above - t * below for t in ends])
    a, b = (float(np.abs(side.weights) @ np.array(side.steps)) for side in (ratio.above, ratio.below))
    signed = [_between([(1 - s) * above / a + sign * s * below / b for s in EDGES]) for sign in (1.0, -1.0)]
    return np.concatenate(signed)


def _variance_weights(variance: Variance, columns: Reals) -> Reals:
    """Of Q - 2 m S + k N over (h + |m|)^2, k = m^2 - v: it is from 2 m^2 - h^2, with all values at the ends, to m^2."""
    counted, total, squares = np.array(variance.units)[:, None] * columns
    h = variance.units[1] * variance.steps[1]
    boxes: list[Reals] = []
    for sign in (1.0, -1.0):
        for near, far in pairwise(h * MEAN_EDGES):
            least, most = 2 * near**2 - h**2, far**2
            for spreads in pairwise(least + SPREAD_EDGES * (most - least)):
                corners = [squares - 2 * sign * m * total + k * counted for m in (near, far) for k in spreads]
                boxes.append(np.abs(corners).max(axis=0) / (h + near) ** 2)
    return np.array(boxes)


def _between(ends: Sequence[Reals]) -> Reals:
    """Weights that are linear from each end of a piece to the next: no larger within it than at its ends."""
    return np.array([np.maximum(np.abs(first), np.abs(last)) for first, last in pairwise(ends)])


@dataclass(frozen=True, eq=False)
class SumErrors:
    """Errors on a line, for all that the truth can be: sums of draws with weights up to these."""

    weights: Reals
    noises: Sequence[Noise]
    chance: float  # that each may be beyond a width with

    @staticmethod
    def of(weights: Reals, noises: Sequence[Noise], chance: float) -> SumErrors:
        """Without draws that no sum has a weight for, and without sums that others cover."""
        used = np.flatnonzero(weights.any(axis=0))
        weights, drawn = weights[:, used], [noises[place] for place in used.tolist()]
        if len(set(drawn)) == 1:  # which draw has which weight makes no difference
            most = int(np.count_nonzero(weights, axis=1).max())
            weights, drawn = np.sort(weights, axis=1)[:, weights.shape[1] - most :], drawn[:most]
        return SumErrors(_largest(weights), Noises.of(drawn), chance)

    def within(self, width: float, most: int | None) -> bool:
        """Whether each sum is within a width but for its chance; or so many of the widest."""
        if _variances(self.weights, self.noises).max(initial=0.0) > width**2:
            return False  # hopeless at any sensible confidence, and not worth an inversion
        return covered(self.weights, self.noises, width, self.chance, most=most)

    def near(self, share: float) -> float:
        """About the half-width of the widest sum with a share of its chance."""
        return _near(self.weights, self.noises, share * self.chance)


@dataclass(frozen=True, eq=False)
class RanksAlone:
    """The errors of F_i - p N on a line, for every value i of a quantile."""

    errors: RankErrors

    def within(self, width: float, most: int | None) -> bool:
        """Whether each of them is within a width but for its chance; or so many of the widest."""
        weights, noises, chance = self.errors.weights, self.errors.noises, self.errors.beta
        if self.errors.settled and self.errors.sums is not None:
            return self.errors.sums.largest_tail(noises[0].scale, width) <= chance
        if _variances(weights, noises).max(initial=0.0) > width**2:
            return False  # as above
        wider = weights[~self.errors.within(np.full(len(weights), width))]
        if len(set(noises)) == 1:  # which draw has which weight makes no difference
            wider = np.unique(np.sort(np.abs(wider), axis=1), axis=0)
        order = np.argsort(-_variances(wider, noises))
        return all(tail(sizes, noises, width, chance) <= chance for sizes in wider[order[:most]])

    def near(self, share: float) -> float:
        """About the half-width of the widest of them with a share of its chance."""
        return _near(self.errors.weights, self.errors.noises, share * self.errors.beta)


def _near(weights: Reals, noises: Sequence[Noise], chance: float) -> float:
    """A saddlepoint approximation of the half-width of the widest sum, all of one kind of noise."""
    variances = _variances(weights, noises)
    if not variances.max(initial=0.0):
        return 0.0
    return near_any(weights[[np.argmax(variances)]], noises, chance)


def near_any(weights: Reals, noises: Sequence[Noise], chance: float) -> float:
    """The same such that some sum exceeds it with this chance; of very many sums some stand for those next to them."""
    drawn = Noises.of(noises)
    scales = np.array([noise.scale for noise in drawn.kinds.noises])[drawn.which]
    if len(weights) > MOST_SUMS_OF_A_GUESS:
        widest_first = np.argsort(-_variances(weights, noises))
        chosen = widest_first[:: math.ceil(len(weights) / MOST_SUMS_OF_A_GUESS)]
        weights, chance = weights[chosen], chance * len(chosen) / len(weights)
    return near_threshold(np.abs(weights) * scales, noises[0].kind, chance)


def _largest(weights: Reals) -> Reals:
    """The rows that no other row is at least as large as in every place; of equal ones the first."""
    weights = np.unique(weights, axis=0)
    covers = np.all(weights[:, None] >= weights[None], axis=2)  # [i, j]: row i covers row j
    np.fill_diagonal(covers, False)
    return np.asarray(weights[~covers.any(axis=0)])


def _variances(weights: Reals, noises: Sequence[Noise]) -> Reals:
    return np.asarray(np.square(weights) @ Noises.of(noises).variances)
