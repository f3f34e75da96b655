"""Several people, one budget: the mechanisms of Pujol et al. over a histogram, and how fair they are.

A mechanism is given who asks what in which order, and what each member of a collective brings in. It says how many
questions of each analyst it answers well enough: for mechanisms with an error known beforehand the number whose root
mean square error is at most alpha n, which is exact; for multiplicative weights the mean over many runs of the number
whose error is at most alpha n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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


@dataclass(frozen=True, kw_only=True)
class Fairness:
    """How a mechanism treats its analysts."""

    utility: Reals  # per analyst, all together
    ratio_error: float  # max_i alone / together; above 1 breaks the sharing incentive
    interference: float  # max_{i != j} without j / together; above 1 breaks non-interference


def fairness(mechanism: Mechanism, questions: Questions, shares: Reals) -> Fairness:
    """The measures of Sec. 8.3; 0/0 counts as 1."""
    people = len(shares)
    everybody = np.ones((1, people), bool)
    alone, without = np.eye(people, dtype=bool), ~np.eye(people, dtype=bool)
    found = mechanism(questions, [shares * members for members in np.concatenate([everybody, alone, without])])
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

    def __call__(self, questions: Questions, collectives: Sequence[Reals]) -> Reals:
        return np.array([self.run(questions.of(brought > 0), brought) for brought in collectives])

    def run(self, questions: Questions, brought: Reals) -> Reals:
        covariance = self.seed(float(brought.sum()))
        queries = questions.queries.astype(float)
        loss = np.zeros((questions.people, queries.shape[1] if self.by_cell else 1))
        own, purchase = (1 - self.gamma) * brought, 2 / self.each**2
        spent_up = np.zeros(questions.people, bool)
        cached: set[int] = set()
        good = np.zeros(len(questions.asked), bool)
        for step, (number, who) in enumerate(zip(questions.asked.tolist(), questions.analysts.tolist(), strict=True)):
            if number in cached:
                good[step] = within(purchase, self.largest)
                continue
            query = queries[number]
            added = self.each * (query if self.by_cell else 1.0)
            too_dear = bool((loss[who] + added).max() > own[who] * (1 + HAIR))
            spent_up[who] = too_dear or (spent_up[who] and not self.forgetful)
            known = covariance @ query
            variance = float(query @ known)
            if spent_up[who] or (self.eager and within(variance, self.largest)):
                good[step] = within(variance, self.largest)
                continue
            good[step] = within(purchase, self.largest)
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
