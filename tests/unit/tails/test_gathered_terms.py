"""Terms with nearly equal weights are taken for equal in an inversion: found sooner, with what that changes added."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.noise.law import Noise, NoiseKind
from bursar.tails.characteristic import Sums
from bursar.tails.inversion import GATHERED_ERROR, Inversion

RARE, COARSE = (Noise(kind=NoiseKind.LAPLACE, scale=scale) for scale in (0.15, 13.5))
NOISES = [RARE] * 40 + [COARSE] * 4
ALPHA = 2.0


def nodes(seed: int = 0) -> Sums:
    """Nodes with hardly any noise that count nearly once, and what was known before, which counts for little."""
    rng = np.random.default_rng(seed)
    weights = np.concatenate([1.0 - 1e-4 * rng.uniform(0.9, 1.1, 40), 1e-4 * rng.uniform(1.0, 1.001, 4)])
    return Sums.of(weights[None], NOISES).row(0)


def transform(row: Sums, z: complex) -> complex:
    """The logarithm of E exp(zS), by the masses of each draw."""
    steps, total = np.arange(-4000, 4001), 0j
    for weight, scale, count in zip(row.parts[0].weight[0], row.parts[0].scale, row.parts[0].count, strict=True):
        each = np.tanh(0.5 / scale) * np.exp(z * weight * steps - np.abs(steps) / scale)
        total += count * np.log(np.sum(each))
    return complex(total)


def test_gathered_terms_move_a_transform_by_no_more_than_is_said() -> None:
    row, s = nodes(), 3.0
    gathered, moved = row.gathered(1e-3 * math.sqrt(float(row.variance[0])), s)
    assert gathered.distinct() == 2
    assert gathered.terms() == row.terms()
    for t in (0.0, 1.0, 3.0, 50.0, 400.0):
        z = complex(s, t)
        off = abs(np.exp(transform(gathered, z) - transform(row, z)) - 1.0)  # a logarithm may be a turn away
        assert off <= math.expm1(0.5 * abs(z) ** 2 * moved) + 1e-12
    assert moved > 0


def test_bounds_are_those_of_the_weights_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [Inversion.of(nodes(seed), ALPHA).upper(ALPHA) for seed in range(3)]
    monkeypatch.setattr("bursar.tails.inversion.GATHERED_WITHIN", ())
    apart = [Inversion.of(nodes(seed), ALPHA).upper(ALPHA) for seed in range(3)]
    assert quick == pytest.approx(apart, rel=1e-3)


def test_terms_that_are_gathered_too_far_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the error that is added, weights of .2 and 1 taken for .6 would make no bound."""
    weights = np.repeat([0.2, 0.999], 20) + 1e-5 * np.arange(40)
    row = Sums.of(weights[None], [RARE] * 40).row(0)
    right = Inversion.of(row, 3.0).upper(3.0)
    monkeypatch.setattr("bursar.tails.inversion.GATHERED_WITHIN", (10.0,))
    assert Inversion.of(row, 3.0).upper(3.0) == pytest.approx(right, rel=1e-3)
    monkeypatch.setattr("bursar.tails.inversion.GATHERED_ERROR", math.inf)
    assert Inversion.of(row, 3.0).upper(3.0) > right
    gathered = Sums.gathered
    monkeypatch.setattr(Sums, "gathered", lambda self, width, s: (gathered(self, width, s)[0], 0.0))
    assert Inversion.of(row, 3.0).upper(3.0) < 0.9 * right


def test_what_is_gathered_adds_little() -> None:
    inversion = Inversion.of(nodes(), ALPHA)
    assert 0 < inversion.error <= GATHERED_ERROR
