"""Rows fitted to noisy marginals: every joint cell, or rows drawn from a tree of dependent columns; then weighted.

Where all columns together have few joint cells, each of them is a row to begin with, and columns are independent. Else
rows are drawn column by column from a tree in which a column depends on one other at most (Chow and Liu's trees, as in
MST).

The weights then minimise

    KL(w, w_0) + sum over marginals S and their cells of (M_S w - y_S)^2 / (2 c_S),

the log-linear model w = w_0 exp(sum_S M_S^T theta_S) with a ridge penalty on theta. For one marginal after another all
its thetas are set to their optimum: iterative proportional fitting where c = 0, and with c > 0 the same with a memory,
theta_S = (y_S - M_S w) / c_S in the end. The problem is convex and each step solves its part exactly, so no step size
is needed.

How far a marginal is believed is read from its own noisy counts (empirical Bayes). Its cells differ from what the rows
say already by noise of known variance V, and by something real of variance t E, where E is the expected count; t is the
likeliest one, and c = V / t. A marginal that holds nothing new has t = 0 and is left out; without noise it is met. So
noise in millions of nearly empty cells moves nothing, and heavy cells end near their noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import wrightomega

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


PER_OCTAVE = 4
"""Cells whose expected counts agree to a quarter of an octave are taken together."""

TRIED = np.geomspace(1e-4, 1e6, 121)
"""Dispersions that are tried, as multiples of the noise over the largest expected count."""


def dispersion(difference: Reals, expected: Reals, variance: float) -> float:
    """The t >= 0 at which differences with variance `variance` + t `expected` are likeliest, to a few per cent.

    The differences are taken for Gaussian: the likelihood is a way to choose t, and no promise rests on it.
    """
    seen = expected > NEGLIGIBLE_COUNT
    if not seen.any() or variance <= 0:
        return 0.0 if variance > 0 else math.inf
    level = np.rint(PER_OCTAVE * np.log2(expected[seen])).astype(np.int64)
    levels, group = np.unique(level, return_inverse=True)
    cells, squares = np.bincount(group), np.bincount(group, np.square(difference[seen]))
    mean = np.exp2(levels / PER_OCTAVE)
    tried = np.concatenate([[0.0], TRIED * (variance / mean[-1])])
    total = variance + np.multiply.outer(tried, mean)
    return float(tried[np.argmin((squares / total + cells * np.log(total)).sum(axis=1))])


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
        spread = dispersion((estimate - independent).ravel(), independent.ravel(), variance) * independent
        believed = (estimate - independent) * spread / (spread + variance)
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


MOST_SWEEPS = 40
CONVERGED = 3e-4
"""A fit ends when a sweep moves less than this part of all rows, for each marginal."""

LARGEST_STEP = 3.0
"""The most that the logarithm of a weight changes at once, so that no weight is lost to one contradiction."""

CACHED_CELL_NUMBERS = 2**24
"""Cell numbers of all rows in all marginals are kept during a fit if they are no more than this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """Noisy counts of a marginal, and the penalty c of each: 0 where they are to be met, infinite where unknown."""

    columns: Names
    counts: NDArray[np.float32]
    penalty: float | Reals


def penalised_target(columns: Names, counts: Reals, expected: Reals, variance: float) -> Target | None:
    """A marginal, believed as far as it stands out from what was expected; None where it does not."""
    spread = dispersion(counts - expected, expected, variance)
    if spread == 0:
        return None
    return Target(columns=columns, counts=counts.astype(np.float32), penalty=variance / spread)


@dataclass(frozen=True, kw_only=True)
class FitProgress:
    """What a fit has come to: the rows that the last sweep has moved, summed over all targets."""

    sweep: int
    moved: float


