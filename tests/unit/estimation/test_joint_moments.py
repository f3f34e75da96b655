"""Ends of variances and quantiles from the joint law, against a search over all that the tests behind them keep."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.derived import Box, Quantile, Variance
from bursar.estimation.estimate import IndependentRows
from bursar.estimation.joint_quantiles import quantile_ends
from bursar.estimation.joint_ratios import JointRows
from bursar.estimation.joint_variances import SHARE_OF_MEANS, variance_ends
from bursar.tails import half_widths

BETA = 0.05
NOISE = Noise(kind=NoiseKind.LAPLACE, scale=20.0)
MOMENTS = np.array([[1000.0, 300.0, 9000.0]])  # count, sum, sum of squares


def rows_of(count: int) -> JointRows:
    return JointRows(IndependentRows(noise=NOISE, rows=count), np.arange(count)[None], np.ones(count + 1))


def variance(*, sample: bool = False, root: bool = False) -> Variance:
    return Variance(columns=(0, 1, 2), units=(1.0, 1.0, 1.0), steps=(1.0,) * 3, width=20.0, sample=sample, root=root)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("sample", [False, True])
def test_every_variance_that_the_test_keeps_is_within(sample: bool) -> None:
    (low,), (high,) = variance_ends(variance(sample=sample), MOMENTS, rows_of(3), BETA)
    n, s, q = MOMENTS[0]
    kept = []
    for v in np.linspace(low - 1.0, high + 1.0, 60).tolist():
        m = s / n
        (reach,) = half_widths([[1.0, 2 * m, m * m - v]], [NOISE] * 3, (1 - SHARE_OF_MEANS) * BETA)
        if abs(q - 2 * m * s + m * m * n - v * (n - sample)) <= reach:
            kept.append(v)
    assert low <= min(kept)
    assert max(kept) <= high
    assert max(kept) - min(kept) > 0.7 * (high - low)  # and little else


def test_they_are_shorter_than_what_bars_allow() -> None:
    form, law = variance(root=True), IndependentRows(noise=NOISE, rows=3)
    widths = law.half_widths(BETA)[None]
    by_bars = form.of(Box(MOMENTS, MOMENTS - widths, MOMENTS + widths))
    low, high = variance_ends(form, MOMENTS, rows_of(3), BETA)
    assert (high - low)[0] < 0.76 * (by_bars.high - by_bars.low)[0]
    assert low[0] < by_bars.value[0] < high[0]


def test_next_to_no_rows_leave_everything_possible() -> None:
    for count in (-3.0, 0.5):
        low, high = variance_ends(variance(sample=True), np.array([[count, 1.0, 2.0]]), rows_of(3), BETA)
        assert (low[0], high[0]) == (0.0, 200.0)  # half of the squared range


def quantile(*, between: bool = False, share: str = "0.5", count: int = 9) -> Quantile:
    points = tuple(float(point) for point in range(count))
    return Quantile(columns=tuple(range(count)), points=points, share=Decimal(share), between=between)


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("step", [30.0, 400.0])
def test_ranks_that_may_be_the_one_are_within(step: float, between: bool) -> None:
    ranks = step * np.arange(1.0, 10.0)[None]
    (low,), (high,) = quantile_ends(quantile(between=between), ranks, rows_of(9), BETA)
    numbers = ranks[0] - 0.5 * ranks[0, -1]
    weights = np.eye(9) - 0.5 * np.eye(1, 9, 8)
    reach = half_widths(weights, [NOISE] * 9, 9 * BETA)
    spare = 0.5 if between else 0.0
    first = np.flatnonzero(numbers >= -reach - spare)[0]
    last = np.flatnonzero(numbers[:-1] <= reach[:-1] + spare)[-1] + 1
    assert (low, high) == (first, last)
    assert (high - low == 0) == (step == 400.0)  # far enough apart, the noise does not matter


def test_few_rows_leave_every_value_possible() -> None:
    low, high = quantile_ends(quantile(), np.zeros((1, 9)), rows_of(9), BETA)
    assert (low[0], high[0]) == (0.0, 8.0)
