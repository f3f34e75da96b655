"""Estimates and the laws of their errors, which are known before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise, NoiseKind
from bursar.core.noise.law import LARGEST_SCALE
from bursar.estimation.derived import Derived
from bursar.goal import Goal, GoalKind
from bursar.lazy_dataclass import dataclass
from bursar.tails import GaussianSums, LaplaceSums, Noises, half_width, half_widths, sampled_tail, single_tail, tail

BARS_WITHIN = 1e-3
"""To which part even bars are found."""

ROUNDING_OF_SQUARES = 1e-10
"""Of squared lengths that come out of a fast transform: far more than its arithmetic can have lost."""


class ErrorLaw(Protocol):
    """How far the estimates of a workload's rows can be off. Depends on strategies and noises, never on data."""

    def tail(self, alpha: float, enough: float) -> float:
        """A bound on Pr[max_i |error_i| > alpha]; where it exceeds `enough`, only that it does is promised."""

    def half_widths(self, beta: float) -> Reals:
        """One h_i per row: with probability at least 1 - beta, |error_i| <= h_i for all i together."""

    def mean_square(self) -> float:
        """The mean over the rows of the expected squared error."""


@runtime_checkable
class JointLaw(Protocol):
    """An error law that knows how the errors of different rows belong together."""

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        """Combinations of the rows, one for each line of the matrix, as weights of independent draws of noise."""


@runtime_checkable
class BoundedBars(Protocol):
    """An error law that soon knows whether one of its bars is above an amount."""

    @property
    def rows(self) -> int: ...

    def exceeds(self, amount: float, beta: float) -> bool:
        """Whether some bar of `half_widths` is above an amount."""


def meets(law: ErrorLaw, goal: Goal, *, searching: bool = False) -> bool:
    """Whether an error law keeps the accuracy that a goal asks for; a price cap asks for none.

    It does where all rows are exact enough together, and where the averages and quantiles are that they are for; only
    then, where they are read from rows that are added up. For whoever is searching, and makes sure of what is found,
    some of very many rows speak for all of them.
    """
    if isinstance(law, LawOfQuestions):
        return law.keeps(goal)
    if goal.kind is GoalKind.ERROR:
        derived = goal.derived
        kept = derived is not None and derived.kept_by(law, goal.amount, goal.beta, searching=searching)
        if kept or (derived is not None and derived.apart):
            return kept
        if searching and isinstance(law, WeightedRows):
            return law.about_tail(goal.amount, goal.beta) <= goal.beta
        return _rows_within(law, goal)
    if goal.kind is GoalKind.RMSE:
        return math.sqrt(law.mean_square()) <= goal.amount
    return True


def _rows_within(law: ErrorLaw, goal: Goal) -> bool:
    return law.tail(goal.amount, goal.beta) <= goal.beta


def error_bars(law: ErrorLaw, goal: Goal) -> Reals:
    """One half-width per row, all of them right together with the goal's confidence.

    Two sets of bars are valid: one of its own for each row, which shares the failure probability out evenly, and the
    goal's own error for all rows, where the law keeps it. The first is taken unless one of its bars exceeds the goal.
    """
    if goal.derived is not None and (widths := goal.derived.widths(law, goal.amount, goal.beta)) is not None:
        return np.asarray(widths)
    bounded = law if isinstance(law, BoundedBars) else None
    if goal.kind is GoalKind.ERROR and bounded is not None and bounded.exceeds(goal.amount, goal.beta):
        return np.full(bounded.rows, goal.amount) if _rows_within(law, goal) else law.half_widths(goal.beta)
    widths = law.half_widths(goal.beta)
    if goal.kind is GoalKind.ERROR and widths.max(initial=0.0) > goal.amount and _rows_within(law, goal):
        return np.full(len(widths), goal.amount)
    return widths


