"""How exact rows must be: the level that is found is the least one, whatever is known already."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.kernel.accounting import Mode
from bursar.strategy.purchase import Market

CELLS = 8
HALVES = np.array([[1.0] * 4 + [0.0] * 4, [0.0] * 4 + [1.0] * 4])
SINGLES = np.eye(CELLS)


def precision(losses: np.ndarray, mode: Mode) -> np.ndarray:
    return losses**2 / 2 if mode is Mode.PURE else 2 * losses


def variances(market: Market, losses: np.ndarray) -> np.ndarray:
    """By inverting the information after the purchase."""
    more = precision(losses, market.mode) - precision(market.present, market.mode)
    information = market.information + market.candidates.T @ np.diag(more) @ market.candidates
    return np.diag(market.asked @ np.linalg.pinv(information, hermitian=True, rcond=1e-12) @ market.asked.T)


def market(mode: Mode, known: np.ndarray, present: np.ndarray, asked: np.ndarray) -> Market:
    return Market(mode=mode, information=known, asked=asked, candidates=SINGLES, present=present)


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
    sold = Market(
        mode=Mode.PURE,
        information=np.zeros((CELLS, CELLS)),
        asked=asked,
        candidates=HALVES,
        present=np.zeros(2),
    )
    assert sold.level(10.0, mean=False) is None


def test_a_single_new_row_needs_what_its_noise_says() -> None:
    """Laplace noise of variance 2 b^2 = 50 has a loss of 1/b = .2."""
    asked = np.array([[1.0] + [0.0] * (CELLS - 1)])
    sold = market(Mode.PURE, np.zeros((CELLS, CELLS)), np.zeros(CELLS), asked)
    assert sold.level(50.0, mean=False) == pytest.approx(0.2, rel=1e-3)
