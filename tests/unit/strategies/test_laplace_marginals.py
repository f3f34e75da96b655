"""Tables with Laplace noise: least squares over all of them, against dense linear algebra and simpler plans."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bursar.strategies.marginals import MeasuredTables, Set, laplace_marginals
from harness.cases import few


def random_union(seed: int) -> tuple[tuple[int, ...], tuple[Set, ...]]:
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(3, 6))
    sizes = tuple(rng.integers(2, 6, columns).tolist())
    sets = [
        tuple(sorted(rng.choice(columns, int(rng.integers(1, 4)), replace=False).tolist()))
        for _ in range(int(rng.integers(3, 9)))
    ]
    return sizes, tuple(dict.fromkeys(sets))


def cells_of(sizes: tuple[int, ...], members: Set) -> int:
    return math.prod(sizes[i] for i in members)


def read_from_one_table(sizes: tuple[int, ...], sets: tuple[Set, ...]) -> float:
    """The sum of variances where every marginal is read from one table, all of them or the largest ones."""

    def total(tables: tuple[Set, ...]) -> float:
        answers = np.zeros(len(tables))
        for A in sets:
            table = min((B for B in tables if set(A) <= set(B)), key=lambda B: (B != A, cells_of(sizes, B)))
            answers[tables.index(table)] += cells_of(sizes, table)
        return float(np.cbrt(answers).sum() ** 3)

    largest = tuple(A for A in sets if not any(set(A) < set(B) for B in sets))
    return min(total(sets), total(largest))


def dense(sizes: tuple[int, ...], members: Set) -> np.ndarray:
    result = np.ones((1, 1))
    for i, size in enumerate(sizes):
        result = np.kron(result, np.eye(size) if i in members else np.ones((1, size)))
    return result


@pytest.mark.parametrize("seed", few(range(6), 3))
def test_estimates_and_variances_are_those_of_least_squares(seed: int) -> None:
    sizes, sets = random_union(seed)
    made = laplace_marginals(sizes, sets)
    assert (1 / made.scales).sum() == pytest.approx(1)
    rows = np.concatenate([dense(sizes, table) for table in made.tables])
    noise = np.concatenate([np.full(cells_of(sizes, t), b) for t, b in zip(made.tables, made.scales, strict=True)])
    assert made.scales.max() < 1e4 * made.scales.min()
    covariance = np.linalg.pinv((rows / noise[:, None] ** 2).T @ rows, rcond=1e-12, hermitian=True)
    values = np.random.default_rng(seed).normal(size=len(rows)) * 100
    best = np.linalg.lstsq(rows / noise[:, None], values / noise, rcond=1e-12)[0]
    ends = np.cumsum([cells_of(sizes, table) for table in made.tables])[:-1]
    parts = made.parts(np.split(values, ends))
    for number, A in enumerate(sets):
        queries = dense(sizes, A)
        np.testing.assert_allclose(made.estimate(number, parts), queries @ best, atol=1e-6)
        np.testing.assert_allclose((queries @ covariance * queries).sum(axis=1), made.variance(number), rtol=1e-6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(20))
def test_never_worse_than_one_table_each_or_than_counting_every_cell(seed: int) -> None:
    sizes, sets = random_union(seed)
    total = laplace_marginals(sizes, sets).total()
    every = cells_of(sizes, tuple({i for A in sets for i in A}))
    assert total <= (1 + 1e-9) * min(read_from_one_table(sizes, sets), every * len(sets))


def test_overlapping_marginals_of_few_cells_are_read_from_all_cells() -> None:
    """Every subset of four columns with two values: reading each from a table of its own is worse than counting all."""
    sizes, sets = (2,) * 4, tuple(A for n in (2, 3) for A in itertools.combinations(range(4), n))
    every = 16 * len(sets)
    assert read_from_one_table(sizes, sets) > 1.2 * every
    assert laplace_marginals(sizes, sets).total() <= (1 + 1e-9) * every


def test_a_table_that_nobody_asked_for_is_measured_where_that_is_better() -> None:
    sizes, sets = (2, 2, 2), ((0, 1), (1, 2), (0, 2))
    made = laplace_marginals(sizes, sets)
    assert made.tables == ((0, 1, 2),)
    asked = MeasuredTables(sizes=sizes, marginals=sets, tables=sets, scales=np.full(3, 3.0))
    assert made.total() < asked.total() < 3 * 4 * 9
