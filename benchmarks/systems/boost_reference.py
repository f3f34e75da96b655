"""Boost as its figures were made, Boost as its text prints it, and the vanilla PMW it is compared with.

Simulations: see `boost_world`. One histogram, exact cache and sparse vector where there is one block (Alg. 1); a tree
of histograms over the blocks, an exact cache per node and a sparse vector per window where there are more (Alg. 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from benchmarks.systems import boost_calibration as calibrated
from benchmarks.systems.boost_histogram import Histogram
from benchmarks.systems.boost_world import PATH, Node, World, covering, leaves


class Warm(Enum):
    """What a new histogram starts from."""

    NONE = "the uniform histogram"
    LEAVES = "that of the nearest earlier block, for a single block"
    ALL = "also the average of the children, for several blocks"


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The knobs of section 5.1, as for Covid."""

    ready: int = 100  # C0
    step: int = 5  # S0
    margin: float = 0.05  # tau
    rates: tuple[tuple[int, float], ...] = ((100, 0.025), (50, 0.0625), (0, 0.25))  # from so many updates on
    warm: Warm = Warm.NONE
    flat: bool = False  # one histogram per block, no tree
    cached: bool = True  # with the exact cache in front

    def rate(self, updates: int) -> float:
        return next(rate for least, rate in self.rates if updates >= least)


COVID = Constants()
CITIBIKE = Constants(ready=5, step=1, margin=0.01, rates=((0, 0.5),))


class _Tree:
    """State that the two variants share, and what both do with it."""

    def __init__(self, world: World, constants: Constants, rng: np.random.Generator) -> None:
        self.world, self.constants = world, constants
        self.spent = np.zeros(world.blocks)
        self.histograms: dict[Node, Histogram] = {}
        self.updates = 0
        self._rng = rng
        self._split = leaves if constants.flat else covering
        self._bought: dict[tuple[Node, int], tuple[float, float]] = {}  # epsilon and answer
        self._levels: dict[Node, float] = {}  # noisy thresholds of the sparse vectors in use

    def _pay(self, node: Node, epsilon: float) -> None:
        self.spent[node[0] : node[1] + 1] += epsilon

    def _noise(self, node: Node, epsilon: float) -> float:
        return float(self._rng.laplace(0, 1 / (epsilon * self.world.rows(node))))

    def _known(self, node: Node, query: int, epsilon: float) -> float | None:
        """An answer in the node's exact cache that is at least as accurate."""
        entry = self._bought.get((node, query)) if self.constants.cached else None
        return None if entry is None or entry[0] < epsilon else entry[1]

    def _buy(self, node: Node, query: int, epsilon: float) -> float:
        self._pay(node, epsilon)
        value = self.world.truth(query, node) + self._noise(node, epsilon)
        self._bought[node, query] = epsilon, value
        return value

    def _is_ready(self, node: Node, query: int) -> bool:
        histogram = self.histograms.get(node)
        return histogram is not None and histogram.ready(self.world.selectors[query])

    def _learn(self, node: Node, query: int, value: float, margin: float) -> None:
        """Alg. 1 lines 24 and 33: up or down if the answer is further than the margin from the estimate."""
        bins = self.world.selectors[query]
        known = self.histograms.get(node)
        histogram = self._begin(node) if known is None else known
        gap = value - histogram.estimate(bins)
        if abs(gap) > margin:
            self._move(node, histogram, query, math.copysign(1.0, gap))

    def _move(self, node: Node, histogram: Histogram, query: int, direction: float) -> None:
        bins = self.world.selectors[query]
        histogram.update(bins, direction * self.constants.rate(histogram.least(bins)))
        self.histograms[node] = histogram
        self.updates += 1

    def _begin(self, node: Node) -> Histogram:
        """Section 4.4."""
        first, last = node
        warm, half = self.constants.warm, (last - first + 1) // 2
        if warm is not Warm.NONE and first == last:
            earlier = next((b for b in range(first - 1, -1, -1) if (b, b) in self.histograms), None)
            if earlier is not None:
                return self.histograms[earlier, earlier].copy()
        if warm is Warm.ALL and first < last:
            parts = [self.histograms.get(part) for part in ((first, first + half - 1), (first + half, last))]
            if parts[0] is not None and parts[1] is not None:
                return Histogram.mean(parts[0], parts[1])
        return Histogram(self.world.bins, self.constants.ready)

    def _level(self, window: Node, epsilon: float) -> float:
        """The noisy threshold of the window's sparse vector; starting one costs three times its epsilon."""
        if window not in self._levels:
            self._pay(window, 3 * epsilon)
            self._levels[window] = self.world.alpha / 2 + self._noise(window, epsilon)
        return self._levels[window]


