"""Several people, one budget: the mechanisms of Pujol et al. over a histogram, and how fair they are.

A mechanism is given who asks what in which order, and what each member of a collective brings in. It says how many
questions of each analyst it answers well enough, by one of two yardsticks. *Expected*: the root mean square error is at
most alpha n. *Realised*: the error that occurs is, a mean over many runs. They differ much: Laplace noise whose root
mean square is exactly alpha n is beyond it in e^-sqrt(2) = 24 % of draws. Called, a mechanism answers by the yardstick
of its paper (expected where the error is known beforehand, which is exact; realised for multiplicative weights); `both`
gives the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

HAIR = 1e-9
"""Relative slack of comparisons, so that a budget of exactly m purchases buys m."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Questions:
    """What is asked, in the order of arrival: rows of `queries`, and who asks."""

    queries: Integers  # different ones, a row each, entries 0 and 1
    asked: Integers
    analysts: Integers
    people: int

    def of(self, members: Sequence[int] | NDArray[np.bool_]) -> Questions:
        """The part of the sequence that a collective asks, Q^S."""
        chosen = np.zeros(self.people, bool)
        chosen[members] = True
        kept = chosen[self.analysts]
        return replace(self, asked=self.asked[kept], analysts=self.analysts[kept])

    def served(self, order: Integers) -> Questions:
        """The same questions in another order."""
        return replace(self, asked=self.asked[order], analysts=self.analysts[order])

    def counted(self, answered: NDArray[np.bool_]) -> Reals:
        """How many of each analyst's questions were answered."""
        return np.bincount(self.analysts[answered], minlength=self.people).astype(float)


Mechanism = Callable[[Questions, Sequence[Reals]], Reals]
"""Per collective, given by what each analyst brings in (zero: is not there), the utility of each analyst."""


class TwoYardsticks(Protocol):
    """A mechanism that is measured by both: expected first, realised second."""

    def __call__(self, questions: Questions, collectives: Sequence[Reals]) -> Reals: ...

    def both(self, questions: Questions, collectives: Sequence[Reals]) -> Reals: ...


@dataclass(frozen=True, kw_only=True)
class Fairness:
    """How a mechanism treats its analysts."""

    utility: Reals  # per analyst, all together
    ratio_error: float  # max_i alone / together; above 1 breaks the sharing incentive
    interference: float  # max_{i != j} without j / together; above 1 breaks non-interference


def fairness(mechanism: Mechanism, questions: Questions, shares: Reals) -> Fairness:
    """The measures of Sec. 8.3; 0/0 counts as 1."""
    return _fairness(mechanism(questions, _collectives(shares)), len(shares))


def both_fairness(mechanism: TwoYardsticks, questions: Questions, shares: Reals) -> tuple[Fairness, Fairness]:
    """The same by expected and by realised errors."""
    expected, realised = mechanism.both(questions, _collectives(shares))
    return _fairness(expected, len(shares)), _fairness(realised, len(shares))


def _collectives(shares: Reals) -> list[Reals]:
    """Everybody, each alone, and everybody but one."""
    own = np.eye(len(shares), dtype=bool)
    return [shares * members for members in np.concatenate([np.ones((1, len(shares)), bool), own, ~own])]


def _fairness(found: Reals, people: int) -> Fairness:
    without = ~np.eye(people, dtype=bool)
    together, single, rest = found[0], found[1 : people + 1].diagonal(), found[people + 1 :]
    ratios = np.where(without, ratio(rest, together[None]), 0.0)
    return Fairness(
        utility=together,
        ratio_error=float(ratio(single, together).max()),
        interference=float(ratios.max()) if people > 1 else 1.0,
    )


