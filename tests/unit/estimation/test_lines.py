"""Measured transforms answer what their cells determine, as least squares would, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Versioned
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.estimation.estimate import NearlyNormal
from bursar.estimation.sine_columns import SineColumn, answers, rows_on, within
from bursar.strategies.ranges import RangeFamily, sine_strategy
from bursar.views.measurements import Measurements
from harness.maps import domain_of
from harness.plans import matrix

FIRST, CELLS, SIZE = 3, 37, 45
GAUSSIAN = Noise(kind=NoiseKind.GAUSSIAN, scale=2.0**27)
NUMBERS = np.random.default_rng(1)


def on(column: str, steps: Steps) -> Product:
    return Product((Mask((column,), (steps.size,), steps),))


def line(family: RangeFamily, noise: Noise = GAUSSIAN) -> SineColumn | None:
    transform = sine_strategy(family, "x", cells=CELLS, max_rows=10**6, first=FIRST, size=SIZE).transform
    values = NUMBERS.integers(-(10**9), 10**9, transform.rows)
    event = Measured(strategy=transform, noise=noise, version=1)
    return SineColumn.of(
        Record(position=1, at=0.0, analyst="ana", question="", proposer="", run=0, event=event, values=values)
    )


INSIDE = np.zeros((4, SIZE), np.int64)
INSIDE[0, FIRST : FIRST + CELLS] = 1
INSIDE[1, 5:9] = 1
INSIDE[2, 10:30] = np.arange(20) % 5 - 2
QUERIES: dict[str, LinearMap] = {
    "one product": on("x", Steps.dense(INSIDE)),
    "several": Stack(tuple(on("x", Steps.dense(row)) for row in INSIDE)),
}


@pytest.mark.parametrize("family", RangeFamily)
@pytest.mark.parametrize("queries", QUERIES.values(), ids=QUERIES)
def test_answers_are_those_of_least_squares(family: RangeFamily, queries: LinearMap) -> None:
    measured = line(family)
    assert measured is not None
    estimate = measured.answer(queries)
    assert estimate is not None
    A = np.asarray(matrix(measured.transform, domain_of(x=SIZE)), float)[:, FIRST : FIRST + CELLS]
    weights = INSIDE[:, FIRST : FIRST + CELLS] @ np.linalg.pinv(A)
    expected = weights @ measured.values
    assert estimate.values == pytest.approx(expected, rel=1e-5, abs=1e-5 * np.abs(expected).max())
    assert isinstance(estimate.law, NearlyNormal)
    assert estimate.law.lengths == pytest.approx(np.sqrt(np.square(weights).sum(axis=1)), rel=1e-5, abs=1e-15)
    assert estimate.law.mean_square() == pytest.approx(
        np.square(estimate.law.lengths).mean() * (GAUSSIAN.scale**2 + estimate.law.off**2)
    )


def test_cells_and_columns_that_take_no_part_are_not_answered() -> None:
    measured = line(RangeFamily.RANGES)
    assert measured is not None
    for low, high in ((FIRST - 1, 20), (10, FIRST + CELLS + 1), (SIZE - 1, SIZE), (0, SIZE), (10, SIZE)):
        assert measured.answer(on("x", Steps.ranges([low], [high], SIZE))) is None
    assert measured.answer(on("y", Steps.ranges([5], [9], SIZE))) is None
    assert measured.answer(Product(())) is None  # all rows, also those in other cells
    two = Product((Mask(("x",), (SIZE,), Steps.ranges([5], [9], SIZE)), Mask(("y",), (2,), Steps.total(2))))
    assert measured.answer(two) is None
    mixed = Stack((on("x", Steps.ranges([5], [9], SIZE)), on("x", Steps.total(SIZE))))
    assert measured.answer(mixed) is None


def test_the_number_of_rows_follows_from_a_whole_column() -> None:
    transform = sine_strategy(RangeFamily.RANGES, "x", cells=SIZE, max_rows=10**6).transform
    values = NUMBERS.integers(0, 10**9, transform.rows)
    whole = SineColumn(transform=transform, noise=GAUSSIAN, values=values)
    (total,) = answers({"x": {transform.digest: whole}}, Product(()))
    (spelt,) = answers({"x": {transform.digest: whole}}, on("x", Steps.total(SIZE)))
    assert total.values == spelt.values


def test_lines_of_other_columns_are_not_asked() -> None:
    measured = line(RangeFamily.RANGES)
    assert measured is not None
    assert list(answers({"x": {"": measured}}, on("y", Steps.total(SIZE)))) == []
    assert list(answers({"x": {"": measured}}, Product(tuple(_total(name) for name in "xy")))) == []


def _total(name: str) -> Mask:
    return Mask((name,), (SIZE,), Steps.total(SIZE))


def test_other_noise_and_other_measurements_are_no_lines() -> None:
    assert line(RangeFamily.RANGES, Noise(kind=NoiseKind.LAPLACE, scale=2.0**20)) is None
    event = Measured(strategy=on("x", Steps.total(SIZE)), noise=GAUSSIAN, version=1)
    assert (
        SineColumn.of(
            Record(
                position=1, at=0.0, analyst="ana", question="", proposer="", run=0, event=event, values=np.zeros(1, int)
            )
        )
        is None
    )


def test_rows_keep_their_order_and_zeros_are_rows() -> None:
    rows = rows_on(QUERIES["several"], "x", SIZE)
    assert rows is not None
    assert np.array_equal(rows.at_cells(np.arange(SIZE)), INSIDE)
    measured = line(RangeFamily.RANGES)
    assert measured is not None
    own = within(rows, measured.transform)
    assert own is not None
    assert np.array_equal(own.at_cells(np.arange(CELLS)), INSIDE[:, FIRST : FIRST + CELLS])
    assert measured.estimates(own)[3] == 0


def test_the_log_keeps_the_finest_of_each_transform_until_the_data_change() -> None:
    known = Measurements(domain_of(x=SIZE))
    transform = sine_strategy(RangeFamily.RANGES, "x", cells=SIZE, max_rows=10**6).transform

    def record(position: int, scale: float) -> Record:
        noise = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
        event = Measured(strategy=transform, noise=noise, version=1)
        values = np.full(transform.rows, position)
        return Record(
            position=position, at=0.0, analyst="ana", question="", proposer="", run=0, event=event, values=values
        )

    def change(position: int, version: int) -> Record:
        event = Versioned(version=version, same_rows=False)
        return Record(
            position=position,
            at=0.0,
            analyst="ana",
            question="",
            proposer="",
            run=0,
            event=event,
            values=np.zeros(0, int),
        )

    known.advance([change(1, 1), record(2, 2.0**30), record(3, 2.0**28), record(4, 2.0**29)])
    assert [line.values[0] for line in known.lines["x"].values()] == [3]
    known.advance([change(5, 2)])
    assert known.lines == {}
