"""The add-or-remove profile, in small examples; the bound itself is in tests/property/test_profile_bound.py."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.core.accounting import AddRemove, Footprint, profile
from bursar.core.accounting import profile as grid
from bursar.core.accounting.profile import LARGEST_LOSS, columns_of
from bursar.core.queries import Mask, Norm, Product, Steps
from bursar.errors import BudgetError, QueryError
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=4, b=3, c=2)


def footprint(matrices: dict[str, object], units: int = 1) -> Footprint:
    masks = tuple(mask_of(DOMAIN, tuple(names), matrix) for names, matrix in matrices.items())
    return Footprint(norm=Norm(masks, 1), units=units, version=1)


FIRST = footprint({"a": [[1, 0, 0, 0]]}, 5)
SECOND = footprint({"a": [[0, 1, 0, 0]]}, 7)
OTHER = footprint({"b": [[0, 0, 1]]}, 11)


def spent(*footprints: Footprint) -> int:
    found = AddRemove(DOMAIN)
    found.add(footprints)
    return found.spent()


def test_an_empty_profile_has_spent_nothing() -> None:
    assert AddRemove(DOMAIN).spent() == 0
    assert AddRemove(DOMAIN).spent(iter(())) == 0
    assert spent() == 0


def test_disjoint_people_cost_the_dearer_and_the_same_people_the_sum() -> None:
    assert spent(FIRST, SECOND) == spent(SECOND, FIRST) == 7
    assert spent(FIRST, FIRST) == 10
    assert spent(FIRST, OTHER) == 16  # somebody may be in both
    assert spent(FIRST, footprint({"a": [[0, 1, 1, 1]], "b": [[0, 0, 1]]}, 11)) == 11


def test_everybody_counts_once_for_each_cell() -> None:
    everybody = Footprint(norm=Product(()).norms(1)[0], units=3, version=1)
    assert spent(everybody) == 3
    assert spent(everybody, everybody, FIRST) == 11


def test_a_question_about_nobody_costs_nothing() -> None:
    assert spent(footprint({"a": [[0, 0, 0, 0]]}, 9)) == 0
    none = Mask(("a",), (4,), Steps.ranges([], [], 4))
    assert spent(Footprint(norm=Norm((none,), 1), units=9, version=1)) == 0


def test_the_same_columns_in_another_order_are_the_same_columns() -> None:
    forth = footprint({"ab": [[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]}, 4)
    back = footprint({"ba": [[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]}, 6)  # b = 0, a = 1
    apart = footprint({"b": [[1, 0, 0]], "a": [[1, 0, 0, 0]]}, 1)
    assert spent(forth, back) == 6
    assert spent(forth, back, apart) == 6
    assert spent(forth, apart) == 5


@pytest.mark.parametrize("attrs", [("a",), ("a", "b", "c")])
def test_bounds_that_are_kept_are_the_bounds_that_would_be_added_up(attrs: tuple[str, ...]) -> None:
    """Adding bit by bit, with prices asked in between, ends where adding at once does."""
    bit_by_bit = AddRemove(DOMAIN)
    for more in (FIRST, OTHER, SECOND, FIRST):
        bit_by_bit.spent([footprint({name: np.ones((1, DOMAIN[name].size), int) for name in attrs})])
        bit_by_bit.add([more])
    assert bit_by_bit.spent() == spent(FIRST, OTHER, SECOND, FIRST) == 21


def test_bounds_that_are_left_out_would_not_have_been_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against all of them, after each of many purchases; with grids that are too small for all columns together."""
    monkeypatch.setattr(grid, "MOST_BLOCKS", 4)
    rng, found, looked_at = np.random.default_rng(5), AddRemove(DOMAIN), []
    added_up = AddRemove._largest

    def counted(self: AddRemove, *terms: object) -> int:
        looked_at.append(terms)
        return added_up(self, *terms)  # type: ignore[arg-type]

    monkeypatch.setattr(AddRemove, "_largest", counted)
    every = 0
    for _ in range(60):
        names = ("a", "b", "c", "ab", "bc")[rng.integers(5)]
        size = DOMAIN.cells(tuple(names))
        more = [footprint({names: [rng.integers(0, 2, size)]}, int(rng.integers(1, 9)))]
        placed = found._placed(more)
        rises = {columns: int(found._rise(columns, loss, ())) for columns, loss in placed.items()}
        tried = found.projections.of(found.losses, placed)
        every += len(tried)
        least = min(added_up(found.copy(), onto, placed, rises) for onto in tried)
        assert found.spent(more) == least
        found.add(more)
    assert len(looked_at) < 0.95 * every