class Derives(Protocol):
    """A question whose outputs follow from rows."""

    def derive(
        self, values: Reals, low: Reals, high: Reals, law: ErrorLaw | None = None, beta: float = 0.0
    ) -> list[Derived]:
        """Every output from estimates of the rows and the ends of their bars, which hold together but for beta."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LawOfQuestions:
    """The rows of one question after the other, each with a law and a goal of its own."""

    laws: tuple[ErrorLaw, ...]
    goals: tuple[Goal, ...]  # with a share of the chance to fail that all of them have
    sizes: tuple[int, ...]  # how many rows each question has
    questions: tuple[Derives, ...]
    amount: float  # what rows of all together may err by: those of a question are multiples that may err by another

    def keeps(self, goal: Goal) -> bool:
        """Whether every question keeps its goal, and their chances to fail add up to no more than that of all."""
        return sum(each.beta for each in self.goals) <= goal.beta and all(map(meets, self.laws, self.goals))

    def tail(self, alpha: float, enough: float) -> float:
        """Nothing is said of all rows together: goals are kept question by question."""
        return 1.0

    def half_widths(self, beta: float) -> Reals:
        """Bars with the confidence of the questions' own goals, whatever beta is."""
        pairs = zip(self.laws, self.goals, strict=True)
        return np.concatenate([error_bars(law, goal) * (self.amount / goal.amount) for law, goal in pairs])

    def mean_square(self) -> float:
        pairs = zip(self.laws, self.goals, strict=True)
        each = [law.mean_square() * (self.amount / goal.amount) ** 2 for law, goal in pairs]
        return float(np.average(each, weights=self.sizes))

    def derive(self, values: Reals) -> list[Derived]:
        """The outputs of one question after the other, each from rows of its own."""
        parts = np.split(values, np.cumsum(self.sizes)[:-1])
        every = zip(self.questions, parts, self.laws, self.goals, strict=True)
        return [derived for each in every for derived in derived_by_itself(*each)]


def derived_by_itself(question: Derives, values: Reals, law: ErrorLaw, goal: Goal) -> list[Derived]:
    """The outputs of a question from its rows, whose law keeps its goal."""
    widths = error_bars(law, goal)
    return question.derive(values, values - widths, values + widths, law, goal.beta)


@dataclass(frozen=True, kw_only=True)
class IndependentRows:
    """Every row has its own draw of one noise, so the largest error follows exactly: 1 - (1 - p)^rows."""

    noise: Noise
    rows: int

    def tail(self, alpha: float, enough: float) -> float:
        return any_of(single_tail(self.noise, alpha), self.rows)

    def half_widths(self, beta: float) -> Reals:
        return np.full(self.rows, half_width(self.noise, each_of(beta, self.rows)) if self.rows else 0.0)

    def mean_square(self) -> float:
        return self.noise.variance()

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        return combinations, Noises.alike(self.noise, self.rows)

    def rows_as_draws(self, rows: Integers) -> tuple[Reals, Sequence[Noise]]:
        """Some of the rows as weights of their own draws alone."""
        drawn, places = np.unique(rows, return_inverse=True)
        return np.eye(len(drawn))[places], Noises.alike(self.noise, len(drawn))


