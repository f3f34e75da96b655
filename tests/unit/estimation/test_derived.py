"""Intervals of derived outputs are the range of the formula over the bars: compared with corners and many points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.estimation.derived import (
    Box,
    Combination,
    Derived,
    Extreme,
    Form,
    Quantile,
    Ratio,
    Variance,
    VarianceOfCounts,
    single,
)

NUMBERS = st.floats(-100, 100, allow_nan=False)


def box(values: list[float], widths: list[float]) -> Box:
    middle, width = np.array([values]), np.array([widths])
    return Box(middle, middle - width, middle + width)


def at(form: Form, point: np.ndarray) -> float:
    """The form's value at numbers that are known exactly."""
    exact = np.array([point], float)
    return float(form.of(Box(exact, exact, exact)).value[0])


def points(one: Box) -> list[np.ndarray]:
    """All corners of a box with one line, and points inside."""
    ends = list(zip(one.low[0], one.high[0], strict=True))
    inside = np.random.default_rng(0).random((50, len(ends)))
    return [np.array(corner) for corner in itertools.product(*ends)] + [
        one.low[0] + share * (one.high[0] - one.low[0]) for share in inside
    ]


def check(found: Derived, form: Form, one: Box, *, tight: bool = True) -> None:
    reached = [at(form, point) for point in points(one)]
    assert found.low[0] <= found.value[0] <= found.high[0]
    assert found.low[0] <= min(reached) + 1e-9 * abs(min(reached))
    assert found.high[0] >= max(reached) - 1e-9 * abs(max(reached))
    if tight:
        assert math.isclose(found.low[0], min(reached), rel_tol=1e-6, abs_tol=1e-6)
        assert math.isclose(found.high[0], max(reached), rel_tol=1e-6, abs_tol=1e-6)


def ratio(above: tuple[float, ...], below: tuple[float, ...], least: tuple[float, ...], **ends: float) -> Ratio:
    columns, steps = tuple(range(len(above))), (1.0,) * len(above)
    return Ratio(
        above=Combination(columns=columns, weights=above, steps=steps),
        below=Combination(columns=columns, weights=below, steps=steps),
        least=least,
        **ends,
    )


def test_a_column_as_it_is() -> None:
    found = single(1).of(box([5.0, 7.0], [1.0, 2.0]))
    assert (found.value.tolist(), found.low.tolist(), found.high.tolist()) == ([7.0], [5.0], [9.0])


@settings(deadline=None)
@given(values=st.lists(NUMBERS, min_size=3, max_size=3), weights=st.tuples(NUMBERS, NUMBERS, NUMBERS), c=NUMBERS)
def test_combinations(values: list[float], weights: tuple[float, ...], c: float) -> None:
    form = Combination(columns=(0, 1, 2), weights=weights, constant=c, steps=(1.0,) * 3)
    one = box(values, [1.0, 2.0, 0.0])
    check(form.of(one), form, one)


@settings(deadline=None)
@given(
    values=st.tuples(NUMBERS, NUMBERS, st.floats(20, 200)),
    above=st.tuples(NUMBERS, NUMBERS, NUMBERS),
    below=st.tuples(st.just(0.0), st.floats(-0.05, 0.05), st.floats(0.5, 2)),
)
def test_ratios_over_what_is_not_0(
    values: tuple[float, ...], above: tuple[float, ...], below: tuple[float, ...]
) -> None:
    form = ratio(above, below, (-math.inf,) * 3)
    one = box(list(values), [3.0, 2.0, 4.0])
    check(form.of(one), form, one)


def test_a_ratio_over_a_small_count_is_all_that_it_can_be() -> None:
    """An average of values from 2 to 7 over a count of 3 give or take 10."""
    form = ratio((1.0, 0.0), (0.0, 1.0), (0.0, 1.0), lowest=2.0, highest=7.0)
    found = form.of(box([12.0, 3.0], [40.0, 10.0]))
    assert (found.low[0], found.high[0]) == (2.0, 7.0)
    assert 2 <= found.value[0] <= 7
    nothing = form.of(box([-5.0, -3.0], [1.0, 1.0]))
    assert np.isnan(nothing.value[0])
    assert (nothing.low[0], nothing.high[0]) == (2.0, 7.0)


def test_a_ratio_over_a_sum_that_may_be_0_has_no_ends() -> None:
    found = ratio((1.0, 0.0), (0.0, 1.0), (-math.inf, -math.inf)).of(box([12.0, 3.0], [1.0, 10.0]))
    assert (found.value[0], found.low[0], found.high[0]) == (0.0, -math.inf, math.inf)


