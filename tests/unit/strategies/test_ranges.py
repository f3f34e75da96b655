"""The sine strategies: against dense least squares, the singular value bound, and the kernel's own noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Mode, Noise, NoiseKind
from bursar.core.ledger import Purpose
from bursar.core.queries import Steps
from bursar.errors import QueryError
from bursar.papers.eigen_design import workloads
from bursar.strategies import ranges
from bursar.strategies.measure import svd_bound, trace_error
from bursar.strategies.ranges import RangeFamily, SineStrategy, sine_strategy
from harness.cases import few
from harness.maps import Table, domain_of
from harness.plans import kernel_over, matrix, of_variance_one
from harness.small import TableSource

GRAMS = {RangeFamily.RANGES: workloads.all_ranges, RangeFamily.PREFIXES: workloads.prefix}
SIZES = [1, 2, 3, 16, 37, 65, 75, 130]  # among them some that need positions without a cell


def made(family: RangeFamily, cells: int) -> SineStrategy:
    return sine_strategy(family, "x", cells=cells, max_rows=10**6)


def rows(strategy: SineStrategy) -> np.ndarray:
    """The exact map, before rounding."""
    t = strategy.transform
    positions = t.start + np.arange(len(t.cell_weights))
    sines = np.sin(np.pi * np.outer(t.frequencies, positions) / t.period)
    return t.row_weights[t.frequencies - 1][:, None] * sines * t.cell_weights * 2.0**-t.shift


@pytest.mark.parametrize("family", RangeFamily)
@pytest.mark.parametrize("cells", SIZES)
def test_reconstruction_and_variances_are_those_of_least_squares(family: RangeFamily, cells: int) -> None:
    strategy = made(family, cells)
    A = rows(strategy)
    values = np.random.default_rng(cells).normal(0, 1e6, len(A))
    expected = np.linalg.lstsq(A, values, rcond=None)[0]
    assert np.allclose(strategy.reconstruct(values), expected, atol=1e-9 * np.abs(expected).max())
    covariance = np.linalg.inv(A.T @ A)
    for low, high in ((0, cells), (cells // 3, cells // 2 + 1), (cells - 1, cells)):
        query = np.zeros(cells)
        query[low:high] = 1
        assert strategy.variances(Steps.ranges([low], [high], cells))[0] == pytest.approx(
            query @ covariance @ query, rel=1e-9
        )


@pytest.mark.parametrize("family", RangeFamily)
@pytest.mark.parametrize("cells", SIZES)
def test_the_error_over_the_family_and_its_bound_are_the_dense_ones(family: RangeFamily, cells: int) -> None:
    strategy = made(family, cells)
    V, A = GRAMS[family](cells), rows(strategy)
    assert strategy.total_variance == pytest.approx(trace_error(V, A.T @ A), rel=1e-8)
    assert math.sqrt(strategy.least_variance) == pytest.approx(svd_bound(V), rel=1e-9)


@pytest.mark.parametrize("family", RangeFamily)
def test_all_columns_have_one_length_and_rounding_costs_a_millionth(family: RangeFamily) -> None:
    strategy = made(family, 130)
    lengths = np.sqrt(np.square(rows(strategy)).sum(axis=0))
    assert lengths.min() > lengths.max() * (1 - 1e-6)
    assert lengths.max() < strategy.sensitivity < lengths.max() * (1 + 1e-6)


@pytest.mark.parametrize(
    ("family", "cells", "ratio"),
    [
        (RangeFamily.RANGES, 2048, 1.0057),
        (RangeFamily.RANGES, 64, 1.0111),
        (RangeFamily.PREFIXES, 1024, 1.0175),
        (RangeFamily.PREFIXES, 64, 1.0306),
    ],
)
def test_how_far_from_the_bound(family: RangeFamily, cells: int, ratio: float) -> None:
    assert 1 < made(family, cells).ratio <= ratio


def test_identity_noise_would_be_far_from_the_bound() -> None:
    """What the figure above is worth: the histogram's error over the bound at 2048 cells."""
    V = workloads.all_ranges(2048)
    assert math.sqrt(np.trace(V) / made(RangeFamily.RANGES, 2048).least_variance) > 5


def test_a_part_of_a_column() -> None:
    strategy = sine_strategy(RangeFamily.RANGES, "x", cells=20, max_rows=10**6, first=3, size=25)
    domain = domain_of(x=25)
    counts = np.random.default_rng(2).integers(0, 1000, 25)
    answers = strategy.transform.apply(Table(domain, counts))
    assert np.allclose(strategy.reconstruct(answers), counts[3:23], atol=1e-4)
    assert not matrix(strategy.transform, domain)[:, [0, 1, 2, 23, 24]].any()


