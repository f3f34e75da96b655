"""Thresholds: at least so many of a few columns agree, compared with the explicit matrix of 0s and 1s."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bursar.core.accounting import Accountant, AddRemove, Book, Measured, Mode, Noise, NoiseKind, ReplaceOne
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions import pairs as norms
from bursar.core.extensions import thresholds as module
from bursar.core.extensions.refine import gathered, rows_of
from bursar.core.queries import LinearMap, Mask, Norm, Product, Stack, Steps, Thresholds, decode, encode
from bursar.errors import LedgerError, QueryError
from harness.maps import Table, domain_of

Numbers = NDArray[np.int64]
quick = settings(max_examples=60, deadline=None)

WAYS = {"dense": {}, "counted": {"LARGEST_DENSE": -1}, "bounded": {"LARGEST_DENSE": -1, "LARGEST_JOINT": 0}}
"""The three ways in which the norms of chosen rows are found, and the limits that lead to each."""


@st.composite
def thresholds(draw: st.DrawFn, *, chosen: bool | None = None) -> Thresholds:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    cells = math.prod(sizes)
    picks = st.lists(st.integers(0, cells - 1), max_size=8).map(lambda rows: np.array(rows, np.int64))
    rows = draw(picks) if (draw(st.booleans()) if chosen is None else chosen) else None
    return Thresholds(tuple("abcd"[: len(sizes)]), tuple(sizes), draw(st.integers(1, len(sizes))), rows)


def matrix(asked: Thresholds) -> Numbers:
    """Def. 2.4, word for word: (rows, cells)."""
    cells = list(itertools.product(*(range(size) for size in asked.sizes)))
    targets = cells if asked.chosen is None else [cells[row] for row in asked.chosen]
    hits = [[sum(a == b for a, b in zip(y, v, strict=True)) >= asked.least for v in cells] for y in targets]
    return np.array(hits, np.int64).reshape(len(targets), len(cells))


def table_of(asked: Thresholds, seed: int) -> Numbers:
    return (np.arange(asked.cells) * (2 * seed + 1) % 7).reshape(asked.sizes)


def vector(found: Norm) -> Numbers:
    return norms.outer(list(found.vectors)).ravel()


def pairs_of(found: Norm) -> Numbers:
    pairs = found.pairs()
    assert pairs is not None
    return pairs


def apart(rows: Numbers) -> Numbers:
    """sum_j |q_j(v) - q_j(w)| for all pairs of cells."""
    return np.abs(rows[:, :, None] - rows[:, None, :]).sum(axis=0)


def limit(patch: pytest.MonkeyPatch, way: str) -> None:
    for name, value in WAYS[way].items():
        patch.setattr(module, name, value)


@quick
@given(thresholds(), st.integers(0, 5))
def test_answers_are_those_of_the_explicit_matrix(asked: Thresholds, seed: int) -> None:
    table = table_of(asked, seed)
    found = asked.apply(lambda attrs: table if attrs == asked.attrs else np.zeros(0, np.int64))
    assert found.tolist() == (matrix(asked) @ table.ravel()).tolist()
    assert (found.dtype, asked.rows, asked.largest()) == (np.int64, len(found), 1)


def test_wrong_coefficients_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Thresholds(("a", "b", "c"), (2, 3, 2), 2)
    table = table_of(asked, 1)
    monkeypatch.setattr(module.math, "comb", lambda n, k: 1)  # every set of columns counted once
    assert asked.apply(lambda attrs: table).tolist() != (matrix(asked) @ table.ravel()).tolist()


@quick
@given(thresholds(chosen=False), st.sampled_from([1, 2]))
def test_all_rows_have_exact_norms_and_pairs(asked: Thresholds, power: int) -> None:
    (found,) = asked.norms(power)
    rows = matrix(asked)
    assert vector(found).tolist() == rows.sum(axis=0).tolist()
    assert np.array_equal(pairs_of(found), apart(rows))
    assert found.largest_pair() == apart(rows).max()
    assert found.largest_pair() <= found.pair_factor * found.largest()
    assert found.columns == asked.attrs


@pytest.mark.thinned(3)
@pytest.mark.parametrize("way", WAYS)
def test_chosen_rows_have_norms_that_are_never_too_low(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, way)

    @quick
    @given(thresholds(chosen=True).filter(lambda asked: asked.rows > 0), st.sampled_from([1, 2]))
    def check(asked: Thresholds, power: int) -> None:
        (found,) = asked.norms(power)
        rows = matrix(asked)
        if way == "bounded":
            assert np.all(vector(found) >= rows.sum(axis=0))
            assert found.largest() <= asked.rows
        else:
            assert vector(found).tolist() == rows.sum(axis=0).tolist()
        if way == "dense":
            assert np.array_equal(pairs_of(found), apart(rows))
        assert np.all(pairs_of(found) >= apart(rows))
        assert pairs_of(found).max() <= found.largest_pair() <= min(asked.rows, found.pair_factor * found.largest())

    check()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("chosen", [False, True])
def test_slices_are_the_norms_of_the_rows_at_a_value(way: str, chosen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, way)
    exact = not chosen or way == "dense"

    @quick
    @given(thresholds(chosen=chosen).filter(lambda asked: asked.rows > 0), st.data())
    def check(asked: Thresholds, data: st.DataObject) -> None:
        (found,) = asked.norms(2)
        axis = data.draw(st.integers(0, len(asked.sizes) - 1))
        rows = matrix(asked).reshape(asked.rows, *asked.sizes)
        listed = found.slices(asked.attrs[axis], asked.sizes[axis])
        left = set(range(asked.sizes[axis]))
        for norm, cells in listed:
            for cell in cells.tolist():
                left.remove(cell)
                own = rows.take(cell, 1 + axis).reshape(asked.rows, -1)
                assert asked.attrs[axis] not in norm.columns
                assert np.all(vector(norm) >= own.sum(axis=0))
                assert np.all(pairs_of(norm) >= apart(own))
                assert norm.largest_pair() >= apart(own).max()
                if exact:
                    assert vector(norm).tolist() == own.sum(axis=0).tolist()
                    assert np.array_equal(pairs_of(norm), apart(own))
        assert all(rows.take(cell, 1 + axis).sum() == 0 for cell in left)

    check()


@pytest.mark.parametrize("way", WAYS)
def test_a_column_that_is_not_asked_about_slices_nothing(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, way)
    for asked in (Thresholds(("a", "b"), (2, 3), 1), Thresholds(("a", "b"), (2, 3), 1, np.array([4, 0]))):
        (found,) = asked.norms(1)
        ((same, cells),) = found.slices("other", 5)
        assert vector(same).tolist() == vector(found.at("other", 3)).tolist() == vector(found).tolist()
        assert cells.tolist() == [0, 1, 2, 3, 4]


def test_partitions_where_no_chosen_row_can_hold_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, "counted")
    asked = Thresholds(("a", "b"), (4, 3), 2, np.array([4, 5]))  # a = 1 in both
    ((own, cells),) = asked.norms(1)[0].slices("a", 4)
    assert cells.tolist() == [1]
    assert vector(own).tolist() == [0, 1, 1]


@quick
@given(thresholds(), st.data())
def test_taken_rows_are_the_rows(asked: Thresholds, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, asked.rows - 1), max_size=5)) if asked.rows else []
    taken = asked.take(rows)
    assert np.array_equal(matrix(taken), matrix(asked)[np.array(rows, np.int64)])
    assert taken.rows == len(rows)


@pytest.mark.parametrize("row", [-1, 6])
def test_rows_that_are_not_there_are_refused(row: int) -> None:
    asked = Thresholds(("a", "b"), (2, 3), 1)
    with pytest.raises(QueryError, match="not there"):
        asked.take([row])
    with pytest.raises(QueryError, match="not there"):
        asked.take([0, 1]).take([2])
    with pytest.raises(QueryError, match="not there"):
        Thresholds(("a", "b"), (2, 3), 1, np.array([row]))


WRONG: list[tuple[Any, Any, Any, str]] = [
    (("a", "a"), (2, 3), 1, "does not fit"),
    (("a", 1), (2, 3), 1, "does not fit"),
    (("a", "b"), (2,), 1, "does not fit"),
    (("a", "b"), (2, 0), 1, "does not fit"),
    (("a", "b"), (2, 3.0), 1, "does not fit"),
    (("a", "b"), (2, 3), 0, "at least one"),
    (("a", "b"), (2, 3), 3, "at least one"),
    (("a", "b"), (2, 3), True, "at least one"),
    ((), (), 0, "at least one"),
    (tuple("abcdefghijk"), (2,) * 11, 3, "over 11 columns; 10 are possible"),
    (("a", "b"), (2**13, 2**14), 1, "a and b have 134217728 joint cells; 67108864 are possible"),
]


@pytest.mark.parametrize(("attrs", "sizes", "least", "why"), WRONG)
def test_what_makes_no_sense_is_refused(attrs: Any, sizes: Any, least: Any, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        Thresholds(attrs, sizes, least)


@pytest.mark.parametrize("chosen", [np.array([0.0]), np.array([[0]]), np.array([0], np.int32)])
def test_chosen_rows_are_whole_numbers_in_a_list(chosen: Any) -> None:
    with pytest.raises(QueryError, match="not there"):
        Thresholds(("a", "b"), (2, 3), 1, chosen)


def test_chosen_rows_cannot_be_changed_afterwards() -> None:
    rows = np.array([1, 2])
    asked = Thresholds(("a", "b"), (2, 3), 1, rows)
    rows[0] = 5
    assert asked.chosen is not None
    assert asked.chosen.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        asked.chosen[0] = 3


# -- what a pair of people can lose ------------------------------------------------------------------------------------

WIDE = (20, 30, 40)  # more joint cells than all pairs are compared for


def price(asked: LinearMap, neighbours: Neighbours, sizes: tuple[int, ...] = WIDE) -> float:
    """What a measurement with noise of scale 1 costs, in prices of one number."""
    domain = domain_of(**dict(zip("abcd", sizes, strict=False)))
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=1.0)

    def new_profile() -> AddRemove | ReplaceOne:
        around = AddRemove(domain)
        return ReplaceOne(domain, around) if neighbours is Neighbours.REPLACE_ONE else around

    book = Book(Accountant(mode=Mode.CONCENTRATED, unit=Unit(neighbours=neighbours)), new_profile)
    book.add(Measured(strategy=asked, noise=noise, version=1))
    return book.spent() / noise.concentrated_units()


@pytest.mark.parametrize("way", WAYS)
def test_a_marginal_costs_two_and_a_row_one_where_a_person_is_replaced(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, way)
    marginal = Thresholds(("a", "b", "c"), WIDE, 3)
    some = marginal.take([0, 77, 23_999])
    for neighbours, whole, three, one in ((Neighbours.REPLACE_ONE, 2, 2, 1), (Neighbours.ADD_REMOVE, 1, 1, 1)):
        assert price(marginal, neighbours) == whole
        assert price(some, neighbours) == three
        assert price(marginal.take([77]), neighbours) == one
        assert price(Thresholds(("a", "b", "c"), WIDE, 1, np.array([77])), neighbours) == one


def test_a_marginal_costs_what_the_same_product_costs() -> None:
    masks = (Mask((name,), (size,), Steps.identity(size)) for name, size in zip("abc", WIDE, strict=True))
    product, marginal = Product(tuple(masks)), Thresholds(("a", "b", "c"), WIDE, 3)
    for neighbours in Neighbours:
        assert price(product, neighbours) == price(marginal, neighbours)


def test_all_thresholds_cost_what_the_worst_pair_loses() -> None:
    """2-of-3: a cell is hit by 1 + 19 + 29 + 39 rows. 1-of-2: two cells that agree nowhere share 2 of their rows."""
    two = Thresholds(("a", "b", "c"), WIDE, 2)
    assert price(two, Neighbours.ADD_REMOVE) == 88
    assert price(two, Neighbours.REPLACE_ONE) == 2 * 88
    one = Thresholds(("a", "b"), (50, 60), 1)
    assert price(one, Neighbours.ADD_REMOVE, (50, 60)) == 50 + 60 - 1
    assert price(one, Neighbours.REPLACE_ONE, (50, 60)) == 2 * (50 + 60 - 1 - 2)


def test_rows_that_meet_in_a_cell_cost_no_more_than_one_each() -> None:
    met = Thresholds(("a", "b", "c"), WIDE, 1).take([0, 1, 2])  # a = 0 and b = 0 in all three
    assert price(met, Neighbours.ADD_REMOVE) == price(met, Neighbours.REPLACE_ONE) == 3


def test_more_cells_than_all_pairs_are_compared_for_have_no_pairs() -> None:
    asked = Thresholds(("a", "b", "c"), WIDE, 2)
    assert asked.norms(1)[0].pairs() is None


def test_large_tables_are_bounded_without_being_read() -> None:
    """More than 2^20 joint cells: distinct rows of a marginal still cost 1, others at most one each."""
    huge = (2**9, 2**9, 2**8)
    marginal = Thresholds(("a", "b", "c"), huge, 3, np.arange(1000))
    assert price(marginal, Neighbours.ADD_REMOVE, huge) == 1
    assert price(marginal, Neighbours.REPLACE_ONE, huge) == 2
    twice = Thresholds(("a", "b", "c"), huge, 3, np.array([5, 5, 9]))
    assert price(twice, Neighbours.ADD_REMOVE, huge) == 2
    assert price(twice, Neighbours.REPLACE_ONE, huge) == 3
    assert price(Thresholds(("a", "b", "c"), huge, 1, np.arange(7)), Neighbours.REPLACE_ONE, huge) == 7


# -- beside other maps -------------------------------------------------------------------------------------------------

DOMAIN = domain_of(a=2, b=3, c=2)
EYE = Product((Mask(("b",), (3,), Steps.identity(3)),))
TWO = Thresholds(("a", "b", "c"), (2, 3, 2), 2)
SOME = Thresholds(("c", "a"), (2, 2), 1, np.array([3, 0, 3]))
STACK = Stack((TWO, EYE, SOME))
TABLE = Table(DOMAIN, np.arange(12) ** 2)


def test_stacks_take_rows_of_thresholds_together() -> None:
    answers = STACK.apply(TABLE)
    assert STACK.rows == 12 + 3 + 3
    picks = [17, 16, 0, 5, 11, 13, 12, 1]
    taken = STACK.take(picks)
    assert taken.apply(TABLE).tolist() == answers[picks].tolist()
    assert isinstance(taken, Stack)
    assert [part.rows for part in taken.parts] == [2, 3, 1, 1, 1]
    assert isinstance(STACK.take([3, 2, 1]), Thresholds)


@pytest.mark.parametrize("take", [rows_of, gathered])
def test_refined_rows_of_thresholds_stay_together(take: Any) -> None:
    picks = np.array([1, 2, 12, 13, 14, 16])
    taken = take(STACK, picks)
    assert taken.apply(TABLE).tolist() == STACK.apply(TABLE)[picks].tolist()
    assert [part.rows for part in taken.parts] == [2, 3, 1]
    assert take(TWO, np.array([4, 7])).apply(TABLE).tolist() == TWO.apply(TABLE)[[4, 7]].tolist()


@pytest.mark.parametrize("asked", [TWO, SOME, STACK, Stack((SOME,)), SOME.take([])])
def test_bytes_give_the_map_back(asked: LinearMap) -> None:
    again = decode(encode(asked))
    assert type(again) is type(asked)
    assert (encode(again), again.digest) == (encode(asked), asked.digest)
    assert again.apply(TABLE).tolist() == asked.apply(TABLE).tolist()


def test_different_thresholds_have_different_digests() -> None:
    maps = [TWO, Thresholds(TWO.attrs, TWO.sizes, 1), TWO.take([0]), TWO.take([1]), TWO.take([1, 1]), SOME, STACK]
    maps += [Stack((TWO,)), Thresholds(("b", "a", "c"), (3, 2, 2), 2)]
    assert len({asked.digest for asked in maps}) == len(maps)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"chosen":3', b'"chosen":2'),
        (b'"chosen":3', b'"chosen":4'),
        (b'"chosen":3', b'"chosen":0'),
        (b'"least":1', b'"least":3'),
        (b'"sizes":[2,2]', b'"sizes":[1,2]'),
        (b'"kind":"thresholds"', b'"kind":"threshold_"'),
    ],
)
def test_bytes_of_no_thresholds_are_refused(old: bytes, new: bytes) -> None:
    body = encode(SOME)
    assert old in body
    with pytest.raises(LedgerError):
        decode(body.replace(old, new))


def test_one_row_of_a_grid_too_large_to_write_out_is_priced() -> None:
    """Few numbers altogether, yet more joint cells than a mask may have."""
    row = Thresholds(("a", "b"), (2000, 1000), 2).take([7])
    (norm,) = row.norms(2)
    assert norm.largest() == norm.largest_pair() == 1