def ratio(before: Reals, after: Reals) -> Reals:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((before == 0) & (after == 0), 1.0, before / after)


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Every question is bought from the common budget until that is used up (Sec. 4)."""

    each: float  # lambda, epsilon per question
    largest: float  # alpha n
    cached: bool = False  # whether a question that was bought before is free

    def both(self, questions: Questions, collectives: Sequence[Reals]) -> Reals:
        """A bought answer is good enough in exactly 1 - e^(-lambda alpha n) of draws."""
        expected = self(questions, collectives)
        always = replace(self, largest=math.inf)(questions, collectives)
        return np.stack([expected, always * (1 - math.exp(-self.each * self.largest))])

    def __call__(self, questions: Questions, collectives: Sequence[Reals]) -> Reals:
        found = []
        for brought in collectives:
            own = questions.of(brought > 0)
            payable = int(brought.sum() / self.each * (1 + HAIR))
            new = np.ones(len(own.asked), bool)
            if self.cached:
                new[:] = False
                new[np.unique(own.asked, return_index=True)[1]] = True
            bought = new & (np.cumsum(new) <= payable)
            good = np.isin(own.asked, own.asked[bought]) if self.cached else bought
            found.append(own.counted(good & within(2 / self.each**2, self.largest)))
        return np.array(found)


@dataclass(frozen=True, kw_only=True)
class SeededCache:
    """Seeded Cache and Reconstruct, Alg. 1, with the rule that phase 3 is never left.

    What is in the cache answers in every phase; reconstructed it would be no worse.
    `by_cell` charges an account the largest loss of a cell, as Bursar does, instead of the number of purchases.
    Two rules can be broken, for comparison: `eager` reconstructs while there is budget, `forgetful` leaves phase 3 for
    a question that can be paid.
    """

    basis: Reals  # rows of the seed, any scale
    gamma: float  # the part of each share that the seed gets
    each: float
    largest: float
    by_cell: bool = False
    eager: bool = False
    forgetful: bool = False
    runs: int = 100  # draws of all noise, for realised errors

    def __call__(self, questions: Questions, collectives: Sequence[Reals]) -> Reals:
        return np.array([self.run(questions.of(brought > 0), brought) for brought in collectives])

    def both(self, questions: Questions, collectives: Sequence[Reals]) -> Reals:
        """What is bought depends on no noise, so the draws run along; every collective gets the same of them."""
        pairs = []
        for brought in collectives:
            draws = Draws(self, float(brought.sum()), np.random.default_rng(0))
            pairs.append((self.run(questions.of(brought > 0), brought, draws), draws.counted))
        return np.array(pairs).transpose(1, 0, 2)

    def run(self, questions: Questions, brought: Reals, draws: Draws | None = None) -> Reals:
        covariance = self.seed(float(brought.sum()))
        if draws is not None:
            draws.counted = np.zeros(questions.people)
        queries = questions.queries.astype(float)
        loss = np.zeros((questions.people, queries.shape[1] if self.by_cell else 1))
        own, purchase = (1 - self.gamma) * brought, 2 / self.each**2
        spent_up = np.zeros(questions.people, bool)
        cached: set[int] = set()
        good = np.zeros(len(questions.asked), bool)
        for step, (number, who) in enumerate(zip(questions.asked.tolist(), questions.analysts.tolist(), strict=True)):
            if number in cached:
                good[step] = within(purchase, self.largest)
                if draws is not None:
                    draws.found(who, number)
                continue
            query = queries[number]
            added = self.each * (query if self.by_cell else 1.0)
            too_dear = bool((loss[who] + added).max() > own[who] * (1 + HAIR))
            spent_up[who] = too_dear or (spent_up[who] and not self.forgetful)
            known = covariance @ query
            variance = float(query @ known)
            if spent_up[who] or (self.eager and within(variance, self.largest)):
                good[step] = within(variance, self.largest)
                if draws is not None:
                    draws.reconstructed(who, query)
                continue
            good[step] = within(purchase, self.largest)
            if draws is not None:
                draws.bought(who, number, query, known / (variance + purchase))
            cached.add(number)
            loss[who] += added
            covariance = covariance - np.multiply.outer(known, known / (variance + purchase))
        return questions.counted(good)

    def seed(self, budget: float) -> Reals:
        """The covariance of the cells after phase 1."""
        scale = 1 / (self.gamma * budget)
        return self._at_one * (2 * scale**2)

    @cached_property
    def _at_one(self) -> Reals:
        rows = self.basis / np.abs(self.basis).sum(axis=0).max()
        return np.asarray(np.linalg.inv(rows.T @ rows))


class Draws:
    """The errors that occur in many runs of Seeded Cache and Reconstruct, all with the same purchases.

    Least squares moves the errors e of the cells at a purchase of q with noise z as it moves their covariance:
    e <- e + K (z - q e), K = C q / (q C q + v).
    """

    def __init__(self, mechanism: SeededCache, budget: float, rng: np.random.Generator) -> None:
        self.counted: Reals = np.zeros(0)
        self._each, self._largest, self._runs, self._rng = mechanism.each, mechanism.largest, mechanism.runs, rng
        rows = mechanism.basis / np.abs(mechanism.basis).sum(axis=0).max()
        noise = rng.laplace(0, 1 / (mechanism.gamma * budget), (len(rows), self._runs))
        self._errors: Reals = np.linalg.solve(rows.T @ rows, rows.T @ noise)
        self._answers: dict[int, Reals] = {}

    def bought(self, who: int, number: int, query: Reals, gain: Reals) -> None:
        noise = self._rng.laplace(0, 1 / self._each, self._runs)
        self._answers[number] = noise
        self._errors += np.multiply.outer(gain, noise - query @ self._errors)
        self._count(who, noise)

    def found(self, who: int, number: int) -> None:
        self._count(who, self._answers[number])

    def reconstructed(self, who: int, query: Reals) -> None:
        self._count(who, query @ self._errors)

    def _count(self, who: int, errors: Reals) -> None:
        self.counted[who] += np.mean(np.abs(errors) <= self._largest * (1 + HAIR))


def within(variance: float, largest: float) -> bool:
    return bool(variance <= (largest * (1 + HAIR)) ** 2)


# -- schedulers: they reorder, they do not price ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Served:
    """In which order questions are answered, as places in the order of arrival, and how many steps that takes."""

    order: Integers
    steps: int


def as_it_comes(questions: Questions, rng: np.random.Generator) -> Served:
    return Served(order=np.arange(len(questions.asked)), steps=len(questions.asked))


def round_robin(questions: Questions, rng: np.random.Generator) -> Served:
    """Sec. 7.1: one question each, in turn; waits for whoever's turn it is, unless they have no more to ask."""
    people = np.unique(questions.analysts)
    state = {"next": 0}

    def turn(left: Integers) -> int:
        while left[people[state["next"] % len(people)]] == 0:
            state["next"] += 1
        return int(people[state["next"] % len(people)])

    def done(served: bool) -> None:
        state["next"] += served

    return _serve(questions, turn, done)


