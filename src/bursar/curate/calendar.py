"""Which whole numbers the name of a column lets people expect, as month does: told by its words, never by the data."""

from __future__ import annotations

from collections.abc import Sequence

from bursar.curate.guess import words_of

YEARS = range(1800, 2201)
HOURS, SIXTY = (range(24), range(25)), (range(60), range(61))
WEEKDAYS = (range(1, 8), range(7))
SPANS: dict[str, Sequence[range]] = {
    **dict.fromkeys(("year", "yr", "jahr"), (YEARS,)),
    **dict.fromkeys(("quarter", "qtr", "quartal"), (range(1, 5),)),
    **dict.fromkeys(("month", "mon", "mnth", "monat"), (range(1, 13), range(12))),
    **dict.fromkeys(("week", "kw", "woche"), (range(1, 54), range(54))),
    **dict.fromkeys(("day", "mday", "tag"), (range(1, 32),)),
    **dict.fromkeys(("weekday", "wday", "dow", "wochentag"), WEEKDAYS),
    **dict.fromkeys(("hour", "hr", "stunde"), HOURS),
    **dict.fromkeys(("minute", "second", "sekunde"), SIXTY),
}
"""Of several spans the first that holds the data is meant: weekdays may begin with 0 or 1."""

OF_WHAT = {
    **dict.fromkeys((("day", "of", "week"), ("day", "week")), WEEKDAYS),
    **dict.fromkeys((("day", "of", "year"), ("day", "year")), (range(1, 367),)),
    **dict.fromkeys((("week", "of", "year"), ("week", "year")), (range(1, 54),)),
}


def expected(name: str) -> Sequence[range]:
    """The spans that a column of this name may have; none if its words say nothing about a calendar.

    The last word counts: birth_month is one, month_salary is not. Words before it may say how many there are, as in
    number of days, which is no day.
    """
    words = tuple(words_of(name))
    for ending, spans in OF_WHAT.items():
        if words[-len(ending) :] == ending:
            return spans
    counting = {"of", "per", "in", "no", "number", "num", "n", "total", "count"} & set(words[:-1])
    return () if not words or counting else SPANS.get(words[-1], ())