@pytest.mark.parametrize("family", few(RangeFamily))
def test_errors_through_the_kernel_are_as_predicted(family: RangeFamily) -> None:
    """Whitened by the dense covariance, all cells' errors together; a scale off by 15 % is found (power > .99)."""
    cells = 2000
    strategy, domain = made(family, cells), domain_of(x=cells)
    counts = np.random.default_rng(3).integers(0, 100, cells)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=strategy.sensitivity * 5)
    kernel = kernel_over(domain, TableSource(counts, domain), Mode.CONCENTRATED)
    record, charge = kernel.measure(
        strategy.transform, noise, analyst="ana", purpose=Purpose("", "test"), at_most=2**60
    )
    assert charge.total / 2**50 == pytest.approx(1 / 50, rel=1e-5)
    errors = strategy.reconstruct(record.values) - counts
    scores = rows(strategy) @ errors / noise.scale  # A (x^ - x) is the noise, where no position is empty
    if len(scores) > cells:  # else its part in the space of the columns
        scores = np.linalg.qr(rows(strategy))[0].T @ scores
    assert of_variance_one(scores)
    assert not of_variance_one(scores * 1.15)
    assert not of_variance_one(scores / 1.15)
    spread = strategy.variances(Steps.ranges([100], [cells - 7], cells))[0] ** 0.5 * noise.scale
    assert abs(errors[100 : cells - 7].sum()) < 5.5 * spread


@pytest.mark.soak
def test_a_million_cells() -> None:
    strategy = made(RangeFamily.RANGES, 2**20)
    counts = np.random.default_rng(4).poisson(5, 2**20)
    answers = strategy.transform.apply(Table(domain_of(x=2**20), counts))
    assert np.abs(strategy.reconstruct(answers) - counts).max() < 1e-3
    assert strategy.ratio < 1.002


@pytest.mark.parametrize(
    ("family", "cells"), [(RangeFamily.RANGES, 0), (RangeFamily.RANGES, 2**23), (RangeFamily.PREFIXES, 2**22)]
)
def test_too_long_columns_are_refused(family: RangeFamily, cells: int) -> None:
    with pytest.raises(QueryError):
        made(family, cells)


def test_queries_over_other_cells_are_refused() -> None:
    with pytest.raises(QueryError):
        made(RangeFamily.RANGES, 10).variances(Steps.ranges([0], [11], 11))


@pytest.mark.parametrize("family", RangeFamily)
def test_many_queries_at_once_have_the_variances_of_each(family: RangeFamily, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the sines at empty positions are kept or not, and however many queries are transformed together."""
    queries = Steps.dense(np.random.default_rng(5).integers(-2, 3, (7, 75)))
    expected = made(family, 75).variances(queries)
    covariance = np.linalg.inv(rows(made(family, 75)).T @ rows(made(family, 75)))
    matrix_of = queries.at_cells(np.arange(75)).astype(float)
    assert expected == pytest.approx(np.einsum("ij,jk,ik->i", matrix_of, covariance, matrix_of), rel=1e-9)
    monkeypatch.setattr(ranges, "REMEMBERED_SINES", 0)
    monkeypatch.setattr(ranges, "NUMBERS_AT_ONCE", 200)
    assert made(family, 75).variances(queries) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("family", RangeFamily)
@pytest.mark.parametrize("cells", SIZES)
def test_a_strategy_is_known_by_its_transform(family: RangeFamily, cells: int) -> None:
    strategy = made(family, cells)
    found = SineStrategy.of(strategy.transform)
    assert found is not None
    assert found.family is family or cells == 1  # one cell is a range and a prefix sum


def test_other_transforms_belong_to_no_strategy() -> None:
    transform = made(RangeFamily.RANGES, 16).transform
    assert SineStrategy.of(replace(transform, cell_weights=np.arange(16))) is None  # a cell that is not looked at
    assert SineStrategy.of(replace(transform, row_weights=np.arange(16))) is None  # a frequency that is missing
    prefixes = made(RangeFamily.PREFIXES, 16).transform
    assert SineStrategy.of(replace(prefixes, start=prefixes.start - 1)) is None  # mirror images of each other


def test_no_answer_is_too_large_for_the_kernel() -> None:
    for cells in (512, 1000, 2**16, 10**6):
        assert sine_strategy(RangeFamily.RANGES, "x", cells=cells, max_rows=2**36).transform.largest() * 2**36 <= 2**61
