"""Moment generating and characteristic functions of weighted sums of discrete noise.

A tail is read off the function M(z) = E exp(z S) on a vertical line s + it of the complex plane. S is a sum of
independent terms w X, so M is a product, and each factor has a closed form. Everything is kept relative to its
value on the real axis ("tilted" by s), where it is largest: nothing overflows, and the deepest tail keeps as many
digits as the shallowest.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.noise.law import Noise, NoiseKind
from bursar.lazy_dataclass import dataclass


class Law(Protocol):
    """One draw X, as a function of its scale; all arguments broadcast, u >= 0."""

    def variance(self, scale: Reals) -> Reals:
        """At least the variance of X."""

    def reach(self, scale: Reals) -> Reals:
        """E exp(u X) is finite for u below this."""

    def log_mgf(self, u: Reals, scale: Reals) -> Reals:
        """log E exp(u X), or a little more."""

    def mean(self, u: Reals, scale: Reals) -> Reals:
        """The derivative of `log_mgf` in u: the mean of the tilted draw."""

    def log_modulus(self, u: Reals, scale: Reals, angle: Reals) -> Reals:
        """Logarithm of the modulus of E exp((u + i angle) X) / exp(log_mgf(u))."""

    def phase(self, u: Reals, scale: Reals, angle: Reals) -> Reals:
        """Its phase."""


class Laplace:
    """Discrete Laplace: with c = 1/scale, E exp(zX) = (cosh c - 1) / (cosh c - cosh z) for |Re z| < c.

    The same as (1-a)^2 / ((1 - a e^z)(1 - a e^-z)) with a = e^-c, in a form that does not cancel for large scales.
    """

    def variance(self, scale: Reals) -> Reals:
        return 0.5 / np.sinh(0.5 / scale) ** 2

    def reach(self, scale: Reals) -> Reals:
        return 1.0 / scale

    def log_mgf(self, u: Reals, scale: Reals) -> Reals:
        return -np.log1p(-((np.sinh(0.5 * u) / np.sinh(0.5 / scale)) ** 2))

    def mean(self, u: Reals, scale: Reals) -> Reals:
        return np.sinh(u) / self._gap(u, scale)

    def bend(self, u: Reals, scale: Reals) -> Reals:
        """The second derivative of `log_mgf` in u: the variance of the tilted draw."""
        return (np.cosh(u) * np.cosh(1.0 / scale) - 1.0) / self._gap(u, scale) ** 2

    def log_modulus(self, u: Reals, scale: Reals, angle: Reals) -> Reals:
        """With x = sin(angle/2)^2, A = 2 cosh u / gap and B = 2 sinh u / gap, one over the square of the modulus is
        (1 + A x)^2 + B^2 x (1 - x) = 1 + x (2 A + B^2 + (2/gap)^2 x)."""
        gap = self._gap(u, scale)
        x = np.square(np.sin(0.5 * angle))
        inverse = x * np.square(2.0 / gap)
        inverse += 2.0 * (2.0 * np.cosh(u) / gap) + np.square(2.0 * np.sinh(u) / gap)
        inverse *= x
        inverse += 1.0
        return np.asarray(-0.5 * np.log(inverse))

    def phase(self, u: Reals, scale: Reals, angle: Reals) -> Reals:
        """With A and x as above, that of 1 + A x + i sinh(u) sin(angle) / gap, whose real part is at least 1."""
        gap = self._gap(u, scale)
        real = np.square(np.sin(0.5 * angle))
        real *= 2.0 * np.cosh(u) / gap
        real += 1.0
        ratio = np.sin(angle)
        ratio *= np.sinh(u) / gap
        ratio /= real
        return np.asarray(np.arctan(ratio, out=ratio))

    def _gap(self, u: Reals, scale: Reals) -> Reals:
        """cosh c - cosh u."""
        return 2.0 * np.sinh(0.5 / scale + 0.5 * u) * np.sinh(0.5 / scale - 0.5 * u)


class WideGaussian:
    """Discrete Gaussian with scale >= 1, by Poisson summation:

    E exp(zX) = sum_k exp(scale^2 (z - 2 pi i k)^2 / 2) / sum_k exp(-2 pi^2 scale^2 k^2).
    With the angle reduced to [-pi, pi], the terms |k| >= 2 are below 1e-19 and those with |k| = 1 too from scale 3.
    """

    def variance(self, scale: Reals) -> Reals:
        return scale**2

    def reach(self, scale: Reals) -> Reals:
        return np.full_like(scale, np.inf)

    def log_mgf(self, u: Reals, scale: Reals) -> Reals:
        return 0.5 * (scale * u) ** 2

    def mean(self, u: Reals, scale: Reals) -> Reals:
        return scale**2 * u

    def log_modulus(self, u: Reals, scale: Reals, angle: Reals) -> Reals:
        near = _wrapped(angle)
        size = -0.5 * (scale * near) ** 2
        if np.min(scale) < 3.0:
            whole = np.log1p(2.0 * np.exp(-2.0 * (np.pi * scale) ** 2))
            size = size + np.log(np.abs(self._others(u, scale, near))) - whole
        return size

    def phase(self, u: Reals, scale: Reals, angle: Reals) -> Reals:
        near = _wrapped(angle)
        phase = scale**2 * u * near
        return phase + np.angle(self._others(u, scale, near)) if np.min(scale) < 3.0 else phase

    def _others(self, u: Reals, scale: Reals, near: Reals) -> NDArray[np.complex128]:
        """The terms |k| <= 1, relative to that with k = 0."""
        turn = np.exp(2j * np.pi * scale**2 * u)
        fall, swing = -2.0 * (np.pi * scale) ** 2, 2.0 * np.pi * scale**2 * near
        up, down = np.exp(np.minimum(fall + swing, 0.0)), np.exp(np.minimum(fall - swing, 0.0))
        return np.asarray(1.0 + up / turn + down * turn)


class NarrowGaussian:
    """Discrete Gaussian with scale < 1, by its own series: the tilted mass sits on a few integers around scale^2 u.

    E exp(uX) = exp(scale^2 u^2 / 2) rho(y) / rho(0), where rho(y) = sum_d exp(-(d-y)^2 / (2 scale^2)) and y is
    scale^2 u less its nearest integer. What lies beyond 10 steps is below 1e-19.
    """

    steps = range(-10, 11)

    def variance(self, scale: Reals) -> Reals:
        return scale**2

    def reach(self, scale: Reals) -> Reals:
        return np.full_like(scale, np.inf)

    def log_mgf(self, u: Reals, scale: Reals) -> Reals:
        centre = scale**2 * u
        masses, around = self._masses(centre - np.rint(centre), scale), self._masses(0.0 * centre, scale)
        return 0.5 * (scale * u) ** 2 + np.log(_total(masses)) - np.log(_total(around))

    def mean(self, u: Reals, scale: Reals) -> Reals:
        centre = scale**2 * u
        masses = self._masses(centre - np.rint(centre), scale)
        return np.rint(centre) + _total(d * p for d, p in zip(self.steps, masses, strict=True)) / _total(masses)

    def log_modulus(self, u: Reals, scale: Reals, angle: Reals) -> Reals:
        return np.asarray(np.log(np.abs(self._series(u, scale, _wrapped(angle)))))

    def phase(self, u: Reals, scale: Reals, angle: Reals) -> Reals:
        near = _wrapped(angle)
        first = np.rint(scale**2 * u) + self.steps[0]
        return np.asarray(np.angle(self._series(u, scale, near)) + first * near)

    def _series(self, u: Reals, scale: Reals, near: Reals) -> NDArray[np.complex128]:
        """The transform, but for the rotation of its first step."""
        centre = scale**2 * u
        masses = self._masses(centre - np.rint(centre), scale)
        whole = _total(masses)
        rotation, total = np.exp(1j * near), np.zeros(near.shape, dtype=complex)
        for mass in reversed(masses):
            total = total * rotation + mass / whole
        return total

    def _masses(self, y: Reals, scale: Reals) -> list[Reals]:
        return [np.exp(-0.5 * ((d - y) / scale) ** 2) for d in self.steps]


def _wrapped(angle: Reals) -> Reals:
    """The angle in [-pi, pi]."""
    return angle - 2.0 * np.pi * np.rint(angle / (2.0 * np.pi))


def _total(arrays: Iterable[Reals]) -> Reals:
    return reduce(operator.add, arrays)


LAWS: tuple[Law, ...] = (Laplace(), WideGaussian(), NarrowGaussian())


@dataclass(frozen=True, kw_only=True)
class LawTerms:
    """The terms of some sums that follow one law: `weight[i, j]` times `count[j]` draws of scale `scale[j]`."""

    law: Law
    weight: Reals
    count: Reals
    scale: Reals


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Independent weighted draws, summed: one sum for each row. All laws are symmetric, so signs are dropped.

    Methods take one s for each row; or, where there is one row, as many as one likes.
    """

    parts: tuple[LawTerms, ...]

    @staticmethod
    def of(weights: Reals, noises: Sequence[Noise], counts: Reals | None = None) -> Sums:
        """Sums of `weights[i, j]` times a draw of `noises[j]`, or times `counts[j]` independent draws of it."""
        drawn = Noises.of(noises)
        scales, draws = drawn.scales, np.ones(len(drawn)) if counts is None else counts
        if drawn.kinds.laplace.all() and len(drawn):
            return Sums(parts=(LawTerms(law=LAWS[0], weight=np.abs(weights), count=draws, scale=scales),))
        laws = np.where(drawn.laplace, 0, np.where(scales >= 1.0, 1, 2))  # places in LAWS
        parts = []
        for place, law in enumerate(LAWS):
            columns = np.flatnonzero(laws == place)
            if columns.size:
                weight = np.abs(weights[:, columns])
                parts.append(LawTerms(law=law, weight=weight, count=draws[columns], scale=scales[columns]))
        return Sums(parts=tuple(parts))

    def rows(self, which: slice) -> Sums:
        """Some of the sums."""
        return Sums(parts=tuple(replace(part, weight=part.weight[which]) for part in self.parts))

    def row(self, i: int) -> Sums:
        """One sum alone: zero weights dropped, equal terms counted, the strongest first."""
        parts = []
        for part in self.parts:
            present = np.flatnonzero(part.weight[i])
            order = present[np.lexsort((part.scale[present], part.weight[i, present]))]
            weight, scale = part.weight[i, order], part.scale[order]
            if order.size == 0:
                continue
            first = np.flatnonzero(np.r_[True, (np.diff(weight) != 0) | (np.diff(scale) != 0)])
            count, weight, scale = np.add.reduceat(part.count[order], first), weight[first], scale[first]
            strongest = np.argsort(-count * weight**2 * part.law.variance(scale))
            weight, count, scale = weight[None, strongest], count[strongest], scale[strongest]
            parts.append(LawTerms(law=part.law, weight=weight, count=count, scale=scale))
        return Sums(parts=tuple(parts))

    def gathered(self, width: float, s: float) -> tuple[Sums, float]:
        """One sum with Laplace terms of one scale, whose weighted draws differ by at most `width`, taken for as many of
        their mean weight; and a V that bounds what that does to it.

        Let K be a draw's log_mgf and z = s + it. sum_j K(z w_j) differs from n K(z w), w the mean of n weights, by at
        most |z|^2/2 sum_j (w_j - w)^2 times the largest |K''| on the way. With y = z w_j and a = e^(-1/scale),
        K''(y) = a e^y / (1 - a e^y)^2 + a e^-y / (1 - a e^-y)^2, and |1 - a e^y| >= 1 - a e^(Re y), so
        |K''(y)| <= K''(Re y), which grows with Re y >= 0. Hence log E exp(zS) moves by |z|^2 V / 2 at most, with V the
        sum over all draws of K''(s max w) (w_j - w)^2.
        """
        parts, moved = [], 0.0
        for part in self.parts:
            if not isinstance(part.law, Laplace):
                parts.append(part)
                continue
            order = np.lexsort((part.weight[0], part.scale))
            weight, scale, count = part.weight[0, order], part.scale[order], part.count[order]
            first = _starts(weight, scale, width / np.sqrt(part.law.variance(scale)))
            draws = np.add.reduceat(count, first)
            mean = np.add.reduceat(count * weight, first) / draws
            off = np.add.reduceat(count * np.square(weight - np.repeat(mean, np.diff([*first, len(weight)]))), first)
            largest = np.maximum.reduceat(weight, first)
            moved += float(off @ part.law.bend(s * largest, scale[first]))
            strongest = np.argsort(-draws * np.square(mean) * part.law.variance(scale[first]))
            gathered = (mean[None, strongest], draws[strongest], scale[first][strongest])
            parts.append(LawTerms(law=part.law, weight=gathered[0], count=gathered[1], scale=gathered[2]))
        return Sums(parts=tuple(parts)), moved * (1.0 + 2.0**-30)

    def terms(self) -> float:
        """How many draws are summed."""
        return float(sum(part.count.sum() for part in self.parts))

    def distinct(self) -> int:
        """How many different terms there are."""
        return sum(part.count.size for part in self.parts)

    @cached_property
    def variance(self) -> Reals:
        """At least the variance."""
        return _total(part.weight**2 @ (part.count * part.law.variance(part.scale)) for part in self.parts)

    def spread(self) -> Reals:
        """The sum of the standard deviations of the terms."""
        return _total(part.weight @ (part.count * np.sqrt(part.law.variance(part.scale))) for part in self.parts)

    @cached_property
    def limit(self) -> Reals:
        """E exp(s S) is finite for s below this."""
        with np.errstate(divide="ignore"):
            limits = [np.min(part.law.reach(part.scale) / part.weight, axis=1) for part in self.parts]
        return np.asarray(np.min(limits, axis=0), dtype=np.float64)

    def log_mgf(self, s: Reals) -> Reals:
        """At least log E exp(s S), but for rounding."""
        return _total(p.law.log_mgf(s[:, None] * p.weight, p.scale) @ p.count for p in self.parts)

    def mean(self, s: Reals) -> Reals:
        """The derivative of `log_mgf`."""
        return _total((p.weight * p.law.mean(s[:, None] * p.weight, p.scale)) @ p.count for p in self.parts)

    def log_spared(self, s: Reals) -> Reals:
        """At least log(c / E exp(s w X)), and at most 0, for the widest Laplace draw X of each row, c as below.

        Let R be the rest of S. Pr[w X >= t] <= c exp(-s t) for every t, so Pr[S >= alpha] <= c E exp(s (R - alpha)):
        Chernoff's bound with c in place of what X has of it. With v = s w, a = e^(-1/scale) and b = a / (1 + a),
        c = max_k Pr[X >= k] e^(v k) is at k = 0, where it is 1 - b, or below, where Pr[X >= -n] = 1 - b a^n: by real n
        at most (1 - r) (r/b)^u for r = u / (1 + u) < b, u = v scale.
        """
        result = np.zeros_like(s)
        for part in self.parts:
            if isinstance(part.law, Laplace):
                widest = np.argmax(part.weight * part.scale, axis=1)
                weight, scale = part.weight[np.arange(len(s)), widest], part.scale[widest]
                u = s * weight * scale
                r, b = u / (1.0 + u), 1.0 / (1.0 + np.exp(1.0 / scale))
                with np.errstate(divide="ignore", invalid="ignore"):
                    below = np.log1p(-r) + u * np.log(r / b)
                spared = np.where((r > 0.0) & (r < b), below, np.log1p(-b)) - part.law.log_mgf(s * weight, scale)
                result = np.minimum(result, np.where(weight > 0.0, spared, 0.0))
        return result

    def pitch(self, finest: float) -> float | None:
        """The largest g such that S is always a multiple of g; None if that is below `finest` (one row)."""
        common = Fraction(0)
        for part in self.parts:
            for weight in part.weight[0]:
                common = _common_measure(common, Fraction(float(weight)))
                if common < finest:
                    return None
        return float(common)


