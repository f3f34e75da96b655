"""The bound of a profile lies between the exact loss of the worst unit and the sum of all prices, on every grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from bursar.core.accounting import AddRemove, Footprint, Profile, ReplaceOne, profile, projections
from bursar.core.accounting import profile as grid
from bursar.core.accounting.profile import LARGEST_LOSS, LARGEST_SUM, Columns, Grid
from bursar.core.domain import Domain
from bursar.core.extensions import pairs, replace_one
from bursar.core.queries import LinearMap, Norm, Product, Stack
from harness.cases import examples
from harness.maps import Numbers, columns_matrix, domain_of, maps, mask_of

DOMAIN = domain_of(a=3, b=2, c=4)
FINEST = (2**17, 12, 5, 3, 1)
PAIR_CELLS = (2048, 6, 1)

quick = settings(max_examples=30, deadline=None)
searching = settings(max_examples=500, deadline=None, phases=[Phase.generate])
unit_prices = st.sampled_from(((1, 0), (3, 0), (1000, 0), (2**20 + 1, 10), (2**29 + 5, 30), (2**30 - 1, 60), None))


@dataclass(frozen=True)
class Asked:
    """A map, and the price of one row of it in a cell where it is one."""

    linear_map: LinearMap
    units: int
    power: int = 1
    finer: int = 0  # units are 2^-finer of the usual ones

    def footprints(self) -> list[Footprint]:
        norms = self.linear_map.norms(self.power)
        return [Footprint(norm=found, units=self.units, version=1, finer=self.finer) for found in norms]

    @property
    def each(self) -> Fraction:
        return Fraction(self.units, 2**self.finer)

    @cached_property
    def losses(self) -> list[Fraction]:
        """The loss in every cell of the whole domain, by really putting a row there."""
        rows = columns_matrix(self.linear_map, DOMAIN)
        return [self.each * sum(abs(x) ** self.power for x in row) for row in rows]

    @cached_property
    def pair_losses(self) -> Numbers:
        """The loss of every pair of cells; in numbers without a limit."""
        rows = np.array(columns_matrix(self.linear_map, DOMAIN), object).reshape(24, -1)
        apart = (np.abs(rows[:, np.newaxis] - rows) ** self.power).sum(axis=-1)
        return apart * self.each


def ask(linear_map: LinearMap, price: tuple[int, int] | None, power: int) -> Asked:
    """Without a price, the dearest question that is not refused by itself."""
    largest = max([1, *(found.largest() for found in linear_map.norms(power))])
    units, finer = (LARGEST_LOSS // largest, 0) if price is None else price
    return Asked(linear_map, units, power, finer)


@st.composite
def histories(draw: st.DrawFn, power: int | None = None) -> list[Asked]:
    """Questions of one mode; cheap ones mostly, and now and then one beyond every budget."""
    chosen = draw(st.sampled_from((1, 2))) if power is None else power
    asked = st.builds(ask, maps(DOMAIN), unit_prices, st.just(chosen))
    return draw(st.lists(asked, min_size=1, max_size=4))


def add_remove() -> AddRemove:
    return AddRemove(DOMAIN)


def replaced() -> ReplaceOne:
    return ReplaceOne(DOMAIN, AddRemove(DOMAIN))


def exact_add_remove(history: list[Asked]) -> Fraction:
    return max(sum(losses) for losses in zip(*(asked.losses for asked in history), strict=True))


def exact_replace_one(history: list[Asked]) -> Fraction:
    return Fraction(sum(asked.pair_losses for asked in history).max())


def sum_of_prices(history: list[Asked], new_profile: Callable[[], Profile]) -> int:
    """What all footprints would cost if each were the only one; finer units may be rounded up twice."""
    each = [footprint for asked in history for footprint in asked.footprints()]
    factor = max([2, *(f.norm.pair_factor for f in each)]) if isinstance(new_profile(), ReplaceOne) else 1
    return factor * sum(footprint.largest() + (footprint.finer > 0) for footprint in each)


def between(history: list[Asked], new_profile: Callable[[], Profile], exact: Callable[[list[Asked]], Fraction]) -> bool:
    """Whether the bound is kept after every question; beyond 2^61 it need only stay beyond every budget."""
    profile = new_profile()
    for place, asked in enumerate(history):
        profile.add(asked.footprints())
        so_far = history[: place + 1]
        if not min(exact(so_far), LARGEST_SUM) <= profile.spent() <= sum_of_prices(so_far, new_profile):
            return False
    return True


@pytest.mark.hypothesis
@pytest.mark.sampled(5)
@pytest.mark.parametrize("finest", FINEST)
def test_add_remove_lies_between(finest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_BLOCKS", finest)

    @settings(max_examples=examples(30), deadline=None)
    @given(history=histories())
    def check(history: list[Asked]) -> None:
        assert between(history, add_remove, exact_add_remove)

    check()


@dataclass
class AnySets:
    """Stands in for `Projections`, which nothing rests on: any columns in any order, and any loss of one cell."""

    sets: list[Columns]
    loss: int
    tried: None = None

    def of(self, *_: object) -> list[Columns]:
        return self.sets

    def told(self, *_: object) -> int:
        return self.loss

    def copy(self) -> AnySets:
        return self


any_sets = st.builds(
    AnySets,
    sets=st.lists(st.lists(st.sampled_from("abc"), max_size=4).map(tuple), min_size=1, max_size=7),
    loss=st.sampled_from((-1, 0, 1, 2**62)),
)


def holds_by(tried: AnySets, history: list[Asked], grids: Callable[[Domain], AddRemove], domain: Domain) -> bool:
    """Whether what is spent is no less than the worst loss, asked beforehand and added, whatever is tried."""
    profile = grids(domain)
    profile.projections = tried  # type: ignore[assignment]
    for place, asked in enumerate(history):
        least = min(exact_add_remove(history[: place + 1]), LARGEST_SUM)
        if profile.copy().spent(asked.footprints()) < least:
            return False
        profile.add(asked.footprints())
        if profile.spent() < least:
            return False
    return True


@pytest.mark.hypothesis
@pytest.mark.sampled(4)
@pytest.mark.parametrize("domain", [DOMAIN, Domain(DOMAIN.attributes, "c")], ids=["plain", "partitions"])
@pytest.mark.parametrize("finest", [2**17, 5])
def test_any_sets_of_columns_give_a_bound(finest: int, domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which sets are tried is decided outside of what is trusted, so it may be decided in any way."""
    monkeypatch.setattr(grid, "MOST_BLOCKS", finest)

    @settings(max_examples=examples(20), deadline=None)
    @given(tried=any_sets, history=histories())
    def check(tried: AnySets, history: list[Asked]) -> None:
        assert holds_by(tried, history, AddRemove, domain)

    check()
    wrong = st.tuples(any_sets, histories(power=1))
    find(wrong, lambda each: not holds_by(*each, OnFirstOfColumn, domain), settings=searching)


