"""AIM (McKenna et al., 2022) over all joint cells of a few columns, in a hundredth of its package's time.

Rounds of picking the marginal that the model gets most wrong, less what noise would do, and measuring it; the noise is
halved when a round has taught little. The package estimates a graphical model by mirror descent from nothing, and
compiles it anew, in every round. Here the model is the table of all joint cells, which spans the same distributions;
descent goes on from the last model, and measurements of one marginal are averaged first, which is the same least
squares. Noise comes from numpy: this is for comparison, and protects nobody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.random import Generator

from benchmarks.rap_data import Coded, Codes
from benchmarks.rap_measures import Reals
from benchmarks.rap_workloads import Sets

ROUNDS_PER_COLUMN = 16
MEASURING_SHARE = 0.9
FIRST_STEPS, ROUND_STEPS, LAST_STEPS = 200, 60, 600
"""Most steps of descent; it ends where a step gains nothing."""

GAINS_NOTHING = 1e-7


@dataclass
class Model:
    """Expected counts of all joint cells, and what was measured: by marginal, a mean and its precision."""

    sizes: Sequence[int]
    rows: int
    logarithms: Reals
    cells: dict[tuple[int, ...], Codes]
    measured: dict[tuple[int, ...], tuple[Reals, float]] = field(default_factory=dict)
    step: float = 1e-3

    @property
    def counts(self) -> Reals:
        shares = np.exp(self.logarithms - self.logarithms.max())
        counts: Reals = shares * (self.rows / shares.sum())
        return counts

    def marginal(self, members: tuple[int, ...], counts: Reals) -> Reals:
        table: Reals = np.bincount(self.cells[members], counts, minlength=math.prod(self.sizes[i] for i in members))
        return table

    def add(self, members: tuple[int, ...], values: Reals, precision: float) -> None:
        known, before = self.measured.get(members, (values, 0.0))
        mean = (before * known + precision * values) / (before + precision)
        self.measured[members] = (mean, before + precision)

    def descend(self, steps: int) -> None:
        """Entropic mirror descent on the weighted squares, with the step that the loss allows."""
        loss, slope, counts = self._loss()
        for _ in range(steps):
            before = self.logarithms
            while True:
                self.logarithms = before - self.step * slope
                new_loss, new_slope, new_counts = self._loss()
                if loss - new_loss >= 0.5 * float(slope @ (counts - new_counts)) or self.step < 1e-12:
                    break
                self.step /= 2
            gained, loss, slope, counts = loss - new_loss, new_loss, new_slope, new_counts
            self.step *= 1.2
            if gained <= GAINS_NOTHING * max(loss, 1.0):
                break

    def _loss(self) -> tuple[float, Reals, Reals]:
        counts, loss = self.counts, 0.0
        slope = np.zeros(len(counts))
        for members, (mean, precision) in self.measured.items():
            off = self.marginal(members, counts) - mean
            loss += precision / 2 * float(off @ off)
            slope += (precision * off)[self.cells[members]]
        return loss, slope, counts


def aim(data: Coded, sets: Sets, rho: float, rng: Generator) -> Codes:
    """A table of the data's size that is made for the workload with this budget.

    Differs: the number of rows is told, as the package is told it.
    """
    scores = _candidates(sets)
    grid = np.stack(np.unravel_index(np.arange(math.prod(data.sizes)), data.sizes), axis=1)
    cells = {
        members: np.ravel_multi_index(tuple(grid[:, i] for i in members), [data.sizes[i] for i in members])
        for members in scores
    }
    model = Model(sizes=data.sizes, rows=data.rows, logarithms=np.zeros(len(grid)), cells=cells)
    real = np.bincount(np.ravel_multi_index(tuple(data.codes.T), data.sizes), minlength=len(grid)).astype(np.float64)
    truth = {members: model.marginal(members, real) for members in scores}
    share = rho / (ROUNDS_PER_COLUMN * len(data.sizes))
    spent = 0.0

    def measure(members: tuple[int, ...], price: float) -> None:
        noise = rng.normal(0, math.sqrt(1 / (2 * price)), len(truth[members]))
        model.add(members, truth[members] + noise, 2 * price)

    for members in (members for members in scores if len(members) == 1):
        measure(members, MEASURING_SHARE * share)
        spent += MEASURING_SHARE * share
    model.descend(FIRST_STEPS)
    last = False
    while not last:
        if rho - spent < 2 * share:
            share, last = rho - spent, True
        spent += share
        sigma = math.sqrt(1 / (2 * MEASURING_SHARE * share))
        counts = model.counts
        wrong = [
            score * (np.abs(truth[m] - model.marginal(m, counts)).sum() - _of_noise(sigma, len(truth[m])))
            for m, score in scores.items()
        ]
        # The exponential mechanism at (1 - .9) of the round's rho, which is an eighth of its epsilon squared.
        epsilon = math.sqrt(8 * (1 - MEASURING_SHARE) * share)
        noisy = np.array(wrong) * epsilon / (2 * max(scores.values())) + rng.gumbel(size=len(wrong))
        picked = list(scores)[int(np.argmax(noisy))]
        before = model.marginal(picked, counts)
        measure(picked, MEASURING_SHARE * share)
        model.descend(ROUND_STEPS)
        taught = np.abs(model.marginal(picked, model.counts) - before).sum()
        if taught <= _of_noise(sigma, len(before)):
            share *= 4  # the noise is halved
    model.descend(LAST_STEPS)
    order = np.cumsum(model.counts)
    drawn = np.searchsorted(order, (np.arange(data.rows) + rng.random()) * (order[-1] / data.rows), side="right")
    table: Codes = grid[np.minimum(drawn, len(grid) - 1)]
    return table


def _candidates(sets: Sets) -> dict[tuple[int, ...], int]:
    """Every subset of a set of the workload, with how much the workload has to do with it."""
    subsets = {part for members in sets for k in range(len(members)) for part in combinations(sorted(members), k + 1)}
    return {part: sum(len({*part} & {*members}) for members in sets) for part in sorted(subsets)}


def _of_noise(sigma: float, cells: int) -> float:
    """What noise alone is expected to put into all cells."""
    return math.sqrt(2 / math.pi) * sigma * cells
