"""Any linear question over measured marginals: its estimate, and the variance of that.

The estimate of a table over columns A is x_A = sum_{S <= A} expand(z_S) / prod_{A - S} n_i, as `marginals_consistent`
says; the parts z_S are independent, and each has the covariance P_S / p_S: P_S takes the mean along every column of S
away, p_S is the precision. So q . x_A has the variance sum_S |P_S q_S|^2 / (p_S prod_{A - S} n_i^2), where q_S is q
summed over the columns outside S. For a product of masks, |P_S q_S|^2 is a product over the masks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bursar.arrays import Reals
from bursar.core.queries import LinearMap, Mask, Product, Stack
from bursar.synthetic.marginals.consistent import Consistent, subsets
from bursar.synthetic.marginals.evidence import Names

FINE = 2**16
"""Estimates are given to maps as whole numbers of such parts of a row."""

DENSE = 2**24
"""Most numbers that the rows of one mask are written out in."""

MOST_CELLS = 2**24
"""Most joint cells of a question that is answered from estimates of all of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalEstimate:
    """Unbiased estimates of a map's rows, the variance of each, and whether Laplace noise is in them.

    `slip` is what computing in whole parts of a row can have moved an estimate by.
    """

    values: Reals
    variances: Reals
    heavy: bool
    slip: float


def known(wanted: LinearMap, consistent: Consistent) -> MarginalEstimate | None:
    """What measured marginals say about the rows of a map; None where some part of it was never measured.

    Edge cases: maps other than products and stacks of them have no estimate here, and too large ones have none.
    """
    parts = wanted.parts if isinstance(wanted, Stack) else (wanted,)
    found = [_product(part, consistent) if isinstance(part, Product) else None for part in parts]
    if any(own is None for own in found):
        return None
    whole = [own for own in found if own is not None]
    return MarginalEstimate(
        values=np.concatenate([own.values for own in whole] or [np.zeros(0)]),
        variances=np.concatenate([own.variances for own in whole] or [np.zeros(0)]),
        heavy=consistent.heavy,
        slip=max((own.slip for own in whole), default=0.0),
    )


def _product(product: Product, consistent: Consistent) -> MarginalEstimate | None:
    domain = consistent.domain
    columns = domain.ordered(product.attrs)
    small = all(mask.rows * mask.steps.size <= DENSE for mask in product.masks)
    if not small or domain.cells(columns) > MOST_CELLS:
        return None
    estimate = consistent.estimate(columns)
    if estimate is None:
        return None
    whole = np.rint(estimate * FINE).astype(np.int64)
    values = product.apply(lambda names: whole.transpose([columns.index(name) for name in names])) / FINE
    lengths = [_lengths(mask) for mask in product.masks]
    variances = np.zeros(product.rows)
    for part in subsets(columns):
        precision = consistent.precisions.get(part)
        if precision is None:  # a column of one value has no residual
            continue
        outside = float(domain.cells(name for name in columns if name not in part))
        own = np.ones(1)
        for mask, squares in zip(product.masks, lengths, strict=True):
            own = np.multiply.outer(own, squares[frozenset(part) & frozenset(mask.attrs)]).ravel()
        variances += own / (precision * outside**2)
    slip = product.largest() * domain.cells(columns) / (2 * FINE)
    return MarginalEstimate(values=values, variances=variances, heavy=consistent.heavy, slip=slip)


def _lengths(mask: Mask) -> dict[frozenset[str], Reals]:
    """|P_T q_T|^2 of every row of a mask, for each set T of its columns."""
    cells = mask.steps.at_cells(np.arange(mask.steps.size)).astype(np.float64).reshape(mask.rows, *mask.sizes)
    found: dict[frozenset[str], Reals] = {}
    for kept in _subsets(mask.attrs):
        gone = tuple(1 + axis for axis, name in enumerate(mask.attrs) if name not in kept)
        table = cells.sum(axis=gone)
        for axis in range(1, table.ndim):
            table = table - table.mean(axis=axis, keepdims=True)
        found[frozenset(kept)] = np.square(table).reshape(mask.rows, -1).sum(axis=1)
    return found


def _subsets(names: Names) -> Iterable[Names]:
    return (part for count in range(len(names) + 1) for part in combinations(names, count))
