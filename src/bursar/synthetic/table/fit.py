"""Rows fitted to noisy marginals: drawn from a tree of dependent columns, then weighted.

The rows to begin with are drawn column by column from a tree in which a column depends on one other at most (Chow and
Liu's trees, as in MST). Iterative proportional fitting then weights them: for one marginal after another, every row's
weight is multiplied by what its cell should hold over what it holds. All that goes in is noisy counts, and a difference
counts only where it stands out from the noise; so noise in millions of nearly empty cells moves nothing, and heavy
cells end near their noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.arrays import Codes, Reals
from bursar.core.domain import Domain
from bursar.synthetic.marginals.estimates import Consistent
from bursar.synthetic.marginals.evidence import Names
from bursar.tails.marginals import on_simplex

BALANCING_ROUNDS = 10
"""Rounds in which a table of two columns is scaled to the shares of each."""

NEGLIGIBLE_COUNT = 1e-9
"""Counts below this are taken for none, so that scaling never divides by zero."""


def threshold(variance: float, cells: int, *, heavy: bool) -> float:
    """What noise alone hardly exceeds in any cell: sqrt(2 V log N), the universal threshold of Donoho and Johnstone.

    For Laplace noise sqrt(V / 2) log N, where that is more.
    """
    spread = math.log(max(cells, 2))
    gaussian = math.sqrt(2 * variance * spread)
    return max(gaussian, math.sqrt(variance / 2) * spread) if heavy else gaussian


def garrote(difference: Reals, least: float) -> Reals:
    """What to believe of a noisy difference: nothing up to the threshold t, x - t^2 / x beyond (Breiman's garrote).

    Unlike soft thresholding it leaves large differences as they are.
    """
    believed = np.zeros_like(difference)
    large = np.abs(difference) > least
    believed[large] = difference[large] - least**2 / difference[large]
    return believed


def column_shares(consistent: Consistent) -> dict[str, Reals]:
    """The share of every value of every column; equal shares where nothing is known."""
    shares, total = {}, consistent.total()
    for name in consistent.domain.names:
        estimate, size = consistent.estimate((name,)), consistent.domain[name].size
        shares[name] = np.full(size, 1 / size) if estimate is None else on_simplex(estimate, total) / total
    return shares


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """Two columns: their joint shares, and how many rows stand out from independence."""

    columns: Names
    shares: Reals
    dependence: float


def pair_shares(consistent: Consistent, pairs: Sequence[Names], singles: Mapping[str, Reals]) -> list[Pair]:
    """The pairs that depend on each other noticeably, the most dependent first."""
    dependent, total = [], consistent.total()
    for pair in pairs:
        estimate, variance = consistent.estimate(pair), consistent.variance(pair)
        if estimate is None or variance is None:
            continue
        first, second = (singles[name] for name in pair)
        independent = total * np.outer(first, second)
        believed = garrote(estimate - independent, threshold(variance, independent.size, heavy=consistent.heavy))
        if believed.any():
            joint = _balanced(np.maximum(independent + believed, 0.0) + NEGLIGIBLE_COUNT, first, second)
            dependent.append(Pair(columns=pair, shares=joint, dependence=float(np.abs(believed).sum())))
    return sorted(dependent, key=lambda pair: -pair.dependence)


def _balanced(table: Reals, rows: Reals, columns: Reals) -> Reals:
    for _ in range(BALANCING_ROUNDS):
        table = table * (rows / table.sum(axis=1))[:, None]
        table = np.maximum(table, 1e-300)
        table = table * (columns / table.sum(axis=0))
        table = np.maximum(table, 1e-300)
    return table


def sample_tree(
    domain: Domain, singles: Mapping[str, Reals], pairs: Sequence[Pair], *, rows: int, rng: Generator
) -> Codes:
    """Rows of the tree that joins the most dependent pairs first: one column of codes for each column."""
    neighbours = _tree(domain.names, pairs)
    codes = np.zeros((rows, len(domain.names)), np.int32)
    drawn: set[str] = set()
    for root in domain.names:
        if root in drawn:
            continue
        codes[:, domain.place(root)] = _spread(singles[root], rows, rng)
        drawn.add(root)
        waiting = [root]
        while waiting:
            parent = waiting.pop()
            for child, shares in neighbours[parent]:
                if child not in drawn:
                    given = codes[:, domain.place(parent)]
                    codes[:, domain.place(child)] = _conditional(given, shares, singles[child], rng)
                    drawn.add(child)
                    waiting.append(child)
    return codes


def _tree(names: Names, pairs: Sequence[Pair]) -> dict[str, list[tuple[str, Reals]]]:
    """For every column its neighbours in the spanning forest, with the joint shares, its own values first."""
    component = {name: name for name in names}
    neighbours: dict[str, list[tuple[str, Reals]]] = {name: [] for name in names}
    for pair in pairs:
        left, right = pair.columns
        if component[left] != component[right]:
            joined = component[right]
            component = {name: component[left] if label == joined else label for name, label in component.items()}
            neighbours[left].append((right, pair.shares))
            neighbours[right].append((left, pair.shares.T))
    return neighbours


def _conditional(given: Codes, shares: Reals, otherwise: Reals, rng: Generator) -> Codes:
    """A value for each row, by the shares beside the value that it has already."""
    order = np.argsort(given, kind="stable")
    starts = np.searchsorted(given[order], np.arange(len(shares) + 1))
    drawn = np.empty(len(given), np.int32)
    for value in np.unique(given).tolist():
        rows = order[starts[value] : starts[value + 1]]
        measured = float(shares[value].sum()) > NEGLIGIBLE_COUNT * len(otherwise)
        drawn[rows] = _spread(shares[value] if measured else otherwise, len(rows), rng)
    return drawn


def _spread(shares: Reals, rows: int, rng: Generator) -> Codes:
    """Values in random order whose numbers are as near to the shares as whole numbers can be."""
    ends = np.cumsum(shares)
    at = (rng.permutation(rows) + rng.random()) * (ends[-1] / rows)
    values: Codes = np.minimum(np.searchsorted(ends, at, side="right"), len(shares) - 1).astype(np.int32)
    return values


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
        fitted, excess = weights.copy(), 0.0
        for number, (target, cells) in enumerate(_cells(domain, codes, targets)):
            if number % 16 == 0 and stop is not None and stop():
                return best
            held = np.bincount(cells, fitted, minlength=target.counts.size)
            difference: Reals = target.counts.astype(np.float64) - held
            excess += float(np.maximum(np.abs(difference) - target.least, 0.0).sum())
            aim = held + garrote(difference, target.least)
            factor = np.clip(aim / np.maximum(held, NEGLIGIBLE_COUNT), 1 / LARGEST_STEP, LARGEST_STEP)
            fitted *= factor[cells]
        weights = fitted * (total / max(float(fitted.sum()), NEGLIGIBLE_COUNT))
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


def resample(codes: Codes, weights: Reals, *, rows: int, rng: Generator) -> Codes:
    """A table of `rows` rows, each as often as its weight says up to one: systematic sampling of the sorted rows."""
    order = np.lexsort(codes.T[::-1])
    ends = np.cumsum(weights[order])
    at = (np.arange(rows) + rng.random()) * (ends[-1] / rows)
    picked = order[np.minimum(np.searchsorted(ends, at, side="right"), len(codes) - 1)]
    return codes[rng.permutation(picked)]