def randomized(questions: Questions, rng: np.random.Generator) -> Served:
    """Alg. 2: at each step somebody is drawn, uniformly among those who have more to ask; a step may go to waste."""
    draws = iter(())
    people = np.unique(questions.analysts)

    def turn(left: Integers) -> int:
        nonlocal draws
        while True:
            who = next(draws, None)
            if who is None:
                draws = iter(rng.choice(people, 1024).tolist())
            elif left[who] > 0:
                return int(who)

    return _serve(questions, turn, lambda served: None)


def _serve(questions: Questions, turn: Callable[[Integers], int], done: Callable[[bool], None]) -> Served:
    """One arrival and one turn per step; a turn whose owner has nothing waiting stalls."""
    arriving, total = questions.analysts, len(questions.asked)
    places = [np.flatnonzero(arriving == who).tolist() for who in range(questions.people)]
    left = np.bincount(arriving, minlength=questions.people)
    served = np.zeros(questions.people, np.int64)
    order: list[int] = []
    step = 0
    while len(order) < total:
        who = turn(left)
        place = places[who][served[who]]
        if place <= step:
            order.append(place)
            served[who] += 1
            left[who] -= 1
        done(place <= step)
        step += 1
    return Served(order=np.array(order, np.int64), steps=step)


Scheduler = Callable[[Questions, np.random.Generator], Served]
