"""How often a text is released that one person alone has: as often as its tail says, and no more than delta."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from bursar.core.accounting import Found, Noise, NoiseKind
from bursar.core.noise.law import DELTA_BITS
from bursar.core.noise.system import SystemRandomness
from harness.masses import mass_of

ALPHA = 1e-6
RUNS = 4000
EVENT = Found(column="city", most=1, weight=4, noise=Noise(kind=NoiseKind.GAUSSIAN, scale=6.0), threshold=10, version=1)


def released(event: Found, runs: int) -> int:
    """How often a single text of one person is released."""
    draws = SystemRandomness().draw(event.noise, runs)
    return int(np.sum(event.share(1) + draws >= event.threshold))


def reached(event: Found) -> float:
    mass = mass_of(event.noise)
    return float(sum(mass(x) for x in range(event.threshold - event.share(1), 100)))


def rejects(seen: int, chance: float) -> bool:
    return binom.cdf(seen, RUNS, chance) < ALPHA / 2 or binom.sf(seen - 1, RUNS, chance) < ALPHA / 2


def test_a_lone_text_is_released_as_often_as_its_tail_says() -> None:
    chance = reached(EVENT)
    assert chance <= EVENT.delta / 2**DELTA_BITS
    assert not rejects(released(EVENT, RUNS), chance)


def test_a_threshold_that_is_too_low_is_noticed() -> None:
    lower = Found(column="city", most=1, weight=4, noise=EVENT.noise, threshold=8, version=1)
    assert rejects(released(lower, RUNS), reached(EVENT))
