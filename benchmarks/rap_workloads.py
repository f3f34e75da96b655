"""Which feature sets are asked about: published workloads, random ones, and those of the partial knowledge setting."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import data_folder
from benchmarks.rap_data import Coded

Sets = tuple[tuple[int, ...], ...]
"""The feature sets of a workload, in the order in which they were drawn."""

Masses = NDArray[np.float64]

ZIPF_EXPONENT = 1.0
GEOMETRIC = 0.25


def published(name: str, k: int, size: int) -> Sets | None:
    """The 3-way workloads over Adult that the published figures were noted for, where they are at hand."""
    home = data_folder()
    file = None if home is None else home / "rap-workloads" / f"W{size}_w0_k{k}.json"
    if name != "adult" or file is None or not file.is_file():
        return None
    return tuple(tuple(features) for features in json.loads(file.read_text()))


def uniform(data: Coded, k: int, size: int, seed: int, *, most_cells: int | None = None) -> Sets:
    """Different sets of k features, all equally likely; with `most_cells`, of those that have no more joint values.

    Edge cases: where there are fewer sets than asked for, all of them, in random order.
    """
    every = [found for found in combinations(range(data.features), k) if _fits(data, found, most_cells)]
    order = np.random.default_rng([seed, k, size]).permutation(len(every))
    return tuple(every[i] for i in order[:size])


def workload(data: Coded, k: int, size: int, seed: int, *, most_cells: int | None = None) -> Sets:
    """The published workload, which is one and the same for every seed, or else a uniform one."""
    found = published(data.name, k, size)
    drawn = uniform(data, k, size, seed, most_cells=most_cells)
    return drawn if found is None or most_cells is not None else found


def queries(data: Coded, sets: Sets) -> int:
    """m, the number of queries: each joint value of each feature set is one."""
    return sum(data.cells(features) for features in sets)


def masses(distribution: str, features: int) -> Masses:
    """F_H: the chance of each feature, falling from the first feature to the last (RAP, Sec. 5.3.1).

    Zipf has exponent 1 and Geometric the parameter 1/4, cut at the last feature and normalised.
    """
    rank = np.arange(1, features + 1)
    shapes: Mapping[str, Masses] = {
        "uniform": np.ones(features),
        "zipf": 1 / rank**ZIPF_EXPONENT,
        "geometric": (1 - GEOMETRIC) ** (rank - 1),
    }
    found = shapes[distribution]
    return found / found.sum()


def drifted(historical: Masses, gamma: float, rng: np.random.Generator) -> Masses:
    """F_F: the masses of F_H in descending order of their features' keys (RAP, Def. 5.2).

    k_i = (1 - 2 gamma) (d - i)/(d - 1) + (1 - |1 - 2 gamma|) u_i, with u_i uniform on [0, 1].
    Guarantees: gamma 0 changes nothing, gamma 1 reverses the order.
    """
    d = len(historical)
    place = np.arange(1, d + 1)
    keys = (1 - 2 * gamma) * (d - place) / max(d - 1, 1) + (1 - abs(1 - 2 * gamma)) * rng.random(d)
    future = np.empty(d)
    future[np.argsort(-keys, kind="stable")] = np.sort(historical)[::-1]
    return future


def drawn(chances: Masses, k: int, size: int, rng: np.random.Generator) -> Sets:
    """Thresholds i.i.d. from T, with replacement; each is k features drawn from F one after the other without."""
    picked = (rng.choice(len(chances), k, replace=False, p=chances) for _ in range(size))
    return tuple(tuple(sorted(int(f) for f in features)) for features in picked)


def distinct(sets: Sequence[tuple[int, ...]]) -> Sets:
    """Each set once: what is drawn twice is still asked once."""
    return tuple(dict.fromkeys(sets))


def _fits(data: Coded, features: tuple[int, ...], most: int | None) -> bool:
    return most is None or data.cells(features) <= most
