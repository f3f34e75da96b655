"""Families of questions, shares of the failure probability, and the bars that follow."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.core.queries import Mask, Product, Steps
from bursar.estimation.estimate import IndependentRows, WeightedRows, any_of, meets
from bursar.estimation.simultaneous import EveryQuestion, Family, cuts_of, share
from bursar.goal import Goal, GoalKind
from bursar.tails import half_width, single_tail

DOMAIN = Domain(
    (
        IntegerRange(name="x", lower=0, upper=3, null=0),
        Categories(name="c", values=("a", "b", "d"), outside=0, null=0),
        Categories(name="z", values=("p", "q"), outside=0, null=0),
    )
)
SIZES = {name: DOMAIN[name].size for name in DOMAIN.names}
NOISE = Noise(kind=NoiseKind.LAPLACE, scale=20.0)


def ranges(name: str, *pairs: tuple[int, int]) -> Mask:
    lows, highs = zip(*pairs, strict=True)
    return Mask((name,), (SIZES[name],), Steps.ranges(lows, highs, SIZES[name]))


def dense(product: Product) -> np.ndarray:
    """The rows of a product over the joint cells of all columns."""
    rows = []
    for row in range(product.rows):
        masks = {mask.attrs[0]: mask for mask in product.row(row).masks}
        values = [
            masks[name].steps.at_cells(np.arange(size))[0] if name in masks else np.ones(size, np.int64)
            for name, size in SIZES.items()
        ]
        rows.append(np.einsum("i,j,k->ijk", *values).ravel())
    return np.array(rows)


def boxes(columns: tuple[str, ...]) -> list[np.ndarray]:
    """All boxes over some columns, over the joint cells of all columns."""
    sides = []
    for name, size in SIZES.items():
        pairs = itertools.combinations(range(size + 1), 2) if name in columns else [(0, size)]
        sides.append([np.isin(np.arange(size), np.arange(low, high)).astype(int) for low, high in pairs])
    return [np.einsum("i,j,k->ijk", *side).ravel() for side in itertools.product(*sides)]


one_range = st.tuples(st.integers(0, 3), st.integers(1, 4)).filter(lambda pair: pair[0] < pair[1])


@st.composite
def strategies(draw: st.DrawFn) -> list[Product]:
    """A few products of ranges over some of the columns."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        names = draw(st.lists(st.sampled_from(DOMAIN.names), min_size=1, max_size=2, unique=True))
        masks = []
        for name in DOMAIN.ordered(names):
            pairs = draw(st.lists(one_range, max_size=3))
            masks.append(ranges(name, (0, 1), *(pair for pair in pairs if pair[1] <= SIZES[name])))
        made.append(Product(tuple(masks)))
    return made


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sets", [(("x", "c"),), (("x",), ("c", "z")), (("x", "c", "z"),), (("z",),)])
@given(products=strategies())
def test_no_more_questions_follow_than_are_counted(sets: tuple[tuple[str, ...], ...], products: list[Product]) -> None:
    family = Family(domain=DOMAIN, sets=sets)
    rows = np.concatenate([dense(product) for product in products])
    rank = np.linalg.matrix_rank(rows)
    every = {box.tobytes(): box for columns in sets for box in boxes(columns)}
    follow = [box for box in every.values() if np.linalg.matrix_rank(np.vstack([rows, box])) == rank]
    assert len(follow) <= family.determined(products)


def test_a_histogram_determines_all_ranges_of_its_column() -> None:
    family = Family(domain=DOMAIN, sets=(("x", "c"), ("z",)))
    histogram = Product((Mask(("x",), (4,), Steps.identity(4)),))
    assert family.determined([histogram]) == 10
    both = Product((*histogram.masks, Mask(("c",), (3,), Steps.identity(3))))
    assert family.determined([both]) == 60 == family.questions(("x", "c"))
    assert family.determined([both, Product((Mask(("z",), (2,), Steps.identity(2)),))]) == 63