def test_lines_do_not_disturb_each_other() -> None:
    form = ratio((1.0, 0.0), (0.0, 1.0), (-math.inf, -math.inf))
    values, widths = np.array([[12.0, 3.0], [12.0, 30.0], [0.0, 9.0]]), np.full((3, 2), 5.0)
    together = form.of(Box(values, values - widths, values + widths))
    for line in range(3):
        alone = form.of(box(values[line].tolist(), [5.0, 5.0]))
        assert np.array_equal([alone.low[0], alone.high[0]], [together.low[line], together.high[line]])


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("root", [False, True])
@settings(deadline=None, max_examples=50)
@given(rows=st.integers(5, 60), seed=st.integers(0, 1000), width=st.floats(0, 3))
def test_variances(rows: int, seed: int, width: float, sample: bool, root: bool) -> None:
    values = np.random.default_rng(seed).integers(-4, 5, rows)
    exact = float(values.var(ddof=int(sample)))
    form = Variance(
        columns=(0, 1, 2), units=(1.0, 1.0, 1.0), steps=(1.0, 4.0, 16.0), width=8.0, sample=sample, root=root
    )
    numbers = [float(rows), float(values.sum()), float(np.square(values).sum())]
    assert math.isclose(at(form, np.array(numbers)), math.sqrt(exact) if root else exact, rel_tol=1e-9, abs_tol=1e-9)
    one = box(numbers, [width, 4 * width, 16 * width])
    check(form.of(one), form, one, tight=False)


def test_a_variance_is_never_below_0_nor_beyond_its_range() -> None:
    form = Variance(columns=(0, 1, 2), units=(1.0,) * 3, steps=(1.0,) * 3, width=8.0, sample=False, root=False)
    found = form.of(box([2.0, 30.0, 5.0], [50.0, 50.0, 50.0]))
    assert (found.low[0], found.high[0]) == (0.0, pytest.approx(16.0))


POINTS = (1.0, 2.0, 5.0, 9.0)


@pytest.mark.parametrize("between", [False, True])
@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 12), min_size=4, max_size=4).filter(any),
    share=st.sampled_from(["0", "0.1", "0.25", "0.5", "0.9", "1"]),
    errors=st.lists(st.floats(-3, 3), min_size=4, max_size=4),
)
def test_quantiles(counts: list[int], share: str, errors: list[float], between: bool) -> None:
    sums = np.cumsum(counts).astype(float)
    form = Quantile(columns=(0, 1, 2, 3), points=POINTS, share=Decimal(share), between=between)
    method = "linear" if between else "inverted_cdf"
    exact = float(np.quantile(np.repeat(POINTS, counts), float(share), method=method))
    assert math.isclose(at(form, sums), exact, rel_tol=1e-9)
    found = form.of(box((sums + errors).tolist(), [3.0] * 4))
    assert found.low[0] <= found.value[0] <= found.high[0]
    assert found.low[0] <= exact <= found.high[0]


def test_a_quantile_of_nothing_is_anywhere() -> None:
    form = Quantile(columns=(0, 1, 2, 3), points=POINTS, share=Decimal("0.5"), between=True)
    for one in (box([0.0] * 4, [0.0] * 4), box([0.0] * 4, [5.0] * 4)):
        found = form.of(one)
        assert (found.low[0], found.high[0]) == (1.0, 9.0)


def _missed(form: VarianceOfCounts | Extreme, truth: Callable[[np.ndarray], float], shorter: float) -> int:
    """How often the truth is outside, of counts that are off by less than their bars; bars may be drawn too short."""
    generator, missed = np.random.default_rng(5), 0
    for _ in range(200):
        counts = generator.integers(0, 9, len(form.points)) * generator.integers(0, 2, len(form.points))
        if counts.sum() < 2:
            continue
        widths = generator.uniform(0.5, 1.5, len(counts))
        values = counts + generator.choice([-0.999, 0.999], len(counts)) * widths
        box = Box(values[None], (values - shorter * widths)[None], (values + shorter * widths)[None])
        derived = form.of(box)
        exact = truth(np.repeat(np.array(form.points), counts))
        missed += not derived.low[0] - 1e-9 <= exact <= derived.high[0] + 1e-9
    return missed


AT_EACH = (0, 1, 2, 3, 4)
NUMBERS = (1.0, 2.0, 4.0, 7.0, 9.0)


@pytest.mark.parametrize(
    ("form", "truth"),
    [
        (VarianceOfCounts(columns=AT_EACH, points=NUMBERS, sample=False, root=True), np.std),
        (VarianceOfCounts(columns=AT_EACH, points=NUMBERS, sample=True, root=False), lambda rows: np.var(rows, ddof=1)),
        (Extreme(columns=AT_EACH, points=NUMBERS, most=False, apart=True), np.min),
        (Extreme(columns=AT_EACH, points=NUMBERS[::-1], most=True, apart=True), np.max),
    ],
)
def test_what_follows_from_the_rows_at_each_value(
    form: VarianceOfCounts | Extreme, truth: Callable[[np.ndarray], float]
) -> None:
    assert _missed(form, truth, 1.0) == 0
    assert _missed(form, truth, 0.2) > 5
    counts = np.array([[3.0, 0.0, 2.0, 0.0, 1.0]])
    exact = form.of(Box(counts, counts, counts))
    rows = np.repeat(np.array(form.points), counts[0].astype(int))
    assert exact.value[0] == pytest.approx(float(truth(rows)))
    assert exact.low[0] == pytest.approx(exact.high[0])
