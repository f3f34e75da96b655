"""Sums of squares and products over wide columns: exact in larger steps, or of values rounded as the answer says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.compile import Workload, compile
from bursar.core.domain import Bins, Categories, Domain, IntegerRange
from bursar.errors import QueryError
from bursar.planner.request import balance
from bursar.sql import parse

AGE = IntegerRange(name="age", lower=16, upper=99, null=0)
INCOME = Bins(name="income", edges=tuple(10_000.0 * step for step in range(16)), null=0)
WORTH = Bins(name="worth", edges=tuple(2e10 * step for step in range(6)), null=0)
PRICE = IntegerRange(name="price", lower=0, upper=99_999, null=0)
LONG = IntegerRange(name="long", lower=0, upper=2**20, null=0)


def _exact(text: str, columns: Domain, table: np.ndarray) -> tuple[float, Workload]:
    """An answer from exact counts, with bars of no width."""
    workload = compile(parse(text), columns, "t")

    def counts(names: tuple[str, ...]) -> np.ndarray:
        return table.sum(axis=tuple(axis for axis, name in enumerate(columns.names) if name not in names))

    rows = workload.map.apply(counts).astype(float)
    (derived,) = workload.derive(rows, rows, rows)
    return float(derived.value[0]), workload


def _middles(column: Bins) -> np.ndarray:
    return np.array([(low + high) / 2 for low, high in zip(column.edges, column.edges[1:], strict=False)])


@pytest.mark.parametrize("of", ["CORR(age, income)", "CORR(age, worth)", "COVAR_POP(income, age)"])
def test_bins_that_lie_far_apart_are_counted_in_their_steps(of: str) -> None:
    wide = WORTH if "worth" in of else INCOME
    domain, draw = Domain((AGE, wide)), np.random.default_rng(3)
    table = draw.integers(0, 9, domain.sizes(domain.names)) * np.eye(*domain.sizes(domain.names), dtype=np.int64)
    table += draw.integers(0, 2, table.shape)
    x, y = np.meshgrid(np.arange(16.0, 100.0), _middles(wide), indexing="ij")
    cov = np.cov(x.ravel(), y.ravel(), fweights=table.ravel(), ddof=0)
    truth = cov[0, 1] if of.startswith("COVAR") else cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1])
    value, workload = _exact(f"SELECT {of} FROM t", domain, table)
    assert value == pytest.approx(truth, rel=1e-9)
    assert workload.map.largest() <= 83 * 83
    assert not any("rounded to" in remark for remark in workload.remarks)
    assert any(f"{wide.name} is known by bin only" in remark for remark in workload.remarks)


def test_values_that_are_too_far_apart_are_rounded_and_the_answer_says_by_how_much() -> None:
    domain, table = Domain((PRICE,)), np.zeros(100_000, np.int64)
    table[[0, 3, 70_001, 99_999]] = [5, 2, 4, 1]
    truth = np.sqrt(np.cov(np.arange(100_000.0), fweights=table, ddof=0))
    value, workload = _exact("SELECT STDDEV_POP(price) FROM t", domain, table)
    assert (
        "price: values are rounded to 49, so that their squares can be added up: each may be off by at most 24 more"
        in (workload.remarks)
    )
    assert 0 < abs(value - truth) <= 24  # a deviation moves by no more than its values do


def test_large_coefficients_are_balanced_with_those_of_counts() -> None:
    codes = Categories(name="code", values=(1, 2**28 + 1), outside=0, null=0)
    workload = compile(parse("SELECT SUM(code) AS s, COUNT(*) AS n FROM t"), Domain((codes,)), "t")
    balanced = balance(workload.map, np.array([10.0 * math.pi, 10.0]))
    assert balanced.map.largest() < 2**29
    assert all(norm.largest() > 0 for norm in balanced.map.norms(2))  # none is refused as too large


def test_a_column_of_too_many_values_has_no_squares() -> None:
    with pytest.raises(QueryError, match="long has 1048577 cells, and squares are added up over 1048576 at most"):
        compile(parse("SELECT STDDEV(long) FROM t"), Domain((LONG,)), "t")
    compile(parse("SELECT AVG(long) FROM t"), Domain((LONG,)), "t")


def test_sums_and_products_are_of_many_joint_cells() -> None:
    high, low = (IntegerRange(name=name, lower=0, upper=400, null=0) for name in ("high", "low"))
    domain, table = Domain((high, low)), np.zeros((401, 401), np.int64)
    table[10, 3], table[400, 0], table[7, 9] = 2, 1, 5
    for of, truth in (("AVG(high - low)", (14 + 400 - 10) / 8), ("SUM(high * low / 4)", (60 + 5 * 63) / 4)):
        assert _exact(f"SELECT {of} FROM t", domain, table)[0] == pytest.approx(truth)
    with pytest.raises(QueryError, match="160801 joint cells, and 65536 are possible here"):
        compile(parse("SELECT SUM(ABS(high - low)) FROM t"), domain, "t")


@pytest.mark.parametrize(
    ("of", "truth"),
    [
        ("SUM(high / low)", 2 * 10 / 3 + 5 * 7 / 9),
        ("AVG(high / low)", (2 * 10 / 3 + 5 * 7 / 9) / 7),
        ("AVG(100 * (high - 9.5) / NULLIF(low, 0))", 100 * (2 * 0.5 / 3 - 5 * 2.5 / 9) / 7),
        ("AVG(high / low * 2) * 10", 20 * (2 * 10 / 3 + 5 * 7 / 9) / 7),
        ("SUM(low / high)", 2 * 3 / 10 + 5 * 9 / 7),
        ("COUNT(high / low)", 7),
        ("COUNT(low / high)", 8),
        ("AVG(high / low) FILTER (WHERE high < 10)", 7 / 9),
    ],
)
def test_quotients_are_of_many_joint_cells_and_leave_out_divisions_by_0(of: str, truth: float) -> None:
    high, low = (IntegerRange(name=name, lower=0, upper=400) for name in ("high", "low"))
    table = np.zeros((high.size, low.size), np.int64)
    table[10, 3], table[400, 0], table[7, 9], table[high.null_cell, 5] = 2, 1, 5, 3
    assert _exact(f"SELECT {of} FROM t", Domain((high, low)), table)[0] == pytest.approx(truth, abs=0.005)


def test_a_divisor_of_too_many_joint_cells_is_refused() -> None:
    domain = Domain(tuple(IntegerRange(name=name, lower=0, upper=400) for name in ("high", "low")))
    with pytest.raises(QueryError, match="high and low have too many joint values for this"):
        compile(parse("SELECT AVG(high / (high - low)) FROM t"), domain, "t")


def test_large_products_are_rounded_and_the_answer_says_so() -> None:
    codes = [Categories(name=name, values=(3, 1_000_003), outside=0, null=0) for name in ("one", "two")]
    table = np.array([[2, 1], [0, 5]])
    value, workload = _exact("SELECT SUM(one * two) FROM t", Domain(tuple(codes)), table)
    truth = 2 * 9 + 3 * 1_000_003 + 5 * 1_000_003**2
    assert 0 < abs(value - truth) <= 8 * 476_843
    assert any("what is made of one and two is rounded to 953681 for each row" in remark for remark in workload.remarks)