@dataclass(frozen=True, kw_only=True)
class Certain:
    """No row at all, or rows whose answers are public: no error."""

    rows: int = 0

    def tail(self, alpha: float, enough: float) -> float:
        return 0.0

    def half_widths(self, beta: float) -> Reals:
        return np.zeros(self.rows)

    def mean_square(self) -> float:
        return 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedRows:
    """Row i is sum_j weights[i, j] times measured row j; errors of different rows may depend on each other.

    `chance` bounds the probability that a number which was taken to be exact is not: an exact total has noise that is
    zero but for 4e-28. It is added to every tail.
    """

    weights: Reals
    noises: Sequence[Noise]
    chance: float = 0.0
    tails: dict[tuple[float, float], float] = field(default_factory=dict, repr=False)  # found before: not cheap
    widths: dict[float, Reals] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> int:
        return len(self.weights)

    @cached_property
    def variances(self) -> Reals:
        result: Reals = np.square(self.weights) @ Noises.of(self.noises).variances
        return result

    def tail(self, alpha: float, enough: float) -> float:
        if len(self.variances) and self.variances.max() > alpha**2:
            return 1.0  # hopeless at any sensible confidence, and not worth an inversion
        if (alpha, enough) not in self.tails:
            self.tails[alpha, enough] = self.chance + tail(self.weights, self.noises, alpha, enough)
        return self.tails[alpha, enough]

    def about_tail(self, alpha: float, enough: float) -> float:
        """The same for whoever is searching: from some of the rows, where these say on which side of `enough` it is."""
        about = None
        if (alpha, enough) not in self.tails and self.variances.max(initial=0.0) <= alpha**2:
            about = sampled_tail(self.weights, self.noises, alpha, enough)
        return self.tail(alpha, enough) if about is None else self.chance + about

    def exceeds(self, amount: float, beta: float) -> bool:
        """Whether the bar of the widest row alone is above an amount: one inversion instead of one for each row."""
        if len(self.variances) == 0:
            return False
        widest, share = self.weights[int(np.argmax(self.variances))], (beta - self.chance) / len(self.weights)
        return tail(widest, self.noises, amount, share) > share

    def half_widths(self, beta: float) -> Reals:
        if beta not in self.widths:
            self.widths[beta] = half_widths(self.weights, self.noises, beta - self.chance)
        return self.widths[beta]

    def mean_square(self) -> float:
        return float(self.variances.mean()) if len(self.variances) else 0.0

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        return combinations @ self.weights, self.noises


def unknown_rows(rows: int) -> WeightedRows:
    """The law of rows that nobody knows how to weigh, as rounding may leave some: errors that no goal allows."""
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=LARGEST_SCALE)
    return WeightedRows(weights=LARGEST_SCALE * np.eye(rows), noises=Noises.alike(noise, rows))


