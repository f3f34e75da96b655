"""Weights on rows that bring their counts to noisy marginals, as far as these differ by more than their noise.

Iterative proportional fitting on given rows: for one marginal after another, every row's weight is multiplied by what
its cell should hold over what it holds. A cell should hold what it does, unless the noisy count stands out; so noise
in millions of nearly empty cells moves nothing, and heavy cells end near their noisy counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.arrays import Codes, Reals
from bursar.core.domain import Domain
from bursar.synthetic.marginals.evidence import Names
from bursar.synthetic.table.start import LEAST, garrote

MOST_SWEEPS = 12
PATIENCE = 3
"""Sweeps without progress after which the fit ends."""

LARGEST_STEP = 5.0
"""A weight grows or shrinks by at most this factor at once: targets contradict each other within their noise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """Noisy counts of a marginal; differences up to `least` are noise. With 0 they are to be met as they are."""

    columns: Names
    counts: NDArray[np.float32]
    least: float


@dataclass(frozen=True, kw_only=True)
class FitProgress:
    """What a fit has come to: rows by which marginals still differ beyond their noise, summed over all targets."""

    sweep: int
    excess: float


def fit_weights(
    domain: Domain,
    codes: Codes,
    weights: Reals,
    targets: Sequence[Target],
    *,
    on_step: Callable[[FitProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Reals:
    """The weights of the sweep that came nearest to the targets.

    Edge cases: a cell that no row lies in stays empty; where `stop` says so, the best weights so far are returned.
    """
    total, best, least, since = float(weights.sum()), weights, np.inf, 0
    codes = np.asfortranarray(codes)  # columns are read one by one, many times
    for sweep in range(MOST_SWEEPS):
        made, excess = weights.copy(), 0.0
        for number, (target, cells) in enumerate(_cells(domain, codes, targets)):
            if number % 16 == 0 and stop is not None and stop():
                return best
            held = np.bincount(cells, made, minlength=target.counts.size)
            difference: Reals = target.counts.astype(np.float64) - held
            excess += float(np.maximum(np.abs(difference) - target.least, 0.0).sum())
            wanted = held + garrote(difference, target.least)
            factor = np.clip(wanted / np.maximum(held, LEAST), 1 / LARGEST_STEP, LARGEST_STEP)
            made *= factor[cells]
        weights = made * (total / max(float(made.sum()), LEAST))
        best, least, since = (weights, excess, 0) if excess < 0.99 * least else (best, least, since + 1)
        if on_step is not None:
            on_step(FitProgress(sweep=sweep + 1, excess=excess))
        if since == PATIENCE:
            break
    return best


def _cells(domain: Domain, codes: Codes, targets: Sequence[Target]) -> Iterator[tuple[Target, NDArray[np.int64]]]:
    for target in targets:
        yield target, cell_numbers(domain, codes, target.columns)


def cell_numbers(domain: Domain, codes: Codes, columns: Names) -> NDArray[np.int64]:
    """The joint cell of every row, the last column running fastest."""
    cells = np.zeros(len(codes), np.int64)
    for name in columns:
        cells *= domain[name].size
        cells += codes[:, domain.place(name)]
    return cells


def resampled(codes: Codes, weights: Reals, *, rows: int, rng: Generator) -> Codes:
    """So many rows, each as often as its weight says up to one: systematic sampling, like rows side by side."""
    order = np.lexsort(codes.T[::-1])
    ends = np.cumsum(weights[order])
    at = (np.arange(rows) + rng.random()) * (ends[-1] / rows)
    picked = order[np.minimum(np.searchsorted(ends, at, side="right"), len(codes) - 1)]
    return codes[rng.permutation(picked)]
