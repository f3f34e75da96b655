"""Profiles with partitions against profiles without, and against every pair of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from bursar.core.accounting import AddRemove, Footprint, Profile, ReplaceOne
from bursar.core.accounting import profile as grid
from bursar.core.accounting.profile import LARGEST_SUM
from bursar.core.domain import Domain
from bursar.core.extensions import pairs, replace_one
from bursar.core.extensions.replace_one import Change, Pairs
from bursar.core.extensions.sequential import Sequential
from bursar.core.queries import LinearMap
from harness.cases import examples
from harness.maps import columns_matrix, domain_of, maps

PLAIN = domain_of(a=3, b=2, c=4)
PARTITION = "c"
DOMAIN = Domain(PLAIN.attributes, partition=PARTITION)
PLACES = 4
quick = settings(max_examples=25, deadline=None)
History = list[tuple[LinearMap, int]]


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, History]:
    power = draw(st.sampled_from((1, 2)))
    asked = st.tuples(maps(DOMAIN), st.sampled_from((1, 3, 1000)))
    return power, draw(st.lists(asked, min_size=1, max_size=4))


def footprints(history: History, power: int) -> list[Footprint]:
    return [
        Footprint(norm=found, units=units, version=1, block=place)
        for place, (asked, units) in enumerate(history)
        for found in asked.norms(power)
    ]


def exact(history: History, power: int, replaced: bool) -> list[int]:
    """The largest loss of a unit, or of a pair, in each partition, by really putting rows there."""
    cells = np.unravel_index(np.arange(24), DOMAIN.sizes(DOMAIN.names))[DOMAIN.place(PARTITION)]
    losses = np.zeros((24, 24) if replaced else 24, object)
    for asked, units in history:
        rows = np.array(columns_matrix(asked, PLAIN), object).reshape(24, -1)
        apart = rows[:, None, :] - rows[None, :, :] if replaced else rows
        losses = losses + units * (np.abs(apart) ** power).sum(axis=-1)
    inside = [np.flatnonzero(cells == place) for place in range(PLACES)]
    return [int((losses[np.ix_(own, own)] if replaced else losses[own]).max()) for own in inside]


def add_remove(domain: Domain) -> AddRemove:
    return AddRemove(domain)


def replaced(domain: Domain) -> ReplaceOne:
    return ReplaceOne(domain, AddRemove(domain))


KINDS = [add_remove, replaced]


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(histories())
def test_every_partition_is_exact_where_everything_fits(kind: Callable[[Domain], Profile], asked: tuple) -> None:
    power, history = asked
    profile = kind(DOMAIN)
    profile.add(footprints(history, power))
    assert profile.spent_by_partition() == exact(history, power, kind is replaced)


@pytest.mark.hypothesis
@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("finest", [12, 5, 1])
def test_every_partition_is_bounded_where_not(
    kind: Callable[[Domain], Profile], finest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "MOST_BLOCKS", finest)
    monkeypatch.setattr(pairs, "PAIR_CELLS", finest // 2)
    monkeypatch.setattr(replace_one, "PAIR_CELLS", finest // 2)
    monkeypatch.setattr(replace_one, "KEPT_PAIRS", 100)

    @settings(max_examples=examples(25), deadline=None)
    @given(histories())
    def check(asked: tuple[int, History]) -> None:
        power, history = asked
        profile = kind(DOMAIN)
        for place in range(len(history)):
            profile.add(footprints(history[place : place + 1], power))
            bounds = profile.spent_by_partition()
            true = exact(history[: place + 1], power, kind is replaced)
            assert all(low <= high for low, high in zip(true, bounds, strict=True))
            assert profile.spent() == max(bounds)

    check()


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(histories())
def test_partitions_never_cost_more(kind: Callable[[Domain], Profile], asked: tuple[int, History]) -> None:
    """And where a row may be replaced by any other, never less than the dearest partition."""
    listed = footprints(asked[1], asked[0])
    with_partitions, without = kind(DOMAIN), kind(PLAIN)
    assert with_partitions.spent(listed) <= without.spent(listed)
    if kind is add_remove:
        assert with_partitions.spent(listed) == without.spent(listed)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(histories())
def test_it_is_the_dearest_of_profiles_of_single_partitions(
    kind: Callable[[Domain], Profile], asked: tuple[int, History]
) -> None:
    power, history = asked
    listed = footprints(history, power)
    together = kind(DOMAIN).spent_by_partition(listed)
    for place in range(PLACES):
        own = [Footprint(norm=f.norm.at(PARTITION, place), units=f.units, version=1, block=f.block) for f in listed]
        assert kind(PLAIN).spent(own) == together[place]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@quick
@given(histories(), histories())
def test_asking_beforehand_and_adding_agree(kind: Callable[[Domain], Profile], early: tuple, late: tuple) -> None:
    before, plus = footprints(early[1], early[0]), footprints(late[1], early[0])
    for profile in (kind(DOMAIN), Sequential(lambda: kind(DOMAIN))):
        profile.add(before)
        expected, untouched = profile.spent_by_partition(plus), profile.spent_by_partition()
        copy = profile.copy()
        copy.add(plus)
        assert profile.spent_by_partition() == untouched
        assert copy.spent_by_partition() == expected
        assert max(expected) < LARGEST_SUM


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(histories())
def test_sequential_is_the_sum_over_measurements(kind: Callable[[Domain], Profile], asked: tuple[int, History]) -> None:
    power, history = asked
    profile = Sequential(lambda: kind(DOMAIN))
    profile.add(footprints(history, power))
    each = [exact([one], power, kind is replaced) for one in history]
    assert profile.spent_by_partition() == [sum(losses) for losses in zip(*each, strict=True)]


# -- wrong twins: each is found by the property above ------------------------------------------------------------------


class FirstPartition(ReplaceOne):
    """Wrong: what is lost in the first partition stands for all."""

    def spent_by_partition(self, plus: Iterable[Footprint] = ()) -> list[int]:
        return [super().spent_by_partition(plus)[0]] * PLACES


class OneSlice(ReplaceOne):
    """Wrong: all partitions of a question are taken to be asked as its first one."""

    @staticmethod
    def _changes(footprint: Footprint, domain: Domain) -> list[tuple[Change, list[int]]]:
        changes = ReplaceOne._changes(footprint, domain)
        everywhere = [place for _, places in changes for place in places]
        return [(changes[0][0], everywhere)] if changes else []


class Mixed(ReplaceOne):
    """Wrong: changes of different questions are taken for each other."""

    def _with(self, footprints: list[Footprint]) -> dict[int, Pairs]:
        parts = super()._with(footprints)
        return {place: parts[min(parts)] for place in parts}


SEARCH = settings(max_examples=500, deadline=None, phases=[Phase.generate])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("twin", [FirstPartition, OneSlice, Mixed])
def test_a_profile_that_mixes_partitions_up_is_found(twin: type[ReplaceOne]) -> None:
    def counts_too_little(asked: tuple[int, History]) -> bool:
        power, history = asked
        profile = twin(DOMAIN, AddRemove(DOMAIN))
        profile.add(footprints(history, power))
        bounds = profile.spent_by_partition()
        return any(low > Fraction(high) for low, high in zip(exact(history, power, True), bounds, strict=True))

    find(histories(), counts_too_little, settings=SEARCH)
