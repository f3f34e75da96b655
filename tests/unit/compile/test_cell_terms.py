"""Numbers of a term for all cells at once are what each cell gives by itself."""

from __future__ import annotations

import itertools
import random
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import pytest

from bursar.compile import compile
from bursar.compile.cell_terms import JointValues, counted_values, joint_values, multilinear
from bursar.compile.scalar import Unknown, evaluate
from bursar.core.domain import Bins, Domain, IntegerRange, Stray
from bursar.errors import QueryError
from bursar.sql import parse
from bursar.sql.names import Name
from bursar.sql.terms import Call, Given, Ref, Term, refs_of, walk_terms

DOMAIN = Domain(
    (
        Bins(name="a", edges=(0.0, 2.5, 10.0, 30.25)),
        Bins(name="b", edges=(-0.0025, 0.0025, 0.0075, 1.0), null=0, outside=Stray.OTHER),
        IntegerRange(name="i", lower=-3, upper=2),
        IntegerRange(name="j", lower=0, upper=2, outside=Stray.OTHER),
        Bins(name="big", edges=(0.0, 1e7, 5e9, 3e10)),
    )
)


def random_term(draw: random.Random, depth: int) -> Term:
    if depth == 0 or draw.random() < 0.2:
        column = Ref(name=Name(text=draw.choice(["a", "a", "b", "i", "j", "big"])))
        return draw.choice([column, column, Given(value=draw.choice([0, 3, -2, Decimal("0.5"), Decimal("1.25")]))])
    function = draw.choice(["+", "-", "*", "*", "/", "neg", "real", "int"])
    if function == "/":
        divisor = Given(value=draw.choice([3, -2, Decimal("1.25")]))
        return Call(function="/", parts=(random_term(draw, depth - 1), divisor), position=0)
    sides = 2 if function in ("+", "-", "*") else 1
    return Call(function=function, parts=tuple(random_term(draw, depth - 1) for _ in range(sides)), position=0)


def cell_by_cell(term: Call, joint: JointValues) -> None:
    columns = [counted_values(attribute, 0) for attribute in joint.attributes]
    for cell in itertools.product(*(range(len(column)) for column in columns)):
        stands = {name: column[place] for name, column, place in zip(joint.attrs, columns, cell, strict=True)}
        try:
            value = evaluate(term, {name: known[0] for name, known in stands.items() if known is not None})
        except Unknown:
            assert joint.null[cell]
            continue
        assert joint.null[cell] == (value is None)
        assert value is None or isinstance(value, int | Fraction)
        assert joint.numbers[cell] == round((value or 0) / joint.step)


@pytest.mark.parametrize("seed", range(2))
def test_quotients_of_all_cells_at_once_are_what_each_cell_gives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, compared = random.Random(seed), 0
    for _ in range(60):
        above, below = (random_term(draw, 2) for _ in range(2))
        quotient = Call(function="/", parts=(above, below), position=0)
        factor = Given(value=draw.choice([100, Decimal("-0.5")]))
        term = draw.choice([quotient, Call(function="*", parts=tuple(draw.sample([quotient, factor], 2)), position=0)])
        if not refs_of(below):
            continue
        with suppress(QueryError), monkeypatch.context() as patch:  # too large
            patch.setattr("bursar.compile.cell_terms.MOST_EVALUATED", 0)
            cell_by_cell(term, joint_values(term, DOMAIN))
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("seed", range(3))
def test_all_cells_at_once_are_what_each_cell_gives(seed: int) -> None:
    draw, seen = random.Random(seed), 0
    while seen < 20:
        term = random_term(draw, 3)
        if not isinstance(term, Call) or not list(refs_of(term)):
            continue
        with suppress(QueryError):  # too large to be added up
            cell_by_cell(term, joint_values(term, DOMAIN))
            seen += 1


def test_how_far_values_in_bins_can_be_from_what_they_count_as_is_exact() -> None:
    """At the corners of a bin, here (10, 30.25) by (.0075, 1): 30.25 * 1 less 20.125 * .50375."""
    a, b = Ref(name=Name(text="a")), Ref(name=Name(text="b"))
    product = Call(function="*", parts=(a, b), position=0)
    off = joint_values(product, DOMAIN).off
    assert off == Fraction("30.25") - Fraction("20.125") * Fraction("0.50375")
    squared = Call(function="*", parts=(a, a), position=0)
    assert joint_values(squared, DOMAIN).off is None  # not linear in a: the corners say nothing
    assert multilinear(squared)
    assert not multilinear(Call(function="/", parts=(a, b), position=0))
    assert multilinear(Call(function="/", parts=(product, Given(value=4)), position=0))
    assert not multilinear(Call(function="/", parts=(a, Given(value=0)), position=0))
    assert len([part for part in walk_terms(product) if isinstance(part, Ref)]) == 2


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("SQRT(i)", "the root of a number below 0"),
        ("LN(j)", "the logarithm of 0 or less"),
        ("i / j", "a division by 0"),
        ("CASE WHEN i > 0 THEN i % j END", "a division by 0"),
        ("SQRT(j)", ""),
        ("LN(j + 1)", ""),
        ("i / NULLIF(j, 0)", ""),
        ("i / 2", ""),
    ],
)
def test_rows_that_have_no_value_are_said_to_be_left_out(term: str, said: str) -> None:
    remarks = compile(parse(f"SELECT AVG({term}) AS a FROM people"), DOMAIN, "people").remarks
    told = [remark for remark in remarks if "would make this" in remark]
    assert [said in remark for remark in told] == ([True] if said else [])