def fit_weights(
    domain: Domain,
    codes: Codes,
    weights: Reals,
    targets: Sequence[Target],
    *,
    on_step: Callable[[FitProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Reals:
    """The weights nearest to the given ones, in the sense above, and of the same sum.

    Edge cases: a cell that no row lies in stays empty; where `stop` says so, the weights so far are returned.
    """
    total, fitted = float(weights.sum()), weights.copy()
    codes = np.asfortranarray(codes)  # columns are read one by one, many times
    thetas = [np.zeros(target.counts.size) for target in targets]
    cached = len(codes) * len(targets) <= CACHED_CELL_NUMBERS
    numbers = [cell_numbers(domain, codes, target.columns) for target in targets] if cached else None
    for sweep in range(MOST_SWEEPS):
        moved = 0.0
        for place, target in enumerate(targets):
            if place % 16 == 0 and stop is not None and stop():
                return _scaled(fitted, total)
            cells = cell_numbers(domain, codes, target.columns) if numbers is None else numbers[place]
            held: Reals = np.bincount(cells, fitted, minlength=target.counts.size).astype(np.float64)
            step = _best_step(held, target, thetas[place])
            thetas[place] += step
            moved += float(np.abs(held * np.expm1(step)).sum())
            fitted *= np.exp(step)[cells]
        if on_step is not None:
            on_step(FitProgress(sweep=sweep + 1, moved=moved))
        if moved <= CONVERGED * total * len(targets):
            break
    return _scaled(fitted, total)


def _best_step(held: Reals, target: Target, theta: Reals) -> Reals:
    """The change d of theta that is best while others stay: c (theta + d) = y - held e^d, for every cell by itself.

    With u = held e^d / c this is u + log u = y / c - theta + log(held / c), which Wright's omega function solves.
    """
    counts, step = target.counts.astype(np.float64), np.zeros_like(held)
    penalty = np.broadcast_to(np.asarray(target.penalty, np.float64), held.shape)
    met = (held > NEGLIGIBLE_COUNT) & (penalty == 0)
    step[met] = np.log(np.maximum(counts[met], NEGLIGIBLE_COUNT) / held[met])
    at = (held > NEGLIGIBLE_COUNT) & (penalty > 0) & np.isfinite(penalty)
    linear, ratio = counts[at] / penalty[at] - theta[at], np.log(held[at] / penalty[at])
    omega = wrightomega(linear + ratio)
    large = linear + ratio > 0
    step[at] = np.where(large, np.log(np.where(large, omega, 1.0)) - ratio, linear - omega)
    return np.clip(step, -LARGEST_STEP, LARGEST_STEP)


def _scaled(weights: Reals, total: float) -> Reals:
    scaled: Reals = weights * (total / max(float(weights.sum()), NEGLIGIBLE_COUNT))
    return scaled


def cell_numbers(domain: Domain, codes: Codes, columns: Names) -> NDArray[np.int64]:
    """The joint cell of every row, the last column running fastest."""
    cells = np.zeros(len(codes), np.int64)
    for name in columns:
        cells *= domain[name].size
        cells += codes[:, domain.place(name)]
    return cells


ROUNDING_STEPS = 60
SWAPPED_SHARE = 0.3
"""Of the rows that should be swapped, how many are at first; half of that whenever they hinder each other."""


def resample(
    codes: Codes,
    weights: Reals,
    *,
    rows: int,
    rng: Generator,
    marginals: Sequence[NDArray[np.int64]] = (),
) -> Codes:
    """A table of `rows` rows, each as often as its weight says up to one: systematic sampling of the sorted rows.

    `marginals` has the cell of every row for each marginal that the table is to keep (controlled rounding): rows from
    cells that got too many are swapped for rows in cells that got too few, while that brings all marginals together
    nearer to the weights.
    """
    order = np.lexsort(codes.T[::-1])
    ends = np.cumsum(weights[order])
    at = (np.arange(rows) + rng.random()) * (ends[-1] / rows)
    picked = order[np.minimum(np.searchsorted(ends, at, side="right"), len(codes) - 1)]
    counts = np.bincount(picked, minlength=len(codes))
    off = counts - weights * (rows / ends[-1])
    surplus = [np.bincount(cells, off) for cells in marginals]
    share = SWAPPED_SHARE
    for _ in range(ROUNDING_STEPS if marginals else 0):
        slope = np.zeros(len(codes))
        for cells, too_many in zip(marginals, surplus, strict=True):
            slope += too_many[cells]
        out = np.flatnonzero((counts > 0) & (2 * slope > len(marginals)))
        into = np.flatnonzero((weights > 0) & (2 * slope < -len(marginals)))
        swapped = int(share * min(len(out), len(into)))
        if swapped < 1:
            break
        out, into = rng.choice(out, swapped, replace=False), rng.choice(into, swapped, replace=False)
        tried = [
            too_many
            + np.bincount(cells[into], minlength=len(too_many))
            - np.bincount(cells[out], minlength=len(too_many))
            for cells, too_many in zip(marginals, surplus, strict=True)
        ]
        if sum(float(new @ new) for new in tried) < sum(float(old @ old) for old in surplus):
            surplus = tried
            counts[out] -= 1
            counts[into] += 1
        else:
            share /= 2
    table: Codes = codes[rng.permutation(np.repeat(np.arange(len(codes)), counts))]
    return table
