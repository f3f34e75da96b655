"""The strategy that makes the most of what a loss may still grow by, beside what is known already.

What is spent is the largest loss of any cell, so cells below it have slack, and what is told about them within it costs
nothing. With information M and room c_j for each cell,

    min tr(V (M + B B^T)^-1)  over B with |B_j|^2 <= c_j for every row B_j,

where V is the Gram matrix of the questions that may come. Telling more never hurts, so every row has just that length,
and its direction is sought by gradients (L-BFGS). Unlike `optimum` this takes account of what is known; it has no
certificate. The columns of B are the queries to measure, at noise of variance one.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.optimize import minimize

from bursar.arrays import Reals

MOST_QUERIES = 32
"""Most queries that are bought at once."""

MOST_STEPS = 30

SHARE_OF_UNKNOWN = 1e-7
"""Of the largest information: what is taken to be known of everything, so that a variance is never infinite."""

LEAST_LENGTH = 1e-3
"""Queries shorter than this share of the longest are left out."""

SMALLEST = 1e-9
"""Below this share directions of the questions count as much as this, and start with some part of each."""


def within_slack(information: Reals, room: Reals, gram: Reals, *, most_queries: int = MOST_QUERIES) -> Reals:
    """Queries, one in each row, of which no cell gets more than its room: the squares of its coefficients add up to it.

    Guarantees: the sum of squares in each column is at most `room`, up to rounding, and hardly below it.
    """
    cells = len(gram)
    reach = np.sqrt(np.maximum(room, 0.0))[:, None]
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    count = min(most_queries, cells)
    start = vectors[:, -count:] * np.maximum(values[-count:], SMALLEST * values[-1]) ** 0.25 + 1e-6
    start /= np.linalg.norm(start, axis=1)[:, None]
    base = information + SHARE_OF_UNKNOWN * float(np.max(information.diagonal() + room)) * np.eye(cells)
    before = np.linalg.inv(base)
    variance_before = float(np.vdot(gram, before))

    def variance(flat: Reals) -> tuple[float, Reals]:
        """The total variance, and how it changes with the directions of the rows."""
        directions = flat.reshape(cells, count)
        lengths = np.linalg.norm(directions, axis=1)[:, None]
        unit = directions / lengths
        rows = reach * unit
        # With P = M^-1 and S = 1 + B^T P B: (M + B B^T)^-1 = P - P B S^-1 B^T P, and times B it is P B S^-1.
        seen = before @ rows
        inner = scipy.linalg.cho_factor(np.eye(count) + rows.T @ seen, check_finite=False)
        after = scipy.linalg.cho_solve(inner, seen.T, check_finite=False).T
        asked = gram @ seen
        total = variance_before - float(np.vdot(after, asked))
        wanted = scipy.linalg.cho_solve(inner, asked.T, check_finite=False).T
        gradient = -2 * reach * (before @ wanted - after @ (seen.T @ wanted))
        across = (gradient - (gradient * unit).sum(axis=1)[:, None] * unit) / lengths
        return total, across.ravel()

    unit_of_variance = variance(start.ravel())[0]

    def scaled(flat: Reals) -> tuple[float, Reals]:
        value, gradient = variance(flat)
        return value / unit_of_variance, gradient / unit_of_variance

    found = minimize(scaled, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
    directions = found.x.reshape(cells, count)
    rows = (reach * directions / np.linalg.norm(directions, axis=1)[:, None]).T
    # Noise of one variance is the same along any axes: queries at right angles have the fewest that say anything.
    _, lengths, axes = np.linalg.svd(rows, full_matrices=False)
    some = lengths > LEAST_LENGTH * lengths[0]
    return np.asarray(lengths[some, None] * axes[some])
