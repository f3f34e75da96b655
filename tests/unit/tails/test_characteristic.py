"""The transforms of single draws against their masses, added up."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.tails.characteristic import Laplace, Law, NarrowGaussian, WideGaussian

X = np.arange(-4000, 4001)

CASES: list[tuple[Law, float]] = [(Laplace(), 0.2), (Laplace(), 2.5), (Laplace(), 20.0)]
CASES += [(WideGaussian(), 1.0), (WideGaussian(), 2.9), (WideGaussian(), 40.0)]
CASES += [(NarrowGaussian(), 0.2), (NarrowGaussian(), 0.7)]


def tilted(law: Law, scale: float, u: float) -> np.ndarray:
    """The mass of x times exp(ux), to sum up to one."""
    logs = u * X - (np.abs(X) / scale if isinstance(law, Laplace) else np.square(X / scale) / 2)
    found = np.exp(logs - logs.max())
    return found / found.sum()


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("law", "scale"), CASES)
@pytest.mark.parametrize("tilt", [0.0, 0.3, 0.8])
def test_modulus_and_phase_are_those_of_the_transform(law: Law, scale: float, tilt: float) -> None:
    u, scales, angle = np.array([tilt / scale]), np.array([scale]), np.linspace(0.0, 20.0, 41)[:, None]
    whole = np.exp(1j * angle * X) @ tilted(law, scale, tilt / scale)
    found = np.exp(law.log_modulus(u, scales, angle) + 1j * law.phase(u, scales, angle))[:, 0]
    assert np.allclose(found, whole, rtol=1e-7, atol=1e-8)  # at scale 1 `log_mgf` is a little more than the truth


@pytest.mark.parametrize(("law", "scale"), CASES)
def test_the_mean_is_that_of_the_tilted_draw(law: Law, scale: float) -> None:
    found = law.mean(np.array([0.5 / scale]), np.array([scale]))
    assert float(found[0]) == pytest.approx(float(X @ tilted(law, scale, 0.5 / scale)), rel=1e-7)
