"""The measures of RAP's evaluation by brute force, and its regression against numbers worked out by hand."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from benchmarks.rap_data import Coded, stand_in
from benchmarks.rap_measures import Errors, at_least, compare, fractions, half_width, of_table, total_variation
from benchmarks.rap_regression import Observation, design, fit, holm, likelihood_ratio

SIZES = (3, 2, 4)
DATA = Coded(name="small", names=tuple("abc"), sizes=SIZES, codes=stand_in(SIZES, 40), real=False)


@pytest.mark.parametrize("least", [1, 2, 3])
def test_thresholds_are_shares_of_rows_that_agree_often_enough(least: int) -> None:
    found = fractions(DATA.codes, SIZES, (0, 1, 2), least)
    for value, y in zip(found, product(*map(range, SIZES)), strict=True):
        assert value == pytest.approx(np.mean((DATA.codes == y).sum(axis=1) >= least))


def test_the_order_of_the_features_is_that_of_the_axes() -> None:
    swapped = at_least(DATA.counts((2, 0)) / 40, 1)
    np.testing.assert_allclose(swapped.T, at_least(DATA.counts((0, 2)) / 40, 1))


def test_errors_are_added_up_threshold_by_threshold() -> None:
    errors = Errors()
    errors.add(np.array([0.5, 0.5]), np.array([0.4, 0.6]))
    errors.add(np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0]))
    assert errors.max_error == 1.0
    assert errors.mean_error == pytest.approx(2.2 / 6)
    assert errors.tv == pytest.approx((0.1 + 1.0) / 2)
    assert errors.largest == pytest.approx([0.1, 1.0])


def test_the_truth_has_no_error_and_another_table_has() -> None:
    sets = ((0, 1), (1, 2))
    assert of_table(DATA, sets, 2, np.tile(DATA.codes, (3, 1))).max_error == pytest.approx(0)
    zeros = of_table(DATA, sets, 2, np.zeros((7, 3), np.int64))
    assert zeros.tv == pytest.approx(np.mean([1 - DATA.counts(s)[0, 0] / 40 for s in sets]))
    with pytest.raises(ValueError, match="shorter"):
        compare(DATA, sets, 2, [np.zeros(6)])


def test_total_variation_and_interval() -> None:
    assert total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])) == pytest.approx(0.5)
    assert half_width(2.0, 1) == 0.0
    assert half_width(2.0, 5) == pytest.approx(2.7764451 * 2 / math.sqrt(5))


def test_holm_multiplies_the_smallest_most() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == pytest.approx([1.0, 1.0])


def _seen(effect: float, seed: int, noise: float = 0.01) -> list[Observation]:
    rng = np.random.default_rng(seed)
    return [
        Observation(
            error=0.03 + (0.06 if epsilon == 0.1 else 0.01) * math.log(size) + effect * filtered + noise * rng.normal(),
            epsilon=epsilon,
            size=size,
            filtered=filtered,
        )
        for epsilon in (0.1, 1.0)
        for size in (2, 4, 8, 16, 32)
        for filtered in (False, True)
        for _ in range(2)
    ]


def _fits(seen: list[Observation]) -> list[object]:
    errors = np.array([one.error for one in seen])
    return [fit(design(seen, (0.1, 1.0), full=full), errors) for full in (False, True)]


def test_the_design_has_the_columns_of_the_appendix() -> None:
    one = Observation(error=0.0, epsilon=1.0, size=math.e**2, filtered=True)
    row = design([one], (0.01, 0.1, 1.0), full=True)[0]
    np.testing.assert_allclose(row, [1, 0, 1, 2, 0, 2, 1, 0, 1, 2, 0, 2])
    other = Observation(error=0.0, epsilon=0.1, size=math.e, filtered=False)
    np.testing.assert_allclose(design([other], (0.01, 0.1, 1.0), full=True)[0], [1, 1, 0, 1, 1, 0, *[0] * 6])


def test_a_model_without_noise_is_found_again() -> None:
    _, full = _fits(_seen(0.05, 0, noise=0.0))
    np.testing.assert_allclose(full.coefficients, [0.03, 0, 0.06, -0.05, 0.05, 0, 0, 0], atol=1e-12)


def test_least_squares_agree_with_a_line_worked_out_by_hand() -> None:
    """x = 0, 1, 2, 3 and y = 1, 2, 2, 5: slope 1.2, intercept .7, residuals .3, .1, -1.1, .7."""
    matrix = np.stack([np.ones(4), np.arange(4)], axis=1)
    found = fit(matrix, np.array([1.0, 2.0, 2.0, 5.0]))
    np.testing.assert_allclose(found.coefficients, [0.7, 1.2])
    assert found.errors[1] == pytest.approx(math.sqrt(1.8 / 2 / 5))
    assert found.adjusted_r2 == pytest.approx(1 - (1.8 / 2) / (9 / 3))
    assert found.log_likelihood == pytest.approx(-2 * (math.log(2 * math.pi * 1.8 / 4) + 1))
    assert found.f_p_value == pytest.approx(found.p_values[1])


@pytest.mark.heavy
def test_an_effect_of_the_filter_is_seen_and_none_is_not_invented() -> None:
    with_effect = [likelihood_ratio(*_fits(_seen(0.03, seed))) for seed in range(20)]
    without = [likelihood_ratio(*_fits(_seen(0.0, seed))) for seed in range(200)]
    assert max(with_effect) < 1e-3
    assert np.mean(np.array(without) < 0.05) < 0.25  # an asymptotic test on 40 runs is a little too eager
    assert np.median(without) > 0.2
