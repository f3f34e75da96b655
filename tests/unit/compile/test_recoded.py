"""What declarations make of numbers, in words."""

from __future__ import annotations

from decimal import Decimal

import pytest

from bursar.compile import compile
from bursar.compile.values import Decimals, recoding_remark
from bursar.core.domain import Attribute, Bins, Categories, Domain, IntegerRange, Stray, Unit
from bursar.sql import parse
from bursar.sql.per_person import parse_people

OTHER = Stray.OTHER
BINNED = Bins(name="bill", edges=tuple(0.25 * edge for edge in range(41)))
WIDE = Bins(name="fee", edges=(0.0, 5.0, 10.0))
BILLS = Domain((BINNED, WIDE, Decimals(name="tip", edges=(-0.5, 0.5, 1.5), lower=Decimal(0), step=Decimal(1))))


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


def told(sql: str) -> tuple[str, ...]:
    query = parse_people(sql, "person") or parse(sql)
    return compile(query, BILLS, "visits", unit=Unit(column="person", max_contributions=3)).remarks


def test_of_several_columns_only_those_in_bins_are_said_to_be() -> None:
    bins, *ends = told("SELECT SUM(bill + tip) AS s FROM visits")
    assert bins == (
        "bill is known by bin only, and each value counts as the middle of its bin: for each row that is added up, the "
        "sum may be off by at most 0.125 more"
    )
    assert [end.split(":")[0] for end in ends[:2]] == ["bill", "tip"]
    assert told("SELECT AVG(bill + fee) AS a FROM visits")[0].startswith("bill and fee are known by bin only, and each")


def test_a_number_of_each_person_says_so_too() -> None:
    sums = "(SELECT person, SUM({}) AS total FROM visits GROUP BY person)"
    bins = [one for one in told(f"SELECT AVG(total) FROM {sums.format('bill')}") if "by bin only" in one]
    assert bins == [
        "bill is known by bin only, and each value counts as the middle of its bin: for each row of a person, total "
        "may be off by at most 0.125 more"
    ]
    assert not any("by bin only" in one for one in told(f"SELECT AVG(total) FROM {sums.format('tip')}"))
