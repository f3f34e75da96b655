"""What a goal asks of averages and quantiles, where it asks for nothing else.

An error of E counts people there. Let A/B be an average of values from a to b, B the number of rows: E people more or
less move it by E (b - a)/B at most, and a quantile by E ranks at most. So the goal is kept where, for every t that the
average can be and for every value i of the quantile,

    Pr[|error of A - t B| > E (b - a)] <= beta,    Pr[|error of F_i - p N| > E] <= beta

each by itself, and beta is shared out among lines and outputs. The ends of averages and quantiles then lie no further
away than E people come to: these errors are all that `joint_ratios` and `joint_quantiles` use, and each of them needs
its beta only at the true average, or next to the true quantile.

Rows that are all within their part of E together keep it in another way. That is dearer: about twice for an average,
and more for a quantile, which is read from as many rows as it can have values.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise
from bursar.estimation.derived import Form, Quantile, Ratio
from bursar.estimation.estimate import ErrorLaw
from bursar.estimation.joint_quantiles import RankErrors, rank_errors, transform_ranks
from bursar.estimation.joint_ratios import JointRows
from bursar.lazy_dataclass import dataclass
from bursar.tails import Noises, covered, near_threshold, tail

PIECES = 4
"""Of what an average can be: in each of them weights are bounded by those at its ends."""

FEW_DRAWS = 8
"""Sums of so few draws are looked at without the others, which their weights leave out."""


@dataclass(frozen=True, eq=False)
class DerivedGoal:
    """Averages and quantiles that rows are measured for, and how far each may be off where rows may be off by 1."""

    forms: tuple[Ratio | Quantile, ...]
    spans: tuple[float, ...]
    index: Integers  # as in `Workload`
    times: Reals  # what each row is a multiple of, and 1 for the number that is 0
    _kept: WeakKeyDictionary[ErrorLaw, dict[tuple[float, float], bool]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    @staticmethod
    def of(forms: Sequence[Form], spans: Sequence[float], index: Integers, times: Reals) -> DerivedGoal | None:
        """None where some output is anything else: a count keeps its error by its own bar."""
        kept = tuple(
            form for form in forms if isinstance(form, Quantile) or (isinstance(form, Ratio) and _is_average(form))
        )
        if not forms or len(kept) < len(forms) or not all(form.columns for form in forms):
            return None
        return DerivedGoal(kept, tuple(spans), index, times)

    def kept_by(self, law: ErrorLaw, amount: float, beta: float) -> bool:
        """Whether an error law keeps the goal with rows that may err by an amount. Not cheap, so it is remembered."""
        alone = transform_ranks(self.forms, law, self.index, beta) if np.all(self.times == 1) else None
        if alone is not None:
            return RanksAlone(alone).within(self.spans[0] * amount)
        rows = self._rows(law)
        if rows is None:
            return False
        answers = self._kept.setdefault(law, {})
        if (amount, beta) not in answers:
            answers[amount, beta] = all(errors.within(span * amount) for errors, span in self._errors(rows, beta))
        return answers[amount, beta]

    def reach(self, law: ErrorLaw, beta: float) -> float:
        """About the least amount at which it is kept: a saddlepoint approximation, for plans to begin with."""
        rows = self._rows(law)
        if rows is None:
            return math.inf
        return max((errors.near() / span for errors, span in self._errors(rows, beta)), default=0.0)

    def _rows(self, law: ErrorLaw) -> JointRows | None:
        """The rows with their joint law, where ends are made from that."""
        rows = JointRows.of(law, self.index, self.times)
        return rows if rows is not None and rows.worth_it(1 / len(self.forms)) else None

    def _errors(self, rows: JointRows, beta: float) -> Iterator[tuple[AverageErrors | RanksAlone, float]]:
        """The combinations that must each be within a span, as often as they may be beyond it."""
        each = beta / len(self.forms) / len(self.index)
        for form, span in zip(self.forms, self.spans, strict=True):
            if isinstance(form, Quantile):
                yield from ((RanksAlone(errors), span) for errors in dict.fromkeys(rank_errors(form, rows, each)))
                continue
            above, noises = rows.law.as_draws(rows.combinations(form.above))
            below, _ = rows.law.as_draws(rows.combinations(form.below))
            at = [np.abs(above - t * below) for t in np.linspace(form.lowest, form.highest, PIECES + 1)]
            # Weights are linear in t: within a piece no larger than at its ends.
            pieces = [AverageErrors.of(both, noises, each) for both in map(np.maximum, at, at[1:])]
            yield from ((piece, span) for piece in pieces if not any(piece.below(other) for other in pieces))

    @cached_property
    def _digest(self) -> bytes:
        facts = json.dumps([[form.facts() for form in self.forms], self.spans]).encode()
        return hashlib.blake2b(facts + self.index.tobytes() + self.times.tobytes(), digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DerivedGoal) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


def _is_average(ratio: Ratio) -> bool:
    """Whether a ratio is one over a number of rows, of which is public what it can be."""
    counted = [place for place, weight in enumerate(ratio.below.weights) if weight]
    plain = ratio.below.constant == 0 and ratio.above.constant == 0 and ratio.lowest < ratio.highest
    one = [(ratio.below.weights[place], ratio.least[place]) for place in counted] == [(1.0, 1.0)]
    return one and plain and math.isfinite(ratio.lowest) and math.isfinite(ratio.highest)


@dataclass(frozen=True, eq=False)
class AverageErrors:
    """The errors of A - t B on every line, for all t of a piece: sums of draws with weights up to these."""

    weights: Reals
    noises: Sequence[Noise]
    chance: float  # that each may be beyond a width with

    @staticmethod
    def of(weights: Reals, noises: Sequence[Noise], chance: float) -> AverageErrors:
        """Where all noise is alike, without draws that no sum has a weight for, and equal sums once."""
        most = int(np.count_nonzero(weights, axis=1).max(initial=0))
        if 0 < most <= FEW_DRAWS and len(set(noises)) == 1:
            sizes = np.sort(weights, axis=1)[:, weights.shape[1] - most :]
            weights, noises = np.unique(sizes, axis=0), Noises.alike(noises[0], most)
        return AverageErrors(weights, noises, chance)

    def below(self, other: AverageErrors) -> bool:
        """Whether the other has larger weights, where both have one sum: then this one need not be looked at."""
        if self is other or self.weights.shape != other.weights.shape or len(self.weights) != 1:
            return False
        smaller = np.all(self.weights <= other.weights) and np.any(self.weights < other.weights)
        return bool(smaller) and set(self.noises) == set(other.noises)

    def within(self, width: float) -> bool:
        """Whether each sum is within a width but for its chance."""
        if _variances(self.weights, self.noises).max(initial=0.0) > width**2:
            return False  # hopeless at any sensible confidence, and not worth an inversion
        return covered(self.weights, self.noises, width, self.chance)

    def near(self) -> float:
        """About the half-width of the widest sum."""
        return _near(self.weights, self.noises, self.chance)


@dataclass(frozen=True, eq=False)
class RanksAlone:
    """The errors of F_i - p N on a line, for every value i of a quantile."""

    errors: RankErrors

    def within(self, width: float) -> bool:
        """Whether each of them is within a width but for its chance."""
        weights, noises, chance = self.errors.weights, self.errors.noises, self.errors.beta
        if self.errors.settled and self.errors.sums is not None:
            return self.errors.sums.largest_tail(noises[0].scale, width) <= chance
        if _variances(weights, noises).max(initial=0.0) > width**2:
            return False  # as above
        wider = weights[~self.errors.within(np.full(len(weights), width))]
        if len(set(noises)) == 1:  # which draw has which weight makes no difference
            wider = np.unique(np.sort(np.abs(wider), axis=1), axis=0)
        order = np.argsort(-_variances(wider, noises))
        return all(tail(sizes, noises, width, chance) <= chance for sizes in wider[order])

    def near(self) -> float:
        """About the half-width of the widest of them."""
        return _near(self.errors.weights, self.errors.noises, self.errors.beta)


def _near(weights: Reals, noises: Sequence[Noise], chance: float) -> float:
    """A saddlepoint approximation of the half-width of the widest sum, all of one kind of noise."""
    variances = _variances(weights, noises)
    if not variances.max(initial=0.0):
        return 0.0
    drawn = Noises.of(noises)
    scales = np.array([noise.scale for noise in drawn.kinds.noises])[drawn.which]
    return near_threshold(np.abs(weights[[np.argmax(variances)]]) * scales, noises[0].kind, chance)


def _variances(weights: Reals, noises: Sequence[Noise]) -> Reals:
    return np.asarray(np.square(weights) @ Noises.of(noises).variances)
