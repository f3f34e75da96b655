"""What the pages say about columns."""

from __future__ import annotations

from decimal import Decimal

import pytest

from bursar.compile.values import Decimals
from bursar.core.domain import Attribute, Bins, IntegerRange
from bursar.service.pages.ask import _facts

CENTS = Decimals(name="price", edges=(-0.005, 0.005, 0.015), lower=Decimal(0), step=Decimal("0.01"))


def test_a_column_without_gaps_says_so() -> None:
    assert _facts(IntegerRange(name="age", lower=0, upper=9)).null == "missing values are a group of their own, NULL"
    assert _facts(IntegerRange(name="age", lower=0, upper=9, nullable=False)).null == "no value is missing"


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (IntegerRange(name="year", lower=1984, upper=1988), "1984 to 1988"),
        (IntegerRange(name="income", lower=-500, upper=1_000_000), "-500 to 1,000,000"),
        (Bins(name="height", edges=(0.0, 0.5, 2.0)), "0 to 2, 2 bins"),
        (CENTS, "0 to 0.01, in steps of 0.01"),
    ],
)
def test_a_year_is_told_without_a_comma_and_large_numbers_with_one(column: Attribute, told: str) -> None:
    assert _facts(column).told == told
