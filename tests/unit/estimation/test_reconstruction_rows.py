"""Rows of a reconstruction in the space behind them: what was handed out stays as it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.queries import Product
from bursar.estimation.gaussian_state import GaussianState
from bursar.estimation.least_squares import (
    EXACT_TOTAL,
    FEWEST_AT_ONCE,
    Block,
    Reconstruction,
    RoomForRows,
    RowsOfProducts,
    count,
)
from bursar.estimation.turned_columns import StateInParts
from bursar.tails import single_tail
from harness.maps import domain_of, mask_of


def test_rows_are_added_in_place_and_older_ones_stay() -> None:
    rng, room = np.random.default_rng(0), RoomForRows()
    rows, expected, moved = np.zeros((0, 3)), np.zeros((0, 3)), 0
    handed: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(200):
        more = rng.normal(size=(int(rng.integers(0, 4)), 3))
        before, rows = rows, room.append("rows", rows, more)
        moved += before.base is not rows.base
        expected = np.concatenate([expected, more])
        handed.append((rows, expected))
    assert all(np.array_equal(old, truth) for old, truth in handed)
    assert moved < 24, "copied only when the space has grown by a quarter"


def test_two_that_began_alike_go_on_by_themselves() -> None:
    ours, theirs = RoomForRows(), RoomForRows()
    start = ours.append("rows", np.zeros((0, 2)), np.ones((3, 2)))
    twin = theirs.append("rows", start, np.full((1, 2), 7.0))
    on = ours.append("rows", start, np.full((1, 2), 5.0))
    assert twin[3].tolist() == [7, 7]
    assert on[3].tolist() == [5, 5]
    wider = ours.append("rows", on[:, [0, 0, 1]], np.zeros((1, 3)))
    assert wider.shape == (5, 3)
    assert on.shape == (4, 2)


DOMAIN = domain_of(a=12, b=3)


def test_all_arrays_of_a_reconstruction_grow_in_place() -> None:
    """Measurements that come one by one: arrays move when their space has grown by a quarter, not with each of them."""
    reconstruction, moved = Reconstruction(DOMAIN, ("a", "b")), 0
    for block in blocks(150):
        before = reconstruction.copy()
        assert reconstruction.add(block)
        moved += reconstruction.values.base is not before.values.base
        moved += reconstruction.precisions.base is not before.precisions.base
        moved += reconstruction.origins.base is not before.origins.base
        moved += reconstruction.noises.which.base is not before.noises.which.base
        assert len(before.values) == len(before.noises) == len(reconstruction.values) - block.product.rows
    assert 4 <= moved <= 4 * 20


def blocks(number: int, seed: int = 0) -> list[Block]:
    """Ranges of one column by every value, or none, of the other; of all lengths, with noise of all sizes."""
    rng = np.random.default_rng(seed)
    made: list[Block] = []
    for position in range(1, number + 1):
        low, high = sorted(rng.choice(13, 2, replace=False))
        row = ((low <= np.arange(12)) & (np.arange(12) < high)).astype(int)[None]
        masks = (mask_of(DOMAIN, ("a",), row), *([mask_of(DOMAIN, ("b",), np.eye(3, dtype=int))] * (position % 2)))
        noise = Noise(kind=NoiseKind.LAPLACE, scale=float(rng.choice([1.0, 7.5, 300.0])))
        product = Product(masks)
        made.append(Block(product, rng.integers(0, 99, product.rows), noise, position))
    return made


def test_many_measurements_at_once_are_measurements_one_after_the_other() -> None:
    some = blocks(80)
    some.insert(40, Block(Product(()), np.array([500]), EXACT_TOTAL, 99))
    whole, single = Reconstruction(DOMAIN, ("a", "b")), Reconstruction(DOMAIN, ("a", "b"))
    assert len(some) >= FEWEST_AT_ONCE
    assert whole.add_all(some) == [block for block in some if not single.add(block)] == []
    assert len(whole.values) == len(single.values)
    assert {name: count(labels) for name, labels in whole.classes.items()} == {"a": 12, "b": 3}
    assert sorted(map(tuple, whole.origins.tolist())) == sorted(map(tuple, single.origins.tolist()))
    assert all(np.array_equal(whole.question_classes[name], single.question_classes[name]) for name in ("a", "b"))
    assert whole.coarsest == single.coarsest
    for block in some:
        ours, theirs = whole.answer(block.product), single.answer(block.product)
        assert ours is not None
        assert theirs is not None
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-7, atol=1e-6)
        np.testing.assert_allclose(ours.law.mean_square(), theirs.law.mean_square(), rtol=1e-7)


def test_of_many_measurements_those_that_do_not_fit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.estimation.least_squares.MOST_MERGED_CELLS", 20)
    some = blocks(60)
    whole, single = Reconstruction(DOMAIN, ("a", "b")), Reconstruction(DOMAIN, ("a", "b"))
    left_out = [block for block in some if not single.add(block)]
    assert whole.add_all(some) == left_out
    assert 0 < len(left_out) < len(some)


def test_what_is_measured_again_takes_no_more_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state grows with different rows, whatever the number of records; noise of each record still counts."""
    taken: list[int] = []
    take_all = GaussianState.take_all

    def counted(self: GaussianState, rows: np.ndarray, values: np.ndarray, variances: np.ndarray) -> None:
        taken.append(len(rows))
        take_all(self, rows, values, variances)

    monkeypatch.setattr(GaussianState, "take_all", counted)
    rng, once = np.random.default_rng(1), blocks(40)
    again = [
        replace(block, values=rng.integers(0, 99, block.product.rows), noise=noise, position=100 * (place + 1) + at)
        for at, noise in enumerate(Noise(kind=NoiseKind.LAPLACE, scale=scale) for scale in (2.0, 9.0, 40.0))
        for place, block in enumerate(once)
    ]
    whole, single = Reconstruction(DOMAIN, ("a", "b")), Reconstruction(DOMAIN, ("a", "b"))
    whole.add_all(again)
    for block in again:
        single.add(block)
    monkeypatch.undo()
    assert 0 < sum(taken) <= sum(product.rows for product in {b.product.digest: b.product for b in again}.values())
    for block in once:
        ours, theirs = whole.answer(block.product), single.answer(block.product)
        assert ours is not None
        assert theirs is not None
        np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-7, atol=1e-6)
        np.testing.assert_allclose(ours.law.variances, theirs.law.variances, rtol=1e-7)  # type: ignore[attr-defined]


