"""Refusals while a question is parsed (refused_by_parse.sql), and by the declared columns (refused_by_compile.sql).

Each block of the two files says why, at which word, and what is offered instead; every offer must itself be accepted.
"""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bursar.compile import Workload, compile
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.errors import QueryError
from bursar.rewrite import suggest as suggest_module
from bursar.sql import Query, parse
from harness.asking import compiled, parsed
from harness.cases import every, few

HERE = Path(__file__).parent
PEOPLE = Domain(
    (
        IntegerRange(name="age", lower=0, upper=99, outside=Stray.OTHER),
        IntegerRange(name="height", lower=100, upper=220),
        Bins(name="income", edges=(0.0, 10.0, 20.0, 50.0)),
        Bins(name="weight", edges=(0.5, 60.0, 90.0), outside=Stray.OTHER),
        Categories(name="sex", values=("F", "M")),
        Categories(name="country", values=("DE", "FR", "IT"), null=Stray.OTHER),
        Categories(name="active", values=(True, False), outside=1),
        Categories(name="code", values=(1, 2, 7), outside=0),
        Categories(name="region", values=("N", "S"), null=0),
        Dates(name="day", first=date(2024, 1, 1), last=date(2024, 12, 31), by=Period.DAY),
        Dates(
            name="seen",
            first=date(2024, 1, 1),
            last=date(2024, 12, 31),
            by=Period.WEEK,
            outside=Stray.OTHER,
            null=Stray.OTHER,
        ),
        Dates(name="born", first=date(1900, 1, 1), last=date(2024, 12, 31), by=Period.MONTH, null=0),
        IntegerRange(name="Zip Code", lower=0, upper=999999),
    )
)


class Case(NamedTuple):
    text: str
    says: str
    at: str
    rewrite: str
    differs: str = ""


@cache
def cases(path: Path) -> list[Case]:
    found = []
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("--- ")]
        said = dict(line.removeprefix("-- ").split(": ", 1) for line in lines if line.startswith("-- "))
        text = "\n".join(line for line in lines if not line.startswith("-- "))
        if text:
            found.append(Case(text, said["says"], said["at"], said.get("try", ""), said.get("but", "")))
    return found


def reading() -> list[Case]:
    return cases(HERE / "refused_by_parse.sql")


def compiling() -> list[Case]:
    return cases(HERE / "refused_by_compile.sql")


def check(case: Case, refused: QueryError) -> None:
    assert refused.reason == case.says
    assert case.text[refused.position :].startswith(case.at)
    assert (refused.text, refused.rewrite) == (case.text, case.rewrite)
    assert refused.differs == case.differs


@every("case", reading, lambda case: case.text, nth=3)
def test_refused_while_being_read(case: Case) -> None:
    with pytest.raises(QueryError) as refused:
        parsed(case.text)
    check(case, refused.value)
    if case.rewrite:
        parse(case.rewrite)


@every("case", compiling, lambda case: case.text, nth=4)
def test_refused_by_the_declared_columns(case: Case) -> None:
    assert parse(case.text).text == case.text
    with pytest.raises(QueryError) as refused:
        compiled(case.text, PEOPLE)
    check(case, refused.value)
    if case.rewrite:
        compile(parse(case.rewrite), PEOPLE, "people")


@pytest.mark.heavy
@every("case", lambda: [*reading(), *compiling()], lambda case: case.text)
def test_what_is_offered_to_an_analyst_can_be_asked_as_a_whole(case: Case) -> None:
    """Reading alone does not know the columns; what an analyst gets to see was compiled against them."""
    with pytest.raises(QueryError) as refused:
        compiled(case.text, PEOPLE)
    assert refused.value.reason == case.says
    if refused.value.rewrite:
        assert compiled(refused.value.rewrite, PEOPLE).outputs


@pytest.mark.heavy
def test_reading_alone_would_offer_what_cannot_be_asked() -> None:
    """The twin: a parser's own offers name columns that are not there, and cut through bins."""
    offers = {case.text: case.rewrite for case in reading() if case.rewrite}
    assert sum(_refused(rewrite) for rewrite in offers.values()) > 5
    kept = [_offered(text) for text in offers]
    assert sum(bool(rewrite) for rewrite in kept) > len(offers) / 2
    assert not any(_refused(rewrite) for rewrite in kept if rewrite)


def test_an_offer_that_is_refused_for_its_meaning_is_mended_at_once() -> None:
    text = "SELECT agee, COUNT(*) FROM people WHERE income < 15 GROUP BY agee ORDER BY 7"
    assert _offered(text) == "SELECT age, COUNT(*) FROM people WHERE income < 20 GROUP BY age"
    assert _offered("SELECT nothing_like_it, COUNT(*) FROM people GROUP BY 1 ORDER BY 7") == ""