def test_one_cell_shows_that_no_other_bound_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody in one cell loses all there is to lose: the first sum is the least, and no other is added up."""
    monkeypatch.setattr(grid, "MOST_BLOCKS", 4)
    looked_at: list[object] = []
    added_up = AddRemove._largest

    def counted(self: AddRemove, onto: tuple[str, ...], *terms: object) -> int:
        looked_at.append(onto)
        return added_up(self, onto, *terms)  # type: ignore[arg-type]

    found, bought = AddRemove(DOMAIN), []
    for names, cell in (("a", 3), ("b", 2), ("c", 1), ("ab", 11), ("bc", 5)):
        bought.append(footprint({names: [np.arange(DOMAIN.cells(tuple(names))) == cell]}, 3))
        found.add(bought[-1:])
    assert found.spent() == 15
    monkeypatch.setattr(AddRemove, "_largest", counted)
    assert len(found.projections.of(found.losses, ())) > 5
    for more in bought:
        looked_at.clear()
        assert found.spent([more]) == 18
        assert len(looked_at) == 1
    elsewhere = footprint({"a": [[4, 0, 0, 0]]}, 3)
    copy = found.copy()
    assert found.spent([elsewhere]) == 21  # 12, and 3 of b, c and bc each: another cell is the worst now
    found.add([elsewhere])
    assert copy.spent() == 15
    assert found.spent() == 21


def test_sums_that_are_kept_have_every_change_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked in between, about many columns, they are those of a profile that is asked once, or was restored."""
    monkeypatch.setattr(grid, "MOST_BLOCKS", 4)
    rng, found, everything = np.random.default_rng(6), AddRemove(DOMAIN), []
    for _ in range(40):
        for _ in range(rng.integers(1, 4)):
            names = ("a", "b", "c", "ab", "bc", "ac")[rng.integers(6)]
            row = rng.integers(0, 2, DOMAIN.cells(tuple(names)))
            everything.append(footprint({names: [row]}, int(rng.integers(1, 9))))
            found.add(everything[-1:])
        restored, fresh = AddRemove(DOMAIN), AddRemove(DOMAIN)
        restored.restore(found.state())
        restored.add(everything[:1])
        fresh.add(everything)
        assert found.spent() == fresh.spent()
        assert found.copy().spent(everything[:1]) == found.spent(everything[:1]) == fresh.spent(everything[:1])
        assert restored.spent() == fresh.spent(everything[:1])


def test_accumulators_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_BLOCKS", 4)
    monkeypatch.setattr(profile, "KEPT_BOUNDS", 5)
    found = AddRemove(DOMAIN)
    found.add([FIRST, OTHER])
    expected = found.spent()
    for names in ("c", "ab", "bc", "ac", "abc"):
        found.spent([footprint({names: np.ones((1, DOMAIN.cells(tuple(names))), int)})])
        assert len(found.bounds) <= 5
        assert found.spent() == expected


@pytest.mark.parametrize(
    "masks",
    [
        (Mask(("z",), (4,), Steps.total(4)),),  # no such column
        (Mask(("a",), (5,), Steps.total(5)),),  # too long
        (Mask(("a",), (2,), Steps.total(2)),),  # too short
        (Mask(("a", "b"), (3, 4), Steps.total(12)),),  # as many cells, in another shape
        (Mask(("a",), (3,), Steps.total(3)), Mask(("b",), (4,), Steps.total(4))),
    ],
)
def test_norms_over_other_columns_than_the_domain_has_are_refused(masks: tuple[Mask, ...]) -> None:
    strange = Footprint(norm=Norm(masks, 1), units=1, version=1)
    with pytest.raises(QueryError, match="does not fit"):
        columns_of(strange.norm, DOMAIN)
    with pytest.raises(QueryError, match="does not fit"):
        AddRemove(DOMAIN).spent([strange])


def test_a_refused_footprint_leaves_the_profile_as_it_was() -> None:
    found = AddRemove(DOMAIN)
    found.add([FIRST])
    strange = Footprint(norm=Norm((Mask(("z",), (4,), Steps.total(4)),), 1), units=1, version=1)
    with pytest.raises(QueryError):
        found.add([SECOND, strange])
    assert found.spent() == 5


def test_footprints_beyond_every_budget_are_refused() -> None:
    assert footprint({"a": [[2, 0, 0, 0]]}, LARGEST_LOSS // 2).largest() == LARGEST_LOSS
    for row, units in (([2, 0, 0, 0], LARGEST_LOSS // 2 + 1), ([0, 0, 0, 0], LARGEST_LOSS + 1)):
        with pytest.raises(BudgetError, match="loss"):
            footprint({"a": [row]}, units)


@pytest.mark.parametrize(("units", "finer"), [(2**30, 10), (1, -1), (2**40, 60)])
def test_finer_units_that_could_wrap_around_are_refused(units: int, finer: int) -> None:
    with pytest.raises(QueryError, match="finer"):
        Footprint(norm=FIRST.norm, units=units, version=1, finer=finer)


@given(st.integers(1, 2**30 - 1), st.sampled_from((10, 20, 30, 40, 50, 60)), st.data())
def test_finer_losses_are_never_too_low_and_at_most_one_unit_too_high(
    units: int, finer: int, data: st.DataObject
) -> None:
    """Norms up to the pairs' 2^62, and losses up to 2^62, against integers without a limit."""
    most = min(2**62, (2**62 << finer) // units)
    norms = [*data.draw(st.lists(st.integers(0, most), min_size=1, max_size=5)), most]
    found = Footprint(norm=FIRST.norm, units=units, version=1, finer=finer)
    for norm, loss in zip(norms, found.loss(np.array(norms, np.int64)).tolist(), strict=True):
        assert Fraction(norm * units, 2**finer) <= found.of(norm) < Fraction(norm * units, 2**finer) + 1
        assert found.of(norm) <= loss <= found.of(norm) + 1


def test_many_dear_footprints_stay_beyond_every_budget() -> None:
    dear = footprint({"a": [[1, 0, 0, 0]]}, LARGEST_LOSS)
    found = AddRemove(DOMAIN)
    for _ in range(40):
        found.add([dear])
        assert found.spent() >= LARGEST_LOSS
        assert found.spent([dear] * 16) > LARGEST_LOSS
    assert found.spent() == 2**61
