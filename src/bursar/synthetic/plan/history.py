"""Partial knowledge: what was asked before says what will be asked, where the future is like the past (RAP, Sec. 5).

A history is a list of column sets, one for each question, in the order in which they were asked. All functions here
are about names and numbers of questions, never about data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from statistics import fmean, stdev

import numpy as np
from numpy.random import Generator

from bursar.arrays import Reals
from bursar.errors import QueryError

Names = tuple[str, ...]

HELD_OUT = 0.2
"""The last part of a history, which the workload is not drawn from: it stands for the future."""

FEWEST = 5
"""A history of fewer questions has no part to spare."""

NORMAL = 1.959964
"""Half the width of a 95 % interval, in standard errors."""

MOST_LISTED = 200_000
"""Most column sets that are looked through for ones that were never asked about."""


def masses(history: Iterable[Names], names: Sequence[str]) -> Reals:
    """How often each column was asked about, as shares that sum to 1; equal shares where nothing was asked."""
    counted = Counter(name for columns in history for name in columns)
    counts = np.array([counted[name] for name in names], np.float64)
    total = float(counts.sum())
    return counts / total if total > 0 else np.full(len(names), 1 / max(len(names), 1))


def keys(features: int, gamma: float, rng: Generator) -> Reals:
    """k_i = (1 - 2 gamma) (d - i)/(d - 1) + (1 - |1 - 2 gamma|) u_i, with u_i uniform on [0, 1] (RAP, Def. 5.2)."""
    if not 0 <= gamma <= 1:
        raise QueryError("a drift lies between 0, which changes nothing, and 1, which turns all around")
    place = np.arange(1, features + 1)
    return (1 - 2 * gamma) * (features - place) / max(features - 1, 1) + (1 - abs(1 - 2 * gamma)) * rng.random(features)


def drifted(historical: Reals, gamma: float, rng: Generator) -> Reals:
    """F_F: the masses of F_H, the largest for the feature with the largest key (RAP, Def. 5.2).

    Features are numbered by falling mass. Guarantees: gamma 0 changes nothing, gamma 1 reverses the order.
    """
    future = np.empty(len(historical))
    future[np.argsort(-keys(len(historical), gamma, rng), kind="stable")] = np.sort(historical)[::-1]
    return future


def draws(chances: Reals, *, together: int, count: int, rng: Generator) -> list[tuple[int, ...]]:
    """Feature sets drawn independently, with replacement; each has `together` features, drawn without.

    Edge cases: a feature without mass is never drawn, so there must be enough that have some.
    """
    if np.count_nonzero(chances) < together:
        raise QueryError(f"{together} features are to be drawn, and fewer have any mass")
    picked = (rng.choice(len(chances), together, replace=False, p=chances) for _ in range(count))
    return [tuple(sorted(int(feature) for feature in features)) for features in picked]


@dataclass(frozen=True, kw_only=True)
class Split:
    """A history in two: what a workload is drawn from, and later questions that it is judged by."""

    past: tuple[Names, ...]
    future: tuple[Names, ...]


def split(history: Sequence[Names], *, held_out: float = HELD_OUT) -> Split:
    """The last part of a history stands for the future; of a short one nothing does."""
    later = round(held_out * len(history)) if len(history) >= FEWEST else 0
    return Split(past=tuple(history[: len(history) - later]), future=tuple(history[len(history) - later :]))


def weights(past: Iterable[Names]) -> dict[Names, float]:
    """How often each column set was asked about, the most often first; sets asked equally often in their order."""
    return {columns: float(count) for columns, count in Counter(past).most_common()}


def augmented(by_set: Mapping[Names, float], names: Sequence[str], share: float) -> dict[Names, float]:
    """The weighted sets with others beside them that were never asked about and share `share` of the whole weight.

    They are as many as this share of the sets, at least one, and of the sizes of those asked. Which ones they are is as
    good as random and the same every time, so that an interrupted run goes on with the same workload.
    Edge cases: without a history, or where every set was asked about, nothing is added.
    """
    if not 0 <= share < 1:
        raise QueryError("questions not seen before get a share of at least 0 and less than 1")
    sizes = Counter(len(columns) for columns in by_set)
    if share == 0 or not by_set:
        return dict(by_set)
    added, unseen = math.ceil(share / (1 - share) * len(by_set)), []
    for size, count in sorted(sizes.items()):
        many = max(1, round(added * count / len(by_set)))
        if math.comb(len(names), size) > MOST_LISTED:
            names_here = sorted(names, key=_shuffled)[: max(size + 1, 2 * size)]  # enough sets, and as good as random
        else:
            names_here = list(names)
        every = combinations(sorted(names_here, key=list(names).index), size)
        others = [columns for columns in every if columns not in by_set]
        unseen += sorted(others, key=lambda columns: _shuffled("\0".join(columns)))[:many]
    unseen = unseen[:added]
    each = share / (1 - share) * sum(by_set.values()) / max(len(unseen), 1)
    return {**by_set, **dict.fromkeys(unseen, each)}


def _shuffled(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


@dataclass(frozen=True, kw_only=True)
class FutureError:
    """The mean over future questions of the largest error in each, and half the width of its 95 % interval.

    `questions` are those that could be judged, `unknown` those about columns that nothing was measured for. All is None
    where there is nothing to judge, the half width also where there is one question only.
    """

    mean: float | None
    half: float | None
    questions: int
    unknown: int


def future_error(errors: Iterable[float | None]) -> FutureError:
    """From the largest error of each future question; None stands for one that cannot be judged."""
    listed = list(errors)
    judged = [error for error in listed if error is not None]
    half = NORMAL * stdev(judged) / math.sqrt(len(judged)) if len(judged) > 1 else None
    mean = fmean(judged) if judged else None
    return FutureError(mean=mean, half=half, questions=len(judged), unknown=len(listed) - len(judged))
