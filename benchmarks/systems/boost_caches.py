"""What Boost is compared with: answers bought each time, and exact caches of them by block, window or node.

Simulations: see `boost_world`. All at the epsilon of the published curves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.systems import boost_calibration as calibrated
from benchmarks.systems.boost_world import PATH, Node, World, covering


class Bought:
    """Laplace answers, kept for the next time where `cached`.

    `split` cuts a window into the nodes that are bought one by one; without it the window is bought as a whole.
    """

    def __init__(
        self,
        world: World,
        rng: np.random.Generator,
        *,
        cached: bool,
        split: Callable[[int, int], list[Node]] | None = None,
    ) -> None:
        self.world = world
        self.spent = np.zeros(world.blocks)
        self._rng, self._cached, self._split = rng, cached, split
        self._kept: dict[tuple[Node, int], tuple[float, float]] = {}  # epsilon and answer

    def answer(self, query: int, first: int, last: int) -> tuple[float, str]:
        world, window = self.world, (first, last)
        nodes = [window] if self._split is None else self._split(first, last)
        epsilon = calibrated.together(world.alpha, world.beta, world.rows(window), len(nodes))
        total, path = 0.0, PATH.cached
        for node in nodes:
            entry = self._kept.get((node, query))
            if entry is None or entry[0] < epsilon:
                path = PATH.bought
                self.spent[node[0] : node[1] + 1] += epsilon
                noise = self._rng.laplace(0, 1 / (epsilon * world.rows(node)))
                entry = epsilon, world.truth(query, node) + float(noise)
                if self._cached:
                    self._kept[node, query] = entry
            total += entry[1] * world.rows(node)
        return total / world.rows(window), path


def laplace(world: World, rng: np.random.Generator) -> Bought:
    """No cache."""
    return Bought(world, rng, cached=False)


def exact_cache(world: World, rng: np.random.Generator) -> Bought:
    """A question that was asked about the very same window is free."""
    return Bought(world, rng, cached=True)


def exact_cache_tree(world: World, rng: np.random.Generator) -> Bought:
    """Questions are asked about the nodes of a binary tree, each with a cache of its own."""
    return Bought(world, rng, cached=True, split=covering)
