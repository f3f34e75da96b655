"""What a selection costs: 2nD/g or nD^2/(2g^2), with D the most that a row changes any candidate by."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import (
    Accountant,
    AddRemove,
    Book,
    Event,
    Measured,
    Mode,
    Noise,
    NoiseKind,
    Profile,
    ReplaceOne,
    Selected,
    same_purchase,
)
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.select import MOST_JOINT_PICKS, MOST_PICKS, CandidateReach
from bursar.core.extensions.sequential import Sequential
from bursar.core.queries import Ceiling, LinearMap, Mask, Predicate, Product, Stack, Steps, Thresholds, Within
from bursar.errors import QueryError, Unsupported
from harness.maps import cell_number, columns_matrix, domain_of, maps, mask_of, total_of

DOMAIN = domain_of(a=3, b=2, x=60, y=50)
UNIT = 2**50
REPLACED = Neighbours.REPLACE_ONE


def histogram(*names: str, domain: Domain = DOMAIN) -> Product:
    return Product(tuple(Mask((name,), domain.sizes((name,)), Steps.identity(domain[name].size)) for name in names))


MARGINALS = Stack((histogram("a", "b"), histogram("x", "y"), histogram("a", "x")))


def selected(candidates: LinearMap = MARGINALS, count: int = 4, scale: float = 8.0, **rest: Any) -> Selected:
    return Selected(**{"candidates": candidates, "count": count, "scale": scale, "version": 1, **rest})


def book(
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    rows: int = 1,
    mode: Mode = Mode.PURE,
    sequential: bool = False,
    order: int | None = None,
    domain: Domain = DOMAIN,
) -> Book:
    def profile() -> Profile:
        around = AddRemove(domain)
        return ReplaceOne(domain, around) if neighbours is REPLACED else around

    unit = Unit(column="person" if rows > 1 else None, max_contributions=rows, neighbours=neighbours)
    accountant = Accountant(mode=mode, unit=unit, order=order)
    return Book(accountant, (lambda: Sequential(profile)) if sequential else profile)


def spent(*events: Event, **facts: Any) -> Fraction:
    made = book(**facts)
    for event in events:
        made.add(event)
    assert book(**facts).price(events) == made.spent()
    return Fraction(made.spent(), UNIT)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("sequential", [False, True])
def test_marginals_cost_one_candidate_however_many_there_are(neighbours: Neighbours, sequential: bool) -> None:
    facts = {"neighbours": neighbours, "sequential": sequential}
    assert spent(selected(), **facts) == Fraction(2 * 4, 8)
    assert spent(selected(), mode=Mode.CONCENTRATED, **facts) == Fraction(4, 2 * 64)
    assert spent(selected(), mode=Mode.RENYI, order=8, **facts) == Fraction(4, 2 * 64)
    assert spent(selected(), selected(count=1), **facts) == Fraction(2 * 5, 8)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_joint_picks_cost_the_same_however_many_they_are(neighbours: Neighbours) -> None:
    facts = {"neighbours": neighbours}
    for count in (2, 4, 200):
        assert spent(selected(count=count, joint=True), **facts) == Fraction(4, 8)
        assert spent(selected(count=count, joint=True), mode=Mode.CONCENTRATED, **facts) == Fraction(2, 64)
        assert spent(selected(count=count, joint=True), mode=Mode.RENYI, order=8, **facts) == Fraction(2, 64)
    for mode in (Mode.PURE, Mode.CONCENTRATED):
        alone = spent(selected(count=1), mode=mode, **facts)
        assert spent(selected(count=1, joint=True), mode=mode, **facts) == alone
    assert spent(selected(count=4, joint=True), rows=3, **facts) == Fraction(12, 8)
    assert spent(selected(count=4, joint=True), rows=3, mode=Mode.CONCENTRATED, **facts) == Fraction(9 * 2, 64)


def test_values_of_both_signs_cost_joint_picks_twice() -> None:
    apart = Product((mask_of(DOMAIN, ("b",), [[1, -1], [1, 1]]),))
    assert spent(selected(apart, 2, joint=True), neighbours=REPLACED) == Fraction(8, 8)
    assert spent(selected(apart, 2, joint=True), neighbours=REPLACED, mode=Mode.CONCENTRATED) == Fraction(8, 64)


def test_units_of_several_rows() -> None:
    assert spent(selected(), rows=3) == 3
    assert spent(selected(), rows=3, mode=Mode.CONCENTRATED) == Fraction(9 * 4, 2 * 64)
    assert spent(selected(), rows=3, mode=Mode.RENYI, order=5) == Fraction(9 * 4, 2 * 64)


def test_prices_are_rounded_up() -> None:
    made = Accountant(mode=Mode.PURE, unit=Unit())
    exact = Fraction(2 * 7) / Fraction(0.3)
    assert Fraction(made.selected_units(selected(count=7, scale=0.3)), UNIT) - exact in (
        Fraction(-exact.numerator * UNIT % exact.denominator, exact.denominator * UNIT),
    )
    wide = spent(selected(count=1, scale=2.0**40), mode=Mode.CONCENTRATED)
    assert 0 < wide <= Fraction(1, UNIT)


def test_values_of_both_signs_cost_a_replaced_row_twice() -> None:
    apart = Product((mask_of(DOMAIN, ("b",), [[1, -1]]),))
    assert spent(selected(apart, 1)) == Fraction(2, 8)
    assert spent(selected(apart, 1), neighbours=REPLACED) == Fraction(4, 8)
    assert spent(selected(apart, 1), neighbours=REPLACED, mode=Mode.CONCENTRATED) == Fraction(4, 2 * 64)
    below = Product((mask_of(DOMAIN, ("b",), [[0, -1], [-1, 0]]),))
    assert spent(selected(below, 1), neighbours=REPLACED) == Fraction(2, 8)


def test_people_whom_no_candidate_counts_lose_nothing() -> None:
    """A mask that all parts have is paid by those whom it counts; so two selections about others cost one of them."""
    first, second = (
        Stack(tuple(Product((mask_of(DOMAIN, ("b",), [row]), histogram(name).masks[0])) for name in ("a", "x")))
        for row in ([1, 0], [0, 1])
    )
    assert spent(selected(first), selected(second)) == spent(selected(first)) == 1
    assert spent(selected(first), selected(first)) == 2
    assert spent(selected(first), selected(second), neighbours=REPLACED) == 2


def test_a_candidate_of_large_entries_sets_the_price() -> None:
    large = Stack((histogram("a"), Product((mask_of(DOMAIN, ("x",), [[5] * 60]),))))
    assert spent(selected(large, 1)) == Fraction(2 * 5, 8)
    assert spent(selected(large, 1), mode=Mode.CONCENTRATED) == Fraction(25, 2 * 64)


def test_thresholds_cost_one_candidate() -> None:
    whole = Thresholds(("a", "b", "x"), DOMAIN.sizes(("a", "b", "x")), 2)
    for candidates in (whole, Stack((whole, histogram("a", "b"))), Stack((histogram("a"), whole.take([3, 5, 8, 9])))):
        for neighbours in Neighbours:
            assert spent(selected(candidates), neighbours=neighbours) == 1


def test_cells_that_agree_differ_by_nothing_only_where_no_other_column_is_looked_at() -> None:
    ceiling, hull = CandidateReach(histogram("a", "b")).norms[1], CandidateReach(MARGINALS).norms[1]
    assert isinstance(ceiling, Ceiling)
    assert not isinstance(hull, Ceiling)
    assert hull.pairs().tolist() == [[1]]
    assert np.array_equal(ceiling.pairs(), 1 - np.eye(6, dtype=np.int64))
    alone = CandidateReach(Stack((histogram("a"), Thresholds(("a", "b"), (3, 2), 1)))).norms[2]
    assert not isinstance(alone, Ceiling)


@settings(max_examples=60)
@given(st.data())
def test_the_reach_is_never_too_short(data: st.DataObject) -> None:
    domain = domain_of(a=2, b=3, c=2)
    candidates = data.draw(maps(domain).filter(lambda found: found.rows > 0))
    rows = columns_matrix(candidates, domain)
    reach = CandidateReach(candidates)
    for power in (1, 2):
        norm = reach.norms[power]
        matrix = norm.pairs()
        factor = 1 if reach.one_sign else 2**power
        places = [cell_number(domain, cell, norm.columns) for cell in range(len(rows))]
        for cell, place in enumerate(places):
            assert max(abs(entry) for entry in rows[cell]) ** power <= total_of(norm.vectors, norm.sizes, place)
        for one, other in product(range(len(rows)), repeat=2):
            moved = max(abs(x - y) for x, y in zip(rows[one], rows[other], strict=True))
            assert moved**power <= factor * matrix[places[one], places[other]]


@settings(max_examples=40)
@given(st.data())
def test_the_reach_of_a_product_of_zeros_and_ones_is_exact(data: st.DataObject) -> None:
    domain = domain_of(a=2, b=3, c=2)
    found = data.draw(maps(domain, st.integers(0, 1)).filter(lambda found: isinstance(found, Product)))
    norm = CandidateReach(found).norms[2]
    for cell, entries in enumerate(columns_matrix(found, domain)):
        assert max(entries) == total_of(norm.vectors, norm.sizes, cell_number(domain, cell, norm.columns))


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_partitions_are_charged_where_the_candidates_look(neighbours: Neighbours) -> None:
    week = IntegerRange(name="week", lower=0, upper=3, null=0)
    domain = Domain((*domain_of(a=3, b=2).attributes, week), partition="week")
    at = Mask(("week",), (4,), Steps.dense([[0, 1, 0, 0]]))
    parts = [Product((at, *histogram(name, domain=domain).masks)) for name in ("a", "b")]
    for candidates in (parts[0], Stack(tuple(parts))):
        made = book(neighbours, domain=domain)
        made.add(selected(candidates, 1, 2.0))
        assert made.spent_by_partition() == [0, UNIT, 0, 0]
    everywhere = book(neighbours, domain=domain)
    everywhere.add(selected(Stack((histogram("a", domain=domain), histogram("b", domain=domain))), 1, 2.0))
    assert everywhere.spent_by_partition() == [UNIT] * 4


@pytest.mark.parametrize("name", ["a", "x"])
@pytest.mark.parametrize("count", [0, -1, 61, True, 1.0, np.int64(1)])
def test_counts_that_make_no_sense(name: str, count: Any) -> None:
    with pytest.raises(QueryError, match="can be selected at once"):
        selected(histogram(name), count)


def test_more_picks_than_possible() -> None:
    many = Product((Mask(("x",), (2**17,), Steps.identity(2**17)),))
    assert selected(many, MOST_PICKS).count == MOST_PICKS
    with pytest.raises(QueryError, match="between 1 and 65536 of"):
        selected(many, MOST_PICKS + 1)
    assert selected(many, MOST_JOINT_PICKS, joint=True).count == MOST_JOINT_PICKS
    with pytest.raises(QueryError, match="between 1 and 256 of"):
        selected(many, MOST_JOINT_PICKS + 1, joint=True)


@pytest.mark.parametrize("joint", [0, 1, None, "yes", np.True_])
def test_a_selection_is_joint_or_it_is_not(joint: Any) -> None:
    with pytest.raises(QueryError, match="joint or it is not"):
        selected(joint=joint)


@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**-7, 2.0**41, float("nan"), float("inf"), 8, "8"])
def test_scales_that_make_no_sense(scale: Any) -> None:
    with pytest.raises(QueryError, match="scale of a selection"):
        selected(scale=scale)


@pytest.mark.parametrize("digest", ["0" * 31, "0" * 33, "g" * 32, "0" * 32 + "\n"])
def test_digests_that_are_none(digest: str) -> None:
    with pytest.raises(QueryError, match="digests"):
        selected(estimates=digest)
    with pytest.raises(QueryError, match="digests"):
        selected(barred=digest)


def test_rows_of_other_kinds_are_refused() -> None:
    with pytest.raises(Unsupported, match="Predicate"):
        selected(Predicate(("a",), (3,), Within("a", ((0, 1),))), 1)


def test_a_plan_is_met_by_the_same_candidates_count_and_scale() -> None:
    plan = selected()
    assert same_purchase(plan, selected(estimates="0" * 32, barred="f" * 32))
    assert not same_purchase(plan, selected(count=3))
    assert not same_purchase(plan, selected(scale=8.5))
    assert not same_purchase(plan, selected(joint=True))
    assert not same_purchase(plan, selected(version=2))
    assert not same_purchase(plan, selected(Stack(MARGINALS.parts[:2])))
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=8.0)
    assert not same_purchase(plan, Measured(strategy=MARGINALS, noise=noise, version=1))


# ------------------------------------------------------------------------- what RAP buys after it has selected


def gaussian(strategy: LinearMap, scale: float = 8.0) -> Measured:
    return Measured(strategy=strategy, noise=Noise(kind=NoiseKind.GAUSSIAN, scale=scale), version=1)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_single_rows_cost_one_each_and_marginals_two_each_where_rows_are_replaced(neighbours: Neighbours) -> None:
    """K rows of 0 and 1 over different columns: K/(2 sigma^2); W marginals: W/(2 sigma^2), replaced 2W/(2 sigma^2)."""
    domain = domain_of(**dict.fromkeys("abcdef", 20))
    names = ["abc", "abd", "ade", "bcf", "def"]
    full = [histogram(*columns, domain=domain) for columns in names]
    facts: Any = {"neighbours": neighbours, "mode": Mode.CONCENTRATED, "domain": domain}
    rows = Stack(tuple(marginal.row(0) for marginal in full))
    assert spent(gaussian(rows), **facts) == Fraction(len(names), 2 * 64)
    times = 2 if neighbours is REPLACED else 1
    assert spent(gaussian(Stack(tuple(full))), **facts) == Fraction(times * len(names), 2 * 64)
    candidates = Stack(tuple(full))
    both = spent(selected(candidates), gaussian(rows), **facts)
    assert both == Fraction(4 + len(names), 2 * 64)
