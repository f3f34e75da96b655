"""Noise of tests and answers by the constants of Boost: as behind its figures, as printed, and by Lemma A.2."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.proposers.pmw import Calibrated, least_argument, reach


@dataclass(frozen=True, kw_only=True)
class Published:
    """The constants behind the published figures: 1/(n epsilon) as a number of rows.

    epsilon = ln(1/beta)/(n alpha) for answers; for the sparse vector the least epsilon with (1/2 + x/4) exp(-x) <=
    beta, x = alpha n epsilon / 2. Test and answer may both fail, with up to 2 beta together; beta is what is claimed.
    Differs: the noise of several parts is the exact quantile of their sum, which was published as one of 10,000 draws.
    """

    tau: float = 0.05

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None:
        test = alpha / (2 * least_argument(lambda x: (0.5 + x / 4) * math.exp(-x), beta))
        answer = alpha / reach(NoiseKind.LAPLACE, parts, beta / rows)
        return _calibrated(alpha, test, answer, rows, kind, parts, self.tau, claimed=beta)


@dataclass(frozen=True, kw_only=True)
class Printed:
    """Algorithm 1 as printed: epsilon = 4 ln(1/beta) / (n alpha) everywhere. More exact than was asked for.

    Where an answer has several parts, each has the noise of `Published`.
    """

    tau: float = 0.05

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None:
        scale = alpha / (4 * math.log(rows / beta))
        answer = scale if parts == 1 else alpha / reach(NoiseKind.LAPLACE, parts, beta / rows)
        return _calibrated(alpha, scale, answer, rows, kind, parts, self.tau, claimed=None if parts == 1 else beta)


@dataclass(frozen=True, kw_only=True)
class Lemma:
    """One epsilon for test and answer, the least that Lemma A.2 allows: e^-y + (1/2 + y/8) e^(-y/2) <= beta, with y =
    alpha n epsilon. It is what vanilla PMW runs with. Proved for continuous noise, so beta is claimed here."""

    tau: float = 0.05

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None:
        scale = alpha / least_argument(lambda y: rows * math.exp(-y) + (0.5 + y / 8) * math.exp(-y / 2), beta)
        answer = scale if parts == 1 else alpha / reach(NoiseKind.LAPLACE, parts, beta / rows)
        return _calibrated(alpha, scale, answer, rows, kind, parts, self.tau, claimed=beta)


def _calibrated(
    alpha: float,
    test: float,
    answer: float,
    rows: int,
    kind: NoiseKind,
    parts: int,
    tau: float,
    *,
    claimed: float | None,
) -> Calibrated | None:
    if kind is NoiseKind.GAUSSIAN and parts > 1:
        return None
    if kind is NoiseKind.GAUSSIAN:
        answer = tau * alpha / math.sqrt(18 * math.log(2) + 3 * tau * alpha / answer)  # A.5; already a fraction there
    cut = round(alpha / 2)
    if cut < 1 or not all(SMALLEST_SCALE <= scale <= LARGEST_SCALE for scale in (test, answer)):
        return None
    noise = Noise(kind=NoiseKind.LAPLACE, scale=test)
    bought = Noise(kind=kind, scale=answer)
    return Calibrated(
        alpha=alpha,
        rows=rows,
        cut=cut,
        threshold=noise,
        test=noise,
        answer=bought,
        bypass=bought,
        parts=parts,
        claimed=claimed,
    )
