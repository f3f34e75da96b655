"""What each verb is charged is never less than what it tells, worked out from tables that really differ by a row.

The products have factors without columns among their masks: several, equal ones, large ones, zeros and empty ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st

from bursar.core.accounting import (
    Accountant,
    AddRemove,
    Book,
    Event,
    Measured,
    Mode,
    Noise,
    NoiseKind,
    Opened,
    Profile,
    Refined,
    ReplaceOne,
    Selected,
)
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions import select, sparse_vector
from bursar.core.queries import LinearMap, Mask, Norm, Product, Stack, Steps
from bursar.errors import BudgetError, QueryError
from harness.cases import examples
from harness.divergences import divergence
from harness.maps import columns_matrix, domain_of, mask_of, masks

DOMAIN = domain_of(a=3, b=2)
ORDER = 4
MILLION = 10**6
SCALE = 4.0
ROUNDING = 1e-9
"""Of what is worked out in floating point."""

NEIGHBOURS = pytest.mark.parametrize("neighbours", list(Neighbours))
MODES = pytest.mark.parametrize("mode", list(Mode))
SHAPES: tuple[tuple[tuple[str, ...], ...], ...] = ((), (("a",),), (("b",),), (("b",), ("a",)), (("b", "a"),))
small = st.sampled_from((1, 1, 0, 2, -1, -3))
large = st.sampled_from((1, 1, 0, 2, -1, MILLION))
weights = st.sampled_from((1, 1, 0, 2, 3))


def bare(*rows: int) -> Mask:
    return Mask((), (), Steps.dense(np.array(rows, np.int64).reshape(-1, 1)))


EMPTY = bare()
"""A factor without rows: a product with it asks nothing."""


@st.composite
def factored(draw: st.DrawFn, values: st.SearchStrategy[int], one_row: bool = False) -> Product:
    """A product with up to four factors that have no columns, anywhere among those that have some."""
    found = [draw(masks(DOMAIN, names, values)) for names in draw(st.sampled_from(SHAPES))]
    numbers = draw(st.lists(masks(DOMAIN, (), values), max_size=3))
    numbers += numbers[:1] if draw(st.booleans()) else []
    for number in numbers:
        found.insert(draw(st.integers(0, len(found))), number)
    if not one_row and draw(st.integers(0, 9)) == 0:
        found.append(EMPTY)
    return Product(tuple(mask.take([0]) if one_row else mask for mask in found))


def strategies(values: st.SearchStrategy[int], most: int = 80) -> st.SearchStrategy[LinearMap]:
    """Products and stacks of few rows, whose answers fit in 64 bits."""
    parts = st.lists(factored(values), min_size=1, max_size=3)
    repeated = parts.map(lambda found: Stack((*found, found[0])))
    return st.one_of(factored(values), parts.map(lambda found: Stack(tuple(found))), repeated).filter(
        lambda found: 0 < found.rows <= most and found.largest() < 2**50
    )


def changes(linear_map: LinearMap, neighbours: Neighbours) -> list[list[int]]:
    """For every two neighbours, by how much each row of the map differs."""
    rows = columns_matrix(linear_map, DOMAIN)
    if neighbours is Neighbours.ADD_REMOVE:
        return rows
    return [[x - y for x, y in zip(one, other, strict=True)] for one in rows for other in rows]


def accountant(mode: Mode, neighbours: Neighbours) -> Accountant:
    order = ORDER if mode is Mode.RENYI else None
    return Accountant(mode=mode, unit=Unit(neighbours=neighbours), order=order)


def charged(mode: Mode, neighbours: Neighbours, *events: Event) -> Fraction | float:
    """What is spent; infinity where that is more than any budget, or the events are refused."""

    def profile() -> Profile:
        around = AddRemove(DOMAIN)
        return ReplaceOne(DOMAIN, around) if neighbours is Neighbours.REPLACE_ONE else around

    book = Book(accountant(mode, neighbours), profile)
    try:
        for event in events:
            book.add(event)
    except (BudgetError, QueryError):
        return math.inf
    return Fraction(book.spent(), 2**50) if book.spent() <= 1000 * 2**50 else math.inf


def laplace(scale: float = SCALE) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


# -- measure ------------------------------------------------------------------------------------------------------


def measured(strategy: LinearMap, mode: Mode) -> Measured:
    noise = laplace() if mode is Mode.PURE else Noise(kind=NoiseKind.GAUSSIAN, scale=SCALE)
    return Measured(strategy=strategy, noise=noise, version=1)


def told_by_measuring(strategy: LinearMap, mode: Mode, neighbours: Neighbours) -> Fraction:
    found = changes(strategy, neighbours)
    if mode is Mode.PURE:
        return max(sum(map(abs, own)) for own in found) / Fraction(SCALE)
    if mode is Mode.CONCENTRATED:
        return max(sum(x * x for x in own) for own in found) / (2 * Fraction(SCALE) ** 2)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=SCALE)
    worst = max(sum(Fraction(divergence(noise, abs(x), ORDER)) for x in own if x) for own in found)
    return worst / ORDER * (1 - Fraction(1, 10**40))


@pytest.mark.hypothesis
@pytest.mark.sampled(4)
@NEIGHBOURS
@MODES
def test_a_measurement_pays_for_what_it_tells(mode: Mode, neighbours: Neighbours) -> None:
    @settings(max_examples=examples(40), deadline=None)
    @given(strategies(st.sampled_from((1, 1, 0, 2, -1)) if mode is Mode.RENYI else large, 30))
    def check(strategy: LinearMap) -> None:
        told = told_by_measuring(strategy, mode, neighbours)
        price = charged(mode, neighbours, measured(strategy, mode))
        assert told <= price
        assert mode is Mode.RENYI or price in (told, math.inf)  # of powers of two nothing is rounded

    check()


# -- refine -------------------------------------------------------------------------------------------------------


@pytest.mark.hypothesis
@NEIGHBOURS
def test_a_refinement_pays_for_what_it_tells(neighbours: Neighbours) -> None:
    @settings(max_examples=examples(40), deadline=None)
    @given(strategies(small), st.data())
    def check(strategy: LinearMap, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.integers(0, strategy.rows - 1), min_size=1, unique=True).map(sorted))
        scales = [Fraction(SCALE if row in chosen else 4 * SCALE) for row in range(strategy.rows)]
        told = max(
            sum(abs(x) / scale for x, scale in zip(own, scales, strict=True)) for own in changes(strategy, neighbours)
        )
        before, after = laplace(4 * SCALE), laplace()
        events = (
            Measured(strategy=strategy, noise=before, version=1),
            Refined(block=1, measured=strategy, rows=np.array(chosen), before=before, after=after, version=1),
        )
        assert charged(Mode.PURE, neighbours, *events) in (told, math.inf)

    check()


# -- above --------------------------------------------------------------------------------------------------------


def opened(scope: Product, scale: float = 64.0) -> Opened:
    return Opened(scope=scope, cut=0, threshold=laplace(scale), test=laplace(2 * scale), version=1)


def told_by_a_test(event: Opened, change: int, mode: Mode, neighbours: Neighbours) -> Fraction:
    """A query that changes by c under noise of a scale b tells what one that changes by 1 does under b/c."""
    if change == 0:
        return Fraction(0)
    if mode is not Mode.RENYI:
        return (event.rate * change) ** (1 if mode is Mode.PURE else 2) / (1 if mode is Mode.PURE else 2)
    alone = opened(Product(()), event.threshold.scale / change)
    return Fraction(accountant(mode, neighbours).opened_units(alone), 2**50) * (1 - Fraction(1, 10**9))


@st.composite
def questions(draw: st.DrawFn) -> tuple[Product, Product]:
    """A scope, and a query that it may pay for: some of its factors, and numbers."""
    scope = draw(factored(weights, one_row=True))
    kept = [mask for mask in draw(st.permutations(scope.masks)) if draw(st.booleans())]
    query = Product((*kept, *draw(st.lists(masks(DOMAIN, (), weights), max_size=2))))
    return scope, query.row(0)


def underpaid(mode: Mode, neighbours: Neighbours, case: tuple[Product, Product]) -> bool:
    """Whether a test is admitted that tells more than was charged for its sparse vector."""
    scope, query = case
    event = opened(scope)
    try:
        sparse_vector.check_query(event, query, 0, one_sign=neighbours is Neighbours.REPLACE_ONE)
    except QueryError:
        return False
    change = max(abs(x) for (x,) in changes(query, neighbours))
    return charged(mode, neighbours, event) < told_by_a_test(event, change, mode, neighbours)


@pytest.mark.hypothesis
@pytest.mark.sampled(4)
@NEIGHBOURS
@MODES
def test_a_sparse_vector_pays_for_every_test_that_it_admits(mode: Mode, neighbours: Neighbours) -> None:
    admitted = []

    @settings(max_examples=examples(80), deadline=None)
    @given(questions())
    def check(case: tuple[Product, Product]) -> None:
        assume(max(abs(x) for (x,) in columns_matrix(case[0], DOMAIN)) <= 1000)
        assert not underpaid(mode, neighbours, case)
        admitted.append(case)

    check()
    assert admitted


# -- select -------------------------------------------------------------------------------------------------------


def selected(candidates: LinearMap, scale: float = 8.0) -> Selected:
    return Selected(candidates=candidates, count=1, scale=scale, version=1)


def told_by_a_pick(candidates: LinearMap, mode: Mode, neighbours: Neighbours, scale: float = 8.0) -> float:
    """Of two candidates, all others barred, with estimates such that the score of one rises and the other's falls."""
    apart = max(sum(sorted(map(abs, own))[-2:]) for own in changes(candidates, neighbours)) / scale
    if candidates.rows < 2:
        return 0.0
    if mode is Mode.PURE:
        return apart
    orders = (1.5, 2.0, 8.0) if mode is Mode.CONCENTRATED else (float(ORDER),)
    starts = np.linspace(-apart, 0, 41)  # log odds of the one before; estimates are whole numbers, scales are not
    return max(float(_divergence(starts, apart, order).max()) / order for order in orders)