class Published(_Tree):
    """The constants and rules behind the published curves.

    Differs from the text: Laplace answers at ln(1/beta) / (n alpha), the sparse vector at its own epsilon, no share of
    beta for each; a sparse vector is paid at its first use and at the next use after a failure, one per exact window;
    it tests the answer to the whole window, bought parts included; after a failure every part is bought, the margin
    is kept, and all of the query's bins wait. Laplace answers alone enter the caches.
    """

    def answer(self, query: int, first: int, last: int) -> tuple[float, str]:
        world, window = self.world, (first, last)
        nodes = self._split(first, last)
        epsilon = calibrated.together(world.alpha, world.beta, world.rows(window), len(nodes))
        values: dict[Node, float] = {}
        guessed: list[Node] = []
        path = PATH.cached
        for node in nodes:
            known = self._known(node, query, epsilon)
            if known is not None:
                values[node] = known
            elif self._is_ready(node, query):
                guessed.append(node)
                values[node] = self.histograms[node].estimate(world.selectors[query])
            else:
                path = PATH.bought
                values[node] = self._bought_anew(node, query, epsilon)
        if guessed:
            path = PATH.estimated
            tested = calibrated.sparse_vector(world.alpha, world.beta, world.rows(window))
            level = self._level(window, tested)
            error = abs(world.truth(query, window) - _mean(values))
            if error + self._noise(window, tested) >= level:
                path = PATH.failed
                del self._levels[window]
                for node in guessed:
                    self.histograms[node].raise_all(world.selectors[query], self.constants.step)
                    values[node] = self._bought_anew(node, query, epsilon)
        return _mean(values), path

    def _bought_anew(self, node: Node, query: int, epsilon: float) -> float:
        value = self._buy(node, query, epsilon)
        self._learn(node, query, value, self.constants.margin * self.world.alpha)
        return value


