"""Eigen-Design: the eigenvectors of the workload, weighted as well as they can be (Li and Miklau, Programs 1 and 2)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.papers.eigen_design.weights import query_weights
from bursar.strategies.measure import checked_gram, spectrum
from bursar.strategies.optimal import complete


def eigen_queries(gram: ArrayLike) -> tuple[Reals, Reals]:
    """The nonzero eigenvalues of V, largest first, and the eigen-queries as rows (Def. 6)."""
    values, vectors = spectrum(checked_gram(gram))
    return values[::-1], np.ascontiguousarray(vectors.T[::-1])


def eigen_design(gram: ArrayLike, *, gap: float = 2e-4) -> Reals:
    """Program 2: Program 1 over the eigen-queries with c = eigenvalues, then completed columns.

    Guarantees: within (n s_1 / SVDB)^1/4 of the optimum, s_1 the largest eigenvalue (Thm. 3). `gap` is that of
    Program 1, before completion: weights short of the best may leave more to complete, and a smaller error.
    Edge cases: an all-zero workload gives no rows. Where eigenvalues repeat, so that the eigen-queries are not unique,
    Props. 5 and 6 (equal errors for equivalent workloads) hold for one and the same choice of them only.
    """
    costs, queries = eigen_queries(gram)
    if not costs.size:
        return queries
    return complete(query_weights(costs, np.square(queries), gap=gap).factors[:, None] * queries)


def separated(gram: ArrayLike, *, group: int | None = None, gap: float = 2e-4) -> Reals:
    """Eigen-query separation (Sec. 4.2), with groups of n^1/3 eigen-queries unless told otherwise, then completed."""
    costs, queries = eigen_queries(gram)
    if not costs.size:
        return queries
    size = round(len(queries) ** (1 / 3)) if group is None else group
    return complete(separated_weights(costs, np.square(queries), size, gap=gap)[:, None] * queries)


def separated_weights(costs: Reals, squares: Reals, group: int, *, gap: float = 2e-4) -> Reals:
    """Program 1 within groups of similar eigenvalues, largest first, then one factor per group.

    In the second run each group's weighted queries act as one design query, with their total variance as its cost and
    their column norms as its loads.
    """
    if group < 1:
        raise QueryError("a group holds at least one eigen-query")
    groups = [slice(start, start + group) for start in range(0, len(costs), group)]
    parts = [query_weights(costs[part], squares[part], gap=gap) for part in groups]
    loads = np.array([np.square(w.factors) @ squares[part] for w, part in zip(parts, groups, strict=True)])
    outer = query_weights(np.array([w.value for w in parts]), loads, gap=gap)
    return np.concatenate([factor * w.factors for factor, w in zip(outer.factors, parts, strict=True)])


def principal(gram: ArrayLike, *, share: float = 0.1, gap: float = 2e-4) -> Reals:
    """Principal vectors (Sec. 4.2): the given share of the cells' number of eigen-queries has weights of its own."""
    if not 0 <= share <= 1:
        raise QueryError("a share of the eigen-queries lies between 0 and 1")
    costs, queries = eigen_queries(gram)
    if not costs.size:
        return queries
    count = math.ceil(share * queries.shape[1])
    return complete(principal_weights(costs, np.square(queries), count, gap=gap)[:, None] * queries)


def principal_weights(costs: Reals, squares: Reals, count: int, *, gap: float = 2e-4) -> Reals:
    """Own weights for the first eigen-queries, the ones of the largest eigenvalues, and one weight for all others."""
    if count >= len(costs):
        return query_weights(costs, squares, gap=gap).factors
    loads = np.concatenate([squares[:count], squares[count:].sum(axis=0, keepdims=True)])
    factors = query_weights(np.append(costs[:count], costs[count:].sum()), loads, gap=gap).factors
    return np.concatenate([factors[:count], np.full(len(costs) - count, factors[count])])


def for_relative_error(workload: ArrayLike, distribution: ArrayLike | None = None) -> Reals:
    """The workload with its queries scaled so that a small absolute error means a small relative one (Sec. 3.4).

    Every query is divided by its L2 norm; where the share p_j of the data in each cell is known, by the weighted norm
    sqrt(sum_j w_j^2 n p_j), which is the same for equal shares. Queries of zeros, and those over empty cells, stay.
    Differs: the paper weighs by the inverse of p, which would make the queries with the smallest answers count
    least; the squared norm has to grow with the answer, sum_j w_j p_j for counting queries.
    """
    W = np.atleast_2d(np.asarray(workload, np.float64))
    shares = np.full(W.shape[1], 1.0) if distribution is None else np.asarray(distribution, np.float64)
    if shares.shape != (W.shape[1],) or not np.all(np.isfinite(shares)) or shares.min() < 0 or shares.sum() <= 0:
        raise QueryError("a distribution has one share per cell, none of them negative")
    norms = np.sqrt(np.square(W) @ (shares * W.shape[1] / shares.sum()))
    return np.asarray(W / np.where(norms > 0, norms, 1.0)[:, None])
