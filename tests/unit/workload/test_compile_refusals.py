"""Questions that the declared columns cannot answer: where, why, and what is offered instead (compile_refusals.sql)."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import NamedTuple

import pytest

from bursar.domain import Bins, Categories, Dates, Domain, Integers, Period, Stray
from bursar.errors import QueryError
from bursar.sql import parse
from bursar.workload import compile

YEAR = {"first": date(2024, 1, 1), "last": date(2024, 12, 31)}
PEOPLE = Domain(
    (
        Integers(name="age", lower=0, upper=99, outside=Stray.OTHER),
        Integers(name="height", lower=100, upper=220),
        Bins(name="income", edges=(0.0, 10.0, 20.0, 50.0)),
        Bins(name="weight", edges=(0.5, 60.0, 90.0), outside=Stray.OTHER),
        Categories(name="sex", values=("F", "M")),
        Categories(name="country", values=("DE", "FR", "IT"), null=Stray.OTHER),
        Categories(name="active", values=(True, False), outside=1),
        Categories(name="code", values=(1, 2, 7), outside=0),
        Categories(name="region", values=("N", "S"), null=0),
        Dates(name="day", **YEAR, by=Period.DAY),
        Dates(name="seen", **YEAR, by=Period.WEEK, outside=Stray.OTHER, null=Stray.OTHER),
        Dates(name="born", first=date(1900, 1, 1), last=date(2024, 12, 31), by=Period.MONTH, null=0),
        Integers(name="Zip Code", lower=0, upper=999999),
    )
)


class Case(NamedTuple):
    text: str
    says: str
    at: str
    rewrite: str


def cases() -> list[Case]:
    found = []
    for block in (Path(__file__).parent / "compile_refusals.sql").read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("--- ")]
        said = dict(line.removeprefix("-- ").split(": ", 1) for line in lines if line.startswith("-- "))
        text = "\n".join(line for line in lines if not line.startswith("-- "))
        if text:
            found.append(Case(text, said["says"], said["at"], said.get("try", "")))
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.text[:60])
def test_refusal(case: Case) -> None:
    with pytest.raises(QueryError) as refused:
        compile(parse(case.text), PEOPLE, "people")
    assert refused.value.reason == case.says
    assert case.text[refused.value.position :].startswith(case.at)
    assert (refused.value.text, refused.value.rewrite) == (case.text, case.rewrite)
    if case.rewrite:
        compile(parse(case.rewrite), PEOPLE, "people")


def test_there_are_cases() -> None:
    assert len(cases()) >= 50
    assert sum(bool(case.rewrite) for case in cases()) >= 35
