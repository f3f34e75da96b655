"""The door for noise: sizes, secrets, and forks that share nothing."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np
import pytest
from numpy.typing import NDArray

from bursar.core.noise import exact_sampler
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.noise.system import Randomness, SystemRandomness

SIZES = [1, 60, 1000]
NOISES = [Noise(kind=kind, scale=scale) for kind in NoiseKind for scale in (2.0**-6, 1.0, 2.0**40)]


@pytest.fixture
def randomness() -> Randomness:
    return SystemRandomness()


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("size", [0, *SIZES])
def test_a_draw_is_a_vector_of_64_bit_integers(randomness: Randomness, noise: Noise, size: int) -> None:
    values = randomness.draw(noise, size)
    assert values.shape == (size,)
    assert values.dtype == np.int64


@pytest.mark.parametrize("kind", list(NoiseKind))
@pytest.mark.parametrize("size", SIZES)
def test_the_largest_scale_does_not_saturate(randomness: Randomness, kind: NoiseKind, size: int) -> None:
    """A 32-bit sampler would return the ends of its range again and again. Of 64,000 right values two meet with
    probability 5e-4, and twice with 1e-7."""
    noise = Noise(kind=kind, scale=2.0**40)
    values = np.concatenate([randomness.draw(noise, size) for _ in range(64)])
    assert np.unique(values).size >= values.size - 1
    assert np.abs(values).max() > 2**32


@pytest.mark.parametrize("kind", list(NoiseKind))
@pytest.mark.parametrize("size", [-1, -1000])
def test_a_negative_size_is_an_error(randomness: Randomness, kind: NoiseKind, size: int) -> None:
    with pytest.raises(ValueError, match="negative"):
        randomness.draw(Noise(kind=kind, scale=1.0), size)


def test_the_scale_and_the_kind_reach_the_sampler(randomness: Randomness) -> None:
    """On 10,000 draws the two kinds, whose spreads differ by sqrt(2), are 30 standard errors apart."""
    for size, rounds in ((50, 200), (10_000, 1)):
        for scale in (2.0**10, 2.0**20):
            spread = {}
            for kind in NoiseKind:
                noise = Noise(kind=kind, scale=scale)
                spread[kind] = np.concatenate([randomness.draw(noise, size) for _ in range(rounds)]).std() / scale
            assert 1.3 < spread[NoiseKind.LAPLACE] < 1.53
            assert 0.94 < spread[NoiseKind.GAUSSIAN] < 1.06


def test_secrets_have_their_size_and_never_repeat(randomness: Randomness) -> None:
    secrets = {randomness.secret(32) for _ in range(100)}
    assert len(secrets) == 100
    assert {len(secret) for secret in secrets} == {32}
    assert randomness.secret(0) == b""


@pytest.mark.parametrize("kind", list(NoiseKind))
def test_a_law_that_is_drawn_from_again_has_its_tables(randomness: Randomness, kind: NoiseKind) -> None:
    """Tables take milliseconds: a loop that draws one at a time must not make them each time."""
    exact_sampler._tables.cache_clear()
    noise = Noise(kind=kind, scale=12345.678)
    draws = np.concatenate([randomness.draw(noise, 1) for _ in range(100)])
    assert exact_sampler._tables.cache_info().misses == 1
    assert np.unique(draws).size > 80


def forked_draws(draw: Callable[[], NDArray[np.int64]]) -> list[list[int]]:
    """What two forked children and then their parent draw, all after the parent has drawn before."""
    draw()
    context = multiprocessing.get_context("fork")

    def child(end: Connection) -> None:
        end.send(draw().tolist())
        end.close()

    results = []
    for _ in range(2):
        here, there = context.Pipe()
        process = context.Process(target=child, args=(there,))
        process.start()
        results.append(here.recv())
        process.join()
    return [*results, draw().tolist()]


def shared(draws: list[list[int]]) -> int:
    """How many values were drawn more than once."""
    values = [value for drawn in draws for value in drawn]
    return len(values) - len(set(values))


@pytest.mark.parametrize("kind", list(NoiseKind))
@pytest.mark.parametrize("size", [1, 100])
def test_forks_share_no_random_state(randomness: Randomness, kind: NoiseKind, size: int) -> None:
    assert shared(forked_draws(lambda: randomness.draw(Noise(kind=kind, scale=2.0**40), size))) == 0


def test_the_fork_test_sees_an_inherited_generator() -> None:
    generator = np.random.default_rng()
    assert shared(forked_draws(lambda: generator.integers(2**62, size=10))) == 20