@pytest.mark.parametrize("numbers", [200, 1000, 3000])
def test_what_is_measured_again_is_left_out_where_there_is_no_room(
    numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bursar.estimation.least_squares.MOST_ROW_NUMBERS", numbers)
    some = blocks(10) * 8
    whole, single = Reconstruction(DOMAIN, ("a", "b")), Reconstruction(DOMAIN, ("a", "b"))
    left_out = [block for block in some if not single.add(block)]
    assert whole.add_all(some) == left_out
    assert 0 < len(left_out) < len(some)


def test_rows_are_split_when_they_are_looked_at() -> None:
    first, *others = blocks(12, seed=4)
    known = Reconstruction(DOMAIN, ("a", "b"))
    known.add(first)
    at_every_split = known.copy()
    for block in others:
        for each in (known, at_every_split):
            each.split_by(block.product)
        np.testing.assert_allclose(at_every_split.rows, at_every_split.coordinates(first.product))
    twin = known.copy()
    np.testing.assert_allclose(known.rows, at_every_split.rows)
    assert np.array_equal(twin.rows, known.rows)


def test_rows_of_many_measurements_are_worked_out_when_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """And once for all who share them; rows that come later, and splits, stand behind them in their order."""
    some, worked_out = blocks(80), []
    by_product = RowsOfProducts.by_product.func  # type: ignore[attr-defined]

    def counted(rows: RowsOfProducts) -> dict[str, np.ndarray]:
        worked_out.append(len(rows.products))
        return dict(by_product(rows))

    monkeypatch.setattr(RowsOfProducts.by_product, "func", counted)
    known, single = Reconstruction(DOMAIN, ("a", "b")), Reconstruction(DOMAIN, ("a", "b"))
    known.add_all(some[:40])
    for block in some:
        single.add(block)
    assert isinstance(known.told, StateInParts)
    assert known.bytes >= known.told.bytes + len(known.values) * known.roots.nbytes
    assert worked_out == []
    twin, split = known.copy(), known.copy()
    np.testing.assert_allclose(known.rows, single.rows[: len(known.values)])
    assert np.array_equal(twin.rows, known.rows)
    assert worked_out == [40]
    split.split_by(some[60].product)
    split.add(some[60])
    expected = [split.coordinates(block.product) for block in (*some[:40], some[60])]
    np.testing.assert_allclose(split.rows, np.concatenate(expected))
    twin.add_all(some[40:])
    np.testing.assert_allclose(twin.rows, single.rows)
    assert worked_out == [40, 40]


def test_what_is_too_coarse_is_seen_before_rows_are_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Reconstruction(DOMAIN, ("a", "b"))
    known.add_all(blocks(80))
    query = blocks(3)[2].product
    answer = known.answer(query)
    assert answer is not None
    spread = math.sqrt(max(answer.law.variances))  # type: ignore[attr-defined]
    assert not known.too_coarse(query, spread / 2)  # so few rows are weighed
    monkeypatch.setattr("bursar.estimation.least_squares.MANY_ROW_NUMBERS", 0)
    assert known.too_coarse(query, 0.99 * spread)
    assert not known.too_coarse(query, 1.01 * spread)
    assert answer.law.tail(0.99 * spread, 0.05) == 1.0
    assert not Reconstruction(DOMAIN, ("a", "b")).too_coarse(query, 1e-3)


def beside_a_histogram(scale: float) -> Reconstruction:
    """Two ranges by every value with noise of scale 6, and histograms of all cells with noise of another scale."""
    known, eye = Reconstruction(DOMAIN, ("a", "b")), np.eye(3, dtype=int)
    everything = Product((mask_of(DOMAIN, ("a",), np.eye(12, dtype=int)), mask_of(DOMAIN, ("b",), eye)))
    for position in range(1, 11):
        known.add(Block(everything, np.zeros(36, np.int64), Noise(kind=NoiseKind.LAPLACE, scale=scale), position))
    known.add(Block(RANGES, np.arange(6), Noise(kind=NoiseKind.LAPLACE, scale=6.0), 11))
    return known


RANGES = Product(
    (mask_of(DOMAIN, ("a",), [[1] * 5 + [0] * 7, [0] * 5 + [1] * 7]), mask_of(DOMAIN, ("b",), np.eye(3, dtype=int)))
)
"""Neighbours, so that what is known of both together says something of each."""


def test_what_is_worth_nothing_beside_a_count_does_not_take_its_error_off_the_lattice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = 6 * single_tail(Noise(kind=NoiseKind.LAPLACE, scale=6.0), 30.0)
    answer = beside_a_histogram(2.0**20).answer(RANGES)
    assert answer is not None
    assert answer.values.tolist() == [0, 1, 2, 3, 4, 5]
    assert answer.law.tail(30.0, 0.0) == pytest.approx(alone, rel=1e-6)
    monkeypatch.setattr("bursar.estimation.least_squares.NEGLIGIBLE_VARIANCE", -1.0)
    best = beside_a_histogram(2.0**20).answer(RANGES)
    assert best is not None
    assert best.law.tail(30.0, 0.0) > 1.1 * alone, "a whole step more, by weights of 10^-11"


def test_what_is_worth_a_little_is_weighed() -> None:
    answer = beside_a_histogram(600.0).answer(RANGES)
    assert answer is not None
    variances = answer.law.variances  # type: ignore[attr-defined]
    assert max(variances) < (1 - 1e-5) * Noise(kind=NoiseKind.LAPLACE, scale=6.0).variance()
