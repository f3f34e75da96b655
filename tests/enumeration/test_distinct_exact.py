"""Distinct counts, enumerated: all units of a few rows against the book, and transcripts of the real kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from bursar.core.accounting import Accountant, Footprint, Mode, Noise, NoiseKind
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.distinct import Reach
from bursar.core.queries import Distinct, Norm
from harness.adversaries import AGES, ALL, CONCENTRATED, GROWN, SEXES, WOMEN, once, worst
from harness.cases import few
from harness.enumeration import ALLOWED, renyi_excess, worst_ratio
from harness.kernels import Session, enumerated
from harness.units import BASE, PAIRS, Event, Price, as_it_is, booked, groups, lost, others, some_rows, units

CASES = 50


def events(rng: Random, of: str | None, *, sums: bool = True) -> list[Event]:
    kind = NoiseKind.LAPLACE
    drawn = [Noise(kind=kind, scale=float(rng.choice([2, 4, 8]))) for _ in range(rng.randint(1, 4))]
    first: list[Event] = [(Distinct(groups(rng), of), drawn[0])]
    more = [some_rows(rng) if sums and rng.random() < 0.5 else Distinct(groups(rng), of) for _ in drawn[1:]]
    return [*first, *zip(more, drawn[1:], strict=True)]


def gaps(
    of: str | None, most: int, mode: Mode, price: Price = as_it_is, *, sums: bool = True, cases: int = CASES
) -> Iterator[Fraction]:
    """By how much the largest true loss of anybody exceeds what is booked; never above 0 if the price is right."""
    unit, rng = Unit(column="person", max_contributions=most), Random(f"{of}/{most}/{mode}/{sums}")
    for _ in range(cases):
        bought, base = events(rng, of, sums=sums), others(rng)
        true = max(lost(bought, base, [*base, *rows], mode) for rows in units(most))
        yield true - booked(bought, unit, mode, price)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("most", [1, 2, 3, 4])
@pytest.mark.parametrize("of", [None, "a"])
def test_nobody_loses_more_than_is_booked(of: str | None, most: int, mode: Mode) -> None:
    assert max(gaps(of, most, mode)) <= 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_what_is_booked_for_people_alone_can_be_lost(most: int, mode: Mode) -> None:
    assert max(gaps(None, most, mode, sums=False)) == 0


def on_cells(times: Callable[[int, int], int]) -> Price:
    """Counts of people booked on the cells of their groups so many times."""

    def price(accountant: Accountant, event: Event) -> tuple[Footprint, ...]:
        strategy, noise = event
        if not isinstance(strategy, Distinct):
            return as_it_is(accountant, event)
        amount = times(accountant.unit.max_contributions, strategy.rows)
        reach = Reach(amount, 1, strategy.norms(accountant.power))
        return accountant.over_units(reach, noise, version=1, block=None)

    return price


def flat(times: Callable[[int, int], int]) -> Price:
    def price(accountant: Accountant, event: Event) -> tuple[Footprint, ...]:
        if not isinstance(event[0], Distinct):
            return as_it_is(accountant, event)
        amount = times(accountant.unit.max_contributions, event[0].rows)
        reach = Reach(amount, 1, (Norm((), accountant.power),))
        return accountant.over_units(reach, event[1], version=1, block=None)

    return price


WRONG = {
    "min(k, groups) on the cells": on_cells(min),
    "once on the cells of a filter": on_cells(lambda most, rows: 1 if rows == 1 else most),
    "once, however many groups": flat(lambda most, rows: 1),
}


@pytest.mark.parametrize("mode", few([Mode.PURE, Mode.CONCENTRATED]))
@pytest.mark.parametrize("name", WRONG)
def test_wrong_prices_are_found(name: str, mode: Mode) -> None:
    assert any(gap > 0 for gap in gaps(None, 4, mode, WRONG[name], cases=3 * CASES))


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_values_cost_k_rows_and_not_one(mode: Mode) -> None:
    def one(accountant: Accountant, event: Event) -> tuple[Footprint, ...]:
        return as_it_is(Accountant(mode=mode, unit=Unit()), event)

    assert any(gap > 0 for gap in gaps("a", 3, mode, one))


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("most", [1, 2])
def test_a_replaced_unit_loses_no_more_than_is_booked_for_values(most: int, mode: Mode) -> None:
    unit = Unit(column="person", max_contributions=most, neighbours=Neighbours.REPLACE_ONE)
    rng, tight = Random(f"{most}/{mode}"), 0
    for _ in range(CASES // 4):
        bought, base = events(rng, "a", sums=most == 1), others(rng)
        same = [rows for rows in units(most) if len(rows) == most]
        true = max(lost(bought, [*base, *here], [*base, *there], mode) for here in same for there in same)
        claim = booked(bought, unit, mode)
        assert true <= claim
        tight += true == claim
    assert tight or most > 1


def test_people_where_k_is_no_less_than_the_groups_cost_what_they_reach() -> None:
    reach = Distinct(SEXES).reach(Unit(column="person", max_contributions=3), 1)
    assert (reach.times, reach.norms[0].columns) == (2, ())


# -- the real kernel ------------------------------------------------------------------------------------------------


@pytest.mark.sampled(5)
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize(
    ("strategy", "tight"),
    [(Distinct(ALL), 1), (Distinct(WOMEN), 1), (Distinct(SEXES), 2), (Distinct(SEXES, "age"), None)],
    ids=["all", "women", "sexes", "ages"],
)
def test_transcripts_tell_no_more_than_is_spent(strategy: Distinct, tight: int | None, most: int) -> None:
    unit = Unit(column="person", max_contributions=most)
    mechanism = enumerated(once(strategy, 1.25), reach=2, margin=2, unit=unit, named=True)
    pairs = [pair for pair in PAIRS if len(pair[1][0]) - len(BASE) <= most]
    assert worst(mechanism, pairs) <= ALLOWED
    if tight is not None and most >= tight:
        assert max(worst_ratio(mechanism, *pair).ratio for pair in pairs) > Decimal("0.79") * tight


@pytest.mark.soak
def test_adaptive_transcripts_tell_no_more_than_is_spent() -> None:
    def adversary(session: Session) -> None:
        (first,) = session.measure(Distinct(WOMEN), 1.5)
        session.measure(GROWN if first > 1 else Distinct(AGES), 1.0)

    unit = Unit(column="person", max_contributions=2)
    mechanism = enumerated(adversary, reach=1, margin=2, unit=unit, named=True)
    assert worst(mechanism, PAIRS) <= ALLOWED


@pytest.mark.parametrize("strategy", [Distinct(WOMEN), Distinct(ALL, "age")], ids=["women", "ages"])
def test_gaussian_divergences_keep_to_what_is_spent(strategy: Distinct) -> None:
    unit = Unit(column="person", max_contributions=2)
    adversary = once(strategy, 1.5, NoiseKind.GAUSSIAN)
    mechanism = enumerated(adversary, reach=24, margin=2, unit=unit, budget=CONCENTRATED, named=True)
    for order in (Decimal("1.25"), Decimal(2), Decimal(5)):
        assert renyi_excess(mechanism, *PAIRS[2], order) <= ALLOWED
