"""Products of masks solved along the directions that their columns share: the same least squares, in smaller parts."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.queries import Mask, Product
from bursar.estimation.gaussian_state import GaussianState
from bursar.estimation.least_squares import Block, Reconstruction
from bursar.estimation.turned_columns import CommonEigenvectors, StateInParts
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(sex=2, age=12, region=3)
COLUMNS = ("sex", "age", "region")


def every(name: str) -> Mask:
    size = DOMAIN[name].size
    return mask_of(DOMAIN, (name,), np.eye(size, dtype=int))


def blocks(number: int, *others: tuple[Mask, ...]) -> list[Block]:
    """Ranges of ages, each by one of the choices of other masks after the other; the age comes between them."""
    rng = np.random.default_rng(5)
    made: list[Block] = []
    for position in range(1, number + 1):
        low, high = sorted(rng.choice(11, 2, replace=False))  # so nothing is said about the last ages
        row = ((low <= np.arange(12)) & (np.arange(12) < high)).astype(int)[None]
        before, *after = (*others[position % len(others)], None)
        masks = [mask for mask in (before, mask_of(DOMAIN, ("age",), row), *after) if mask is not None]
        noise = Noise(kind=NoiseKind.LAPLACE, scale=float(rng.choice([1.0, 7.5, 300.0])))
        product = Product(tuple(masks))
        made.append(Block(product, rng.integers(0, 99, product.rows), noise, position))
    return made


def taken(some: list[Block], monkeypatch: pytest.MonkeyPatch) -> tuple[Reconstruction, list[int]]:
    """All blocks at once, and over how many cells each problem was that was solved for it."""
    cells: list[int] = []
    take_all = GaussianState.take_all

    def counted(self: GaussianState, rows: np.ndarray, values: np.ndarray, variances: np.ndarray) -> None:
        cells.append(len(self.cells))
        take_all(self, rows, values, variances)

    monkeypatch.setattr(GaussianState, "take_all", counted)
    reconstruction = Reconstruction(DOMAIN, COLUMNS)
    assert reconstruction.add_all(some) == []
    return reconstruction, cells


def assert_same(ours: Reconstruction, theirs: Reconstruction, products: list[Product]) -> None:
    assert ours.state.rank == theirs.state.rank
    for product in products:
        left, right = ours.answer(product), theirs.answer(product)
        assert (left is None) == (right is None)
        if left is not None and right is not None:
            np.testing.assert_allclose(left.values, right.values, rtol=1e-7, atol=1e-6)
            np.testing.assert_allclose(left.law.mean_square(), right.law.mean_square(), rtol=1e-7)
    for name in ("span", "information", "covariance", "estimate"):
        mine, reference = getattr(ours.state, name), getattr(theirs.state, name)
        np.testing.assert_allclose(mine, reference, rtol=1e-6, atol=1e-6 * np.abs(reference).max())


def test_groups_are_solved_apart_and_each_problem_is_of_the_ages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    some = blocks(90, (), (every("sex"),), (every("region"), every("sex")), (every("region"),))
    single = Reconstruction(DOMAIN, COLUMNS)
    for block in some:
        single.add(block)
    whole, cells = taken(some, monkeypatch)
    assert cells == [11] * 4, "of 2 x 3 directions those that measurements treat alike are solved once"
    assert len(whole.state.cells) == 11 * 2 * 3
    north = mask_of(DOMAIN, ("region",), [[1, 0, 0]])
    young, old = (mask_of(DOMAIN, ("age",), [row]) for row in ([1] * 5 + [0] * 7, [0] * 11 + [1]))
    others = [Product((north, young)), Product((young,)), Product((old,)), Product(())]
    assert_same(whole, single, [*(block.product for block in some), *others])


def test_a_column_with_conditions_is_left_to_the_ages(monkeypatch: pytest.MonkeyPatch) -> None:
    north = mask_of(DOMAIN, ("region",), [[1, 0, 0]])
    some = blocks(90, (every("region"), every("sex")), (north, every("sex")), (every("sex"),))
    single = Reconstruction(DOMAIN, COLUMNS)
    for block in some:
        single.add(block)
    whole, cells = taken(some, monkeypatch)
    assert set(cells) == {11 * 3}
    assert_same(whole, single, [block.product for block in some])


def test_masks_over_two_columns_are_taken_in_together(monkeypatch: pytest.MonkeyPatch) -> None:
    both = mask_of(DOMAIN, ("sex", "region"), np.eye(6, dtype=int))
    _, cells = taken(blocks(40, (both,), (every("sex"),)), monkeypatch)
    assert cells == [11 * 6]


def test_eigenvectors_in_common() -> None:
    masks = {b"each": np.eye(3), b"all": np.ones((1, 3)), b"twice": np.vstack([np.eye(3), np.eye(3)])}
    turn = CommonEigenvectors.of(masks)
    assert turn is not None
    np.testing.assert_allclose(turn.ways @ turn.ways.T, np.eye(3), atol=1e-12)
    for name, factor in masks.items():
        np.testing.assert_allclose((turn.turns[name] * turn.sizes[name]) @ turn.ways, factor, atol=1e-12)
    assert np.count_nonzero(turn.sizes[b"all"]) == 1


@pytest.mark.parametrize(
    "masks",
    [
        {b"first": np.array([[1.0, 0, 0]]), b"all": np.ones((1, 3))},  # they do not commute
        {b"nothing": np.zeros((1, 3)), b"all": np.ones((1, 3))},
        {b"each": np.eye(3), b"nearly": np.diag([1.0, 1.0, 1e-5])},  # whether it tells the last one is in doubt
        {bytes([n]): (n + 1) * np.eye(2) for n in range(9)},
    ],
)
def test_columns_that_are_not_turned(masks: dict[bytes, np.ndarray]) -> None:
    assert CommonEigenvectors.of(masks) is None


def test_a_look_at_the_parts_tells_what_all_of_them_together_would(monkeypatch: pytest.MonkeyPatch) -> None:
    some = blocks(90, (), (every("sex"),), (every("region"), every("sex")), (every("region"),))
    whole, _ = taken(some, monkeypatch)
    monkeypatch.setattr("bursar.estimation.least_squares.MANY_ROW_NUMBERS", 0)
    parts = whole.told
    assert isinstance(parts, StateInParts)
    queries = np.concatenate([whole.coordinates(block.product) for block in some[:8]])
    outside = np.random.default_rng(0).normal(size=queries.shape)
    hopeless = [whole.too_coarse(block.product, 0.1) for block in some]
    assert whole.told is parts, "nothing was put together for that"
    together = parts.together
    assert 0 < together.rank == parts.rank < len(parts.cells)
    assert parts.bytes == together.bytes
    assert parts.spans(queries)
    assert together.spans(queries)
    for query in (outside, queries + 1e-6 * outside):
        assert not parts.spans(query)
        assert not together.spans(query)
    for query in (queries, outside):
        np.testing.assert_allclose(parts.variances(query), together.variances(query), rtol=1e-9)
    twin = whole.copy()
    assert twin.told is parts
    assert [twin.state.estimate.tolist(), hopeless] == [together.estimate.tolist(), [True] * len(some)]
    twin.add(some[0])
    assert twin.told is not parts
    assert np.array_equal(parts.together.covariance, together.covariance), "whoever goes on has a state of its own"
    assert not np.array_equal(twin.state.covariance, together.covariance)


def test_parts_that_determine_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    ages = mask_of(DOMAIN, ("age",), np.eye(12, dtype=int))
    noise = Noise(kind=NoiseKind.LAPLACE, scale=2.0)
    some = [
        Block(product, np.arange(product.rows), noise, position)
        for position, product in enumerate(20 * [Product((every("sex"), ages)), Product((ages, every("region")))], 1)
    ]
    joint = Product((every("sex"), ages, every("region")))
    whole, _ = taken([*some, Block(joint, np.arange(72), noise, 99)], monkeypatch)
    assert isinstance(whole.told, StateInParts)
    assert whole.told.spans(np.random.default_rng(0).normal(size=(3, 72)))
    assert whole.told.together.complete


def test_rows_of_zeros_by_each_value_of_a_column_teach_nothing() -> None:
    nobody = Product((every("sex"), mask_of(DOMAIN, ("age",), np.zeros((1, 12), int))))
    noise = Noise(kind=NoiseKind.LAPLACE, scale=1.0)
    alone, beside = Reconstruction(DOMAIN, COLUMNS), Reconstruction(DOMAIN, COLUMNS)
    assert alone.add_all(blocks(8, ())) == []
    assert beside.add_all([*blocks(8, ()), Block(nobody, np.zeros(2, int), noise, 9)]) == []
    assert isinstance(beside.told, StateInParts)
    assert 0 in [part.rank for part in beside.told.parts.values()]
    assert beside.state.rank == alone.state.rank > 0