def _starts(weight: Reals, scale: Reals, width: Reals) -> Integers:
    """Where runs of one scale start, whose weights, which rise, differ by at most the width of that scale."""
    starts, at = [], 0
    while at < len(weight):
        starts.append(at)
        run = int(np.searchsorted(scale, scale[at], side="right"))
        at = min(run, at + int(np.searchsorted(weight[at:run], weight[at] + width[at], side="right")))
    return np.array(starts, np.int64)


def _common_measure(a: Fraction, b: Fraction) -> Fraction:
    """The greatest common divisor of two fractions."""
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


@dataclass(frozen=True, eq=False)
class Kinds:
    """Different noises, each once, with the numbers that are needed of them."""

    noises: tuple[Noise, ...]

    @cached_property
    def numbers(self) -> dict[Noise, int]:
        return {noise: number for number, noise in enumerate(self.noises)}

    def plus(self, more: Sequence[Noise]) -> Kinds:
        """With more of them, none of which is here; what is known of these is not worked out again."""
        longer, new = Kinds((*self.noises, *more)), Kinds(tuple(more))
        for name in ("scales", "variances", "laplace"):
            longer.__dict__[name] = np.concatenate([getattr(self, name), getattr(new, name)])
        longer.__dict__["numbers"] = self.numbers | {noise: len(self.noises) + n for n, noise in enumerate(more)}
        return longer

    @cached_property
    def scales(self) -> Reals:
        """The scale of each kind of noise."""
        return np.array([noise.scale for noise in self.noises], np.float64)

    @cached_property
    def variances(self) -> Reals:
        return np.array([noise.variance() for noise in self.noises], np.float64)

    @cached_property
    def laplace(self) -> NDArray[np.bool_]:
        """Which kinds are Laplace noise; the others are Gaussian."""
        return np.array([noise.kind is NoiseKind.LAPLACE for noise in self.noises], np.bool_)


