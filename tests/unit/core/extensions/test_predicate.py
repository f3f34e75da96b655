"""Predicates: a count of 0s and 1s, whose hull is never smaller than what it counts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import AddRemove, Footprint, ReplaceOne
from bursar.core.domain import Domain
from bursar.core.extensions import predicate as module
from bursar.core.queries import Ceiling, Hull, Predicate, Quorum, Within, decode, encode
from bursar.errors import QueryError
from harness.maps import Table, cell_number, check_other_bytes, columns_matrix, domain_of, tables, total_of

DOMAIN = domain_of(a=3, b=2, c=4)
CELLS = DOMAIN.cells(DOMAIN.names)
quick = settings(max_examples=80, deadline=None)


@st.composite
def sets(draw: st.DrawFn) -> Within:
    name = draw(st.sampled_from(DOMAIN.names))
    ends = sorted(draw(st.sets(st.integers(0, DOMAIN[name].size))))
    return Within(name, tuple(zip(ends[::2], ends[1::2], strict=False)))


def quorums(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Quorum]:
    parts = st.lists(inner, min_size=1, max_size=4)
    return parts.flatmap(lambda found: st.integers(1, len(found)).map(lambda least: Quorum(least, tuple(found))))


def predicates() -> st.SearchStrategy[Predicate]:
    conditions = st.recursive(sets(), quorums, max_leaves=8)
    orders = st.permutations(DOMAIN.names)
    return st.builds(lambda names, one: Predicate(tuple(names), DOMAIN.sizes(names), one), orders, conditions)


def holds(part: Within | Quorum, row: dict[str, int]) -> bool:
    """The meaning, row by row."""
    if isinstance(part, Within):
        return any(row[part.column] in range(*ends) for ends in part.ranges)
    return sum(holds(each, row) for each in part.parts) >= part.least


def coefficients(predicate: Predicate, domain: Domain = DOMAIN) -> list[int]:
    grid = itertools.product(*(range(domain[name].size) for name in domain.names))
    return [int(holds(predicate.condition, dict(zip(domain.names, cell, strict=True)))) for cell in grid]


@quick
@given(predicates(), tables(DOMAIN))
def test_it_counts_the_rows_for_which_it_holds(predicate: Predicate, table: Table) -> None:
    own = coefficients(predicate)
    assert columns_matrix(predicate, DOMAIN) == [[value] for value in own]
    assert predicate.apply(table).tolist() == [int(table.cells.ravel() @ np.array(own))]
    assert (predicate.rows, predicate.largest()) == (1, 1)


@quick
@given(predicates(), st.sampled_from([1, 2]))
def test_the_hull_has_every_cell_where_it_holds(predicate: Predicate, power: int) -> None:
    (norm,) = predicate.norms(power)
    own = coefficients(predicate)
    hull = [total_of(norm.vectors, norm.sizes, cell_number(DOMAIN, v, norm.columns)) for v in range(CELLS)]
    assert set(hull) <= {0, 1}
    assert all(value <= limit for value, limit in zip(own, hull, strict=True))
    pairs = norm.pairs()
    assert pairs is not None
    for v, w in itertools.product(range(CELLS), repeat=2):
        place = cell_number(DOMAIN, v, norm.columns), cell_number(DOMAIN, w, norm.columns)
        assert abs(own[v] - own[w]) <= pairs[place] <= norm.pair_factor


@quick
@given(predicates())
def test_profiles_charge_whoever_it_can_tell_apart(predicate: Predicate) -> None:
    footprints = [Footprint(norm=norm, units=1000, version=1) for norm in predicate.norms(1)]
    own = coefficients(predicate)
    around = AddRemove(DOMAIN)
    assert around.spent(footprints) >= 1000 * max(own)
    assert ReplaceOne(DOMAIN, around).spent(footprints) >= 1000 * (max(own) - min(own))


def test_a_pair_that_agrees_on_the_hull_is_still_told_apart() -> None:
    """A ceiling would let a count go free that depends on columns which its hull does not have."""
    either = Predicate(("a", "b"), (3, 2), Quorum(1, (Within("a", ((0, 1),)), Within("b", ((0, 1),)))))
    assert either.hull == ()
    assert Hull(either.hull, 1).pairs().tolist() == [[1]]
    assert Ceiling(either.hull, 1).pairs().tolist() == [[0]]  # the wrong twin
    profile = ReplaceOne(DOMAIN, AddRemove(DOMAIN))
    (norm,) = either.norms(1)
    assert profile.spent([Footprint(norm=norm, units=7, version=1)]) == 7


def test_what_must_hold_makes_the_hull_smaller() -> None:
    rest = Quorum(1, (Within("b", ((0, 1),)), Within("c", ((1, 3),))))
    both = Predicate(("a", "b", "c"), (3, 2, 4), Quorum(2, (Within("a", ((1, 2),)), rest)))
    assert [mask.attrs for mask in both.hull] == [("a",)]
    assert both.norms(2)[0].vectors[0].tolist() == [0, 1, 0]
    nowhere = Predicate(("a",), (3,), Within("a", ()))
    assert nowhere.norms(1)[0].largest() == 0


def test_columns_that_make_a_hull_too_large_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tuple(Within(name, ((0, 1),)) for name in DOMAIN.names)
    every = Quorum(3, parts)
    assert [mask.attrs for mask in Predicate(("a", "b", "c"), (3, 2, 4), every).hull] == [("a",), ("b",), ("c",)]
    monkeypatch.setattr(module, "LARGEST_HULL", 8)
    assert [mask.attrs for mask in Predicate(("a", "b", "c"), (3, 2, 4), every).hull] == [("a",), ("b",)]
    assert [mask.attrs for mask in Predicate(("c", "b", "a"), (4, 2, 3), every).hull] == [("c",), ("b",)]


def test_large_hulls_have_no_pairs_of_their_own() -> None:
    many = tuple(f"x{i}" for i in range(4))
    condition = Quorum(4, tuple(Within(name, ((0, 1),)) for name in many))
    (norm,) = Predicate(many, (10,) * 4, condition).norms(1)
    assert norm.pairs() is None
    assert norm.pair_factor * norm.largest() == 1


def nested(depth: int) -> Within | Quorum:
    part: Within | Quorum = Within("a", ((0, 1),))
    for _ in range(depth):
        part = Quorum(1, (part,))
    return part


@pytest.mark.parametrize(
    ("attrs", "sizes", "condition", "says"),
    [
        (("a", "a"), (3, 3), Within("a", ()), "columns it is for"),
        ((7,), (3,), Within("a", ()), "columns it is for"),
        (("a",), (3.0,), Within("a", ()), "columns it is for"),
        (("a",), (0,), Within("a", ()), "columns it is for"),
        (("a",), (3, 2), Within("a", ()), "columns it is for"),
        (("a",), (3,), Within("b", ()), "column it is for"),
        (("a",), (3,), Within("a", ((0, 4),)), "column it is for"),
        (("a",), (3,), Within("a", ((-1, 2),)), "column it is for"),
        (("a",), (3,), Within("a", ((1, 1),)), "column it is for"),
        (("a",), (3,), Within("a", ((0, 1), (1, 2))), "column it is for"),
        (("a",), (3,), Within("a", ((True, 2),)), "column it is for"),
        (("a",), (3,), Quorum(0, (Within("a", ()),)), "some of its parts"),
        (("a",), (3,), Quorum(2, (Within("a", ()),)), "some of its parts"),
        (("a",), (3,), Quorum(True, (Within("a", ()),)), "some of its parts"),
        (("a",), (3,), "a = 1", "some of its parts"),
        (("a",), (3,), nested(65), "deep"),
        (("a",), (3,), Quorum(1, (Within("a", ((0, 1),)),) * 2048), "4097 pieces"),
    ],
)
def test_what_does_not_fit_is_refused(attrs: Any, sizes: Any, condition: Any, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        Predicate(attrs, sizes, condition)


def test_the_largest_that_fit() -> None:
    Predicate(("a",), (3,), nested(64))
    Predicate(("a",), (3,), Quorum(1, (Within("a", ()), *(Within("a", ((0, 1),)),) * 2047)))


def test_it_has_one_row() -> None:
    one = Predicate(("a",), (3,), Within("a", ((0, 2),)))
    assert one.take([0]) is one
    for rows in ([], [1], [0, 0]):
        with pytest.raises(QueryError):
            one.take(rows)


@quick
@given(predicates())
def test_it_comes_back_from_its_bytes(predicate: Predicate) -> None:
    again = decode(encode(predicate))
    assert isinstance(again, Predicate)
    assert (again.attrs, again.sizes, again.condition) == (predicate.attrs, predicate.sizes, predicate.condition)
    assert again.digest == predicate.digest


@settings(max_examples=200, deadline=None)
@given(predicates(), st.data())
def test_other_bytes_are_refused_or_another_map(predicate: Predicate, data: st.DataObject) -> None:
    check_other_bytes(predicate, data)


def test_different_conditions_have_different_digests() -> None:
    parts = (Within("a", ((0, 1),)), Within("b", ((0, 1),)))
    made = [Predicate(("a", "b"), (3, 2), Quorum(least, parts)) for least in (1, 2)]
    made.append(Predicate(("a", "b"), (4, 2), Quorum(1, parts)))
    made.append(Predicate(("b", "a"), (2, 3), Quorum(1, parts)))
    assert len({one.digest for one in made}) == 4
