"""Profiles of data with partitions: each partition by itself, and the dearest counts."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import (
    Accountant,
    AddRemove,
    Book,
    Footprint,
    Measured,
    Mode,
    Noise,
    NoiseKind,
    Profile,
    ReplaceOne,
    Sealed,
    Versioned,
)
from bursar.core.accounting import profile as grid
from bursar.core.accounting.profile import Grid
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.sequential import Sequential
from bursar.core.queries import LinearMap, Mask, Norm, Product, Steps
from bursar.errors import ConfigError
from harness.maps import domain_of, mask_of

DOMAIN = Domain(domain_of(week=4, age=3, sex=2).attributes, partition="week")
ONE = 2**50


def weeks(first: int, end: int, domain: Domain = DOMAIN) -> Mask:
    size = domain["week"].size
    return Mask(("week",), (size,), Steps.ranges([first], [end], size))


def footprint(*masks: Mask, units: int = 1) -> Footprint:
    (norm,) = Product(masks).norms(1)
    return Footprint(norm=norm, units=units, version=1)


def add_remove(domain: Domain = DOMAIN) -> AddRemove:
    return AddRemove(domain)


def replaced(domain: Domain = DOMAIN) -> ReplaceOne:
    return ReplaceOne(domain, AddRemove(domain))


AGES = mask_of(DOMAIN, ("age",), np.eye(3, dtype=int))
YOUNG = mask_of(DOMAIN, ("age",), [[1, 0, 0]])
WOMEN = mask_of(DOMAIN, ("sex",), [[1, 0]])


def test_partitions_have_losses_of_their_own() -> None:
    profile = add_remove()
    assert profile.spent_by_partition() == [0, 0, 0, 0]
    profile.add([footprint(weeks(0, 2), units=5), footprint(weeks(1, 3), AGES, units=7)])
    assert profile.spent_by_partition() == [5, 12, 7, 0]
    assert profile.spent_by_partition([footprint(weeks(3, 4), units=20)]) == [5, 12, 7, 20]
    assert profile.spent() == 12
    profile.add([footprint(AGES, units=1)])  # without the column: everybody
    assert profile.spent_by_partition() == [6, 13, 8, 1]


def test_a_count_of_a_partition_is_free_where_sizes_are_public() -> None:
    profile = replaced()
    profile.add([footprint(weeks(0, 2), units=5), footprint(Mask(("week",), (4,), Steps.identity(4)), units=5)])
    assert profile.spent_by_partition() == [0, 0, 0, 0]
    profile.add([footprint(weeks(1, 3), AGES, units=7)])
    assert profile.spent_by_partition() == [0, 14, 14, 0]
    profile.add([footprint(weeks(2, 4), YOUNG, units=3)])
    assert profile.spent_by_partition() == [0, 14, 17, 3]
    assert profile.spent([footprint(WOMEN, units=2)]) == 19
    assert profile.spent_by_partition([footprint(WOMEN, units=2)]) == [2, 16, 19, 5]


def test_partitions_that_were_asked_the_same_share_their_pairs() -> None:
    profile = replaced()
    profile.add([footprint(weeks(0, 3), AGES, units=7)])
    profile.add([footprint(weeks(0, 2), YOUNG, units=7)])
    assert profile.parts[0] is profile.parts[1]
    assert profile.parts[2] is not profile.parts[1]
    assert 3 not in profile.parts
    other = profile.copy()
    other.add([footprint(weeks(0, 1), AGES, units=1)])
    assert (profile.spent(), other.spent()) == (21, 23)
    assert profile.parts[0] is profile.parts[1]


def test_a_condition_across_partition_and_column() -> None:
    """(week 0 and young) or (week 1 and not young): one mask over both columns."""
    matrix = np.zeros((4, 3), int)
    matrix[0, 0], matrix[1, 1:] = 1, 1
    across = footprint(mask_of(DOMAIN, ("week", "age"), [matrix.ravel()]), units=3)
    for profile in (add_remove(), replaced()):
        profile.add([across])
        assert profile.spent_by_partition() == [3, 3, 0, 0]


def test_beyond_all_pairs_each_partition_has_its_own_bound() -> None:
    wide = Domain(domain_of(week=4, x=3000).attributes, partition="week")
    rows = mask_of(wide, ("x",), [[1] * 10 + [0] * 2990, [0] * 2990 + [1] * 10])
    profile = replaced(wide)
    profile.add([footprint(weeks(0, 2, wide), rows, units=3)])
    profile.add([footprint(weeks(1, 3, wide), rows, units=4)])
    assert profile.spent_by_partition() == [6, 14, 8, 0]


def test_blocks_never_hold_two_partitions() -> None:
    sizes = {"weekday": 7, "hour": 6, "duration": 6, "start": 10, "end": 10, "usertype": 2, "gender": 3, "age": 4}
    large = Domain(domain_of(week=50, **sizes).attributes, partition="week")
    found = Grid.over(large, large.names)
    assert found.widths[0] == 1
    assert 2**15 < np.prod(found.shape) <= 2**17
    total = Product(tuple(Mask((name,), (size,), Steps.total(size)) for name, size in sizes.items()))
    one_week = Product((weeks(7, 8, large), *total.masks))
    profile = AddRemove(large)
    for units, product in ((5, one_week), (3, Product((weeks(0, 50, large), *total.masks)))):
        (norm,) = product.norms(1)
        profile.add([Footprint(norm=norm, units=units, version=1)])
    assert profile.spent_by_partition() == [3] * 7 + [8] + [3] * 42


def test_blocks_hold_several_partitions_only_where_nothing_else_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_BLOCKS", 2)
    found = Grid.over(DOMAIN, DOMAIN.names)
    assert found.shape == (2, 1, 1)
    profile = add_remove()
    profile.add([footprint(weeks(1, 2), AGES, units=5), footprint(weeks(3, 4), units=1)])
    assert profile.spent_by_partition() == [5, 5, 1, 1]  # each bound is valid, two partitions share one


def measured(strategy: LinearMap, scale: float = 1.0) -> Measured:
    return Measured(strategy=strategy, noise=Noise(kind=NoiseKind.LAPLACE, scale=scale), version=1)


def book(new_profile: object, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Book:
    return Book(Accountant(mode=Mode.PURE, unit=Unit(neighbours=neighbours)), new_profile)


@pytest.mark.parametrize("own", [add_remove, replaced])
def test_sequential_adds_up_in_each_partition(own: object) -> None:
    first, second = Product((weeks(0, 2), YOUNG)), Product((weeks(1, 4), WOMEN))
    made = book(lambda: Sequential(own))
    made.add(Versioned(version=1))
    made.add(measured(first))
    made.add(measured(second, 2.0))
    assert made.spent_by_partition() == [ONE, ONE + ONE // 2, ONE // 2, ONE // 2]
    assert made.spent() == ONE + ONE // 2
    assert made.price([measured(Product((weeks(3, 4), YOUNG)))]) == 0
    assert made.price([measured(Product((weeks(1, 2), YOUNG)))]) == ONE


def test_a_book_adds_generations_up() -> None:
    made = book(add_remove)
    assert made.spent_by_partition() == [0, 0, 0, 0]
    made.add(Versioned(version=1))
    made.add(Sealed(through=3, version=1))
    made.add(measured(Product((weeks(0, 2),))))
    made.add(Versioned(version=2))
    made.add(Measured(strategy=Product((weeks(1, 4),)), noise=Noise(kind=NoiseKind.LAPLACE, scale=2.0), version=2))
    assert made.spent_by_partition() == [ONE, ONE + ONE // 2, ONE // 2, ONE // 2]
    assert made.spent() == ONE + ONE // 2


def test_sealing_costs_nothing() -> None:
    assert Accountant(mode=Mode.PURE, unit=Unit()).footprints(Sealed(through=2, version=1, sizes=(1, 2, 3))) == ()


@pytest.mark.parametrize("wrong", [{"through": -1}, {"through": 1, "sizes": (3, -1)}])
def test_seals_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="counted from 0"):
        Sealed(version=1, **wrong)


def test_there_is_a_limit_to_partitions() -> None:
    with pytest.raises(ConfigError, match="at most 16384"):
        Domain(domain_of(a=2**14 + 1).attributes, partition="a")
    assert Domain(domain_of(a=2**14).attributes, partition="a").partitions == 2**14
    assert domain_of(a=5).partitions == 1


def test_without_partitions_there_is_one_number() -> None:
    plain = domain_of(week=4, age=3, sex=2)
    profiles: list[Profile] = [
        AddRemove(plain),
        ReplaceOne(plain, AddRemove(plain)),
        Sequential(lambda: AddRemove(plain)),
    ]
    for profile in profiles:
        assert profile.spent_by_partition() == [0]
        profile.add([footprint(AGES, units=4)])
        assert profile.spent_by_partition() == [profile.spent()]


def test_a_purchase_is_cut_into_partitions_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the plan, at its admission and in the book it is the same norm, with the same units, over the same domain."""
    cut: list[Norm] = []
    slices = Norm.slices
    monkeypatch.setattr(Norm, "slices", lambda norm, *at: cut.append(norm) or slices(norm, *at))
    (norm,) = Product((weeks(1, 3), AGES)).norms(1)
    profile = replaced()
    planned = Footprint(norm=norm, units=5, version=1, block="planned")
    assert profile.spent_by_partition([planned]) == [0, 10, 10, 0]
    profile.add([Footprint(norm=norm, units=5, version=1, block=1)])
    assert cut == [norm]
    assert profile.spent_by_partition([planned]) == [0, 20, 20, 0]
    assert profile.spent_by_partition([Footprint(norm=norm, units=7, version=1)]) == [0, 24, 24, 0]
    assert profile.spent_by_partition([Footprint(norm=norm, units=5, version=1, finer=1)]) == [0, 15, 15, 0]
    whole = domain_of(week=4, age=3, sex=2)  # the same columns, and no partitions: a row may change its week
    assert replaced(whole).spent([planned]) == 10
    assert replaced(whole).spent([planned, planned]) == 20