class Printed(_Tree):
    """Alg. 1 where there is one block, Alg. 2 where there are more, with the exact cache of section 3.3 in front.

    Alg. 2 is read with its line 18 about r_H and its line 22 taking I_SV out of S; the Monte Carlo calibration takes
    beta/2 without a share for its own failure, which the text does not state. The learning rate, of which the text
    says that it decays, has the steps of the figures.
    """

    def __init__(self, world: World, constants: Constants, rng: np.random.Generator) -> None:
        super().__init__(world, constants, rng)
        if world.blocks == 1:
            self._level((0, 0), calibrated.printed(world.alpha, world.beta, world.size))

    def answer(self, query: int, first: int, last: int) -> tuple[float, str]:
        return self._one_block(query) if self.world.blocks == 1 else self._window(query, first, last)

    def _one_block(self, query: int) -> tuple[float, str]:
        """Alg. 1."""
        world, block = self.world, (0, 0)
        epsilon = calibrated.printed(world.alpha, world.beta, world.size)
        known = self._known(block, query, epsilon)
        if known is not None:
            return known, PATH.cached
        if not self._is_ready(block, query):
            value = self._buy(block, query, epsilon)
            self._learn(block, query, value, self.constants.margin * world.alpha)
            return value, PATH.bought
        guess = self.histograms[block].estimate(world.selectors[query])
        error = abs(world.truth(query, block) - guess)
        if error + self._noise(block, epsilon) < self._level(block, epsilon):
            return guess, PATH.estimated
        value = self._buy(block, query, epsilon)
        self._learn(block, query, value, 0.0)
        del self._levels[block]
        self._level(block, epsilon)  # paid at once: line 21
        self.histograms[block].raise_least(world.selectors[query], self.constants.step)
        return value, PATH.failed

    def _window(self, query: int, first: int, last: int) -> tuple[float, str]:
        """Alg. 2."""
        world, bins = self.world, self.world.selectors[query]
        nodes = self._split(first, last)
        ready = [n for n in nodes if (n, query) not in self._bought and self._is_ready(n, query)]
        guessed = longest_run(ready)
        values: dict[Node, float] = {}
        path = PATH.cached
        if guessed:
            path = PATH.estimated
            window = guessed[0][0], guessed[-1][1]
            epsilon = calibrated.printed(world.alpha, world.beta / 2, world.rows(window))
            level = self._level(window, epsilon)
            guesses = {node: self.histograms[node].estimate(bins) for node in guessed}
            guess, truth = _mean(guesses), world.truth(query, window)
            values[window] = guess
            if abs(truth - guess) + self._noise(window, epsilon) >= level:
                path = PATH.failed
                del self._levels[window]
                self._pay(window, epsilon)
                values[window] = truth + self._noise(window, epsilon)
                if len(guessed) == 1:
                    self._bought[window, query] = epsilon, values[window]
                for node in guessed:
                    self._move(node, self.histograms[node], query, math.copysign(1.0, values[window] - guess))
                    self.histograms[node].raise_least(bins, self.constants.step)
        others = [node for node in nodes if node not in guessed]
        if others:
            rows = sum(world.rows(node) for node in others)
            epsilon = calibrated.together(world.alpha, world.beta / 2, rows, len(others))
        for node in others:
            known = self._known(node, query, epsilon)
            if known is None:
                path = PATH.bought if path == PATH.cached else path
                known = self._buy(node, query, epsilon)
                self._learn(node, query, known, self.constants.margin * world.alpha)
            values[node] = known
        return _mean(values), path


class Vanilla:
    """PMW without a bypass (Alg. 1 with a histogram that is always asked) at the epsilon of Lemma A.2, one block.

    No exact cache, no margin, one learning rate: alpha/8 unless another is named.
    """

    def __init__(self, world: World, rng: np.random.Generator, rate: float | None = None) -> None:
        self.world, self._rng = world, rng
        self.histograms = {(0, 0): Histogram(world.bins, 0)}
        self.updates = 0
        self._rate = world.alpha / 8 if rate is None else rate
        self._epsilon = calibrated.vanilla(world.alpha, world.beta, world.size)
        self.spent = np.array([3 * self._epsilon])
        self._level = world.alpha / 2 + self._noise()

    def answer(self, query: int, first: int, last: int) -> tuple[float, str]:
        histogram, bins = self.histograms[0, 0], self.world.selectors[query]
        truth, guess = self.world.truth(query, (0, 0)), histogram.estimate(bins)
        if abs(truth - guess) + self._noise() < self._level:
            return guess, PATH.estimated
        self.spent += 4 * self._epsilon
        value = truth + self._noise()
        histogram.update(bins, math.copysign(self._rate, value - guess))
        self.updates += 1
        self._level = self.world.alpha / 2 + self._noise()
        return value, PATH.failed

    def _noise(self) -> float:
        return float(self._rng.laplace(0, 1 / (self._epsilon * self.world.size)))


def longest_run(nodes: Sequence[Node]) -> list[Node]:
    """LARGESTCONTIGUOUSSUBSET: of the runs of nodes without a gap, the first with the most blocks."""
    runs: list[list[Node]] = []
    for node in nodes:
        if runs and runs[-1][-1][1] + 1 == node[0]:
            runs[-1].append(node)
        else:
            runs.append([node])
    return max(runs, key=lambda run: run[-1][1] - run[0][0], default=[])


def _mean(values: dict[Node, float]) -> float:
    """AGGREGATE: each window counts with its number of rows."""
    weighted = sum((last - first + 1) * value for (first, last), value in values.items())
    return weighted / sum(last - first + 1 for first, last in values)
