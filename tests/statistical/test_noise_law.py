"""Noise as drawn against the law it is priced by, and against OpenDP's, with wrong laws that each test must reject.

Every goodness-of-fit test sorts draws into cells whose masses are known exactly and uses Pearson's chi-square at
level 10^-6. Sizes are such that each wrong law named here is rejected with probability above .999.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray
from scipy import stats

from bursar.core.noise import exact_sampler
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.noise.system import SystemRandomness
from harness.cases import FOR_SOAK, HEAVY, marked

ALPHA = 1e-6
LEAST_EXPECTED = 50  # in a cell, so that the chi-square law holds far out

Draws = NDArray[np.int64]


def noise(kind: NoiseKind, scale: float) -> Noise:
    return Noise(kind=kind, scale=scale)


def cumulative(law: Noise, x: NDArray[np.int64]) -> NDArray[np.float64]:
    """P(X <= x), exactly but for float rounding."""
    if law.kind is NoiseKind.LAPLACE:
        a = np.exp(-1 / law.scale)
        tail = np.exp(-np.where(x >= 0, x + 1, -x) / law.scale) / (1 + a)
        return np.where(x >= 0, 1 - tail, tail)
    if law.scale > 5000:  # the sum over the integers and the integral differ by less than exp(-2 pi^2 scale^2)
        return stats.norm.cdf((x + 0.5) / law.scale)
    reach = np.arange(-int(40 * law.scale) - 2, int(40 * law.scale) + 3)
    mass = np.exp(-((reach / law.scale) ** 2) / 2)
    return np.concatenate([[0], np.cumsum(mass)])[np.searchsorted(reach, x, side="right")] / mass.sum()


def edges_for(law: Noise, size: int) -> NDArray[np.int64]:
    """Cells (e_i, e_(i+1)] a third of a scale wide, or single integers; thin ones at the ends are merged."""
    step = max(1, round(law.scale / 3))
    edges = step * np.arange(-60, 60) + (step - 1) // 2
    below = size * cumulative(law, edges)
    return edges[(below >= LEAST_EXPECTED) & (size - below >= LEAST_EXPECTED)]


def counts(draws: Draws, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)


def fit(draws: Draws, law: Noise) -> float:
    """The p-value of the draws under the law."""
    edges = edges_for(law, draws.size)
    assert edges.size >= 2, "too few draws to tell one cell from another"
    masses = np.diff(cumulative(law, edges), prepend=0, append=1)
    return float(stats.chisquare(counts(draws, edges), draws.size * masses).pvalue)


def in_bulk(law: Noise, size: int) -> Draws:
    return {NoiseKind.LAPLACE: exact_sampler.laplace, NoiseKind.GAUSSIAN: exact_sampler.gaussian}[law.kind](
        law.scale, size
    )


def through_the_door(law: Noise, size: int, piece: int) -> Draws:
    """Many small draws, put together."""
    return np.concatenate([SystemRandomness().draw(law, piece) for _ in range(size // piece)])


def by_opendp(law: Noise, size: int) -> Draws:
    """OpenDP's noise on zeros, on "i64", since its plain int saturates at 32 bits: another hand's work."""
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law.kind is NoiseKind.LAPLACE:
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=law.scale)
    else:
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=law.scale)
    return np.array(mechanism([0] * size), dtype=np.int64)


def rounded(law: Noise, size: int) -> Draws:
    """The continuous law rounded to integers: the wrong law that looks most alike."""
    generator = np.random.default_rng()
    continuous = {NoiseKind.LAPLACE: generator.laplace, NoiseKind.GAUSSIAN: generator.normal}[law.kind]
    return np.rint(continuous(0, law.scale, size)).astype(np.int64)


def scaled(law: Noise, factor: float) -> Noise:
    return noise(law.kind, factor * law.scale)


def name(law: Noise) -> str:
    return f"{law.kind.value}-{law.scale:g}"


LAWS = [noise(kind, scale) for kind in NoiseKind for scale in (0.4, 1.0, 3.7, 1000.0, 2.0**30, 1e12)]


def quick(laws: list[Noise]) -> list[Any]:
    """Narrow and wide laws of both kinds in `make test`, more of them in `make test-all`, all in `make soak`."""
    whens = {0.1: HEAVY, 0.4: HEAVY, 1.0: None, 1000.0: None, 2.0**30: HEAVY}
    return marked(laws, lambda _, law: whens.get(law.scale, FOR_SOAK))


BULK_LAWS = [noise(NoiseKind.LAPLACE, 0.1), *LAWS]
ROUNDABLE_LAWS = [*(noise(kind, scale) for kind in NoiseKind for scale in (0.4, 1.0)), noise(NoiseKind.LAPLACE, 3.7)]
OPENDP_SIZE = 30_000


def bulk_size(law: Noise) -> int:
    return 3_000_000 if law.scale == 0.1 else 300_000  # at .1 only one draw in 11,000 is not zero


@lru_cache
def opendp_draws(law: Noise) -> Draws:
    """One sample for all tests that look at it: OpenDP takes 10 to 20 microseconds a draw."""
    return by_opendp(law, OPENDP_SIZE)


@pytest.mark.parametrize("law", quick(BULK_LAWS), ids=name)
def test_bulk_draws_follow_the_law(law: Noise) -> None:
    assert fit(in_bulk(law, bulk_size(law)), law) > ALPHA


@pytest.mark.parametrize("law", quick(BULK_LAWS), ids=name)
@pytest.mark.parametrize("factor", [0.91, 1.09])
def test_a_bulk_scale_that_is_9_percent_off_is_rejected(law: Noise, factor: float) -> None:
    assert fit(in_bulk(scaled(law, factor), bulk_size(law)), law) < ALPHA


@pytest.mark.parametrize("law", quick(BULK_LAWS), ids=name)
def test_a_shifted_law_is_rejected(law: Noise) -> None:
    shift = max(1, round(0.05 * law.scale))
    assert fit(in_bulk(law, bulk_size(law)) + shift, law) < ALPHA


@pytest.mark.parametrize("law", quick(ROUNDABLE_LAWS), ids=name)
def test_a_rounded_continuous_law_is_rejected(law: Noise) -> None:
    assert fit(rounded(law, 600_000), law) < ALPHA
    assert fit(in_bulk(law, 600_000), law) > ALPHA


@pytest.mark.thinned(2)
@pytest.mark.parametrize("law", quick(LAWS), ids=name)
@pytest.mark.parametrize(("piece", "size"), [(1, 3_000), (60, 30_000)])
def test_small_draws_follow_the_law_and_not_a_neighbour(law: Noise, piece: int, size: int) -> None:
    draws = through_the_door(law, size, piece)
    assert fit(draws, law) > ALPHA
    assert fit(draws + max(1, round(0.5 * law.scale)), law) < ALPHA
    assert fit(through_the_door(scaled(law, 0.8), size, piece), law) < ALPHA


@pytest.mark.heavy
@pytest.mark.parametrize("law", quick(LAWS), ids=name)
def test_opendp_draws_follow_the_law_and_not_a_neighbour(law: Noise) -> None:
    draws = opendp_draws(law)
    assert fit(draws, law) > ALPHA
    assert fit(draws, scaled(law, 1.09)) < ALPHA
    assert fit(draws, scaled(law, 0.91)) < ALPHA
    assert fit(draws + max(1, round(0.2 * law.scale)), law) < ALPHA


def two_samples(one: Draws, other: Draws, law: Noise) -> float:
    """The p-value of both having the same law, whatever it is; `law` only sets the cells."""
    edges = edges_for(law, min(one.size, other.size))
    return float(stats.chi2_contingency([counts(one, edges), counts(other, edges)]).pvalue)


@pytest.mark.parametrize("law", quick(LAWS), ids=name)
def test_bulk_and_opendp_draw_from_one_law(law: Noise) -> None:
    theirs = opendp_draws(law)
    assert two_samples(in_bulk(law, 300_000), theirs, law) > ALPHA
    assert two_samples(in_bulk(scaled(law, 0.91), 300_000), theirs, law) < ALPHA


@pytest.mark.parametrize("kind", list(NoiseKind))
def test_the_low_digits_of_a_large_scale_are_uniform(kind: NoiseKind) -> None:
    """Wide cells cannot see them: at scale 2^30 the two lowest bytes are uniform to better than 2^-13."""
    draws = in_bulk(noise(kind, 2.0**30), 300_000)
    for place in range(2):
        assert stats.chisquare(np.bincount(draws >> 8 * place & 255, minlength=256)).pvalue > ALPHA
        bit_often_lost = np.where(np.arange(draws.size) % 10 == 0, draws & ~(1 << 8 * place), draws)
        assert stats.chisquare(np.bincount(bit_often_lost >> 8 * place & 255, minlength=256)).pvalue < ALPHA


@pytest.mark.parametrize("law", [law for law in LAWS if law.scale in (1.0, 1000.0)], ids=name)
def test_neighbouring_draws_are_independent(law: Noise) -> None:
    def dependence(draws: Draws, lag: int) -> float:
        coarse = np.digitize(draws, [-law.scale / 2, law.scale / 2])
        table = np.bincount(3 * coarse[:-lag] + coarse[lag:], minlength=9).reshape(3, 3)
        return float(stats.chi2_contingency(table).pvalue)

    draws = in_bulk(law, 300_000)
    for lag in (1, 2, 7):
        assert dependence(draws, lag) > ALPHA
        one_in_20_reused = np.where(np.arange(draws.size) % 20 < 19, draws, np.roll(draws, lag))
        assert dependence(one_in_20_reused, lag) < ALPHA


def second_moment_score(draws: Draws, variance: float) -> float:
    """The mean square minus the variance claimed, in standard errors."""
    squares = draws.astype(np.float64) ** 2
    return float((squares.mean() - variance) / (squares.std() / np.sqrt(squares.size)))


@pytest.mark.parametrize("law", quick([law for law in LAWS if law != noise(NoiseKind.GAUSSIAN, 0.4)]), ids=name)
def test_the_variance_claimed_is_the_variance_drawn(law: Noise) -> None:
    """The one law left out is narrower than `variance` says, which is an upper bound below scale 1.

    Squares are skewed, so that 4.9 standard errors are too likely in 30,000 draws. The twin is 13 or more away.
    """
    for draws in (in_bulk(law, 1_000_000), opendp_draws(law)):
        assert abs(second_moment_score(draws, law.variance())) < 6
        assert abs(second_moment_score(draws, scaled(law, 0.91).variance())) > 6


@pytest.mark.parametrize("scale", [0.05, 0.1, 0.3, 1.0, 3.7, 200.0])
def test_the_variance_is_that_of_the_mass_function(scale: float) -> None:
    reach = np.arange(-int(60 * scale) - 2, int(60 * scale) + 3)
    masses = {
        NoiseKind.LAPLACE: np.exp(-np.abs(reach) / scale),
        NoiseKind.GAUSSIAN: np.exp(-((reach / scale) ** 2) / 2),
    }
    exact = {kind: float((mass * reach**2).sum() / mass.sum()) for kind, mass in masses.items()}
    assert noise(NoiseKind.LAPLACE, scale).variance() == pytest.approx(exact[NoiseKind.LAPLACE], rel=1e-9)
    assert noise(NoiseKind.GAUSSIAN, scale).variance() >= exact[NoiseKind.GAUSSIAN] * (1 - 1e-9)
    if scale >= 1:
        assert noise(NoiseKind.GAUSSIAN, scale).variance() == pytest.approx(exact[NoiseKind.GAUSSIAN], rel=1e-6)
