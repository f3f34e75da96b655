"""A discrete Fourier transform whose rounding errors are bounded by a proof; see transform.proof.md.

It is plain Cooley-Tukey with small factors: every stage is one product with a small real matrix, then a product with
unit numbers. Nothing here knows of counts or privacy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

LARGEST_FACTOR = 61
"""Largest prime factor of a length that can be transformed; lengths with smaller factors only lie close together."""

PREFERRED_FACTOR = 16
"""Small primes are multiplied up to this: fewer stages, and still short sums."""

UNIT_ROUNDOFF = 2.0**-53
WEIGHT_ERROR = 2.0**-49
"""How far a computed cosine or sine of 2 pi j/N, |j| <= N/2, can be off; the proof says why."""


def factors_of(length: int) -> tuple[int, ...] | None:
    """The factors that a length is transformed by; None where it has a prime factor above `LARGEST_FACTOR`."""
    found: list[int] = []
    rest, prime = length, 2
    while rest > 1 and prime <= LARGEST_FACTOR:
        while rest % prime == 0:
            rest //= prime
            if found and found[-1] * prime <= PREFERRED_FACTOR:
                found[-1] *= prime
            else:
                found.append(prime)
        prime += 1
    return tuple(found) if rest == 1 else None


def smooth_from(least: int) -> int:
    """The smallest length of at least `least` that can be transformed."""
    return next(length for length in range(least, 2 * least + 1) if factors_of(length) is not None)


def error_of(length: int) -> float:
    """e with |computed - exact| <= e sum_j |x_j| for every entry of `dft`; rounded up.

    1 + e is the product over stages of (1 + sqrt2 mu)^2 (1 + sqrt2 gamma_(f+1)) (1 + sqrt2 gamma_2), with f the
    stage's factor, mu the error of a weight and gamma_k = k u / (1 - k u).
    """
    log = 0.0
    for factor in factors_of(length) or ():
        for part in (WEIGHT_ERROR, WEIGHT_ERROR, _gamma(factor + 1), _gamma(2)):
            log += math.log1p(math.sqrt(2) * part)
    return math.expm1(log) * (1 + 2.0**-20) + 2.0**-60


def dft(values: Reals) -> tuple[Reals, Reals]:
    """Real and imaginary parts of sum_j x_j exp(-2 pi i j k / N), for k = 0 .. N-1; x is real.

    Stage by stage, j = j1 m + j2 and k = k1 + f k2: exp(-2 pi i jk/N) is the product of exp(-2 pi i j1 k1/f),
    exp(-2 pi i j2 k1/(f m)) and exp(-2 pi i j2 k2/m). New indices go in front, so the result is in order at the end.
    """
    length = len(values)
    re: Reals = np.array(values, np.float64)
    im: Reals = np.zeros(length)
    done, rest = 1, length
    for factor in factors_of(length) or ():
        rest //= factor
        cosine, sine = _weights(factor, np.outer(np.arange(factor), np.arange(factor)))
        re, im = (_split(part, done, factor, rest) for part in (re, im))
        re, im = cosine @ re + sine @ im, cosine @ im - sine @ re
        cosine, sine = _weights(factor * rest, np.outer(np.arange(factor), np.arange(rest)))
        re, im = (part.reshape(factor, done, rest) for part in (re, im))
        cosine, sine = cosine[:, None, :], sine[:, None, :]
        re, im = re * cosine + im * sine, im * cosine - re * sine
        done *= factor
    return re.reshape(length), im.reshape(length)


def _split(part: Reals, done: int, factor: int, rest: int) -> Reals:
    return part.reshape(done, factor, rest).transpose(1, 0, 2).reshape(factor, done * rest)


def _weights(length: int, power: NDArray[np.int64]) -> tuple[Reals, Reals]:
    """Cosine and sine of 2 pi power/length, from the power's remainder nearest to zero."""
    remainder = power % length
    angle = (remainder - length * (2 * remainder > length)) * (2 * math.pi) / length
    return np.cos(angle), np.sin(angle)


def _gamma(operations: int) -> float:
    return operations * UNIT_ROUNDOFF / (1 - operations * UNIT_ROUNDOFF)