Append = Callable[[Integers, Integers], Integers]


def _appended(numbers: Integers, more: Integers) -> Integers:
    return np.concatenate([numbers, more])


@dataclass(frozen=True, eq=False)
class Noises(Sequence[Noise]):
    """The noises of many measured rows, in the order of the rows; `which` numbers them among the kinds.

    Rows are many and their laws few, so each law is looked at once.

    Edge cases: a kind may have no row left.
    """

    kinds: Kinds
    which: Integers

    @staticmethod
    def of(noises: Sequence[Noise]) -> Noises:
        """The same noises; at no cost where they are counted already."""
        if isinstance(noises, Noises):
            return noises
        numbers: dict[Noise, int] = {}
        which = [numbers.setdefault(noise, len(numbers)) for noise in noises]
        return Noises(Kinds(tuple(numbers)), np.array(which, np.int64))

    @staticmethod
    def alike(noise: Noise, rows: int) -> Noises:
        """One noise for all rows."""
        return Noises(Kinds((noise,)), np.zeros(rows, np.int64))

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, place: int) -> Noise: ...

    @overload
    def __getitem__(self, place: slice) -> Noises: ...

    def __getitem__(self, place: int | slice) -> Noise | Noises:
        if isinstance(place, slice):
            return Noises(self.kinds, self.which[place])
        return self.kinds.noises[int(self.which[place])]

    def __iter__(self) -> Iterator[Noise]:
        return map(self.kinds.noises.__getitem__, self.which.tolist())

    def take(self, rows: Integers | NDArray[np.bool_]) -> Noises:
        """Of some rows."""
        return Noises(self.kinds, self.which[rows])

    def plus(self, more: Sequence[tuple[Noise, int]], append: Append = _appended) -> Noises:
        """With more rows at the end, a number of them for each noise. `append` puts numbers behind others."""
        kinds = self._with(noise for noise, _ in more)
        which = [np.full(rows, kinds.numbers[noise]) for noise, rows in more]
        return Noises(kinds, append(self.which, np.concatenate([np.zeros(0, np.int64), *which])))

    def changed(self, rows: Integers, noise: Noise) -> Noises:
        """With another noise for some rows."""
        kinds, which = self._with((noise,)), self.which.copy()
        which[rows] = kinds.numbers[noise]
        return Noises(kinds, which)

    @property
    def scales(self) -> Reals:
        """The scale of each draw."""
        return self.kinds.scales[self.which]

    @property
    def variances(self) -> Reals:
        return self.kinds.variances[self.which]

    @property
    def laplace(self) -> NDArray[np.bool_]:
        """Which draws are Laplace noise; the others are Gaussian."""
        return self.kinds.laplace[self.which]

    def _with(self, noises: Iterable[Noise]) -> Kinds:
        """The kinds with those of the noises that are new."""
        new = [noise for noise in dict.fromkeys(noises) if noise not in self.kinds.numbers]
        return self.kinds.plus(new) if new else self.kinds
