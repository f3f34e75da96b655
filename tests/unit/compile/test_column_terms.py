"""A term has in every cell what its values give, and is evaluated once for what it is made of, not once per cell."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from bursar.compile import Workload, column_terms
from bursar.compile import compile as compile_query
from bursar.compile.cell_terms import values_on
from bursar.compile.column_terms import CellGrid, CellValues, Known, grid_axes
from bursar.compile.scalar import Unknown, apply, evaluate
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Period
from bursar.errors import QueryError
from bursar.sql import parse
from bursar.sql.names import Name
from bursar.sql.terms import Call, Given, Ref, Term, refs_of
from harness.cases import examples

X, Y = Ref(name=Name(text="x")), Ref(name=Name(text="y"))
NUMBERS: tuple[Known, ...] = (*((value,) for value in range(-7, 8)), (2**40,), (None,), None)
DAYS: tuple[Known, ...] = (*((date(2023, 11, 20) + timedelta(days=9 * n),) for n in range(20)), (None,), None)
OF_TWO = (
    "+",
    "-",
    "*",
    "%",
    "//",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "nullif",
    "same",
    "coalesce",
    "in",
    "greatest",
    "least",
)
OF_ONE = ("neg", "abs", "sign", "is null")
OF_A_DAY = ("year", "month", "trunc month", "trunc year")


def random_term(draw: random.Random, depth: int, *, days: bool, columns: tuple[Ref, ...] = (X,)) -> Term:
    """A term of columns, and of constants that Python takes for equal too."""
    if depth == 0:
        constants = [0, 1, True, 3, -2, Decimal("0.5"), 2**40, None]
        constant = Given(value=draw.choice([date(2024, 1, 1), 1] if days else constants))
        return draw.choice([*3 * columns, constant])

    def part() -> Term:
        return random_term(draw, depth - 1, days=days, columns=columns)

    function = draw.choice((*OF_TWO, *OF_ONE, "case", *(OF_A_DAY if days else ())))
    if function == "case":
        test = Call(function=draw.choice(("=", "<", "is null", "<>")), parts=(part(), part()))
        return Call(
            function="case", parts=(replace(test, parts=test.parts[: 1 + (test.function != "is null")]), part(), part())
        )
    return Call(function=function, parts=tuple(part() for _ in range(2 if function in OF_TWO else 1)))


def column_values(term: Term, column: tuple[Known, ...]) -> CellValues:
    return grid_axes(term, CellGrid.of(("x",), (column,))).on([len(column)])


def by_itself(term: Term, value: Known) -> Known:
    with suppress(Unknown):
        return (evaluate(term, {} if value is None else {"x": value[0]}),)
    return None


@pytest.mark.hypothesis
@pytest.mark.parametrize("days", [False, True])
def test_a_cell_has_what_its_value_gives(days: bool) -> None:
    draw, compared = random.Random(5), 0
    column = DAYS if days else NUMBERS
    for _ in range(examples(3000)):
        term = random_term(draw, draw.randrange(1, 4), days=days)
        if not refs_of(term):
            continue
        try:
            expected = [by_itself(term, value) for value in column]
        except QueryError:
            with pytest.raises(QueryError):
                column_values(term, column)
            continue
        with suppress(QueryError):  # a part that another part hides may be none
            values = column_values(term, column)
            found = [values.results[place] for place in values.places]
            assert list(map(told, found)) == list(map(told, expected))
            compared += 1
    assert compared > examples(500)


def test_a_joint_cell_has_what_its_values_give() -> None:
    """Also where a part has no value that is not looked at: then cell by cell."""
    draw, hidden, unlike = random.Random(6), 0, 0
    names, domain = ("x", "y"), Domain(tuple(IntegerRange(name=name, lower=0, upper=1) for name in ("x", "y")))
    columns = (NUMBERS[::3], NUMBERS[::-4])
    for _ in range(800):
        term = random_term(draw, draw.randrange(1, 4), days=False, columns=(X, Y))
        if len(refs_of(term)) < 2:
            continue
        try:
            expected = [told(joint(term, *cells)) for cells in itertools.product(*columns)]
        except QueryError:
            with pytest.raises(QueryError):
                values_on(term, names, columns, domain, left_out=True)
            continue
        values = values_on(term, names, columns, domain, left_out=True)
        assert [told(values.results[place]) for place in values.places] == expected
        assert set(range(len(values.results))) == set(values.places.tolist())  # all of them occur
        unlike += len(values.results) > 2
        with suppress(QueryError):
            grid_axes(term, CellGrid.of(names, columns))
            hidden -= 1
        hidden += 1
    assert hidden > 2
    assert unlike > 50


def joint(term: Term, x: Known, y: Known) -> Known:
    with suppress(Unknown):
        return (evaluate(term, {name: known[0] for name, known in (("x", x), ("y", y)) if known is not None}),)
    return None


def told(known: Known) -> tuple[type, Known]:
    return type(known and known[0]), known


def test_a_truth_is_not_taken_for_a_number() -> None:
    """They are equal in Python, so a term of one must not be remembered as that of the other."""
    for constant, text in ((1, "1"), (True, "true"), (1, "1")):
        term = Call(function="coalesce", parts=(X, Given(value=constant)))
        values = column_values(Call(function="concat", parts=(term,)), NUMBERS)
        assert values.results[values.places[NUMBERS.index((None,))]] == (text,)


def test_a_column_of_truths_is_not_taken_for_one_of_numbers() -> None:
    """Two tables of a server may have columns of one name, whose declared values Python takes for equal."""

    def compiled(values: tuple[int | bool, ...], text: str) -> Workload:
        flag = Categories(name="flag", values=values, outside=0)
        return compile_query(parse(text), Domain((flag,)), "people")

    truths, numbers = (True, False), (1, 0)
    grouped = "SELECT UPPER(CAST(flag AS VARCHAR)) AS k, COUNT(*) FROM people GROUP BY k"
    counted = "SELECT COUNT(*) FROM people WHERE CAST(flag AS VARCHAR) = '1'"
    for _ in range(2):
        assert compiled(numbers, grouped).labels == (("0",), ("1",), (None,))
        assert compiled(truths, grouped).labels == (("FALSE",), ("TRUE",), (None,))
        assert compiled(numbers, counted).index.tolist() == [[0]]
        assert compiled(truths, counted).index.tolist() == [[-1]]  # nobody is counted
        assert compiled(numbers, "SELECT SUM(flag * 2) FROM people").index.tolist() == [[0]]
        with pytest.raises(QueryError, match="is not for such values"):
            compiled(truths, "SELECT SUM(flag * 2) FROM people")


def evaluations(monkeypatch: pytest.MonkeyPatch, domain: Domain, text: str) -> int:
    """How often something is evaluated for a value while a question is compiled."""
    calls = 0

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            return function(*arguments)

        return counted

    column_terms._shared.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(column_terms, "evaluate", counting(evaluate))
        patch.setattr(column_terms, "apply", counting(apply))
        compile_query(parse(text), domain, "people")
    return calls


def test_conditions_on_the_month_of_a_day_look_at_the_days_once(monkeypatch: pytest.MonkeyPatch) -> None:
    day = Dates(name="day", first=date(2015, 1, 1), last=date(2024, 12, 31), by=Period.DAY)
    months = [f"DATE_TRUNC('month', day) = DATE '20{15 + n % 10}-{1 + n % 12:02}-01'" for n in range(60)]
    one, many = (
        evaluations(monkeypatch, Domain((day,)), f"SELECT COUNT(*) FROM people WHERE {' OR '.join(months[:n])}")
        for n in (1, 60)
    )
    assert 3653 <= one <= many <= 2.1 * one


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("MONTH(day) * income = {0}", 3000),  # days, months times incomes where one is NULL, and what is compared
        ("CASE WHEN income > {0} THEN MONTH(day) ELSE income END = {0}", 3000),
        ("UPPER(MONTHNAME(day)) = 'MAY' AND income % 7 = {0}", 3000),
    ],
)
def test_conditions_on_two_columns_do_not_look_at_every_joint_cell(
    monkeypatch: pytest.MonkeyPatch, condition: str, most: int
) -> None:
    day = Dates(name="day", first=date(2024, 1, 1), last=date(2024, 12, 31), by=Period.DAY)
    domain = Domain((day, IntegerRange(name="income", lower=0, upper=99)))
    conditions = " OR ".join(f"({condition.format(n)})" for n in range(30))
    assert domain.cells(domain.names) > 36_000
    assert evaluations(monkeypatch, domain, f"SELECT COUNT(*) FROM people WHERE {conditions}") <= most


def test_remainders_are_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    income = IntegerRange(name="income", lower=0, upper=999)
    conditions = " OR ".join(f"income % {n + 2} = 1" for n in range(100))
    text = f"SELECT COUNT(*) FROM people WHERE {conditions}"
    assert evaluations(monkeypatch, Domain((income,)), text) <= 1000 + 100 * 10


def test_products_of_products_have_an_end() -> None:
    assert apply("*", (2**2000, 2**2000)) == 2**4000
    for longer in ((2**3000, 2**3000), (Fraction(1, 3**2000), Fraction(1, 3**2000))):
        with pytest.raises(QueryError, match="binary digits"):
            apply("*", longer)
