"""All r-of-k thresholds over sets of columns, as one workload: rows and labels stay implicit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from bursar.compile.open_columns import closed
from bursar.compile.workload import Labels, Workload
from bursar.core.domain import Domain
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps, Thresholds
from bursar.core.source.source import MOST_ROWS
from bursar.errors import QueryError

Features = Sequence[str] | Sequence[Sequence[str]]
"""Columns, of which all sets of k are meant, or these sets themselves."""


def thresholds(
    domain: Domain, *, k: int, r: int, features: Features | None = None, sealed: int | None = None
) -> Workload:
    """For each set of k columns and each choice of a value for each: how many rows have at least r of these values.

    Guarantees: the lines are all choices of values that the domain has, NULL and values outside of the declared ones
    among them where a column keeps these apart; set by set, the last column running fastest.
    Edge cases: open and unknown columns, a set that is named twice, and more than 2^22 lines are refused, from public
    sizes.
    """
    domain = closed(domain, "thresholds are", features)
    sets = _sets(domain, k, features)
    if not 1 <= r <= k:
        raise QueryError(f"a threshold asks for at least 1 and at most all of its columns, not for {r} of {k}")
    if sealed is not None and sealed < domain.partitions:
        raise QueryError(f"thresholds are about all data, and not all partitions of {domain.partition} are sealed")
    lines = sum(domain.cells(names) for names in sets)
    if lines > MOST_ROWS:
        raise QueryError(
            f"these are {lines} thresholds; {MOST_ROWS} are possible at once: name fewer columns in features, or some "
            "of their sets"
        )
    parts = tuple(_part(domain, names, r) for names in sets)
    whole: LinearMap = parts[0] if len(parts) == 1 else Stack(parts)
    names = dict.fromkeys(name for names_of_set in sets for name in names_of_set)
    values = tuple((name, tuple(map(domain[name].label, range(domain[name].size)))) for name in names)
    return Workload(
        map=whole,
        keys=sets[0] if len(sets) == 1 else ("columns", *(f"value {place}" for place in range(1, k + 1))),
        labels=Labels(sets, values),
        outputs=("count",),
        index=np.arange(lines)[:, None],
    )


def written(k: int, r: int, features: Features | None) -> str:
    """The question as the log has it."""
    return (
        f"thresholds(k={k}, r={r}, features={None if features is None else [_plain(feature) for feature in features]})"
    )


def _plain(feature: str | Sequence[str]) -> str | list[str]:
    return feature if isinstance(feature, str) else list(feature)


def _sets(domain: Domain, k: int, features: Features | None) -> tuple[tuple[str, ...], ...]:
    listed = domain.names if features is None else tuple(features)
    alone = [name for name in listed if isinstance(name, str)]
    if k < 1 or (alone and len(alone) < len(listed)):
        raise QueryError("features are columns, or sets of k columns, and k is at least 1")
    sets: Iterable[tuple[str, ...]] = combinations(alone, k) if alone else (tuple(columns) for columns in listed)
    chosen = tuple(sets)
    if not chosen:
        raise QueryError(f"there are no {k} columns to choose")
    for columns in chosen:
        strange = [name for name in columns if name not in domain]
        if strange:
            raise QueryError(f"there is no column {strange[0]}")
        if len(columns) != k or len(set(columns)) != k:
            raise QueryError(f"each set of features has {k} different columns, as k says")
    if len({frozenset(columns) for columns in chosen}) < len(chosen):
        raise QueryError("a set of features is named twice")
    return chosen


def _part(domain: Domain, names: tuple[str, ...], r: int) -> Product | Thresholds:
    """A marginal is a product, which other questions can be answered from."""
    sizes = domain.sizes(names)
    if r < len(names):
        return Thresholds(names, sizes, r)
    return Product(tuple(Mask((name,), (size,), Steps.identity(size)) for name, size in zip(names, sizes, strict=True)))