def test_a_single_row_determines_itself() -> None:
    family = Family(domain=DOMAIN, sets=(("x",),))
    assert family.determined([Product((ranges("x", (1, 2)),))]) == 1
    assert family.determined([Product(())]) == 1


def test_joint_masks_are_taken_to_change_everywhere() -> None:
    joint = Product((Mask(("x", "c"), (4, 3), Steps.ranges([0, 3], [2, 5], 12)),))
    assert {name: len(cuts) for name, cuts in cuts_of([joint]).items()} == {"x": 4, "c": 3}


def test_who_belongs_to_a_family() -> None:
    family = Family(domain=DOMAIN, sets=(("x",), ("x", "c"), ("z",)))
    x, c, z = ranges("x", (1, 3)), ranges("c", (0, 2)), ranges("z", (1, 2))
    whole = ranges("z", (0, 2))
    for masks in ((), (x,), (c,), (x, c), (z,), (x, c, whole)):
        assert family.uneven(Product(masks)) == ()
        assert family.beyond(Product(masks)) == ()
    assert family.beyond(Product((x, z))) == ("z",)
    assert family.beyond(Product((x, c, z))) == ("z",)
    gap = Mask(("x",), (4,), Steps.dense([[1, 0, 1, 0]]))
    twice = Mask(("x",), (4,), Steps.dense([[2, 2, 0, 0]]))
    joint = Mask(("x", "c"), (4, 3), Steps.ranges([0], [2], 12))
    assert [family.uneven(Product((mask,))) for mask in (gap, twice, joint)] == [("x",), ("x",), ("x", "c")]


def test_shares_add_up_to_one_and_no_more() -> None:
    shares = [share(number) for number in range(1, 100_001)]
    assert 0.99999 < math.fsum(shares) < 1
    assert shares == sorted(shares, reverse=True)


@given(st.integers(1, 500), st.floats(1.0, 1e12), st.floats(1e-6, 0.5))
def test_every_row_gets_the_same_bar_whoever_is_asked_with_it(rows: int, times: float, beta: float) -> None:
    alone = half_width(NOISE, beta / times)
    independent = EveryQuestion(law=IndependentRows(noise=NOISE, rows=rows), rows=rows, times=times)
    width = independent.half_widths(beta)
    assert len(width) == rows
    assert np.all((alone <= width) & (width <= alone + 1))
    assert single_tail(NOISE, width[0] + 1) <= beta / times


@pytest.mark.parametrize("kind", list(NoiseKind))
def test_sums_of_rows_fail_no_more_than_their_share(kind: NoiseKind) -> None:
    noise = Noise(kind=kind, scale=20.0)
    weights = np.array([[1.0, 1.0, 0.0], [0.5, 0.5, 0.5], [0.0, 0.0, 1.0]])
    law = EveryQuestion(law=WeightedRows(weights=weights, noises=(noise,) * 3), rows=3, times=200.0)
    widths = law.half_widths(0.05)
    for row, width in zip(weights, widths, strict=True):
        alone = WeightedRows(weights=row[None], noises=(noise,) * 3)
        assert alone.tail(width * (1 + 1e-9) + 1e-9, 0.05 / 200) <= 0.05 / 200
        assert alone.tail(0.97 * width, 0.05 / 200) > 0.05 / 200
    assert law.mean_square() == law.law.mean_square()


def test_the_tail_and_the_bars_agree() -> None:
    law = EveryQuestion(law=IndependentRows(noise=NOISE, rows=7), rows=7, times=40.0)
    width = float(law.half_widths(0.05)[0])
    for amount, kept in ((width, True), (width - 1, False), (1.0, False)):
        assert meets(law, Goal(kind=GoalKind.ERROR, amount=amount, confidence=0.95)) is kept
    assert any_of(single_tail(NOISE, width + 1), 7) <= 7 * 0.05 / 40
