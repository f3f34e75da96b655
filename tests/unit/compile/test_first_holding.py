"""The branches of a CASE take what each of them written out would take, and are looked at once each."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from unittest.mock import patch

import numpy as np

from bursar.compile import conditions, first_holding
from bursar.compile.conditions import Region, regions, truth_on
from bursar.compile.first_holding import disjoint_regions, held_by_first, none_of
from bursar.core.domain import Categories, Domain, IntegerRange, Stray
from bursar.errors import QueryError
from bursar.sql import FALSE, TRUE, And, Compare, Condition, IsNull, Name, Not, Op, Or
from bursar.sql.query import all_of

DOMAIN = Domain(
    (
        IntegerRange(name="a", lower=0, upper=5),
        IntegerRange(name="b", lower=0, upper=4, null=0),
        Categories(name="c", values=("x", "y", "z"), null=Stray.OTHER),
        IntegerRange(name="d", lower=0, upper=3, outside=Stray.OTHER),
    )
)


def leaf(draw: random.Random) -> Condition:
    name = draw.choice(DOMAIN.names)
    column = Name(text=name)
    if name == "c":
        return Compare(column=column, op=draw.choice((Op.EQ, Op.NE)), literal=draw.choice(("x", "y", "other")))
    if name == "a" and draw.random() < 0.2:
        return IsNull(column=column)
    return Compare(column=column, op=draw.choice(list(Op)), literal=draw.randint(0, 5))


def condition(draw: random.Random, depth: int = 2) -> Condition:
    kind = draw.random()
    if kind < 0.06:
        return draw.choice((TRUE, FALSE))
    if depth == 0 or kind < 0.5:
        return leaf(draw)
    parts = tuple(condition(draw, depth - 1) for _ in range(2))
    return And(parts=parts) if kind < 0.7 else Or(parts=parts) if kind < 0.9 else Not(part=parts[0])


def told(found: Sequence[Region] | None) -> object:
    return None if found is None else [(region.attrs, region.cells.tolist()) for region in found]


def written_out(common: Condition, tests: Sequence[Condition], asked: Sequence[bool]) -> list[object]:
    return [
        told(regions(all_of(common, test, none_of(tests[:place])), DOMAIN))
        for place, test in enumerate(tests)
        if asked[place]
    ]


def disjoint(common: Condition, tests: Sequence[Condition], asked: Sequence[bool]) -> list[object]:
    return list(map(told, disjoint_regions(common, tests, asked, DOMAIN)))


def blindly(common: Condition, tests: Sequence[Condition], asked: Sequence[bool]) -> list[object]:
    """A wrong twin, which forgets the branches before."""
    alone = (regions(all_of(common, test), DOMAIN) for test, wanted in zip(tests, asked, strict=True) if wanted)
    return list(map(told, alone))


def reasons_or(
    way: Callable[..., list[object]], common: Condition, tests: Sequence[Condition], asked: Sequence[bool]
) -> list[object] | str:
    try:
        return way(common, tests, asked)
    except QueryError as refusal:
        return refusal.reason


def test_branches_take_what_is_taken_when_they_are_written_out() -> None:
    draw, taken, refused, blind = random.Random(3), 0, 0, 0
    for _ in range(400):
        common = draw.choice((TRUE, condition(draw, 1)))
        tests = [condition(draw) for _ in range(draw.randint(1, 6))]
        asked = [draw.random() < 0.8 for _ in tests]
        written, kept = reasons_or(written_out, common, tests, asked), reasons_or(disjoint, common, tests, asked)
        assert kept == written
        refused += isinstance(written, str)
        taken += sum(each is not None for each in written) if isinstance(written, list) else 0
        blind += reasons_or(blindly, common, tests, asked) != written
    assert taken > 100
    assert refused > 100
    assert blind > 50


def test_what_the_first_one_says_is_true_false_and_unknown_where_the_written_out_form_is() -> None:
    draw, unlike = random.Random(5), 0
    lines = [conditions.ValueLine(attribute) for attribute in DOMAIN.attributes]

    def truth(whole: Condition) -> list[int]:
        shape = [line.size for line in lines]
        return np.broadcast_to(truth_on(whole, DOMAIN.names, lines), shape).reshape(-1).tolist()  # type: ignore[no-any-return]

    compared = 0
    while compared < 150:
        shares = [(condition(draw, 1), draw.choice((TRUE, FALSE, leaf(draw)))) for _ in range(draw.randint(1, 7))]
        tests = [test for test, _ in shares]
        every = tuple(all_of(test, none_of(tests[:place]), share) for place, (test, share) in enumerate(shares))
        try:
            expected = truth(Or(parts=every))
        except QueryError:
            continue
        compared += 1
        assert truth(held_by_first(shares, -1)) == expected
        unlike += truth(Or(parts=tuple(all_of(test, share) for test, share in shares))) != expected
    assert unlike > 30


def test_each_condition_is_looked_at_twice_and_not_once_per_branch_behind_it() -> None:
    tests = [
        And(
            parts=(
                Compare(column=Name(text="a"), op=Op.EQ, literal=n % 6),
                Compare(column=Name(text="b"), op=Op.LT, literal=n),
            )
        )
        for n in range(200)
    ]
    with patch.object(conditions, "leaf_truth", side_effect=conditions.leaf_truth) as looked:
        first_holding.disjoint_regions(TRUE, tests, [True] * len(tests), DOMAIN)
        assert len(tests) < looked.call_count <= 4 * len(tests)
