"""Names that let people expect the numbers of a calendar, and names that only hold such a word."""

from __future__ import annotations

import pytest

from bursar.curate.guess import calendar_spans


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("month", range(1, 13)),
        ("birth_month", range(1, 13)),
        ("Monat", range(1, 13)),
        ("DAY", range(1, 32)),
        ("dayOfWeek", range(1, 8)),
        ("weekday", range(1, 8)),
        ("day_of_year", range(1, 367)),
        ("week", range(1, 54)),
        ("quarter", range(1, 5)),
        ("dep_hour", range(24)),
        ("minute", range(60)),
        ("second", range(60)),
        ("model year", range(1800, 2201)),
    ],
)
def test_these_are_calendars(name: str, first: range) -> None:
    assert calendar_spans(name)[0] == first


@pytest.mark.parametrize("name", ["", "42", "days", "hours_per_week", "number of day", "month_salary", "monday", "age"])
def test_these_are_not(name: str) -> None:
    assert calendar_spans(name) == ()
