"""Per-person maps, enumerated: all units of a few rows against the book, and transcripts of the real kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from bursar.core.accounting import Accountant, Footprint, Mode, Noise, NoiseKind
from bursar.core.domain import Unit
from bursar.core.extensions.distinct import Reach
from bursar.core.queries import Distinct, Mask, Norm, PerPerson, Product, Steps
from harness.adversaries import ALL, CONCENTRATED, GROWN, SEXES, WOMEN, once, over, worst
from harness.cases import few
from harness.enumeration import ALLOWED, renyi_excess, worst_ratio
from harness.kernels import Session, enumerated
from harness.units import PAIRS, Event, Price, as_it_is, booked, groups, lost, others, some_rows, units

CASES = 40


def a_map(rng: Random) -> PerPerson:
    value = Product((Mask(("a", "b"), (2, 2), Steps.dense([[rng.randint(-2, 3) for _ in range(4)]])),))
    lower, upper = rng.choice([(-2, 3), (0, 4), (1, 5), (-6, -1)])
    cut = rng.randint(lower, upper)
    bins = rng.choice([((lower, upper + 1),), ((lower, cut + 1),), ((cut, cut + 1), (cut + 1, upper + 2))])
    centre = rng.choice([None, 0, 0, 1])
    return PerPerson(groups=groups(rng), value=value, lower=lower, upper=upper, bins=bins, centre=centre)


def events(rng: Random) -> list[Event]:
    noises = [Noise(kind=NoiseKind.LAPLACE, scale=float(rng.choice([2, 4, 8]))) for _ in range(rng.randint(1, 3))]
    more = [rng.choice([a_map, some_rows, lambda rng: Distinct(groups(rng))])(rng) for _ in noises[1:]]
    return list(zip([a_map(rng), *more], noises, strict=True))


def gaps(most: int, mode: Mode, price: Price = as_it_is, cases: int = CASES) -> Iterator[Fraction]:
    """By how much the largest true loss of anybody exceeds what is booked; never above 0 if the price is right."""
    unit, rng = Unit(column="person", max_contributions=most), Random(f"{most}/{mode}")
    for _ in range(cases):
        bought, base = events(rng), others(rng)
        true = max(lost(bought, base, [*base, *rows], mode) for rows in units(most))
        yield true - booked(bought, unit, mode, price)


@pytest.mark.parametrize("mode", few([Mode.PURE, Mode.CONCENTRATED]))
@pytest.mark.parametrize("most", [1, 2, 3])
def test_nobody_loses_more_than_is_booked(most: int, mode: Mode) -> None:
    assert max(gaps(most, mode)) <= 0


def reaching(change: Callable[[PerPerson, int], tuple[int, int]], *, flat: bool = True) -> Price:
    """Booked so many times for such a change, for everybody or on the cells of the groups."""

    def price(accountant: Accountant, event: Event) -> tuple[Footprint, ...]:
        people, noise = event
        if not isinstance(people, PerPerson):
            return as_it_is(accountant, event)
        times, most = change(people, accountant.unit.max_contributions)
        norms = (Norm((), accountant.power),) if flat else people.norms(accountant.power)
        return accountant.over_units(Reach(times, most, norms), noise, version=1, block=None)

    return price


WRONG = {
    "one group only": reaching(lambda people, most: (1, people.change)),
    "the upper bound alone": reaching(lambda people, most: (min(most, people.groups.rows), max(1, people.upper))),
}


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_prices_are_found(name: str, mode: Mode) -> None:
    assert any(gap > 0 for gap in gaps(3, mode, WRONG[name], cases=4 * CASES))


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_what_is_booked_on_cells_alone_is_too_little(mode: Mode) -> None:
    """Somebody with a row in each of two groups loses both numbers, and neither cell holds both."""
    on_cells = reaching(lambda people, most: (1, people.change), flat=False)
    noise, value = Noise(kind=NoiseKind.LAPLACE, scale=4.0), Product(())
    both = [Product((Mask(("a",), (2,), Steps.ranges([at], [at + 1], 2)),)) for at in (0, 1)]
    bought: list[Event] = [
        (PerPerson(groups=each, value=value, lower=0, upper=1, bins=((0, 2),), centre=0), noise) for each in both
    ]
    unit = Unit(column="person", max_contributions=2)
    true = max(lost(bought, [], rows, mode) for rows in units(2))
    assert booked(bought, unit, mode, on_cells) < true == booked(bought, unit, mode)


# -- the real kernel ------------------------------------------------------------------------------------------------

AGES = over(("age",), [[0, 1, 3]])
YEARS = PerPerson(groups=ALL, value=AGES, lower=-1, upper=2, bins=((-1, 3),), centre=0)
MAPS = {
    "sum": YEARS,
    "sum by sex": replace(YEARS, groups=SEXES, upper=1, bins=((0, 2),)),
    "histogram": replace(YEARS, bins=((0, 1), (1, 3)), centre=None),
    "of women": replace(YEARS, groups=WOMEN, centre=1),
    "rows": PerPerson(groups=ALL, value=None, lower=0, upper=9, bins=((2, 10),)),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("name", MAPS)
def test_transcripts_tell_no_more_than_is_spent(name: str, most: int) -> None:
    unit = Unit(column="person", max_contributions=most)
    mechanism = enumerated(once(MAPS[name], 1.25), reach=2, margin=2, unit=unit, named=True)
    pairs = [pair for pair in PAIRS if len(pair[1][0]) - len(pair[0][0]) <= most]
    assert worst(mechanism, pairs) <= ALLOWED
    if most == 2 and name in ("sum", "histogram"):
        found = max(worst_ratio(mechanism, *pair).ratio for pair in pairs)
        assert found > Decimal("0.79") * MAPS[name].change, "an enumeration that sees no loss proves nothing"


@pytest.mark.heavy
def test_adaptive_transcripts_tell_no_more_than_is_spent() -> None:
    def adversary(session: Session) -> None:
        (first,) = session.measure(MAPS["of women"], 1.5)
        session.measure(GROWN if first > 0 else MAPS["rows"], 1.0)

    unit = Unit(column="person", max_contributions=2)
    mechanism = enumerated(adversary, reach=2, margin=2, unit=unit, named=True)
    assert worst(mechanism, PAIRS) <= ALLOWED


def test_gaussian_divergences_keep_to_what_is_spent() -> None:
    unit = Unit(column="person", max_contributions=2)
    adversary = once(YEARS, 1.5, NoiseKind.GAUSSIAN)
    mechanism = enumerated(adversary, reach=24, margin=2, unit=unit, budget=CONCENTRATED, named=True)
    for order in (Decimal("1.25"), Decimal(2), Decimal(5)):
        assert renyi_excess(mechanism, *PAIRS[2], order) <= ALLOWED
