"""Estimates of any question over measured marginals, and their variance: equal to what the weights say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.core.queries import Mask, Product, Stack, Steps, Thresholds
from bursar.synthetic.marginals.estimates import Consistent, linear_estimate
from bursar.synthetic.marginals.evidence import LogEvidence, source_of
from bursar.tails.marginals import ByVariance, log_tail

DOMAIN = Domain(
    (
        IntegerRange(name="a", lower=0, upper=3, null=0),
        Categories(name="b", values=("x", "y"), outside=0, null=0),
        Categories(name="c", values=("p", "q", "r"), outside=0, null=0),
        Categories(name="one", values=("only",), outside=0, null=0),
    )
)
SETS = (("a", "b"), ("b", "c"), ("a",))
SCALES = (2.0, 3.0, 5.0)
QUESTION = Product(
    (
        Mask(("a",), (4,), Steps.ranges([0, 1, 0], [2, 4, 4], 4)),
        Mask(("b",), (2,), Steps.dense([[1, 0], [3, -1]])),
    )
)
JOINT = Product((Mask(("c", "b"), (3, 2), Steps.dense([[1, 0, 0, 1, 1, 0]])),))


def consistent(tables: Sequence[np.ndarray], size: int | None = None) -> Consistent:
    noises = [Noise(kind=NoiseKind.GAUSSIAN, scale=scale) for scale in SCALES]
    found = [
        LogEvidence(source=source_of(columns, noise), table=table)
        for columns, noise, table in zip(SETS, noises, tables, strict=True)
    ]
    return Consistent(DOMAIN, found, size=size)


def zeros() -> list[np.ndarray]:
    return [np.zeros(DOMAIN.sizes(columns), np.int64) for columns in SETS]


def weights_of(question: Product) -> np.ndarray:
    """What each measured cell adds to each answer, and the variance of each: by asking with one cell at a time."""
    columns = []
    for number, scale in enumerate(SCALES):
        for place in range(zeros()[number].size):
            tables = zeros()
            tables[number].flat[place] = 10**6
            found = linear_estimate(question, consistent(tables))
            assert found is not None
            columns.append(found.values / 10**6 * scale)
    return np.array(columns).T


@pytest.mark.parametrize("question", [QUESTION, JOINT])
def test_the_variance_is_that_of_the_weights(question: Product) -> None:
    found = linear_estimate(question, consistent(zeros()))
    assert found is not None
    exact = np.square(weights_of(question)).sum(axis=1)
    assert found.variances == pytest.approx(exact, rel=1e-4)
    assert not found.heavy


def test_estimates_are_unbiased() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 50, DOMAIN.sizes(DOMAIN.names))
    tables = [truth.sum(axis=tuple(i for i, n in enumerate(DOMAIN.names) if n not in own)) for own in SETS]
    found = linear_estimate(Stack((QUESTION, JOINT)), consistent(tables))
    assert found is not None

    def counts(names: tuple[str, ...]) -> np.ndarray:
        gone = tuple(i for i, name in enumerate(DOMAIN.names) if name not in names)
        kept = [name for name in DOMAIN.names if name in names]
        return truth.sum(axis=gone).transpose([kept.index(name) for name in names])

    assert found.values == pytest.approx(Stack((QUESTION, JOINT)).apply(counts), abs=0.1)


def test_a_public_size_is_known_exactly() -> None:
    everybody = Product((Mask(("a",), (4,), Steps.total(4)),))
    found = linear_estimate(everybody, consistent(zeros(), size=100))
    assert found is not None
    assert found.variances == pytest.approx([0.0], abs=1e-12)
    assert found.values == pytest.approx([100.0], abs=0.01)


def test_columns_never_measured_together_have_no_estimate() -> None:
    apart = Product((Mask(("a",), (4,), Steps.identity(4)), Mask(("c",), (3,), Steps.identity(3))))
    assert linear_estimate(apart, consistent(zeros())) is None
    assert linear_estimate(Stack((QUESTION, apart)), consistent(zeros())) is None
    assert linear_estimate(Thresholds(("a", "b"), (4, 2), 1), consistent(zeros())) is None


def test_a_column_of_one_value_is_no_obstacle() -> None:
    question = Product((Mask(("b",), (2,), Steps.identity(2)), Mask(("one",), (1,), Steps.identity(1))))
    assert linear_estimate(question, consistent(zeros())) is not None


@pytest.mark.parametrize("heavy", [False, True])
def test_half_widths_keep_their_tail(heavy: bool) -> None:
    law = ByVariance(variances=np.array([1.0, 4.0, 0.0]), heavy=heavy, rounding=0.25)
    widths = law.half_widths(0.05)
    for width, variance in zip(widths[:2], law.variances[:2], strict=True):
        assert 2 * np.exp(log_tail(width - 0.25, float(variance), heavy=heavy)) <= 0.05 / 3
        assert 2 * np.exp(log_tail(0.99 * width - 0.25, float(variance), heavy=heavy)) > 0.05 / 3
    assert widths[2] == pytest.approx(0.25)
    assert law.tail(float(widths.max()), 0.05) <= 0.05
    assert law.tail(0.2, 0.05) == 1.0
    assert law.mean_square() == pytest.approx((np.sqrt(5 / 3) + 0.25) ** 2)
