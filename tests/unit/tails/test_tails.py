"""Tail bounds against numbers computed another way: decimals, closed forms, masses added up."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.signal import fftconvolve

from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE, Noise, NoiseKind
from bursar.errors import GoalError
from bursar.tails import half_width, half_widths, sampled_tail, scale_for, single_tail, tail
from bursar.tails.characteristic import Sums
from bursar.tails.inversion import Inversion, chernoff_exponent, majorant_transform, quick_exponent
from bursar.tails.sums import chernoff_tails

LAPLACE, GAUSSIAN = NoiseKind.LAPLACE, NoiseKind.GAUSSIAN
KINDS = [LAPLACE, GAUSSIAN]


def laplace(scale: float) -> Noise:
    return Noise(kind=LAPLACE, scale=scale)


def gaussian(scale: float) -> Noise:
    return Noise(kind=GAUSSIAN, scale=scale)


def masses(noise: Noise) -> np.ndarray:
    """The mass function on -n..n, where n is so far out that the rest is below 1e-35."""
    reach = math.ceil(82 * noise.scale if noise.kind is LAPLACE else 13 * noise.scale) + 2
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(x) / noise.scale) if noise.kind is LAPLACE else np.exp(-(x**2) / (2 * noise.scale**2))
    return mass / mass.sum()


def decimal_tail(noise: Noise, k: int) -> Decimal:
    """Pr[|X| > k] to 50 digits, mass by mass."""
    with localcontext() as context:
        context.prec = 60
        scale = Decimal(noise.scale)

        def mass(x: int) -> Decimal:
            return (-abs(x) / scale if noise.kind is LAPLACE else -(x * x) / (2 * scale * scale)).exp()

        def ahead(start: int) -> Decimal:
            total, x, least = Decimal(0), start, mass(start) * Decimal(10) ** -30
            while (term := mass(x)) > least:
                total, x = total + term, x + 1
            return total

        return 2 * ahead(k + 1) / (2 * ahead(1) + 1)


class TestSingleTail:
    @pytest.mark.thinned(4)
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("scale", [SMALLEST_SCALE, 0.1, 0.5, 1.0, 2.75, 31.0])
    @pytest.mark.parametrize("times", [0.1, 1.0, 2.5, 6.0])
    def test_is_the_sum_of_the_masses(self, kind: NoiseKind, scale: float, times: float) -> None:
        noise, k = Noise(kind=kind, scale=scale), max(1, round(times * scale))
        truth = decimal_tail(noise, k)
        found = Decimal(single_tail(noise, float(k)))
        assert truth <= found
        assert found <= max(truth * (1 + Decimal("1e-11")), Decimal(sys.float_info.min))

    @pytest.mark.heavy
    @pytest.mark.parametrize("k", [1, 257, 800, 1500, 4000])
    def test_integral_and_sum_agree_for_wide_gaussians(self, k: int) -> None:
        truth = decimal_tail(gaussian(260.5), k)
        found = Decimal(single_tail(gaussian(260.5), float(k)))
        assert truth <= found <= truth * (1 + Decimal("1e-6"))

    @pytest.mark.heavy
    def test_the_integral_without_its_error_term_falls_short(self) -> None:
        """The wrong twin of the bound for wide Gaussians: the midpoint rule corrected, its error left out."""
        scale, shortfalls = 256.0, 0
        for k in (1, 128, 300, 700, 1000):
            y = (k + 0.5) / scale
            area = math.sqrt(math.pi / 2) * math.erfc(y / math.sqrt(2))
            twin = 2 * (scale * area - y * math.exp(-y * y / 2) / (24 * scale)) / (scale * math.sqrt(2 * math.pi))
            shortfalls += Decimal(twin) < decimal_tail(gaussian(scale), k)
        assert shortfalls > 0

    def test_closed_form_of_laplace(self) -> None:
        a = math.exp(-1 / 10)
        assert single_tail(laplace(10.0), 25.0) == pytest.approx(2 * a**26 / (1 + a), rel=1e-11)

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_error_of_exactly_the_threshold_is_within_it(self, kind: NoiseKind) -> None:
        noise = Noise(kind=kind, scale=3.0)
        assert single_tail(noise, 4.999999) == single_tail(noise, 4.0) > single_tail(noise, 5.0)

    @pytest.mark.parametrize("kind", KINDS)
    def test_edges(self, kind: NoiseKind) -> None:
        noise = Noise(kind=kind, scale=3.0)
        assert single_tail(noise, -1e-9) == single_tail(noise, -1.0) == single_tail(noise, -math.inf) == 1.0
        assert single_tail(noise, 0.0) == pytest.approx(float(decimal_tail(noise, 0)), rel=1e-9)
        assert 0.0 < single_tail(noise, math.inf) <= 1e-300
        with pytest.raises(GoalError):
            single_tail(noise, math.nan)

    def test_enormous_scales_are_continuous_laws(self) -> None:
        far = 3 * LARGEST_SCALE
        assert single_tail(laplace(LARGEST_SCALE), far) == pytest.approx(math.exp(-3), rel=1e-9)
        assert single_tail(gaussian(LARGEST_SCALE), far) == pytest.approx(math.erfc(3 / math.sqrt(2)), rel=1e-9)


class TestScaleFor:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("alpha", [1.0, 7.0, 300.5, 2e6])
    @pytest.mark.parametrize("beta", [0.3, 1e-3, 1e-9])
    def test_is_the_largest(self, kind: NoiseKind, alpha: float, beta: float) -> None:
        scale = scale_for(kind, alpha, beta)
        assert single_tail(Noise(kind=kind, scale=scale), alpha) <= beta
        assert single_tail(Noise(kind=kind, scale=scale * (1 + 1e-7)), alpha) > beta

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_ends_of_the_range(self, kind: NoiseKind) -> None:
        assert scale_for(kind, 2.0**60, 0.01) == LARGEST_SCALE
        with pytest.raises(GoalError, match="not even the least noise"):
            scale_for(kind, -1.0, 0.01)
        with pytest.raises(GoalError, match="chance of failure"):
            scale_for(kind, 10.0, 0.0)

    def test_a_laplace_so_sure_that_no_scale_will_do(self) -> None:
        with pytest.raises(GoalError, match="not even the least noise"):
            scale_for(LAPLACE, 0.5, 1e-40)


class TestHalfWidth:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("scale", [SMALLEST_SCALE, 0.6, 4.0, 1000.0, LARGEST_SCALE])
    @pytest.mark.parametrize("beta", [0.4, 0.05, 1e-7])
    def test_is_the_least_that_covers(self, kind: NoiseKind, scale: float, beta: float) -> None:
        noise = Noise(kind=kind, scale=scale)
        h = half_width(noise, beta)
        assert h == int(h) >= 0
        assert single_tail(noise, h) <= beta
        assert single_tail(noise, h - 1) > beta

    def test_the_ends_of_the_interval_count(self) -> None:
        """Pr[|X| > 0] is .538 for scale 1, so h = 0 is enough for .55 and not for .53."""
        assert (half_width(laplace(1.0), 0.55), half_width(laplace(1.0), 0.53)) == (0.0, 1.0)
        assert single_tail(laplace(1.0), 0.0) == pytest.approx(0.5379, abs=1e-4)


class TestTail:
    @pytest.mark.parametrize("noise", [laplace(4.0), gaussian(0.7), gaussian(500.0)])
    @pytest.mark.parametrize("weight", [1.0, -0.1, 3.7e-9, 2.0**200])
    def test_one_term_is_a_single_draw(self, noise: Noise, weight: float) -> None:
        for k in (1, 3, 10):
            found = tail([0.0, weight], [laplace(9.0), noise], k * abs(weight) * (1 + 1e-11))
            assert found == pytest.approx(single_tail(noise, k), rel=1e-11)

    @pytest.mark.parametrize("weight", [1.0, 3.0, 0.25, 7 / 8, 1e6])
    def test_on_the_edge_of_exact_weights_an_error_is_within(self, weight: float) -> None:
        noise = laplace(2.0)
        assert tail([weight], [noise], 9 * weight) == pytest.approx(single_tail(noise, 9), rel=1e-11)
        twice = tail([1.0, 1.0], [noise] * 2, 9.0)
        assert tail([weight, weight], [noise] * 2, 9 * weight) == pytest.approx(twice, rel=1e-6)
        assert tail([weight, weight], [noise] * 2, 9 * weight * (1 - 1e-15)) > 1.2 * twice

    @pytest.mark.parametrize(("weight", "steps"), [(0.1, 10), (0.1, 3), (0.3, 3), (1 / 3, 150), (2 / 3, 7)])
    def test_on_the_edge_of_rounded_weights_an_error_is_beyond(self, weight: float, steps: int) -> None:
        """0.1 is a little more than a tenth as a float, and 0.3 a little less than three tenths: none can tell."""
        noise = laplace(20.0)
        for alpha in (steps * weight, round(steps * weight, 12)):
            assert tail([weight], [noise], alpha) == pytest.approx(single_tail(noise, steps - 1), rel=1e-11)
            assert tail([weight], [noise], alpha * (1 + 1e-11)) == pytest.approx(single_tail(noise, steps), rel=1e-11)
            whole = tail([1.0, 1.0], [noise] * 2, steps - 0.5)
            assert tail([weight, weight], [noise] * 2, alpha) == pytest.approx(whole, rel=1e-3)

    def test_edges(self) -> None:
        noises = [laplace(2.0), gaussian(2.0)]
        assert tail([1.0, 1.0], noises, -1e-9) == tail([1.0, 1.0], noises, -3.0) == tail([], [], -1.0) == 1.0
        assert tail([1.0, 1.0], [laplace(2.0)] * 2, 0.0) == pytest.approx(0.8702, abs=1e-4)  # 1 - Pr[X = -Y]
        assert tail([0.0, 0.0], noises, 1e-9) == tail([], [], 1e-9) == 0.0
        assert 0.0 < tail([1.0, 1.0], noises, math.inf) <= 1e-300
        assert tail([1.0, 1.0], noises, 5e-324) <= 1.0

    @pytest.mark.parametrize("weights", [[1.0], [1.0, math.nan], [1.0, math.inf], [1.0, 1e-200]])
    def test_refuses_weights_that_make_no_sense(self, weights: list[float]) -> None:
        with pytest.raises(GoalError, match="weight"):
            tail(weights, [laplace(2.0), laplace(2.0)], 1.0)

    def test_two_laplace_draws_in_closed_form(self) -> None:
        """Pr[X + Y = n] = ((1-a)/(1+a))^2 a^n (n + (1+a^2)/(1-a^2)) for n >= 0 and equal scales."""
        a = math.exp(-1 / 7.0)
        n = np.arange(60, 4000)
        truth = 2 * float(np.sum(((1 - a) / (1 + a)) ** 2 * a**n * (n + (1 + a * a) / (1 - a * a))))
        assert truth <= tail([-1.0, 1.0], [laplace(7.0)] * 2, 59.0) <= 1.001 * truth

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("times", [1.5, 3.0, 4.5])
    def test_long_sums_approach_the_normal_law(self, kind: NoiseKind, times: float) -> None:
        weights = np.random.default_rng(1).normal(size=2000)
        noises = [Noise(kind=kind, scale=20.0)] * 2000
        alpha = times * math.sqrt(noises[0].variance()) * float(np.linalg.norm(weights))
        # The fourth cumulant of a Laplace draw is 3 times its squared variance: Edgeworth's correction to the tail.
        kurtosis = 3.0 * float(np.sum(weights**4) / np.sum(weights**2) ** 2) if kind is LAPLACE else 0.0
        density = math.exp(-(times**2) / 2) / math.sqrt(2 * math.pi)
        normal = math.erfc(times / math.sqrt(2)) + kurtosis / 12 * (times**3 - 3 * times) * density
        assert 0.998 * normal <= tail(weights, noises, alpha) <= 1.02 * normal

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("times", [1.7, 3.5, 6.0])
    def test_scales_too_wide_for_the_lattice(self, kind: NoiseKind, times: float) -> None:
        noises = [Noise(kind=kind, scale=scale) for scale in (3000.0, 2000.0, 1500.0)]
        law = fftconvolve(fftconvolve(masses(noises[0]), masses(noises[1])), masses(noises[2]))
        alpha = times * math.sqrt(sum(noise.variance() for noise in noises))
        truth = float(law[np.abs(np.arange(law.size) - law.size // 2) > alpha].sum())
        assert 0.999999 * truth <= tail([1.0, 1.0, -1.0], noises, alpha) <= 1.02 * truth

    @pytest.mark.parametrize("kind", KINDS)
    def test_enormous_scales(self, kind: NoiseKind) -> None:
        """A sum is unchanged, but for the lattice, when its scales grow a million times and its weights shrink so."""
        small, large = Noise(kind=kind, scale=2.0**20), Noise(kind=kind, scale=LARGEST_SCALE)
        here, there = tail([1.0, 0.3], [small] * 2, 2.0**22), tail([2.0**-20, 0.3 * 2.0**-20], [large] * 2, 2.0**22)
        assert here == pytest.approx(there, rel=1e-4)

    def test_least_scales(self) -> None:
        """All but sure to be zero: Pr[|X| >= 1] is 2 e^-64 / (1 + e^-64) for each of two draws."""
        found = tail([1.0, 1.0], [laplace(SMALLEST_SCALE)] * 2, 0.5)
        assert found == pytest.approx(4 * math.exp(-64), rel=1e-3)
        assert tail([1.0, 1.0], [gaussian(SMALLEST_SCALE)] * 2, 1.0) <= 1e-300
        assert tail([1.0, 0.77], [laplace(SMALLEST_SCALE), gaussian(5.0)], 20.0) == pytest.approx(
            single_tail(gaussian(5.0), 25), rel=0.02
        )

    def test_calibration_off_by_a_seventh_falls_short(self) -> None:
        """The wrong twin: the same sum believed to have noise that is 15 % less."""
        weights = np.random.default_rng(2).normal(size=12)
        alpha = 3.0 * 8.0 * float(np.linalg.norm(weights))
        believed, real = (tail(weights, [gaussian(scale)] * 12, alpha) for scale in (8.0 / 1.15, 8.0))
        assert believed < 0.5 * real


class TestInversion:
    @pytest.mark.parametrize("a", [1e-3, 0.0128, 0.3, 2.0])
    def test_the_majorant_is_one(self, a: float) -> None:
        """The wrong twin has the same values at whole numbers, and no slopes: it falls short in between."""
        t, x = (np.arange(20_000) + 0.5) / 20_000, np.concatenate([np.arange(-6.0, 7.0), np.linspace(-6, 6, 97)])
        below = np.where(x < 0, 0.0, np.exp(-a * np.maximum(x, 0.0)))
        turns = np.exp(2j * np.pi * np.outer(x, t))
        transform, without_slopes = majorant_transform(t, a), (1 - t) / -np.expm1(-a - 2j * np.pi * t)
        majorant, twin = (2 * (turns @ each).real / len(t) for each in (transform, without_slopes))
        assert np.all(majorant >= below - 1e-4)
        assert np.allclose(majorant[:13], below[:13], atol=1e-4)
        assert np.any(twin < below - 0.01)

    def test_an_atom_at_the_threshold_counts(self) -> None:
        row = Sums.of(np.array([[1.0, 2.0**-40]]), [laplace(1.0), laplace(SMALLEST_SCALE)]).row(0)
        inversion, truth = Inversion.of(row, 3.0), single_tail(laplace(1.0), 2.0)  # Pr[|X| >= 3]
        assert inversion.pitch is None
        assert truth * (1 - 1e-9) <= inversion.upper(3.0) <= 1.02 * truth

    def test_a_threshold_between_two_lattice_points_is_the_upper_one(self) -> None:
        inversion = Inversion.of(Sums.of(np.array([[3.0, 6.0]]), [laplace(5.0), gaussian(2.0)]).row(0), 40.0)
        assert inversion.pitch == 3.0
        assert inversion.upper(39.5) == inversion.upper(39.0) < inversion.upper(38.5)

    def test_is_an_upper_bound_far_from_where_it_was_made(self) -> None:
        row = Sums.of(np.array([[1.0, 1.0, 1.0]]), [laplace(6.0)] * 3).row(0)
        law = np.convolve(np.convolve(masses(laplace(6.0)), masses(laplace(6.0))), masses(laplace(6.0)))
        distance = np.abs(np.arange(law.size) - law.size // 2)
        inversion = Inversion.of(row, 40.0)
        for alpha in (1.0, 10.0, 80.0, 200.0, 400.0):
            assert inversion.upper(alpha) >= float(law[distance > alpha].sum()) * (1 - 1e-12)


def chernoff_tail(weights: ArrayLike, noises: Sequence[Noise], alpha: float) -> NDArray[np.float64]:
    """For each row of a matrix of weights, Chernoff's bound, with the tail of its widest draw."""
    sums = Sums.of(np.asarray(weights, np.float64), noises)
    return chernoff_tails(sums, np.full(len(np.asarray(weights)), float(alpha)))[2]


