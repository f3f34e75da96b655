"""What the tab key offers: words, columns and values of the config, where each of them may stand."""

from __future__ import annotations

from datetime import date

import pytest

from bursar.cli.shell import Completer, described
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period, Stray

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=9),
        Categories(name="region", values=("north", "north east", "it's"), outside=Stray.OTHER),
        Categories(name="member", values=(True, False), outside=0, null=0),
        Bins(name="income", edges=(0.0, 10.0, 20.5)),
        Dates(name="joined", first=date(2024, 1, 1), last=date(2024, 3, 1), by=Period.MONTH),
        Categories(name="first name", values=("a",)),
    )
)
COMPLETER = Completer(tables={"people": DOMAIN})


def offered(line: str) -> list[str]:
    """What the tab key offers at the end of the line, as it would then stand in it."""
    begin = max(line.rfind(each) for each in " \t\n,()=<>;") + 1
    return [line[:begin] + each for each in COMPLETER.complete(line, begin)]


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("sel", "SELECT"),
        ("SELECT reg", "SELECT region"),
        ("SELECT COU", "SELECT COUNT(*)"),
        ("SELECT region,ag", "SELECT region,age"),
        ("SELECT COUNT(*) FROM p", "SELECT COUNT(*) FROM people"),
        ("SELECT COUNT(*) FROM ", "SELECT COUNT(*) FROM people"),
        ("... WHERE region = 'i", "... WHERE region = 'it''s'"),
        ("... WHERE region = 'north e", "... WHERE region = 'north east'"),
        ("... WHERE region IN ('north', 'i", "... WHERE region IN ('north', 'it''s'"),
        ("... WHERE Region <> 'it", "... WHERE Region <> 'it''s'"),
        ("... WHERE member = T", "... WHERE member = TRUE"),
        ("... WHERE age >= 7", "... WHERE age >= 7"),
        ("... WHERE income < 2", "... WHERE income < 20.5"),
        ("... WHERE joined = '2024-03", "... WHERE joined = '2024-03-01'"),
        ("... WHERE 'north e", "... WHERE 'north east'"),
        ('SELECT "first', 'SELECT "first name"'),
        ('... WHERE "first name" = ', "... WHERE \"first name\" = 'a'"),
        ("\\bu", "\\budget"),
        ("\\explain SELECT reg", "\\explain SELECT region"),
        ("... WITH ERROR 50 CONF", "... WITH ERROR 50 CONFIDENCE"),
    ],
)
def test_a_word_is_completed_where_it_may_stand(line: str, completed: str) -> None:
    assert offered(line) == [completed]


def test_values_follow_a_comparison_and_columns_do_not() -> None:
    assert offered("... WHERE region = ") == [
        "... WHERE region = 'north'",
        "... WHERE region = 'north east'",
        "... WHERE region = 'it''s'",
    ]
    assert offered("... WHERE nothing = ag") == ["... WHERE nothing = age"]
    assert offered("xyz") == []


def test_the_values_of_a_column_in_words() -> None:
    told = {column.name: described(column) for column in DOMAIN.attributes}
    assert told == {
        "age": "10 numbers, 0 to 9; NULL",
        "region": "'north', 'north east', 'it''s'; other; NULL",
        "member": "TRUE, FALSE",
        "income": "2 bins, [0, 10) to [10, 20.5]; NULL",
        "joined": "3 months, 2024-01-01 to 2024-03-01; NULL",
        "first name": "'a'; other; NULL",
    }
    many = Categories(name="many", values=tuple(range(100)))
    assert described(many).endswith("7, ... (100 values); other; NULL")
