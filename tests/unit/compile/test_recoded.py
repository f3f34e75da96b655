"""What declarations make of numbers, in words."""

from __future__ import annotations

from decimal import Decimal

import pytest

from bursar.compile.values import Decimals, recoding_remark
from bursar.core.domain import Attribute, Bins, Categories, IntegerRange, Stray

OTHER = Stray.OTHER


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (
            IntegerRange(name="x", lower=0, upper=1),
            "x: values outside 0 to 1 count as 0 or 1; decimals are rounded down",
        ),
        (
            IntegerRange(name="x", lower=0, upper=9, outside=3),
            "x: values outside 0 to 9 count as 3; decimals are rounded down",
        ),
        (
            IntegerRange(name="x", lower=0, upper=9, outside=OTHER),
            "x: values outside 0 to 9 are left out; decimals are rounded down",
        ),
        (
            Decimals(name="x", edges=(-0.05, 0.05, 0.15), lower=Decimal("0.0"), step=Decimal("0.1")),
            "x: values outside 0.0 to 0.1 count as 0.0 or 0.1; numbers are rounded to the nearest 0.1",
        ),
        (Bins(name="x", edges=(0.0, 0.5, 2.0), outside=OTHER), "x: values outside 0 to 2 are left out"),
        (
            Bins(name="x", edges=(0.0, 0.5, 2.0), outside=1, null=0),
            "x: values outside 0 to 2 count as if they were in [0.5, 2]; "
            "missing values count as if they were in [0, 0.5)",
        ),
        (Categories(name="x", values=(1, 5)), "x: values that are not listed are left out"),
        (Categories(name="x", values=(1, 5), outside=1), "x: values that are not listed count as 5"),
    ],
)
def test_only_what_is_declared_is_said(column: Attribute, said: str) -> None:
    assert recoding_remark(column) == said