Combined = dict[Hashable, tuple[Reals, LaplaceSums | GaussianSums]]
"""Weights of combinations of a group's rows, and their sums, which are the same whatever the noise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RepeatedRows:
    """The same weighted rows in each of several groups of people, all measured with one noise.

    Groups have draws of their own, so the chance that all of them keep an error is a power of that of one.
    """

    weights: Reals  # of one group's measured rows, in one group's queries
    sums: LaplaceSums | GaussianSums  # of these weights
    noise: Noise
    copies: int
    order: Integers  # of each row: its group, times the number of a group's queries, and which of them
    combined: Combined = field(default_factory=dict, repr=False)  # what was last found for combinations of rows

    @property
    def rows(self) -> int:
        return len(self.order)

    def tail(self, alpha: float, enough: float) -> float:
        return any_of(self.sums.tail(self.noise.scale, alpha), self.copies)

    def exceeds(self, amount: float, beta: float) -> bool:
        """Whether the bar of the widest row alone is above an amount."""
        return self.sums.largest_tail(self.noise.scale, amount) > self._share(beta)

    def half_widths(self, beta: float) -> Reals:
        widths = self.sums.half_widths(self.noise.scale, self._share(beta))
        return np.asarray(widths[self.order % len(self.weights)])

    def mean_square(self) -> float:
        return float(np.square(self.weights).sum(axis=1).mean()) * self.noise.variance()

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        groups, queries = np.divmod(self.order, len(self.weights))
        inside = [np.flatnonzero(groups == group) for group in range(self.copies)]
        drawn = np.concatenate([combinations[:, some] @ self.weights[queries[some]] for some in inside], axis=1)
        return drawn, Noises.alike(self.noise, drawn.shape[1])

    def rows_as_draws(self, rows: Integers) -> tuple[Reals, Sequence[Noise]]:
        """Some of the rows as weights of the draws of their groups alone."""
        groups, queries = np.divmod(self.order[rows], len(self.weights))
        present = np.unique(groups)
        if len(present) == 1:
            drawn = self.weights[queries]
        else:
            in_group = np.where(groups[:, None] == present, 1.0, 0.0)
            drawn = np.einsum("ig,ij->igj", in_group, self.weights[queries]).reshape(len(rows), -1)
        return drawn, Noises.alike(self.noise, drawn.shape[1])

    def of_rows(self, rows: Integers) -> RepeatedRows:
        """The law of some of the rows."""
        groups, queries = np.divmod(self.order[rows], len(self.weights))
        present, group = np.unique(groups, return_inverse=True)
        distinct, query = np.unique(queries, return_inverse=True)
        weights, sums = self.weights[distinct], self.sums
        return RepeatedRows(
            weights=weights,
            sums=LaplaceSums.of(weights, sums.beta) if isinstance(sums, LaplaceSums) else GaussianSums.of(weights),
            noise=self.noise,
            copies=len(present),
            order=group * len(distinct) + query,
        )

    def even_bars(self, beta: float) -> Reals:
        """As `half_widths`, but as wide for all rows: found sooner, and narrower for the widest."""
        share, scale = each_of(beta, self.copies), self.noise.scale
        high = 2.0 * scale * float(np.abs(self.weights).sum(axis=1).max(initial=0.0))
        while self.sums.tail(scale, high) > share:
            high *= 2
        low = high
        while low > 0 and self.sums.tail(scale, low) <= share:
            low, high = low / 2, low
        while high > (1 + BARS_WITHIN) * low:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.sums.tail(scale, middle) <= share else (middle, high)
        return np.full(self.rows, high)

    def _share(self, beta: float) -> float:
        """Of the failure probability, for each row."""
        return each_of(beta, self.copies) / len(self.weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class NearlyNormal:
    """Row i is a_i . y, a sum of very many measured rows y of which only the length |a_i| is kept (`GaussianSums`).

    The measured rows are y = exact + r + X: independent draws X_k of one noise, and a fixed r with |r| at most `off`.
    """

    noise: Noise  # Gaussian
    draws: int
    lengths: Reals
    off: float
    less_last: Callable[[], Reals] = lambda: np.zeros(0)  # the lengths |a_i - a_n|, where n is the last row

    def ranks(self, share: float) -> GaussianSums:
        """Every row less a share p of the last one.

        |a_i - p a_n|^2 = (1 - p) |a_i|^2 + p |a_i - a_n|^2 - p (1 - p) |a_n|^2.
        """
        each, less, last = (np.square(part) for part in (self.lengths, self.less_last(), self.lengths[-1]))
        rounding = ROUNDING_OF_SQUARES * (each + less + last)
        squares = (1 - share) * each + share * less - share * (1 - share) * last + rounding
        return GaussianSums(lengths=np.sqrt(np.maximum(squares, 0.0)), draws=self.draws, off=self.off)

    def tail(self, alpha: float, enough: float) -> float:
        return self._sums.tail(self.noise.scale, alpha)

    def half_widths(self, beta: float) -> Reals:
        return self._sums.half_widths(self.noise.scale, beta / max(len(self.lengths), 1))

    def mean_square(self) -> float:
        each = np.square(self.lengths) * (self.noise.variance() + self.off**2)
        return float(each.mean()) if len(each) else 0.0

    @property
    def _sums(self) -> GaussianSums:
        return GaussianSums(lengths=self.lengths, draws=self.draws, off=self.off)


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """Values for the rows of a workload's map, with the law of their errors."""

    values: Reals
    law: ErrorLaw


def any_of(each: float, count: int) -> float:
    """Pr[at least one of `count` independent events of probability `each`], without cancellation."""
    return 1.0 if each >= 1 else -math.expm1(count * math.log1p(-each))


def each_of(total: float, count: int) -> float:
    """The probability p per event with `any_of(p, count)` = total."""
    return -math.expm1(math.log1p(-total) / count) if count else total
