"""Sums next to a lattice: bounded from above like all others, and with a few hundred frequencies."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.noise.law import Noise, NoiseKind
from bursar.tails import half_widths, pitches, tail
from bursar.tails import sums as tails
from bursar.tails.inversion import Inversion, NearLattice

LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN

NEAR = {
    "two counts": [1 + 2e-7, 1 - 9e-8],
    "one is hardly used": [1.0, 2.0, 3e-6],
    "thirds": [1 / 3, 2 / 3, 1 / 3 + 1e-9],
    "fifths": [0.2, 0.8 - 1e-8],
}


def masses(noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    reach = math.ceil(40 * noise.scale if noise.kind is LAPLACE else 9 * noise.scale) + 1
    x = np.arange(-reach, reach + 1).astype(float)
    mass = np.exp(-np.abs(x) / noise.scale) if noise.kind is LAPLACE else np.exp(-(x**2) / (2 * noise.scale**2))
    return x, mass / mass.sum()


def law(weights: list[float], noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """All values of the sum and their probabilities, one by one."""
    values, chances = np.zeros(1), np.ones(1)
    x, mass = masses(noise)
    for weight in weights:
        values = np.add.outer(values, weight * x).ravel()
        chances = np.multiply.outer(chances, mass).ravel()
    return np.abs(values), chances


def of(weights: list[float], noise: Noise) -> NearLattice | None:
    spreads = np.full(len(weights), math.sqrt(noise.variance()))
    return NearLattice.of(np.array(weights), [noise] * len(weights), spreads)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", NoiseKind)
@pytest.mark.parametrize("weights", NEAR.values(), ids=NEAR)
def test_the_bound_is_not_below_the_tail_and_close_to_it(weights: list[float], kind: NoiseKind) -> None:
    noise = Noise(kind=kind, scale=1.6 if kind is LAPLACE else 3.0)
    near = of(weights, noise)
    assert near is not None
    values, chances = law(weights, noise)
    for steps in (5, 9, 14, 22):
        for beside in (0.0, 1e-7, 1e-4, 0.3, 0.999):
            alpha = (steps + beside) * near.pitch
            bound = tail(weights, [noise] * len(weights), alpha)
            assert bound >= chances[values > alpha].sum() * (1 - 1e-9)
            # All of a spike counts where the threshold cuts through it, and a little more where it is just beside it.
            assert bound <= 1.02 * chances[values >= 0.99 * alpha].sum() + 1e-12


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", NoiseKind)
@pytest.mark.parametrize("weights", NEAR.values(), ids=NEAR)
@pytest.mark.parametrize("beta", [0.2, 0.01, 1e-5])
def test_half_widths_cover_and_are_short(weights: list[float], kind: NoiseKind, beta: float) -> None:
    noise = Noise(kind=kind, scale=1.6 if kind is LAPLACE else 3.0)
    (width,) = half_widths([weights], [noise] * len(weights), beta)
    values, chances = law(weights, noise)
    assert chances[values > width].sum() <= beta
    assert chances[values > 0.99 * width - of(weights, noise).pitch].sum() > beta


def test_what_is_left_over_is_not_forgotten() -> None:
    """A threshold just above a point of the lattice is often passed from there: the lattice alone would not tell."""
    weights, noise, alpha = [1.0, 2e-4], Noise(kind=LAPLACE, scale=2.0), 10.0001
    near = of(weights, noise)
    values, chances = law(weights, noise)
    truth = chances[values > alpha].sum()
    assert near is not None
    assert tail([near.whole[0]], [noise], near.split(alpha)[0]) < 0.9 * truth
    assert tail(weights, [noise] * 2, alpha) >= truth


@pytest.mark.parametrize(
    ("weights", "pitch"),
    [
        ([1.0, 1.0], 1.0),
        ([1.0000001, 0.9999999], 1.0),
        ([0.8, 0.2], 0.2),
        ([1.0, 0.6], 0.2),
        ([2 / 3, 1 / 3, 1e-6], 1 / 3),
        ([3.0, 1.0], 1.0),
        ([math.sqrt(2), 1.0], 0.0),
        ([0.0, 0.0], 0.0),
    ],
)
def test_pitches(weights: list[float], pitch: float) -> None:
    found = pitches(np.array([weights, weights[::-1]]), np.full(len(weights), 5.0))
    assert found == pytest.approx([pitch, pitch], rel=1e-6)


def test_pitches_of_rows_do_not_depend_on_the_rows_beside_them() -> None:
    """Some are found at once, some late, some never: whichever comes first ends nothing for the others."""
    rows = np.array([[1.0, 1.0, 0.0], [2 / 3, 1 / 3, 1e-6], [math.sqrt(2), 1.0, 0.3], [0.0, 0.0, 0.0], [1.0, 0.6, 0.4]])
    spreads = np.array([5.0, 5.0, 5.0])
    alone = [float(pitches(row[None], spreads)[0]) for row in rows]
    assert alone == pytest.approx([1.0, 1 / 3, 0.0, 0.0, 0.2], rel=1e-6)
    assert pitches(rows, spreads).tolist() == alone
    assert pitches(rows[::-1], spreads).tolist() == alone[::-1]


def test_the_parts_of_a_sum_add_up_to_it() -> None:
    weights, noise = [2 / 3 + 1e-8, 1 / 3 - 1e-7, 1e-6, 0.0], Noise(kind=GAUSSIAN, scale=4.0)
    near = of(weights, noise)
    assert near is not None
    multiples = near.whole / near.pitch
    assert np.all(multiples == np.rint(multiples))
    assert np.array_equal(np.abs(np.array(weights) - near.whole)[:3], near.remainder.parts[0].weight[0])


def test_a_sum_on_a_lattice_has_nothing_beside_it() -> None:
    assert of([1.0, 2.0, 4.0], Noise(kind=LAPLACE, scale=3.0)) is None


def test_spikes_take_few_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    made = Inversion.of

    def counted(row: object, alpha: float) -> Inversion:
        found = made(row, alpha)  # type: ignore[arg-type]
        sizes.append(found.frequency.size)
        return found

    monkeypatch.setattr(Inversion, "of", staticmethod(counted))
    tails._tail_of.cache_clear()
    noises = [Noise(kind=LAPLACE, scale=8.7)] * 2
    tail([1 + 1.6e-7, 1 - 9e-8], noises, 60.0)
    assert len(sizes) == 1
    assert sizes[0] < 1000


def test_a_bound_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, noises = [[1.0, 2.0, 5.0]], [Noise(kind=LAPLACE, scale=7.125)] * 3
    first, again = half_widths(weights, noises, 0.01), tail(weights[0], noises, 50.0)
    monkeypatch.setattr(Inversion, "of", staticmethod(lambda row, alpha: pytest.fail("found before")))
    assert np.array_equal(half_widths(weights, noises, 0.01), first)
    assert tail([5.0, 1.0, 2.0], noises, 50.0) == again