def _offered(text: str) -> str:
    with pytest.raises(QueryError) as refused:
        compiled(text, PEOPLE)
    return refused.value.rewrite


def _refused(text: str) -> bool:
    try:
        compiled(text, PEOPLE)
    except QueryError:
        return True
    return False


def test_there_are_cases_and_most_of_them_offer_something() -> None:
    for found in (reading(), compiling()):
        assert len(found) >= 50
        assert sum(bool(case.rewrite) for case in found) > len(found) / 2


def test_the_message_points_at_the_place() -> None:
    with pytest.raises(QueryError) as refused:
        parsed("SELECT COUNT(*)\nFROM people\nORDER BY 2")
    assert str(refused.value).splitlines() == [
        "line 3, column 10: ORDER BY counts the selected columns from 1 to 1",
        "  ORDER BY 2",
        "           ^",
        "try: SELECT COUNT(*) FROM people",
    ]


HARD = [
    'SELECT FLOOR("Zip Code" / 5), age, COUNT(*) FROM people GROUP BY 1, 2',
    'SELECT FLOOR("Zip Code" / 5), SUM(age) FROM people GROUP BY 1',
    'SELECT "Zip Code" // 3, age, COUNT(*) FROM people GROUP BY 1, 2',
    "SELECT MIN(age), FOO(age) FROM people",
    'SELECT sex, SUM(height) FROM people WHERE "Zip Code" = 3 OR age = 2 GROUP BY sex',
    "SELECT SUM(age), SUM(weight), COUNT(seen), SUM(sex) FROM people WHERE seen < DATE '2024-02-03' GROUP BY age",
]


def _compilations(monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    """The questions that are compiled in search of one to offer for a refused one."""
    with pytest.raises(QueryError) as refused:
        compile(parse(text), PEOPLE, "people")
    texts: list[str] = []

    def counted(query: Query, *facts: Any) -> Workload:
        texts.append(query.text)
        return compile(query, *facts)

    monkeypatch.setattr(suggest_module, "compile", counted)
    suggest_module.suggest(text, refused.value, PEOPLE, "people")
    return texts


@pytest.mark.parametrize("text", few(HARD, 2))
def test_the_search_compiles_few_questions_and_none_twice(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    texts = _compilations(monkeypatch, text)
    assert 0 < len(texts) == len(set(texts)) <= suggest_module.MOST_CANDIDATES


def test_the_search_ends_where_its_budget_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: without a budget this one tries more."""
    monkeypatch.setattr(suggest_module, "MOST_CANDIDATES", 1000)
    everything = _compilations(monkeypatch, HARD[1])
    monkeypatch.setattr(suggest_module, "MOST_CANDIDATES", 3)
    assert _compilations(monkeypatch, HARD[1]) == everything[:3] != everything


def test_bounds_of_many_columns_are_found_within_the_budget() -> None:
    names = "abcdef"
    wide = Domain(tuple(IntegerRange(name=name, lower=0, upper=9, outside=Stray.OTHER) for name in names))
    with pytest.raises(QueryError) as refused:
        compiled(f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE {name} < 5)' for name in names)} FROM people", wide)
    assert all(f"{name} BETWEEN 0 AND 9" in refused.value.rewrite for name in names)


def test_no_bound_is_tried_on_a_sum_that_no_bound_makes_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any("BETWEEN" in text for text in _compilations(monkeypatch, HARD[4]))


def test_a_column_with_the_name_of_a_keyword_is_put_in_quotes() -> None:
    columns = Domain(tuple(Categories(name=name, values=("no", "yes")) for name in ("union", "Limit", "sex")))
    text = "SELECT sex, COUNT(*) FROM people WHERE union = 'yes' AND limit = 'no' GROUP BY sex"
    with pytest.raises(QueryError) as refused:
        compiled(text, columns)
    assert refused.value.reason == "union is a word of SQL; a name that is one stands in quotes"
    assert refused.value.position == text.index("union")
    quoted = text.replace("union", '"union"').replace("limit", '"Limit"')
    assert refused.value.rewrite == quoted
    assert refused.value.differs == ""
    assert compile(parse(quoted), columns, "people")


def test_a_keyword_that_names_no_column_is_not_put_in_quotes() -> None:
    with pytest.raises(QueryError) as refused:
        compiled("SELECT COUNT(*) FROM people WHERE union = 'yes'", PEOPLE)
    assert '"' not in refused.value.rewrite
