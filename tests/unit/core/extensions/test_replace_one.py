"""The replace-one profile, in small examples; the bound itself is in tests/property/test_profile_bound.py."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import AddRemove, Footprint, ReplaceOne
from bursar.core.accounting.profile import LARGEST_LOSS
from bursar.core.extensions import pairs, replace_one
from bursar.core.queries import Mask, Norm, Product, Stack, Steps
from bursar.errors import QueryError
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=4, b=3, x=3000)


def footprint(matrices: dict[str, object], units: int = 1, power: int = 1) -> Footprint:
    masks = tuple(mask_of(DOMAIN, tuple(names), matrix) for names, matrix in matrices.items())
    return Footprint(norm=Norm(masks, power), units=units, version=1)


def profile() -> ReplaceOne:
    return ReplaceOne(DOMAIN, AddRemove(DOMAIN))


def spent(*footprints: Footprint) -> int:
    found = profile()
    found.add(footprints)
    assert profile().spent(footprints) == found.spent()
    return found.spent()


EYE = footprint({"a": np.eye(4, dtype=int)}, 5)
FIRST = footprint({"a": [[1, 0, 0, 0]]}, 5)
SECOND = footprint({"a": [[0, 1, 0, 0]]}, 7)


def test_an_empty_profile_has_spent_nothing() -> None:
    assert profile().spent() == 0


def test_sizes_are_public() -> None:
    everybody = Footprint(norm=Product(()).norms(1)[0], units=100, version=1)
    assert spent(everybody) == 0
    assert spent(footprint({"a": [[3, 3, 3, 3]]}, 100)) == 0
    assert spent(everybody, FIRST) == 5


def test_public_sizes_widen_no_bound() -> None:
    """Over too many joint cells for pairs, twice the add-remove profile is the bound: the total takes no part in it."""
    everybody = Footprint(norm=Product(()).norms(1)[0], units=10**6, version=1)
    many = footprint({"x": np.eye(3000, dtype=int)[:1500]}, 5), footprint({"a": [[1, 1, 0, 0]]}, 3)
    assert spent(*many) == spent(everybody, *many) < 100


def test_a_histogram_costs_twice_and_disjoint_people_add_up() -> None:
    assert spent(EYE) == 10
    assert spent(FIRST) == 5
    assert spent(FIRST, SECOND) == 12  # one may become the other
    assert spent(footprint({"a": np.eye(4, dtype=int)}, 5, power=2)) == 10


def test_rows_that_move_together_cost_less_than_their_sum() -> None:
    rows = footprint({"a": [[0, 1, 2, 3], [0, 1, 2, 3]]})
    assert spent(rows) == 6
    assert spent(footprint({"a": [[0, 1, 2, 3]]}, power=2)) == 9
    assert spent(footprint({"a": [[-2, 1, 2, -2]]}, power=2)) == 16


def test_the_order_of_columns_does_not_matter() -> None:
    forth = footprint({"ab": [[1, *[0] * 11]]}, 4)
    back = footprint({"ba": [[1, *[0] * 11]]}, 6)
    found = profile()
    found.add([forth, back])
    assert found.spent() == 10
    assert list(found.parts[0].complete) == [("a", "b")]
    elsewhere = footprint({"b": [[0, 0, 1]], "a": [[0, 0, 0, 1]]}, 1)
    assert spent(forth, back, elsewhere) == 11
    assert spent(forth, footprint({"a": [[0, 1, 1, 1]]}, 2)) == 6


def test_beyond_all_pairs_the_least_of_two_bounds_holds() -> None:
    wide = footprint({"x": [[1] * 10 + [0] * 2990, [0] * 2990 + [1] * 10]}, 3)
    assert spent(wide) == 6  # a pair loses at most twice the profile
    assert spent(wide, EYE) == 16  # twice (3 + 5), which is also 6 + 10
    assert spent(wide, FIRST) == 11  # 6 + 5 is less than twice (3 + 5)
    signed = footprint({"x": [[1] * 10 + [-1] * 2990]}, 3, power=2)
    assert spent(signed) == 12
    positive = footprint({"x": [[1] * 10 + [2] * 2990, [2] + [0] * 2999]}, 3, power=2)
    assert spent(positive) == 30  # 2 (3 + 12)


def test_a_single_row_of_one_sign_costs_its_largest_value() -> None:
    """However many cells it is over."""
    for rows, power, largest in (([1] * 10 + [0] * 2990, 1, 1), ([0] * 10 + [-2] * 2990, 2, 4), ([3] * 3000, 2, 9)):
        assert spent(footprint({"x": [rows]}, 3, power=power)) == 3 * largest
    assert spent(footprint({"x": [[1] * 10 + [-1] * 2990]}, 3)) == 6
    assert spent(footprint({"x": [[1] * 10 + [0] * 2990] * 2}, 3)) == 12  # really 6


def test_the_profile_helps_where_questions_are_about_different_people() -> None:
    apart = [footprint({"x": [[int(cell == place) for cell in range(3000)]]}, 3) for place in range(4)]
    assert spent(*apart) == 6  # by column set it would be 12


def test_signs_seen_once_are_remembered() -> None:
    signed = footprint({"x": [[1] * 10 + [-1] * 2990]}, 3, power=2)
    positive = footprint({"x": [[1] * 10 + [2] * 2990]}, 3, power=2)
    found = profile()
    found.add([signed])
    found.add([positive])
    assert found.spent() == min(4 * (3 + 12), 12 + 12)


def test_column_sets_that_come_late_keep_their_largest_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace_one, "KEPT_PAIRS", 20)
    found = profile()
    found.add([EYE])
    found.add([footprint({"b": [[1, 0, -1]]}, 2)])
    assert list(found.parts[0].complete) == [("a",)]
    assert found.parts[0].large == {("b",): 4}
    found.add([footprint({"b": [[1, 0, -1]]}, 2), EYE])
    assert found.parts[0].large == {("b",): 8}
    assert found.spent() == 28


def test_the_largest_pair_of_each_set_is_kept_as_it_changes() -> None:
    """Also in a profile that begins with the state of another."""
    rng, found = np.random.default_rng(4), profile()
    for _ in range(30):
        names, size = (("a", 4), ("b", 3), ("ab", 12))[rng.integers(3)]
        found.add([footprint({names: rng.integers(-1, 3, (2, size))}, int(rng.integers(1, 9)))])
        again = profile()
        again.restore(found.state())
        for part in (*found.parts.values(), *again.parts.values()):
            assert part.by_set == sum(int(matrix.max()) for matrix in part.complete.values()) > 0


def test_dear_footprints_stay_beyond_every_budget() -> None:
    dear = footprint({"a": [[1, -1, 0, 0]]}, LARGEST_LOSS, power=2)
    found = profile()
    for _ in range(20):
        found.add([dear])
        assert found.spent() >= LARGEST_LOSS
        assert found.spent([dear] * 16) >= LARGEST_LOSS
    wide = footprint({"x": [[1] * 10 + [0] * 2990]}, LARGEST_LOSS)
    assert found.spent([wide]) > LARGEST_LOSS


def test_norms_over_other_columns_are_refused() -> None:
    strange = Footprint(norm=Norm((Mask(("a", "b"), (3, 4), Steps.total(12)),), 1), units=1, version=1)
    with pytest.raises(QueryError, match="does not fit"):
        profile().spent([strange])


def test_single_cells_cannot_be_told_from_themselves() -> None:
    tiny = domain_of(a=1, b=1)
    found = ReplaceOne(tiny, AddRemove(tiny))
    product = Product((mask_of(tiny, ("a", "b"), [[7]]),))
    found.add(Footprint(norm=n, units=3, version=1) for n in Stack((product, product)).norms(1))
    assert found.spent() == 0


def test_a_full_pair_matrix_is_kept_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "PAIR_CELLS", 11)
    found = profile()
    found.add([footprint({"ab": [[1, *[0] * 11]]}, 4)])
    assert (found.parts[0].complete, found.parts[0].large) == ({}, {("a", "b"): 4})
