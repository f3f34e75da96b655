"""Relaxed projection: the relaxed rows whose answers are nearest to measured ones (RAP, Alg. 3)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.arrays import Singles
from bursar.synthetic.rap.products import Places, Terms, add_gradient, means
from bursar.synthetic.rap.relaxed import Relaxed
from bursar.synthetic.rap.sparsemax import compiled, sparsemax

Hook = Callable[[int, float, Relaxed], None]
"""Told the number of every epoch, its loss, and the rows as they are (they change later), for training curves."""

Stop = Callable[[], bool]
"""Asked before every step; the work ends with what there is as soon as it says yes: for time limits and cancelling."""

RATE = 1e-4
LARGEST_BATCH = 25_000
DECAY_1, DECAY_2, FLOOR = 0.9, 0.999, 1e-8
"""Adam's usual constants."""

NOTHING = np.float32(1e-15)
"""Gradients this small move a number by less than 1e-7 of the rate, which is beyond its last digit."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """The loss counts as no longer falling where it has not got lower by `least` for `epochs` epochs."""

    least: float = 1e-9
    epochs: int = 20
    most: int = 5_000


PATIENT = Patience()


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """Measured queries: the places that their surrogates read, their answers as fractions, and how much each counts."""

    places: Places
    answers: Singles
    weights: Singles  # the precision of an answer, relative to the most precise one
    terms: Terms
    padding: float  # what the place beyond a row holds
    noise: float = 0.0  # the loss that the true answers would have, on average


def no_hook(epoch: int, loss: float, relaxed: Relaxed) -> None:
    """Nobody is told."""


def never() -> bool:
    """Nothing stops the work."""
    return False


def after(seconds: float) -> Stop:
    """Stops the work when so much time has gone by from now on."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def project(
    relaxed: Relaxed,
    targets: Targets,
    *,
    rng: Generator,
    patience: Patience = PATIENT,
    on_step: Hook = no_hook,
    stop: Stop = never,
) -> Relaxed:
    """RAP, Alg. 3: argmin over D' of ||Q(D') - a||_2^2 by Adam, with sparsemax on every column between steps.

    The rate is 1e-4 sqrt(batch) for batches of min(queries, 25,000), drawn anew in every epoch where there are several.
    Starts from the given rows, which stay as they are, with a fresh state of the optimiser.

    Differs: it ends when the loss is no larger than what the noise of the answers makes it for the true data, since
    from there on it would fit the noise; and it gives up when the loss has not fallen for some epochs, where the
    paper's code compares one step with the one before: a step of Adam can go up on its way down. With answers of
    unequal precision, squares are weighted by it.
    Guarantees: memory is a few times that of the rows, whatever the number of queries.
    """
    count = len(targets.answers)
    batch = min(count, LARGEST_BATCH)
    descent = _Descent(relaxed, targets, rate=RATE * math.sqrt(batch))
    best, waited = math.inf, 0
    for epoch in range(patience.most if count else 0):
        order = rng.permutation(count) if batch < count else np.arange(count)
        loss = 0.0
        for first in range(0, count, batch):
            if stop():
                return descent.current
            loss += descent.step(order[first : first + batch])
        on_step(epoch, loss, descent.current)
        waited = 0 if loss < best - patience.least else waited + 1
        best = min(best, loss)
        if loss <= targets.noise or waited >= patience.epochs:
            break
    return descent.current


class _Descent:
    """Adam on the lines of the relaxed rows that some query reads; the other lines have no gradient, ever."""

    def __init__(self, relaxed: Relaxed, targets: Targets, *, rate: float) -> None:
        self._targets, self._rate, self._steps = targets, rate, 0
        beyond = np.full((1, relaxed.rows), targets.padding, np.float32)
        self._values = np.vstack([relaxed.values, beyond])
        self._gradient, self._first, self._second = (np.zeros_like(self._values) for _ in range(3))
        self.current = replace(relaxed, values=self._values[:-1])
        width = len(relaxed.values)
        self._read = np.unique(targets.places)  # with the line beyond: its gradient is cleared too
        self._lines = self._read[self._read < width]
        ends = np.cumsum(relaxed.sizes)
        columns = np.unique(np.searchsorted(ends, self._lines, side="right"))
        self._blocks = [self._values[ends[c] - relaxed.sizes[c] : ends[c]] for c in columns]

    def step(self, chosen: NDArray[np.int64]) -> float:
        """One step on some of the queries; returns their loss before it."""
        targets = self._targets
        places, weights = targets.places[chosen], targets.weights[chosen]
        miss = means(self._values, places, targets.terms) - targets.answers[chosen]
        self._gradient[self._read] = 0
        add_gradient(self._values, places, targets.terms, 2 * weights * miss, self._gradient)
        self._steps += 1
        # Adam's corrections of both averages, for all numbers at once.
        rate = self._rate * math.sqrt(1 - DECAY_2**self._steps) / (1 - DECAY_1**self._steps)
        floor = FLOOR * math.sqrt(1 - DECAY_2**self._steps)
        _adam(self._values, self._gradient, self._first, self._second, self._lines, _single(rate), _single(floor))
        for block in self._blocks:
            sparsemax(block)
        return float(np.sum(weights * miss * miss, dtype=np.float64))


def _single(number: float) -> float:
    """In the precision of the rows, so that the compiled loop stays in it."""
    return np.float32(number)  # type: ignore[return-value]


@compiled
def _adam(
    values: Singles, gradient: Singles, first: Singles, second: Singles, lines: Places, rate: float, floor: float
) -> None:
    """m = .9 m + .1 g, v = .999 v + .001 g^2, x -= rate m / (sqrt(v) + floor), on the given lines.

    Gradients and averages that move nothing beside the floor are cut to 0 before they get so small that the processor
    takes a hundred times as long for them.
    """
    for line in lines:
        x, g, m, v = values[line], gradient[line], first[line], second[line]
        for i in range(len(x)):
            slope = g[i] if abs(g[i]) > NOTHING else np.float32(0)
            mean = np.float32(0.9) * m[i] + np.float32(0.1) * slope
            m[i] = mean if abs(mean) > NOTHING else np.float32(0)
            v[i] = np.float32(0.999) * v[i] + np.float32(0.001) * slope * slope
            x[i] -= rate * m[i] / (np.sqrt(v[i]) + floor)
