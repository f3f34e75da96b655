"""Sums over relaxed rows of products of a few entries, and their gradients: the inner loop of the projection.

All products of subsets of a query's k entries are made by one multiplication each; the surrogate is a sum of some of
them (RAP, Def. 4.4), and its derivative by an entry is the same sum with that entry left out of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Singles
from bursar.synthetic.rap.sparsemax import compiled
from bursar.synthetic.rap.surrogates import expansion

Places = NDArray[np.int32]

TILE = 512
"""Rows that are worked on together; the products of five entries of so many rows fit in the first cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """The surrogate of an r-of-k threshold query as weights of the 2^k products; bit i of a number is entry i."""

    weights: Singles
    negated: bool  # entries are read as 1 - x, and the query is 1 minus the sum

    @property
    def triple(self) -> bool:
        """Whether this is the plain product of three entries."""
        return len(self.weights) == 8 and not self.negated and not self.weights[:7].any()

    @staticmethod
    def of(k: int, r: int) -> Terms:
        form = expansion(k, r)
        weights = np.zeros(2**k, np.float32)
        for subset, coefficient in zip(form.subsets, form.coefficients, strict=True):
            weights[sum(1 << i for i in subset)] = coefficient
        return Terms(weights=weights, negated=form.negated)


def means(values: Singles, places: Places, terms: Terms) -> Singles:
    """q(D') = sum over rows of phi(row) / n', for each query (RAP, Def. 2.5)."""
    found = np.empty(len(places), np.float32)
    if terms.triple:
        _triple_means(values, places, found)
    else:
        _means(values, places, terms.weights, terms.negated, found)
    return found


def add_gradient(values: Singles, places: Places, terms: Terms, slopes: Singles, gradient: Singles) -> None:
    """Adds sum_i slopes_i dq_i/dx to the gradient, which has the shape of the values."""
    if terms.triple:
        _add_triple_gradient(values, places, slopes, gradient)
    else:
        _add_gradient(values, places, terms.weights, terms.negated, slopes, gradient)


@compiled
def _triple_means(values: Singles, places: Places, found: Singles) -> None:
    """Marginals of up to three columns, the common case, in one pass: four times as fast."""
    for query in range(len(places)):
        x, y, z = values[places[query, 0]], values[places[query, 1]], values[places[query, 2]]
        total = np.float32(0)
        for i in range(len(x)):
            total += x[i] * y[i] * z[i]
        found[query] = total / np.float32(len(x))


@compiled
def _add_triple_gradient(values: Singles, places: Places, slopes: Singles, gradient: Singles) -> None:
    for query in range(len(places)):
        a, b, c = places[query]
        x, y, z = values[a], values[b], values[c]
        slope = slopes[query] / np.float32(len(x))
        _add_scaled_product(gradient[a], y, z, slope)
        _add_scaled_product(gradient[b], x, z, slope)
        _add_scaled_product(gradient[c], x, y, slope)


@compiled
def _add_scaled_product(line: Singles, x: Singles, y: Singles, slope: float) -> None:
    for i in range(len(line)):
        line[i] += slope * x[i] * y[i]


@compiled
def _fill(products: Singles, values: Singles, own: Places, negated: bool, first: int, tile: int) -> None:
    """Line s becomes the product over the entries in s, for the rows of a tile."""
    for j in range(len(own)):
        bit = 1 << j
        entries, single = values[own[j], first : first + tile], products[bit]
        if negated:
            for i in range(tile):
                single[i] = np.float32(1) - entries[i]
        else:
            for i in range(tile):
                single[i] = entries[i]
        for below in range(1, bit):
            made, other = products[bit + below], products[below]
            for i in range(tile):
                made[i] = single[i] * other[i]


@compiled
def _means(values: Singles, places: Places, weights: Singles, negated: bool, found: Singles) -> None:
    rows = values.shape[1]
    products = np.ones((len(weights), TILE), np.float32)
    for query in range(len(places)):
        total = 0.0
        for first in range(0, rows, TILE):
            tile = min(TILE, rows - first)
            _fill(products, values, places[query], negated, first, tile)
            for s in range(1, len(weights)):
                if weights[s] != 0:
                    part, line = np.float32(0), products[s]
                    for i in range(tile):
                        part += line[i]
                    total += weights[s] * part
        mean = total / rows
        found[query] = 1 - mean if negated else mean


@compiled
def _add_gradient(
    values: Singles, places: Places, weights: Singles, negated: bool, slopes: Singles, gradient: Singles
) -> None:
    """With `negated`, 1 - phi(1 - x) has the derivative phi'(1 - x): both signs cancel."""
    rows = values.shape[1]
    products = np.ones((len(weights), TILE), np.float32)  # line 0 stays 1: the product of nothing
    for query in range(len(places)):
        slope = slopes[query] / np.float32(rows)
        for first in range(0, rows, TILE):
            tile = min(TILE, rows - first)
            _fill(products, values, places[query], negated, first, tile)
            for j in range(places.shape[1]):
                bit = 1 << j
                line = gradient[places[query, j], first : first + tile]
                for s in range(1, len(weights)):
                    if s & bit and weights[s] != 0:
                        times, others = slope * weights[s], products[s ^ bit]
                        for i in range(tile):
                            line[i] += times * others[i]
