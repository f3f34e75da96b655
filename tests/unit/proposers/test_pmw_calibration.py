"""Noise for tests and answers: the constants of the paper, and the exact ones against exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.estimate import error_bars, meets
from bursar.papers.boost.calibration import Lemma, Printed, Published
from bursar.proposers.pmw import TEST_OVER_THRESHOLD, Calibrated, Calibration, CheckedLaw, Tight, passing
from bursar.tails import single_tail
from harness.learning import cells, grid, request

LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
N, ALPHA, BETA = 1_008_532, 0.05, 0.001
ROWS = ALPHA * N


def masses(scale: float, reach: int) -> np.ndarray:
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(x) / scale)
    return mass / mass.sum()


def exactly_passing(threshold: Noise, test: Noise, short: int, reach: int = 4000) -> float:
    """Pr[X - Y > short] by adding up all pairs."""
    law = np.convolve(masses(threshold.scale, reach), masses(test.scale, reach))
    return float(law[2 * reach + short + 1 :].sum())


@pytest.mark.parametrize(("first", "second", "short"), [(3.0, 3.0, 20), (5.0, 9.0, 40), (0.4, 0.7, 2), (2.0, 2.0, 0)])
def test_how_likely_a_bad_estimate_passes(first: float, second: float, short: int) -> None:
    noises = [Noise(kind=LAPLACE, scale=scale) for scale in (first, second)]
    truth = exactly_passing(noises[0], noises[1], short)
    assert truth <= passing(noises[0], noises[1], short) <= 1.03 * truth
    assert passing(noises[0], noises[1], -1) == 1.0


def rate(made: Calibrated) -> float:
    """What a sparse vector costs."""
    return 1 / made.threshold.scale + 2 / made.test.scale


def test_the_published_constants() -> None:
    made = Published().of(ROWS, BETA, 1, LAPLACE)
    assert made is not None
    assert 1 / made.bypass.scale == pytest.approx(math.log(1 / BETA) / ROWS)
    assert made.bypass == made.answer
    x = ROWS / (2 * made.test.scale)
    assert (0.5 + x / 4) * math.exp(-x) == pytest.approx(BETA)
    assert made.test == made.threshold
    assert made.cut == round(ROWS / 2)
    assert made.claimed == BETA
    assert BETA < made.honest < 2.05 * BETA  # a test at beta and an answer at beta


@pytest.mark.parametrize("beta", [0.05, BETA])
def test_vanilla_pmw_has_the_epsilon_of_lemma_a_2(beta: float) -> None:
    made = Lemma().of(ROWS, beta, 1, LAPLACE)
    assert made is not None
    assert made.test == made.threshold == made.answer == made.bypass
    y = ROWS / made.answer.scale
    assert math.exp(-y) + (0.5 + y / 8) * math.exp(-y / 2) == pytest.approx(beta)
    assert made.honest == pytest.approx(beta, rel=0.03)


def test_the_printed_constants() -> None:
    made = Printed().of(ROWS, BETA, 1, LAPLACE)
    assert made is not None
    assert {made.test.scale, made.threshold.scale, made.answer.scale} == {ROWS / (4 * math.log(1 / BETA))}
    assert made.claimed is None
    assert made.honest < BETA / 50


@pytest.mark.parametrize("alpha", [40.0, 1000.0, ROWS])
@pytest.mark.parametrize("beta", [0.05, 0.001])
@pytest.mark.parametrize("rows", [1, 12])
def test_tight_uses_up_beta_and_no_more(alpha: float, beta: float, rows: int) -> None:
    made = Tight().of(alpha, beta, rows, LAPLACE)
    assert made is not None
    assert 0.97 * beta < made.honest <= beta
    assert made.test.scale == TEST_OVER_THRESHOLD * made.threshold.scale
    bypass = 1 - (1 - single_tail(made.bypass, alpha)) ** rows
    assert 0.9 * beta < bypass <= beta
    published = Published().of(alpha, beta, rows, LAPLACE)
    assert published is not None
    assert rate(made) < 1.06 * rate(published)  # hardly dearer, though it keeps what it says


def test_tight_against_all_pairs() -> None:
    made = Tight().of(120.0, 0.01, 1, LAPLACE)
    assert made is not None
    passes = exactly_passing(made.threshold, made.test, 121 - made.cut)  # the least that is more than 120
    whole = passes + (1 - passes) * single_tail(made.answer, 120)
    assert 0.97 * 0.01 < whole <= 0.01


def test_gaussian_answers() -> None:
    made = Tight().of(1000.0, 0.01, 3, GAUSSIAN)
    assert made is not None
    assert made.answer.kind is made.bypass.kind is GAUSSIAN
    assert made.test.kind is LAPLACE
    assert made.honest <= 0.01
    published = Published(tau=0.05).of(ROWS, BETA, 1, GAUSSIAN)
    assert published is not None
    n_alpha_epsilon = math.log(1 / BETA)
    sigma = 0.05 * ALPHA / math.sqrt(18 * math.log(2) + 3 * 0.05 * n_alpha_epsilon)  # Lemma A.10, a fraction of rows
    assert published.answer.scale == pytest.approx(N * sigma)
    for tail in (ROWS, 0.05 * ROWS / 6, 0.05 * ROWS / 2):  # alpha, gamma_1/(n epsilon), gamma_2/(n epsilon)
        assert single_tail(published.answer, tail) <= math.exp(-tail * n_alpha_epsilon / ROWS)


@pytest.mark.parametrize("calibration", [Tight(), Published(), Printed(), Lemma()])
def test_goals_that_cannot_be_tested(calibration: Calibration) -> None:
    assert calibration.of(0.5, 0.05, 1, LAPLACE) is None
    assert calibration.of(1e14, 0.05, 1, LAPLACE) is None or calibration == Tight()


def test_a_goal_beyond_all_noise_gets_the_largest() -> None:
    made = Tight().of(1e14, 0.05, 1, LAPLACE)
    assert made is not None
    assert made.bypass.scale == 2.0**40


def test_the_law_promises_the_goal_and_nothing_else() -> None:
    made = Tight().of(100.0, 0.05, 2, LAPLACE)
    assert isinstance(made, Calibrated)
    law = CheckedLaw(calibrated=made, chance=made.honest)
    goal = request(cells(grid(3), a=[0]), within=100.0, beta=0.05).goal
    assert meets(law, goal)
    assert error_bars(law, goal).tolist() == [100.0, 100.0]
    assert law.tail(99.0, 0.05) == 1.0
    assert law.tail(200.0, 0.05) == made.honest
    assert np.isinf(law.half_widths(0.01)).all()
    tighter = request(cells(grid(3), a=[0]), within=99.0, beta=0.05).goal
    assert not meets(law, tighter)


def test_the_mean_square_is_a_bound() -> None:
    """For every error d of the estimate: d^2 Pr[passed] + E[Z^2; not passed]."""
    made = Tight().of(120.0, 0.05, 1, LAPLACE)
    assert made is not None
    law = CheckedLaw(calibrated=made, chance=made.honest)
    worst = max(
        d**2 * exactly_passing(made.threshold, made.test, d - made.cut) + made.answer.variance()
        for d in range(0, 400, 20)
    )
    assert worst <= law.mean_square() <= 6 * worst
