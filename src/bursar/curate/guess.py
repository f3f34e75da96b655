"""From what a survey saw to what a config would declare, each guess with its reason; and what names of columns tell."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction

from bursar.config.section import check_name
from bursar.curate.draft import DraftColumn, DraftUnit, LeftOut, calendar, listed, numeric, toml
from bursar.curate.survey import FEWEST, LONGEST_LIST, SurveyedColumn, SurveyedKind
from bursar.errors import ConfigError

TWINS = "another column has the same name, or one that differs in upper and lower case only; rename it"
BEYOND = "what lies beyond counts as the nearest end"
UNIQUE = (
    "nearly every row has a number of its own, as identifiers have. Does it say whose row it is? Then it is the unit, "
    "and nobody may ask about it."
)
REASONS = {
    SurveyedKind.IDENTIFIER: "identifiers: they tell people apart, so a question about them would be about one person",
    SurveyedKind.TEXT: f"free text, or more than {LONGEST_LIST} different values; to ask about some of them, "
    'list those: values = ["..."]; to ask about any that a question names: domain = "open", capacity = 500',
    SurveyedKind.TIMES: "times of day: too many to list, and their order is not known; put a column of hours beside "
    "it, as whole numbers, and draft anew",
    SurveyedKind.SPARSE: f"no value that at least {FEWEST} rows share; declare it yourself if you know its values",
}


def columns(seen: Sequence[SurveyedColumn]) -> list[DraftColumn | LeftOut]:
    """A declaration of each column, or the reason why it has none."""
    exact = Counter(surveyed.name for surveyed in seen)
    first = {surveyed.name.casefold(): surveyed.name for surveyed in reversed(seen)}
    return [
        LeftOut(name=surveyed.name, reason=TWINS)
        if exact[surveyed.name] > 1 or first[surveyed.name.casefold()] != surveyed.name
        else without_null(column(surveyed), surveyed.gapless)
        for surveyed in seen
    ]


def without_null(drafted: DraftColumn | LeftOut, gapless: bool) -> DraftColumn | LeftOut:
    """The declaration of a column that has no NULL, where it seems to have none."""
    if isinstance(drafted, LeftOut) or not gapless:
        return drafted
    why = f"{drafted.why} No value is missing, so no group NULL is listed: must be public, too."
    return replace(drafted, keys={**drafted.keys, "nullable": False}, why=why)


def column(seen: SurveyedColumn) -> DraftColumn | LeftOut:
    """One column by itself."""
    try:
        check_name(seen.name, "the name of a column")
    except ConfigError:
        return LeftOut(name=seen.name, reason="its name has spaces around it or is empty or too long; rename it")
    if seen.kind in REASONS:
        return LeftOut(name=seen.name, reason=REASONS[seen.kind])
    if seen.kind is SurveyedKind.TRUTHS:
        why = "From the data: true or false. Must be public: that there is nothing else."
        return DraftColumn(name=seen.name, keys=listed([True, False]), why=why)
    if seen.kind is SurveyedKind.VALUES:
        why = (
            f"From the data: the values that at least {FEWEST} rows have; all others count as other. Must be public: "
            "this list. Strike out what would give somebody away, and add what can occur and does not."
        )
        return DraftColumn(name=seen.name, keys=listed(seen.values), why=why)
    if isinstance(seen.low, date):
        assert isinstance(seen.high, date)
        why = f"From the data: the first and the last year; {BEYOND}. Must be public: both days."
        return DraftColumn(name=seen.name, keys=calendar(seen.low, seen.high), why=why)
    assert isinstance(seen.low, Fraction)
    assert isinstance(seen.high, Fraction)
    if seen.kind is SurveyedKind.UNIQUE:
        lines = ", ".join(f"{key} = {toml(value)}" for key, value in numeric(seen.low, seen.high, whole=True).items())
        return LeftOut(name=seen.name, reason=f"{UNIQUE} If it is an amount instead, declare it: {lines}")
    ends = "the calendar's, by the name of the column" if seen.calendar else "rounded outwards"
    why = f"From the data: the ends, {ends}; {BEYOND}. Must be public: both ends."
    whole = seen.kind is SurveyedKind.WHOLE
    keys = numeric(seen.low, seen.high, whole=whole, places=seen.places, heaped=seen.heaped)
    why += " In sums a number counts as the middle of its bin." if "edges" in keys else ""
    return DraftColumn(name=seen.name, keys=keys, why=why)


def unit(seen: Sequence[SurveyedColumn], named: str | None = None) -> DraftUnit:
    """Who is protected: the identifier whose values come up again and again, if there is one; else each row.

    Of identifiers, the one that the owner has named comes before all others.
    """
    identifiers = [surveyed for surveyed in seen if surveyed.kind in (SurveyedKind.IDENTIFIER, SurveyedKind.UNIQUE)]
    repeated = [surveyed for surveyed in identifiers if surveyed.name == named] or [
        surveyed for surveyed in identifiers if surveyed.repeats > 1
    ]
    if not repeated and identifiers:
        names = tuple(surveyed.name for surveyed in identifiers)
        question = (
            f"Nearly every row has a value of its own in {', '.join(names)}: if one of these says whose row it is, and "
            f"somebody may have a second row one day, write unit = {toml({'column': names[0]})}"
        )
        return DraftUnit(why=f"{DraftUnit.why}. {question}", candidates=names)
    if not repeated:
        return DraftUnit()
    why = (
        f"A guess from the data: rows with the same {repeated[0].name} are one person's, and most people have at most "
        "max_contributions rows. Further rows of the same person are not counted; fewer make every answer cheaper. If "
        'each row is a person of its own: unit = "row".'
    )
    return DraftUnit(column=repeated[0].name, max_contributions=repeated[0].repeats, why=why)


IDS = frozenset({
    "id", "uuid", "guid", "ssn", "key", "identifier", "pid", "uid", "mrn", "nhs", "imei", "iban",
    "idnum", "idno", "idnr", "pidnum", "patid", "ptid", "subjid", "usubjid", "subjectid", "userid", "caseid", "empid",
    "rowid", "rownum", "rowname", "rownames",
})  # fmt: skip
NUMBERS = ("nr", "no", "num", "number", "nummer", "numero")
HOLDERS = (
    "id", "account", "case", "citizen", "client", "contract", "customer", "employee", "insurance", "invoice", "member",
    "membership", "order", "passport", "patient", "person", "personnel", "policy", "staff", "student", "subject",
    "ticket", "user", "akte", "auftrag", "ausweis", "fall", "kd", "klient", "konto", "kund", "mitglied", "personal",
    "rechnung", "steuer", "versicherung", "vertrag",
)  # fmt: skip
"""Who or what has numbers, in English and German, and `id` itself; an ending such as -n, -en or -s may follow."""

ALONE = frozenset({
    "nr", "no", "account", "case", "citizen", "client", "customer", "employee", "household",
    "member", "order", "participant", "passport", "patient", "person", "pupil", "respondent", "student", "subject",
    "ticket", "user", "kunde", "konto", "mitglied",
})  # fmt: skip
"""Names that say whose row it is where nothing stands beside them: `subject`, but not `subject group`."""

_WORD = re.compile(r"[A-Z]+(?![a-zß])|[A-Z]?[a-zß]+")
_NUMBERED = re.compile(rf"(?:{'|'.join(HOLDERS)})(?:e?n|e?s|e)?(?:{'|'.join(NUMBERS)}|id)")


def names_identifiers(name: str) -> bool:
    """Whether a column of this name holds identifiers, if its values look like some."""
    words = words_of(name)
    if not words:
        return False
    last_two = (words[-1], "".join(words[-2:]))
    alone = len(words) == 1 and words[0] in ALONE
    return alone or words[-1] in IDS or any(map(_NUMBERED.fullmatch, last_two))


def words_of(name: str) -> list[str]:
    """The words of a name, in small letters and without accents: customerId and Customer-ID have two, the same."""
    letters = "".join(
        character for character in unicodedata.normalize("NFKD", name) if not unicodedata.combining(character)
    )
    return [word.casefold() for word in _WORD.findall(letters)]


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


def calendar_spans(name: str) -> Sequence[range]:
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
