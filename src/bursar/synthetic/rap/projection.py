"""Relaxed projection: the relaxed rows whose answers are nearest to measured ones (RAP, Alg. 3).

The inner loop sums products of a few entries over all rows. All products of subsets of a query's k entries are made by
one multiplication each; the surrogate is a sum of some of them (RAP, Def. 4.4), and its derivative by an entry is the
same sum with that entry left out of each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.arrays import Singles
from bursar.synthetic.plan.bought import Bought
from bursar.synthetic.rap.relaxed import Relaxed, compiled, sparsemax
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload, expansion

Places = NDArray[np.int32]

TILE = 512
"""Rows that are worked on together; the products of five entries of this number of rows fit in the first cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """The surrogate of an r-of-k threshold query as weights of the 2^k products; bit i of a number is entry i."""

    weights: Singles
    negated: bool  # entries are read as 1 - x, and the query is 1 minus the sum

    @property
    def triple(self) -> bool:
        """Whether this is the plain product of three entries."""
        return len(self.weights) == 8 and not self.negated and not self.weights[:7].any()

    @staticmethod
    def of(k: int, r: int) -> Terms:
        form = expansion(k, r)
        weights = np.zeros(2**k, np.float32)
        for subset, coefficient in zip(form.subsets, form.coefficients, strict=True):
            weights[sum(1 << i for i in subset)] = coefficient
        return Terms(weights=weights, negated=form.negated)


def means(values: Singles, places: Places, terms: Terms) -> Singles:
    """q(D') = sum over rows of phi(row) / n', for each query (RAP, Def. 2.5)."""
    answers = np.empty(len(places), np.float32)
    if terms.triple:
        _triple_means(values, places, answers)
    else:
        _means(values, places, terms.weights, terms.negated, answers)
    return answers


def add_gradient(values: Singles, places: Places, terms: Terms, slopes: Singles, gradient: Singles) -> None:
    """Adds sum_i slopes_i dq_i/dx to the gradient, which has the shape of the values."""
    if terms.triple:
        _add_triple_gradient(values, places, slopes, gradient)
    else:
        _add_gradient(values, places, terms.weights, terms.negated, slopes, gradient)


@compiled
def _triple_means(values: Singles, places: Places, answers: Singles) -> None:
    """Marginals of up to three columns, the common case, in one pass: four times as fast."""
    for query in range(len(places)):
        x, y, z = values[places[query, 0]], values[places[query, 1]], values[places[query, 2]]
        total = np.float32(0)
        for i in range(len(x)):
            total += x[i] * y[i] * z[i]
        answers[query] = total / np.float32(len(x))


@compiled
def _add_triple_gradient(values: Singles, places: Places, slopes: Singles, gradient: Singles) -> None:
    for query in range(len(places)):
        a, b, c = places[query]
        x, y, z = values[a], values[b], values[c]
        slope = slopes[query] / np.float32(len(x))
        _add_scaled_product(gradient[a], y, z, slope)
        _add_scaled_product(gradient[b], x, z, slope)
        _add_scaled_product(gradient[c], x, y, slope)


@compiled
def _add_scaled_product(line: Singles, x: Singles, y: Singles, slope: float) -> None:
    for i in range(len(line)):
        line[i] += slope * x[i] * y[i]


@compiled
def _fill(products: Singles, values: Singles, entry_places: Places, negated: bool, first: int, tile: int) -> None:
    """Line s becomes the product over the entries in s, for the rows of a tile."""
    for j in range(len(entry_places)):
        bit = 1 << j
        entries, single = values[entry_places[j], first : first + tile], products[bit]
        if negated:
            for i in range(tile):
                single[i] = np.float32(1) - entries[i]
        else:
            for i in range(tile):
                single[i] = entries[i]
        for below in range(1, bit):
            product, other = products[bit + below], products[below]
            for i in range(tile):
                product[i] = single[i] * other[i]


@compiled
def _means(values: Singles, places: Places, weights: Singles, negated: bool, answers: Singles) -> None:
    rows = values.shape[1]
    products = np.ones((len(weights), TILE), np.float32)
    for query in range(len(places)):
        total = 0.0
        for first in range(0, rows, TILE):
            tile = min(TILE, rows - first)
            _fill(products, values, places[query], negated, first, tile)
            for s in range(1, len(weights)):
                if weights[s] != 0:
                    part, line = np.float32(0), products[s]
                    for i in range(tile):
                        part += line[i]
                    total += weights[s] * part
        mean = total / rows
        answers[query] = 1 - mean if negated else mean


@compiled
def _add_gradient(
    values: Singles, places: Places, weights: Singles, negated: bool, slopes: Singles, gradient: Singles
) -> None:
    """With `negated`, 1 - phi(1 - x) has the derivative phi'(1 - x): both signs cancel."""
    rows = values.shape[1]
    products = np.ones((len(weights), TILE), np.float32)  # line 0 stays 1: the product of nothing
    for query in range(len(places)):
        slope = slopes[query] / np.float32(rows)
        for first in range(0, rows, TILE):
            tile = min(TILE, rows - first)
            _fill(products, values, places[query], negated, first, tile)
            for j in range(places.shape[1]):
                bit = 1 << j
                line = gradient[places[query, j], first : first + tile]
                for s in range(1, len(weights)):
                    if s & bit and weights[s] != 0:
                        times, others = slope * weights[s], products[s ^ bit]
                        for i in range(tile):
                            line[i] += times * others[i]


Hook = Callable[[int, float, Relaxed], None]
"""Told the number of every epoch, its loss, and the rows as they are (they change later), for training curves."""

Stop = Callable[[], bool]
"""Asked before every step; the work ends with what there is as soon as it says yes: for time limits and cancelling."""

RATE = 1e-4
LARGEST_BATCH = 25_000
DECAY_1, DECAY_2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's usual constants."""

NEGLIGIBLE = np.float32(1e-15)
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


def targets(workload: ThresholdWorkload, rounds: Sequence[Bought], *, size: float) -> Targets:
    """What relaxed rows are to be fitted to: counts as fractions of the public or measured size."""
    best = min(bought.variance for bought in rounds)
    queries = np.concatenate([bought.queries for bought in rounds])
    counts = np.concatenate([bought.counts for bought in rounds])
    weights = np.concatenate([np.full(len(bought.queries), best / bought.variance) for bought in rounds])
    return Targets(
        places=workload.places(queries),
        answers=(counts / size).astype(np.float32),
        weights=weights.astype(np.float32),
        terms=Terms.of(workload.together, workload.agreeing),
        padding=workload.padding,
        noise=len(queries) * best / size**2,
    )


def no_hook(epoch: int, loss: float, relaxed: Relaxed) -> None:
    """Nobody is told."""


def never() -> bool:
    """Nothing stops the work."""
    return False


def after(seconds: float) -> Stop:
    """Stops the work when `seconds` have gone by from now on."""
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
        floor = EPSILON * math.sqrt(1 - DECAY_2**self._steps)
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
            slope = g[i] if abs(g[i]) > NEGLIGIBLE else np.float32(0)
            mean = np.float32(0.9) * m[i] + np.float32(0.1) * slope
            m[i] = mean if abs(mean) > NEGLIGIBLE else np.float32(0)
            v[i] = np.float32(0.999) * v[i] + np.float32(0.001) * slope * slope
            x[i] -= rate * m[i] / (np.sqrt(v[i]) + floor)