@pytest.mark.hypothesis
@pytest.mark.sampled(3)
@pytest.mark.parametrize("pair_cells", PAIR_CELLS)
def test_replace_one_lies_between(pair_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "PAIR_CELLS", pair_cells)
    monkeypatch.setattr(replace_one, "PAIR_CELLS", pair_cells)
    monkeypatch.setattr(grid, "MOST_BLOCKS", 5 if pair_cells == 1 else 2**17)

    @settings(max_examples=examples(20), deadline=None)
    @given(history=histories())
    def check(history: list[Asked]) -> None:
        assert between(history, replaced, exact_replace_one)

    check()


@pytest.mark.heavy
def test_replace_one_lies_between_where_pairs_have_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace_one, "KEPT_PAIRS", 40)

    @settings(max_examples=examples(20), deadline=None)
    @given(history=histories())
    def check(history: list[Asked]) -> None:
        assert between(history, replaced, exact_replace_one)

    check()


@quick
@given(history=histories())
def test_where_everything_fits_the_bound_is_exact(history: list[Asked]) -> None:
    listed = [footprint for asked in history for footprint in asked.footprints()]
    rounding = 2 * sum(footprint.finer > 0 for footprint in listed)
    for spent, exact in (
        (add_remove().spent(listed), min(exact_add_remove(history), LARGEST_SUM)),
        (replaced().spent(listed), min(exact_replace_one(history), LARGEST_SUM)),
    ):
        assert exact <= spent <= exact + rounding