def _divergence(odds: np.ndarray, apart: float, order: float) -> np.ndarray:
    """log(sum_i p_i^a q_i^(1-a)) / (a - 1) of picks from two with these log odds, and those moved by `apart`."""
    terms = [
        -order * np.logaddexp(0, -sign * odds) - (1 - order) * np.logaddexp(0, -sign * (odds + apart))
        for sign in (1, -1)
    ]
    return np.asarray(np.logaddexp(*terms) / (order - 1))


@pytest.mark.hypothesis
@pytest.mark.sampled(4)
@NEIGHBOURS
@MODES
def test_a_selection_pays_for_what_a_pick_tells(mode: Mode, neighbours: Neighbours) -> None:
    @settings(max_examples=examples(80), deadline=None)
    @given(strategies(large if mode is Mode.PURE else small))
    def check(candidates: LinearMap) -> None:
        scale = 2.0**20 if mode is Mode.PURE else 8.0
        price = charged(mode, neighbours, selected(candidates, scale))
        assert told_by_a_pick(candidates, mode, neighbours, scale) <= price * (1 + ROUNDING) + ROUNDING

    check()


@NEIGHBOURS
def test_numbers_before_the_candidates_multiply(neighbours: Neighbours) -> None:
    """Whatever their order, and with as many of them as there may be."""
    ages = mask_of(DOMAIN, ("a",), np.eye(3, dtype=np.int64))
    price = charged(Mode.PURE, neighbours, selected(Product((ages, bare(MILLION))), 2.0**20))
    assert price == Fraction(2 * MILLION, 2**20)
    for numbers in ((MILLION, 1), (1, MILLION), (1000, 1000), (1, 1000, 1, 1000), (-1000, -1000)):
        product = Product((bare(numbers[0]), ages, *map(bare, numbers[1:])))
        for candidates in (product, Stack((product, Product((ages,)))), Stack((Product((ages, bare(1, 1))), product))):
            assert charged(Mode.PURE, neighbours, selected(candidates, 2.0**20)) == price


