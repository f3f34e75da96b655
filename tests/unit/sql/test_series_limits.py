"""The join for the largest few series: which joins are meant, and which stay joins."""

from __future__ import annotations

import pytest

from bursar.errors import QueryError
from bursar.sql import parse

TOP = "(SELECT region AS r, COUNT(*) AS m FROM people{} GROUP BY region ORDER BY m DESC LIMIT 2) AS top"
ASKED = "SELECT sex, region, COUNT(*) AS n FROM people JOIN {} ON {}{} GROUP BY sex, region{}"


def test_nothing_more_is_bought() -> None:
    query = parse(ASKED.format(TOP.format(""), "region = r", "", " ORDER BY COUNT(*) DESC, 1 LIMIT 10"))
    assert len(query.aggregates) <= 2
    assert {key.column.text for key in query.keys} == {"sex", "region"}


@pytest.mark.parametrize(
    "text",
    [
        ASKED.format(TOP.format(""), "region = r", " WHERE age > 3", ""),
        ASKED.format(TOP.format(" WHERE age > 3"), "region = r", "", ""),
        ASKED.format(TOP.format(""), "sex = r", "", ""),
        ASKED.format(TOP.format(""), "region = r AND sex = 'F'", "", ""),
        ASKED.format(TOP.format("").replace("COUNT(*)", "AVG(age)"), "region = r", "", ""),
        ASKED.format(TOP.format(""), "region = r", "", " ORDER BY AVG(age)"),
        ASKED.format(TOP.format("").replace(" LIMIT 2", ""), "region = r", "", ""),
        ASKED.format(TOP.format("").replace("people", "others"), "region = r", "", ""),
        ASKED.format(TOP.format(""), "region = r", "", "").replace("JOIN", "LEFT JOIN"),
        "SELECT sex, COUNT(*) AS n FROM people JOIN " + TOP.format("") + " ON region = r GROUP BY sex",
    ],
)
def test_any_other_join_stays_one(text: str) -> None:
    with pytest.raises(QueryError, match="join"):
        parse(text)
