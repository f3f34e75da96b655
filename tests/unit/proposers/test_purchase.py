"""How exact rows must be: the level that is found is the least one, whatever is known already."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.accounting import Mode, Noise, NoiseKind
from bursar.proposers.buying.purchase import Posterior, PrecisionSearch

CELLS = 8
HALVES = np.array([[1.0] * 4 + [0.0] * 4, [0.0] * 4 + [1.0] * 4])
SINGLES = np.eye(CELLS)


def precision(losses: np.ndarray, mode: Mode) -> np.ndarray:
    return 2 * np.sinh(losses / 2) ** 2 if mode is Mode.PURE else 2 * losses


def variances(market: PrecisionSearch, losses: np.ndarray) -> np.ndarray:
    """By inverting the information after the purchase."""
    more = precision(losses, market.mode) - precision(market.present, market.mode)
    information = market.information + market.candidates.T @ np.diag(more) @ market.candidates
    return np.diag(market.questions @ np.linalg.pinv(information, hermitian=True, rcond=1e-12) @ market.questions.T)


def market(mode: Mode, known: np.ndarray, present: np.ndarray, asked: np.ndarray) -> PrecisionSearch:
    return PrecisionSearch(mode=mode, information=known, questions=asked, candidates=SINGLES, present=present)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("seed", range(5))
def test_the_level_is_the_least_that_keeps_the_variance(mode: Mode, seed: int) -> None:
    rng = np.random.default_rng(seed)
    present = np.where(rng.random(CELLS) < 0.5, rng.random(CELLS) * 0.05, 0.0)
    known = np.diag(precision(present, mode)) + HALVES.T @ HALVES * rng.random() * 0.01
    asked = rng.integers(0, 2, (3, CELLS)).astype(float)
    asked[0, 0] = 1.0
    sold = market(mode, known, present, asked)
    level = sold.level(50.0, mean=False)
    assert level is not None
    assert variances(sold, np.maximum(present, level)).max() == pytest.approx(50.0, rel=1e-2)
    assert variances(sold, np.maximum(present, level)).max() <= 50.0 * (1 + 1e-4)


def test_the_mean_is_a_laxer_bound_than_the_largest() -> None:
    asked = np.array([[1.0] * CELLS, [1.0] + [0.0] * (CELLS - 1)])
    sold = market(Mode.PURE, np.zeros((CELLS, CELLS)), np.zeros(CELLS), asked)
    mean, largest = sold.level(10.0, mean=True), sold.level(10.0, mean=False)
    assert mean is not None
    assert largest is not None
    assert mean < largest


def test_a_question_that_the_rows_do_not_determine_has_no_level() -> None:
    asked = np.array([[1.0] + [0.0] * (CELLS - 1)])
    sold = PrecisionSearch(
        mode=Mode.PURE,
        information=np.zeros((CELLS, CELLS)),
        questions=asked,
        candidates=HALVES,
        present=np.zeros(2),
    )
    assert sold.level(10.0, mean=False) is None


def test_a_single_new_row_needs_what_its_noise_says() -> None:
    """The level is one over the scale of the noise that has the variance."""
    asked = np.array([[1.0] + [0.0] * (CELLS - 1)])
    sold = market(Mode.PURE, np.zeros((CELLS, CELLS)), np.zeros(CELLS), asked)
    level = sold.level(50.0, mean=False)
    assert level is not None
    assert Noise(kind=NoiseKind.LAPLACE, scale=1 / level).variance() == pytest.approx(50.0, rel=1e-3)


def test_where_all_rows_are_known_the_level_is_sought_above_them() -> None:
    """Below what every row has already, nothing changes with the level: a search must not creep along there."""
    present = np.full(CELLS, 0.05)
    known = np.diag(precision(present, Mode.PURE))
    asked = np.ones((1, CELLS))
    sold = market(Mode.PURE, known, present, asked)
    before = float(variances(sold, present)[0])
    tried: list[float] = []

    def excess(after: Posterior) -> float:
        tried.append(float(after.variances()[0]))
        return math.log(tried[-1] / (0.998 * before))

    level = sold.level_by(excess, 1.5 * before)
    assert level == pytest.approx(0.05 / math.sqrt(0.998), rel=1e-3)
    assert len(tried) < 20


@pytest.mark.parametrize("mode", list(Mode))
def test_weights_are_those_of_least_squares(mode: Mode) -> None:
    rng = np.random.default_rng(3)
    asked = rng.integers(0, 2, (3, CELLS)).astype(float)
    known = HALVES.T @ HALVES * 0.02
    sold = market(mode, known, np.zeros(CELLS), asked)
    found: list[Posterior] = []

    def seen(after: Posterior) -> float:
        found.append(after)
        return -1e-5

    level = sold.level_by(seen, 50.0)
    assert level is not None
    after = found[-1]
    covariance = np.linalg.inv(known + SINGLES.T @ np.diag(after.total) @ SINGLES)
    assert after.weights() == pytest.approx(asked @ covariance @ SINGLES.T * after.total, rel=1e-5, abs=1e-6)
    assert after.variances() == pytest.approx(np.diag(asked @ covariance @ asked.T), rel=1e-5)
    rest = after.variances() - np.square(after.weights()) @ (1 / after.total)
    assert np.all(rest > 0)  # the halves take part too