def test_numbers_that_are_too_large_together_are_refused() -> None:
    """2^40 x 2^40 is 0 in 64 bits, and must not be so here."""
    huge = Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=np.int64)), bare(2**40), bare(2**40)))
    for candidates in (huge, Stack((huge, Product((bare(1),))))):
        assert charged(Mode.PURE, Neighbours.ADD_REMOVE, selected(candidates, 2.0**40)) == math.inf
    assert charged(Mode.PURE, Neighbours.ADD_REMOVE, selected(Product((*huge.masks, bare(0))), 8.0)) == 0


# -- wrong twins --------------------------------------------------------------------------------------------------


def cheap(values: st.SearchStrategy[int], told: Callable[..., Any], event: Callable[[LinearMap], Event]) -> None:
    """Find a map that is charged too little."""

    def wrong(linear_map: LinearMap) -> bool:
        price = charged(Mode.PURE, Neighbours.ADD_REMOVE, event(linear_map))
        return price + ROUNDING < told(linear_map, Mode.PURE, Neighbours.ADD_REMOVE)

    find(strategies(values), wrong, settings=settings(max_examples=3000, deadline=None, phases=[Phase.generate]))


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "kept",
    [lambda numbers: numbers[-1:], lambda numbers: numbers[:1], lambda numbers: set(numbers), lambda numbers: ()],
    ids=["the last", "the first", "each once", "none"],
)
def test_a_reach_that_forgets_a_number_is_found(kept: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept by their columns, numbers without columns take each other's place."""

    def largest(product: Product) -> int:
        return math.prod(kept([mask.steps.largest() for mask in product.masks if not mask.attrs]))

    monkeypatch.setattr(select, "bare_largest", largest)
    cheap(small, told_by_a_pick, selected)


def test_a_norm_that_forgets_a_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Keyed(Norm):
        @cached_property
        def vectors(self) -> tuple[np.ndarray, ...]:
            last = {mask.attrs: mask.steps.norms(self.power) for mask in self.masks}
            return tuple(last.pop(mask.attrs, np.ones(1, np.int64)) for mask in self.masks)

    monkeypatch.setattr("bursar.core.queries.product.Norm", Keyed)
    cheap(small, told_by_measuring, lambda strategy: measured(strategy, Mode.PURE))


def test_a_scope_that_pays_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: every number in front of a query is compared with the scope's, as if it were the only one."""
    right = sparse_vector.check_query

    def each_alone(event: Opened, query: Product, estimate: int, *, one_sign: bool) -> Product:
        numbers = [mask for mask in query.masks if not mask.attrs]
        for number in numbers or [bare(1)]:
            others = (mask for mask in query.masks if mask.attrs)
            right(event, Product((number, *others)), estimate, one_sign=one_sign)
        return query

    monkeypatch.setattr(sparse_vector, "check_query", each_alone)
    find(
        questions(),
        lambda case: underpaid(Mode.PURE, Neighbours.ADD_REMOVE, case),
        settings=settings(max_examples=3000, deadline=None, phases=[Phase.generate]),
    )
