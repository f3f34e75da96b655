"""The widest draw of a sum shows from below how far the sum reaches: a goal that it misses is not looked at further."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.tails import sums, tail


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [2.0, 0.5, 0.25], [1.0, 0.999, 0.01], [0.3, 0.0, 7.0]])
@pytest.mark.parametrize("alpha", [0.0, 0.9, 5.0, 12.0, 60.0])
def test_it_is_never_above_the_truth(weights: list[float], alpha: float) -> None:
    """The masses of all sums, by transforms of those of their terms, on a lattice of thousandths."""
    noises = [laplace(scale) for scale in (4.0, 2.0, 1.0)][: len(weights)]
    law = np.ones(1)
    for weight, noise in zip(weights, noises, strict=True):
        step, places = max(round(abs(weight) * 1000), 1), np.arange(-160, 161)
        term = np.zeros(320 * step + 1)
        term[::step] = np.exp(-np.abs(places) / noise.scale) * np.tanh(0.5 / noise.scale)
        term = np.ones(1) if weight == 0.0 else term
        size = len(law) + len(term) - 1
        law = np.fft.irfft(np.fft.rfft(law, size) * np.fft.rfft(term, size), size)
    values = (np.arange(len(law)) - len(law) // 2) / 1000
    truth = float(law[np.abs(values) > alpha + 1e-9].sum())
    least = sums._of_widest_draws(np.array([weights]), noises, alpha)
    assert 0.0 < least <= truth + 1e-12


def test_a_threshold_that_is_a_step_lower_would_be_found() -> None:
    """Where draws are hardly ever anything but 0, a tail falls a hundredfold within a step."""
    rare = laplace(0.2)
    truth = 2 * np.exp(-5.0) / (1 + np.exp(-5.0))
    least = sums._of_widest_draws(np.array([[1.0]]), [rare], 0.5)
    assert least < truth < least * np.exp(2 / 0.2)


def test_gaussian_draws_say_nothing_and_rows_add_up() -> None:
    gaussian = Noise(kind=NoiseKind.GAUSSIAN, scale=40.0)
    assert sums._of_widest_draws(np.array([[1.0]]), [gaussian], 3.0) == 0.0
    alone = sums._of_widest_draws(np.array([[1.0, 0.5]]), [laplace(5.0)] * 2, 9.0)
    assert sums._of_widest_draws(np.array([[1.0, 0.5]] * 4), [laplace(5.0)] * 2, 9.0) == pytest.approx(4 * alone)


def test_what_it_decides_is_not_inverted_and_decided_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, noises = np.array([[1.0, 0.2, 0.1]] * 10), [laplace(11.0)] * 3
    beyond = tail(weights, noises, 30.0)
    assert beyond > 0.3
    monkeypatch.setattr(sums._Rows, "tail", lambda *given: pytest.fail("inverted"))
    assert tail(weights, noises, 30.0, 0.05) > 0.05