@pytest.mark.hypothesis
@pytest.mark.sampled(5)
@pytest.mark.parametrize("finest", [2**17, 5, 3])
@pytest.mark.parametrize("new_profile", [add_remove, replaced])
@pytest.mark.parametrize("joint_sets", [16, 1])
def test_asking_beforehand_and_adding_agree(
    finest: int, new_profile: Callable[[], Profile], joint_sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "MOST_BLOCKS", finest)
    monkeypatch.setattr(projections, "JOINT_SETS", joint_sets)
    monkeypatch.setattr(profile, "KEPT_BOUNDS", 3 if joint_sets == 1 else 256)
    if finest == 3:
        monkeypatch.setattr(pairs, "PAIR_CELLS", 6)
        monkeypatch.setattr(replace_one, "PAIR_CELLS", 6)
        monkeypatch.setattr(replace_one, "KEPT_PAIRS", 40)

    @settings(max_examples=examples(15), deadline=None)
    @given(histories(), histories(), st.booleans())
    def check(before: list[Asked], plus: list[Asked], asked_before: bool) -> None:
        early, late = ([f for asked in part for f in asked.footprints()] for part in (before, plus))
        profile = new_profile()
        if asked_before:
            profile.spent(late)  # what is kept for speed must not be able to tell
        profile.add(early)
        expected = profile.spent(late)
        untouched = profile.spent()
        profile.add(late)
        fresh = new_profile()
        fresh.add([*early, *late])
        assert profile.spent() == expected == fresh.spent()
        again = new_profile()
        again.add(early)
        assert again.spent() == untouched

    check()


# -- disjoint people ---------------------------------------------------------------------------------------------------

WIDE = domain_of(a=4, b=1000, c=900)


def about(person: int, other: str, low: int, units: int) -> Footprint:
    """A question about the people with one value of a, and a range of another column."""
    rows = [[int(low <= cell < low + 300) for cell in range(WIDE[other].size)]]
    ours = mask_of(WIDE, ("a",), [[int(cell == person) for cell in range(4)]])
    (found,) = Product((ours, mask_of(WIDE, (other,), rows))).norms(1)
    return Footprint(norm=found, units=units, version=1)


@pytest.mark.parametrize("finest", [2**17, 64, 16])
@settings(max_examples=20, deadline=None)
@given(
    asked=st.permutations(range(4)),
    columns=st.lists(st.sampled_from("bc"), min_size=4, max_size=4),
    low=st.integers(0, 599),
    units=st.lists(st.integers(1, 50), min_size=4, max_size=4),
)
def test_disjoint_questions_cost_the_dearer_in_any_order(
    finest: int, asked: list[int], columns: list[str], low: int, units: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "MOST_BLOCKS", finest)
        profile = AddRemove(WIDE)
        dearest = 0
        for person in asked:
            footprint = about(person, columns[person], low, units[person])
            dearest = max(dearest, units[person])
            assert profile.spent([footprint]) == dearest
            profile.add([footprint])
        assert profile.spent() == dearest
        profile.add([about(asked[0], columns[asked[0]], low, 7)])
        assert profile.spent() == max(dearest, units[asked[0]] + 7)


# -- wrong twins: each is found by the property above ------------------------------------------------------------------


class OneMarginal(AddRemove):
    """Wrong: looks at one column and leaves out what was asked without it."""

    def _largest(self, onto: Columns, placed: dict[Columns, Numbers], rises: object) -> int:
        heard = {columns: loss for columns, loss in {**self.losses, **placed}.items() if "a" in columns}
        target = self._grid(("a",))
        shape = np.zeros(target.shape, np.int64)
        return int(sum((self._grid(c).project(loss, target) for c, loss in heard.items()), start=shape).max())


