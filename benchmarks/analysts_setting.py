"""Who asks what in the experiments of Pujol et al.: ages in 86 cells, workloads, and the order in which they arrive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.cachedp_data import adult_ages
from benchmarks.systems.collective import Questions, Reals
from bursar.strategies.hierarchical import hierarchical, identity

Integers = NDArray[np.int64]

CELLS = 86
"""Ages from 0 to 85; older people are counted as 85."""

ALPHA = 0.01
GAMMA = 0.25
PEOPLE = 10
ASKED = 40
"""Questions per analyst with ten of them."""

PAIR_ASKED = 220
"""Questions per analyst with two of them: together more than the Laplace mechanism can pay for."""

RACES = 6


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """The data, and what an error of alpha means for them."""

    ages: Reals
    real: bool

    @property
    def largest(self) -> float:
        return ALPHA * float(self.ages.sum())

    @property
    def each(self) -> float:
        """lambda: what one question costs whose root mean square error, sqrt(2)/lambda, is exactly alpha n."""
        return math.sqrt(2) / self.largest


def people(rows: int | None = None) -> People:
    """Adult's ages; scaled to so many people where a number is given."""
    data = adult_ages()
    ages = np.bincount(np.clip(data.frame["age"].to_numpy(), 0, CELLS - 1), minlength=CELLS).astype(float)
    return People(ages=ages if rows is None else ages * (rows / ages.sum()), real=data.real)


def race_style(cells: int) -> Integers:
    """Questions as census tables by race ask them: cell number = the set of races in binary, as far as it goes.

    Each race alone or in combination, each number of races, each pair and triple: both, or any of them.
    """
    has = (np.arange(cells)[None, :] >> np.arange(RACES)[:, None]) & 1
    numbers = has.sum(axis=0)
    rows = [*has, *(numbers == count for count in range(RACES + 1))]
    for size in (2, 3):
        for chosen in combinations(range(RACES), size):
            rows += [has[list(chosen)].all(axis=0), has[list(chosen)].any(axis=0)]
    return np.array(rows, np.int64)


def workloads(cells: int) -> dict[str, Integers]:
    return {
        "identity": identity(cells).astype(np.int64),
        "prefix": np.tri(cells, dtype=np.int64),
        "H2": hierarchical(cells).astype(np.int64),
        "race": race_style(cells),
    }


def declared() -> Reals:
    """What the data owner expects to be asked: all of the workloads on the whole domain."""
    return np.concatenate(list(workloads(CELLS).values())).astype(float)


def ten_analysts(seed: int, chance: float) -> Questions:
    """Each has a workload on the whole domain or one half of it; the first asks with a probability of its own."""
    rng = np.random.default_rng([seed, 10])
    kinds, half = workloads(CELLS), CELLS // 2
    wanted = []
    for _ in range(PEOPLE):
        rows = kinds[str(rng.choice(list(kinds)))]
        part = int(rng.integers(3))
        if part:
            mask = (np.arange(CELLS) < half) == (part == 1)
            rows = np.unique(rows * mask, axis=0)
        rows = rows[rows.any(axis=1)]
        wanted.append(rows[rng.choice(len(rows), ASKED, replace=len(rows) < ASKED)])
    others = (1 - chance) / (PEOPLE - 1)
    return merged(wanted, [chance, *[others] * (PEOPLE - 1)], rng)


def two_analysts(seed: int, chance: float) -> Questions:
    """Sec. 4: the same points and ranges on disjoint halves; Alice's come with probability p."""
    rng = np.random.default_rng([seed, 2])
    half = CELLS // 2
    ends = np.sort(rng.integers(0, half, (PAIR_ASKED, 2)), axis=1)
    ends[: PAIR_ASKED // 2, 1] = ends[: PAIR_ASKED // 2, 0]
    rng.shuffle(ends)
    cells = np.arange(CELLS)
    rows = ((ends[:, :1] <= cells) & (cells <= ends[:, 1:])).astype(np.int64)
    return merged([rows, np.roll(rows, half, axis=1)], [chance, 1 - chance], rng)


def merged(wanted: Sequence[Integers], chances: Sequence[float], rng: np.random.Generator) -> Questions:
    """One sequence from all: at each step somebody who has more to ask is drawn by the chances."""
    left = np.array([len(rows) for rows in wanted])
    weights, analysts = np.maximum(chances, 1e-12), []
    while left.any():
        likely = weights * (left > 0)
        who = int(rng.choice(len(wanted), p=likely / likely.sum()))
        analysts.append(who)
        left[who] -= 1
    queries, numbers = np.unique(np.concatenate(wanted), axis=0, return_inverse=True)
    own = np.split(numbers.ravel(), np.cumsum([len(rows) for rows in wanted])[:-1])
    turns = [iter(each.tolist()) for each in own]
    asked = np.array([next(turns[who]) for who in analysts])
    return Questions(queries=queries, asked=asked, analysts=np.array(analysts), people=len(wanted))