class TestWorkloads:
    def test_chernoff_is_above_the_tail_and_not_far(self) -> None:
        rng = np.random.default_rng(3)
        noises = [laplace(4.0)] * 6 + [gaussian(9.0)] * 6 + [gaussian(0.4)] * 3
        matrix = rng.normal(size=(8, 15))
        bounds = chernoff_tail(matrix, noises, 90.0)
        exact = np.array([tail(row, noises, 90.0) for row in matrix])
        assert np.all(exact <= bounds)
        assert np.all(bounds <= 40 * exact)

    @pytest.mark.parametrize("scales", [(6.0,), (3.0, 3.0), (0.2, 0.5), (9.0, 2.0, 2.0), (1.0,) * 8, (40.0, 39.0)])
    def test_the_widest_draw_counts_by_its_own_tail(self, scales: tuple[float, ...]) -> None:
        """From thresholds near zero, where the bound on it is at its loosest, to far ones."""
        noises = [laplace(scale) for scale in scales]
        law = np.ones(1)
        for noise in noises:
            law = np.convolve(law, masses(noise))
        distance = np.abs(np.arange(len(law)) - len(law) // 2)
        spread = math.sqrt(sum(noise.variance() for noise in noises))
        for height in (0.05, 0.3, 0.8, 1.5, 3.0, 6.0):
            alpha = math.ceil(height * spread)
            found = float(chernoff_tail(np.ones((1, len(noises))), noises, alpha)[0])
            _, exponent = chernoff_exponent(Sums.of(np.ones((1, len(noises))), noises), np.array([float(alpha)]))
            plain = 2 * math.exp(-max(float(exponent[0]), 0.0))
            assert float(law[distance >= alpha].sum()) <= found * (1 + 1e-12)
            assert found <= min(1.0, plain) * (1 + 1e-9)
            assert height < 3 or found < 0.7 * plain

    def test_union_adds_what_the_rows_have(self) -> None:
        rng = np.random.default_rng(4)
        noises = [laplace(4.0)] * 5 + [gaussian(7.0)] * 5
        matrix = np.vstack([rng.normal(size=(6, 10)), np.eye(10)[:2], np.zeros((1, 10))])
        whole = sum(tail(row, noises, 60.0) for row in matrix)
        assert tail(matrix, noises, 60.0, enough=whole * 1.001) == pytest.approx(whole, rel=0.05)
        assert tail(matrix, noises, 60.0, enough=whole * 1.001) <= whole * 1.001
        assert tail(matrix, noises, 60.0, enough=whole * 0.9) > whole * 0.9

    @pytest.mark.parametrize("noises", [[laplace(4.0)] * 9, [gaussian(0.4)] * 9, [laplace(9.0), gaussian(5.0)] * 5])
    def test_a_quick_bound_is_a_bound_and_settles_what_is_clear(self, noises: list[Noise]) -> None:
        rng = np.random.default_rng(6)
        matrix = rng.normal(size=(4, len(noises)))
        widest = math.sqrt(max(np.square(matrix) @ [noise.variance() for noise in noises]))
        for height in (1.0, 3.0, 5.0, 9.0):
            exact = sum(tail(row, noises, height * widest) for row in matrix)
            found = tail(matrix, noises, height * widest, enough=100 * exact)
            assert exact <= found * (1 + 1e-9)
            assert found <= 100 * exact

    def test_a_quick_exponent_never_exceeds_the_best_and_is_the_best_for_normal_sums(self) -> None:
        rng, alpha = np.random.default_rng(8), np.full(6, 40.0)
        for noises in ([laplace(4.0)] * 7, [laplace(8.0), gaussian(3.0), laplace(2.0)], [gaussian(0.3)] * 4):
            sums = Sums.of(rng.normal(size=(6, len(noises))), noises)
            assert np.all(quick_exponent(sums, alpha) <= chernoff_exponent(sums, alpha)[1] * (1 + 1e-5))
        weights = rng.normal(size=(6, 5))
        variances = np.square(weights) @ np.full(5, 49.0)
        quick = quick_exponent(Sums.of(weights, [gaussian(7.0)] * 5), alpha)
        assert np.allclose(quick, np.square(alpha) / (2 * variances))
        whole = float(2 * np.exp(-quick).sum())
        assert tail(weights, [gaussian(7.0)] * 5, 40.0, enough=1.001 * whole) == pytest.approx(whole, rel=1e-6)

    def test_what_the_quick_bound_leaves_open_is_decided_as_before(self) -> None:
        noises, matrix = [laplace(4.0)] * 9, np.random.default_rng(7).normal(size=(4, 9))
        exact = sum(tail(row, noises, 45.0) for row in matrix)
        quick = tail(matrix, noises, 45.0, enough=1e9)
        assert quick > 1.5 * exact
        assert tail(matrix, noises, 45.0, enough=quick * (1 - 1e-6)) < quick * (1 - 1e-6)
        assert tail(matrix, noises, 45.0, enough=1.01 * exact) <= 1.01 * exact

    def test_union_of_like_rows_is_a_multiple(self) -> None:
        """Order and signs do not matter; nor do differences in the last bits, but for the last digits."""
        rng = np.random.default_rng(5)
        noises, row = [laplace(4.0)] * 10, rng.normal(size=10)
        one = tail(row, noises, 40.0)
        like = np.vstack([rng.permutation(row) * rng.choice([-1.0, 1.0], size=10) for _ in range(7)])
        assert tail(like, noises, 40.0, enough=7.001 * one) == pytest.approx(7 * one, rel=1e-9)
        nearly = like * (1 + 1e-14 * rng.uniform(size=like.shape))
        assert tail(nearly, noises, 40.0, enough=7.001 * one) == pytest.approx(7 * one, rel=1e-3)

    def test_rows_on_different_noises_are_not_alike(self) -> None:
        noises = [laplace(2.0), laplace(30.0), laplace(30.0)]
        matrix = np.array([[1.0, 0.0, 2.0], [2.0, 0.0, 1.0]])
        apart = [tail(row, noises, 100.0) for row in matrix]
        assert apart[0] > 2 * apart[1]
        assert tail(matrix, noises, 100.0, enough=1.001 * sum(apart)) == pytest.approx(sum(apart), rel=0.01)

    def test_union_edges(self) -> None:
        noises = [laplace(2.0)] * 2
        assert tail(np.eye(2), noises, -1.0, enough=0.1) == 1.0
        assert tail(np.zeros((3, 2)), noises, 1.0, enough=0.1) == 0.0
        assert tail(np.empty((0, 2)), noises, 0.0, enough=0.1) == 0.0
        assert tail(np.empty((0, 0)), [], 1.0, enough=0.1) == 0.0
        assert tail(np.ones((500, 2)), noises, 1.0, enough=0.1) == 1.0
        with pytest.raises(GoalError, match="one column for each noise"):
            tail(np.eye(3), noises, 1.0, enough=0.1)

    def test_half_widths_of_single_draws_are_multiples(self) -> None:
        noises = [laplace(4.0), gaussian(7.0)]
        widths = half_widths(np.array([[0.3, 0.0], [0.0, -2.0], [0.0, 0.0]]), noises, 0.03)
        share = 0.01 * (1 - 2.0**-40)
        assert widths[0] == pytest.approx(0.3 * half_width(noises[0], share), rel=1e-15)
        assert widths[1:].tolist() == [2.0 * half_width(noises[1], share), 0.0]

    @pytest.mark.parametrize("beta", [0.3, 0.01, 1e-8])
    def test_half_widths_cover_and_are_close_to_the_least(self, beta: float) -> None:
        rng = np.random.default_rng(6)
        noises = [laplace(4.0)] * 4 + [gaussian(7.0)] * 4
        matrix = rng.normal(size=(5, 8))
        for row, width in zip(matrix, half_widths(matrix, noises, beta), strict=True):
            assert tail(row, noises, width * (1 + 1e-12)) <= beta / 5 * 1.02
            assert tail(row, noises, 0.99 * width) > beta / 5

    def test_half_widths_on_a_lattice_include_their_ends(self) -> None:
        """X + Y is an integer: the least h with Pr[|X + Y| > h] <= beta, and it may be zero."""
        noises = [gaussian(1.3)] * 2
        (h,) = half_widths([[1.0, 1.0]], noises, 0.05)
        assert h == int(h)
        assert tail([1.0, 1.0], noises, h) <= 0.05 < tail([1.0, 1.0], noises, h - 1)
        assert half_widths([[3.0, 3.0]], [laplace(0.125)] * 2, 0.05).tolist() == [0.0]

    def test_half_widths_of_like_rows_are_alike(self) -> None:
        rng = np.random.default_rng(7)
        noises, row = [laplace(4.0)] * 10, rng.normal(size=10)
        like = np.vstack([row, -row[::-1], row * (1 + 1e-14 * rng.uniform(size=10))])
        widths, (alone,) = half_widths(like, noises, 0.03), half_widths([row], noises, 0.01)
        assert np.ptp(widths) == 0.0
        assert alone <= widths[0] <= alone * (1 + 1e-5)

    def test_half_widths_edges(self) -> None:
        noises = [laplace(2.0)] * 2
        assert half_widths(np.empty((0, 2)), noises, 0.1).shape == (0,)
        assert half_widths(np.zeros((2, 2)), noises, 0.1).tolist() == [0.0, 0.0]
        assert np.all(np.isfinite(half_widths([[1.0, 1.0]], noises, 1e-200)))
        with pytest.raises(GoalError, match="chance of failure"):
            half_widths(np.eye(2), noises, 0.0)


def test_a_first_guess_that_says_nothing_warns_of_nothing() -> None:
    """Two thousand narrow draws: at the first tilt that is tried, the exponent is below -709."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bound = tail(np.ones((1, 2000)), [laplace(0.1)] * 2000, 20.0, 0.05)
    assert 0 < bound < 1e-30


@pytest.mark.parametrize("noise", [laplace(0.7), laplace(6.0), gaussian(3.0)], ids=str)
def test_some_rows_say_about_what_all_of_them_say(noise: Noise) -> None:
    """And nothing where that is near what is asked about. One row alone would be far off."""
    rng = np.random.default_rng(3)
    weights = np.abs(rng.normal(1.0, 0.3, (60, 9))) * (rng.random((60, 9)) < 0.6)
    noises = [noise] * 9
    alpha = float(half_widths(weights, noises, 0.2).max())
    exact = sum(tail(row, noises, alpha) for row in weights)
    for enough in (exact / 3, 3 * exact):
        about = sampled_tail(weights, noises, alpha, enough)
        if about is not None:  # Chernoff's bounds may do without
            assert (about > enough) == (exact > enough)
            assert exact / 1.5 < about < 1.5 * exact
    assert sampled_tail(weights, noises, alpha, exact / 3) is not None
    assert sampled_tail(weights, noises, alpha, exact) is None
    assert sampled_tail(weights[:5], noises, alpha, exact / 3) is None
    assert not exact / 1.5 < 60 * tail(weights[0], noises, alpha) < 1.5 * exact
