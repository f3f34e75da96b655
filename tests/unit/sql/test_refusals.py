"""Questions that are refused while being read: where, why, and what is offered instead (refusals.sql)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from bursar.errors import QueryError
from bursar.sql import parse


class Case(NamedTuple):
    text: str
    says: str
    at: str
    rewrite: str


def cases() -> list[Case]:
    found = []
    for block in (Path(__file__).parent / "refusals.sql").read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("--- ")]
        said = dict(line.removeprefix("-- ").split(": ", 1) for line in lines if line.startswith("-- "))
        text = "\n".join(line for line in lines if not line.startswith("-- "))
        if text:
            found.append(Case(text, said["says"], said["at"], said.get("try", "")))
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.text[:50])
def test_refusal(case: Case) -> None:
    with pytest.raises(QueryError) as refused:
        parse(case.text)
    assert refused.value.reason == case.says
    assert case.text[refused.value.position :].startswith(case.at)
    assert refused.value.rewrite == case.rewrite
    if case.rewrite:
        parse(case.rewrite)


def test_there_are_cases() -> None:
    assert len(cases()) >= 60
    assert sum(bool(case.rewrite) for case in cases()) >= 30


def test_the_message_points_at_the_place() -> None:
    with pytest.raises(QueryError) as refused:
        parse("SELECT COUNT(*)\nFROM people\nORDER BY 1")
    assert str(refused.value).splitlines() == [
        "line 3, column 1: ORDER BY is not available; the groups come in the order of the public domain",
        "  ORDER BY 1",
        "  ^",
        "try: SELECT COUNT(*) FROM people",
    ]
