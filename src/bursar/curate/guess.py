"""From what a survey saw to what a config would declare, each guess with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from fractions import Fraction

from bursar.curate.draft import DraftColumn, DraftUnit, LeftOut, listed, numeric, toml
from bursar.config.section import check_name
from bursar.errors import ConfigError
from bursar.curate.survey import FEWEST, MOST_VALUES, Kind, Seen

TWINS = "another column has the same name, or one that differs in upper and lower case only; rename it"
BEYOND = "what lies beyond counts as the nearest end"
UNIQUE = (
    "nearly every row has a number of its own, as identifiers have. Does it say whose row it is? Then it is the unit, "
    "and nobody may ask about it."
)
REASONS = {
    Kind.IDENTIFIER: "identifiers: they tell people apart, so a question about them would be about one person",
    Kind.TEXT: f"free text, or more than {MOST_VALUES} different values; to ask about some of them, list those: "
    'values = ["..."]',
    Kind.SPARSE: f"no value that at least {FEWEST} rows share; declare the column yourself if you know its values",
}


def columns(seen: Sequence[Seen]) -> list[DraftColumn | LeftOut]:
    """A declaration of each column, or the reason why it has none."""
    exact = Counter(one.name for one in seen)
    first = {one.name.casefold(): one.name for one in reversed(seen)}
    return [
        LeftOut(name=one.name, reason=TWINS)
        if exact[one.name] > 1 or first[one.name.casefold()] != one.name
        else column(one)
        for one in seen
    ]


def column(seen: Seen) -> DraftColumn | LeftOut:
    """One column by itself."""
    try:
        check_name(seen.name, "the name of a column")
    except ConfigError:
        return LeftOut(name=seen.name, reason="its name has spaces around it or is empty or too long; rename it")
    if seen.kind in REASONS:
        return LeftOut(name=seen.name, reason=REASONS[seen.kind])
    if seen.kind is Kind.TRUTHS:
        why = "From the data: true or false. Must be public: that there is nothing else."
        return DraftColumn(name=seen.name, keys=listed([True, False]), why=why)
    if seen.kind is Kind.VALUES:
        why = (
            f"From the data: the values that at least {FEWEST} rows have; all others count as other. Must be public: "
            "this list. Strike out what would give somebody away, and add what can occur and does not."
        )
        return DraftColumn(name=seen.name, keys=listed(seen.values), why=why)
    if isinstance(seen.low, date):
        why = f"From the data: the first and the last year; {BEYOND}. Must be public: both days."
        return DraftColumn(name=seen.name, keys={"first": seen.low, "last": seen.high, "by": "month"}, why=why)
    assert isinstance(seen.low, Fraction)
    assert isinstance(seen.high, Fraction)
    if seen.kind is Kind.UNIQUE:
        lines = ", ".join(f"{key} = {toml(value)}" for key, value in numeric(seen.low, seen.high, whole=True).items())
        return LeftOut(name=seen.name, reason=f"{UNIQUE} If it is an amount instead, declare it: {lines}")
    ends = "the calendar's, by the name of the column" if seen.calendar else "rounded outwards"
    why = f"From the data: the ends, {ends}; {BEYOND}. Must be public: both ends."
    whole = seen.kind is Kind.WHOLE
    keys = numeric(seen.low, seen.high, whole=whole, places=seen.places, heaped=seen.heaped)
    why += " In sums a number counts as the middle of its bin." if "edges" in keys else ""
    return DraftColumn(name=seen.name, keys=keys, why=why)


def unit(seen: Sequence[Seen], named: str | None = None) -> DraftUnit:
    """Who is protected: the identifier whose values come up again and again, if there is one; else each row.

    Of identifiers, the one that the owner has named comes before all others.
    """
    known = [one for one in seen if one.kind in (Kind.IDENTIFIER, Kind.UNIQUE)]
    repeated = [one for one in known if one.name == named] or [one for one in known if one.repeats > 1]
    if not repeated and known:
        names = tuple(one.name for one in known)
        asked = (
            f"Nearly every row has a value of its own in {', '.join(names)}: if one of these says whose row it is, and "
            f"somebody may have a second row one day, write unit = {toml({'column': names[0]})}"
        )
        return DraftUnit(why=f"{DraftUnit.why}. {asked}", candidates=names)
    if not repeated:
        return DraftUnit()
    why = (
        f"A guess from the data: rows with the same {repeated[0].name} are one person's, and most people have at most "
        "max_contributions rows. Further rows of the same person are not counted; fewer make every answer cheaper. If "
        'each row is a person of its own: unit = "row".'
    )
    return DraftUnit(column=repeated[0].name, max_contributions=repeated[0].repeats, why=why)
