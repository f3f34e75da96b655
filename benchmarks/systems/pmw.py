"""Private multiplicative weights (Hardt and Rothblum), many runs at once: the joint mechanism of Pujol et al."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.systems.collective import Questions, Reals, Scheduler, as_it_comes


@dataclass(frozen=True, kw_only=True, eq=False)
class MultiplicativeWeights:
    """One synthetic histogram for everybody, from the uniform one on.

    A sparse vector (scale b for the threshold and for every test, cost 3/b until it fires) compares the answer of the
    synthetic histogram with the exact one. Above the threshold the question is bought with Laplace noise, and the
    histogram moves: x <- x exp(q (y - q x) step / n), scaled to n. Each such update costs 3/b + 1/l; when the budget
    does not pay for one more, the synthetic histogram answers everything. n is public.
    The constants are those with the most answers, p = .1 and all three epsilon together, of 106 combinations tried on
    the sequences of seeds 100 to 102.
    """

    truth: Reals
    largest: float  # alpha n
    threshold: float = 0.75  # times alpha n
    test_scale: float = 0.75  # times alpha n
    answer_scale: float = 0.35
    step: float = 6.0
    runs: int = 100
    scheduler: Scheduler = as_it_comes
    seed: int = 0

    @property
    def update_cost(self) -> float:
        return (3 / self.test_scale + 1 / self.answer_scale) / self.largest

    def __call__(self, questions: Questions, collectives: Sequence[Reals]) -> Reals:
        return np.asarray(self.both(questions, collectives)[1])

    def both(self, questions: Questions, collectives: Sequence[Reals]) -> Reals:
        """All runs of all collectives side by side, one row each; a question's expected error is over its runs."""
        rng = np.random.default_rng(self.seed)
        parts = [questions.of(brought > 0) for brought in collectives]
        longest = max(len(part.asked) for part in parts)
        asked = np.full((len(parts), self.runs, longest), -1)
        places = np.zeros_like(asked)
        for place, part in enumerate(parts):
            for run in range(self.runs):
                if run == 0 or self.scheduler is not as_it_comes:
                    order = self.scheduler(part, rng).order
                asked[place, run, : len(order)] = part.asked[order]
                places[place, run, : len(order)] = order
        budgets = np.repeat([float(brought.sum()) for brought in collectives], self.runs)
        errors = self.answer(questions.queries.astype(float), asked.reshape(-1, longest), budgets, rng)
        found = [
            _by_analyst(part, own_errors, own_places, self.largest * (1 + 1e-9))
            for part, own_errors, own_places in zip(parts, errors.reshape(asked.shape), places, strict=True)
        ]
        return np.array(found).transpose(1, 0, 2)

    def answer(self, queries: Reals, asked: np.ndarray, budgets: Reals, rng: np.random.Generator) -> Reals:
        """By how much the answers are off, run by run; -1 stands for no question."""
        size, exact = self.truth.sum(), queries @ self.truth
        b, noise = self.test_scale * self.largest, self.answer_scale * self.largest
        weights = np.full((len(asked), len(self.truth)), size / len(self.truth))
        updates = np.floor(budgets / self.update_cost * (1 + 1e-9)).astype(np.int64)
        level = self.threshold * self.largest + rng.laplace(0, b, len(asked))
        errors = np.full(asked.shape, np.inf)
        for step in range(asked.shape[1]):
            active = np.flatnonzero(asked[:, step] >= 0)
            numbers = asked[active, step]
            rows = queries[numbers]
            guess = np.einsum("ij,ij->i", rows, weights[active])
            truth = exact[numbers]
            tested = np.abs(truth - guess) + rng.laplace(0, b, len(active))
            hard = (tested > level[active]) & (updates[active] > 0)
            error = np.abs(truth - guess)
            if hard.any():
                fired = active[hard]
                drawn = rng.laplace(0, noise, len(fired))
                error[hard] = np.abs(drawn)
                push = (truth[hard] + drawn - guess[hard]) * self.step / size
                moved = weights[fired] * np.exp(np.clip(push, -3, 3)[:, None] * rows[hard])
                weights[fired] = moved * (size / moved.sum(axis=1, keepdims=True))
                updates[fired] -= 1
                level[fired] = self.threshold * self.largest + rng.laplace(0, b, len(fired))
            errors[active, step] = error
        return errors


def _by_analyst(part: Questions, errors: Reals, places: np.ndarray, largest: float) -> tuple[Reals, Reals]:
    """How many questions of each analyst are good enough: by the root mean square over the runs, and on average."""
    count = len(part.asked)
    errors, places = errors[:, :count], places[:, :count]
    squares = np.bincount(places.ravel(), (errors**2).ravel(), count) / len(errors)
    realised = np.bincount(places.ravel(), (errors <= largest).ravel().astype(float), count) / len(errors)
    expected = part.counted(squares <= largest**2)
    return expected, np.bincount(part.analysts, realised, part.people).astype(float)