class Forgetful(AddRemove):
    """Wrong: a column set that was measured before is replaced, not added to."""

    def add(self, footprints: object) -> None:
        for columns, more in self._placed(footprints).items():
            self.losses[columns] = more
        self.bounds.clear()


class FirstOfColumn(Grid):
    """Wrong: where a column is projected away, its first value stands for all instead of the largest."""

    def project(self, loss: Numbers, onto: Grid) -> Numbers:
        picks = tuple(slice(None) if name in onto.attrs else slice(0, 1) for name in self.attrs)
        return Grid(self.attrs, self.sizes, self.widths).project(loss[picks], onto)


class FirstOfBlock(Grid):
    """Wrong: the first cell of a block stands for all of them."""

    def place(self, found: Norm, units: int) -> Numbers:
        fine = Grid(self.attrs, self.sizes, (1,) * len(self.sizes)).place(found, units)
        return fine[tuple(slice(None, None, width) for width in self.widths)]


class OnGrids(AddRemove):
    kind: type[Grid] = Grid

    def _grid(self, columns: Columns) -> Grid:
        fine = super()._grid(columns)
        return self.kind(fine.attrs, fine.sizes, fine.widths)


class OnFirstOfColumn(OnGrids):
    kind = FirstOfColumn


class OnFirstOfBlock(OnGrids):
    kind = FirstOfBlock


def wrapping(loss: Numbers, more: Numbers) -> Numbers:
    """Wrong: sums run over the end of 64 bits."""
    return loss + more


@pytest.mark.thinned(2)
@pytest.mark.parametrize("twin", [OneMarginal, Forgetful, OnFirstOfColumn, OnFirstOfBlock])
def test_a_profile_that_counts_too_little_is_found(twin: type[AddRemove], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_BLOCKS", 5)
    find(
        histories(power=1),
        lambda history: not between(history, lambda: twin(DOMAIN), exact_add_remove),
        settings=searching,
    )


class Halved(ReplaceOne):
    """Wrong: twice the profile also where rows of both signs are squared."""

    def spent(self, plus: object = ()) -> int:
        self.factor = 2
        return min(2 * self.around.spent(list(plus)), super().spent(plus))


def test_a_replacement_that_counts_too_little_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace_one, "PAIR_CELLS", 1)
    find(
        histories(power=2),
        lambda history: not between(history, lambda: Halved(DOMAIN, AddRemove(DOMAIN)), exact_replace_one),
        settings=searching,
    )


def test_sums_that_wrap_around_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen parts of 2^60 each are nothing at all in 64 bits; they must cost more than every budget."""
    part = Product((mask_of(DOMAIN, ("a",), [[2**6, 0, 0]]),))
    history = [Asked(Stack((part,) * 16), 2**54)]
    assert exact_add_remove(history) == 2**64
    assert between(history, add_remove, exact_add_remove)
    assert between(history, replaced, exact_replace_one)
    monkeypatch.setattr(profile, "added", wrapping)
    monkeypatch.setattr(replace_one, "added", wrapping)
    assert not between(history, add_remove, exact_add_remove)
    assert not between(history, replaced, exact_replace_one)


def test_a_wide_domain_is_priced_without_being_laid_out() -> None:
    """Seventy columns and columns of millions of cells: no table over all of them is ever made."""
    huge = Domain((*domain_of(**{f"c{i}": 5 for i in range(70)}).attributes, *domain_of(z=2**24).attributes))
    found = AddRemove(huge)
    for name in huge.names[:70]:
        (row,) = Product((mask_of(huge, (name,), [[1, 0, 0, 0, 0]]),)).norms(1)
        found.add([Footprint(norm=row, units=1, version=1)])
    assert found.spent() == 70
    other = ReplaceOne(huge, AddRemove(huge))
    (row,) = Product((mask_of(huge, ("c0",), [[1, 0, 0, 0, 0]]),)).norms(1)
    other.add([Footprint(norm=row, units=1, version=1)] * 70)
    assert other.spent() == 70
