"""Consistent marginals equal weighted least squares over all rows that were measured, written out as matrices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bursar.core.domain import Categories, Domain
from bursar.core.queries import Product
from bursar.strategies.residual import every_value
from bursar.synthetic.marginals.estimates import Consistent, MarginalAccuracy, subsets
from bursar.synthetic.marginals.evidence import LogEvidence, MarginalSource, Names, marginal_map

SIZES = {"a": 4, "b": 2, "c": 3, "d": 1}
DOMAIN = Domain(
    tuple(
        Categories(name=name, values=tuple(f"{name}{i}" for i in range(size)), outside=0, null=0)
        for name, size in SIZES.items()
    )
)
CELLS = math.prod(SIZES.values())


def dense(columns: Names, *, residual: bool = False) -> np.ndarray:
    """The rows of a marginal, or of residuals, over all cells of the domain."""
    result = np.ones((1, 1))
    for name, size in SIZES.items():
        if name not in columns:
            factor = np.ones((1, size))
        elif residual:
            factor = every_value(name, size).mask.steps.at_cells(np.arange(size)).astype(float)
        else:
            factor = np.eye(size)
        result = np.kron(result, factor)
    return result


def evidence(columns: Names, variance: float, rng: np.random.Generator, *, residual: bool = False) -> LogEvidence:
    source = MarginalSource(columns=columns, variance=variance, heavy=False, residual=residual)
    shape = [every_value(n, SIZES[n]).mask.rows if residual else SIZES[n] for n in columns]
    return LogEvidence(source=source, table=rng.integers(-50, 200, shape))


def least_squares(known: list[LogEvidence], columns: Names, size: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The estimate and its variances by the pseudo-inverse; a public size is a row with next to no noise."""
    rows = [dense(own.source.columns, residual=own.source.residual) for own in known]
    values = [own.table.ravel().astype(float) for own in known]
    weights = [np.full(len(own), 1 / math.sqrt(e.source.variance)) for own, e in zip(rows, known, strict=True)]
    if size is not None:
        rows, values, weights = [*rows, dense(())], [*values, np.array([size])], [*weights, np.array([1e5])]
    scale = np.concatenate(weights)
    inverse = np.linalg.pinv(np.concatenate(rows) * scale[:, None], rcond=1e-12)
    asked = dense(columns) @ inverse
    return asked @ (np.concatenate(values) * scale), np.square(asked).sum(axis=1)


@pytest.mark.parametrize("size", [None, 500])
@pytest.mark.parametrize("columns", [("a", "b", "c"), ("a", "c"), ("b",), (), ("b", "d")])
def test_estimates_and_variances_are_those_of_least_squares(columns: Names, size: int | None) -> None:
    rng = np.random.default_rng(5)
    known = [
        evidence(("a", "b"), 9.0, rng),
        evidence(("a", "b", "c"), 25.0, rng),
        evidence(("b", "c", "d"), 4.0, rng),
        evidence(("a",), 1.0, rng),
        evidence(("a", "c"), 40.0, rng, residual=True),
        evidence(("b",), 3.0, rng, residual=True),
    ]
    found = Consistent(DOMAIN, known, size=size)
    estimate, variance = least_squares(known, columns, size)
    np.testing.assert_allclose(found.estimate(columns).ravel(), estimate, atol=1e-5)
    assert variance == pytest.approx(np.full(len(variance), found.variance(columns)), abs=1e-6)


def test_weights_matter() -> None:
    """The twin that takes a plain mean of two measurements is another estimator."""
    rng = np.random.default_rng(5)
    known = [evidence(("a",), 1.0, rng), evidence(("a",), 9.0, rng)]
    estimate = Consistent(DOMAIN, known, size=None).estimate(("a",))
    assert estimate == pytest.approx(0.9 * known[0].table + 0.1 * known[1].table)
    assert estimate != pytest.approx((known[0].table + known[1].table) / 2)


def test_marginals_agree_on_what_they_share() -> None:
    rng = np.random.default_rng(6)
    known = [evidence(pair, 4.0, rng) for pair in itertools.combinations("abc", 2)]
    found = Consistent(DOMAIN, known, size=300)
    ab, bc = found.estimate(("a", "b")), found.estimate(("b", "c"))
    np.testing.assert_allclose(ab.sum(axis=0), bc.sum(axis=1))
    assert ab.sum() == pytest.approx(300)


def test_what_was_not_measured_is_not_estimated() -> None:
    known = [evidence(("a", "b"), 4.0, np.random.default_rng(7))]
    found = Consistent(DOMAIN, known, size=None)
    assert found.estimate(("a", "c")) is None
    assert found.variance(("a", "c")) is None
    assert Consistent(DOMAIN, [], size=9).estimate(("d",)) == pytest.approx(np.array([9.0]))
    assert Consistent(DOMAIN, [], size=None).total() == 1.0


def test_more_evidence_never_hurts() -> None:
    sources = [
        MarginalSource(columns=own, variance=4.0, heavy=False) for own in (("a", "b"), ("b", "c"), ("a", "b", "c"))
    ]
    for columns in (("a", "b"), ("b",)):
        before = MarginalAccuracy(DOMAIN, sources[:1], sized=False).variance(columns)
        after = MarginalAccuracy(DOMAIN, sources, sized=False).variance(columns)
        assert before is not None
        assert after is not None
        assert after < before


def test_subsets_are_in_the_order_of_the_columns() -> None:
    assert subsets(("a", "b")) == [(), ("a",), ("b",), ("a", "b")]
    assert isinstance(marginal_map(DOMAIN, ("a", "b")), Product)
