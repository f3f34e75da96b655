"""Refinements: a row counts once, at its finest noise, however it got there."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
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
    Refined,
    ReplaceOne,
    Versioned,
    same_purchase,
)
from bursar.core.accounting.profile import Profile, fine_units
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.refine import rows_of
from bursar.core.queries import LinearMap, Mask, Product, Steps, Transform
from bursar.errors import QueryError, Unsupported
from harness.cases import examples
from harness.maps import columns_matrix, domain_of, maps

DOMAIN = domain_of(a=3, b=2)
UNIT = 2**50
EYE = Product((Mask(("a",), (3,), Steps.identity(3)),))
NEIGHBOURS = list(Neighbours)


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def refined(strategy: LinearMap, rows: list[int], before: float, after: float, block: int = 1) -> Refined:
    laws = {"before": laplace(before), "after": laplace(after)}
    return Refined(block=block, measured=strategy, rows=np.array(rows), version=1, **laws)


def book(neighbours: Neighbours = Neighbours.ADD_REMOVE, contributions: int = 1, mode: Mode = Mode.PURE) -> Book:
    column = None if contributions == 1 else "person"
    accountant = Accountant(mode=mode, unit=Unit(column=column, max_contributions=contributions, neighbours=neighbours))

    def profile() -> Profile:
        around = AddRemove(DOMAIN)
        return ReplaceOne(DOMAIN, around) if neighbours is Neighbours.REPLACE_ONE else around

    return Book(accountant, profile)


def exact(strategy: LinearMap, scales: list[float], contributions: int, neighbours: Neighbours) -> Fraction:
    """The largest loss with every row at its own scale, in units, without rounding."""
    columns = [[int(x) for x in row] for row in columns_matrix(strategy, DOMAIN)]
    each = [contributions * UNIT / Fraction(scale) for scale in scales]

    def apart(one: list[int], other: list[int]) -> Fraction:
        return sum((abs(x - y) * price for x, y, price in zip(one, other, each, strict=True)), Fraction(0))

    nobody = [0] * len(scales)
    if neighbours is Neighbours.ADD_REMOVE:
        return max(apart(column, nobody) for column in columns)
    return max(apart(one, other) for one in columns for other in columns)


@st.composite
def histories(draw: st.DrawFn) -> tuple[LinearMap, list[float], list[Event]]:
    """A measurement, how fine its rows are in the end, and the events that led there."""
    strategy = draw(maps(DOMAIN).filter(lambda found: 0 < found.rows <= 12 and found.largest() < 2**20))
    first = draw(st.floats(4.0, 2.0**40))
    scales = [first] * strategy.rows
    events: list[Event] = [Measured(strategy=strategy, noise=laplace(first), version=1)]
    for _ in range(draw(st.integers(1, 4))):
        of = draw(st.sampled_from(scales))
        same = [row for row, scale in enumerate(scales) if scale == of]
        rows = sorted(draw(st.sets(st.sampled_from(same), min_size=1)))
        after = max(of * draw(st.floats(2.0**-20, 0.99)), 1.0)
        if 1 / Fraction(after) - 1 / Fraction(of) < Fraction(1, UNIT):
            continue
        events.append(refined(strategy, rows, of, after))
        for row in rows:
            scales[row] = after
    return strategy, scales, events


@pytest.mark.thinned(4)
@pytest.mark.hypothesis
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_what_is_spent_is_the_loss_at_the_finest_noise(neighbours: Neighbours, contributions: int) -> None:
    """Never below it; above it by one part in 2^18, and a unit or two for each event and product."""

    @settings(max_examples=examples(40), deadline=None)
    @given(histories())
    def check(history: tuple[LinearMap, list[float], list[Event]]) -> None:
        strategy, scales, events = history
        made = book(neighbours, contributions)
        for event in events:
            made.add(event)
        real = exact(strategy, scales, contributions, neighbours)
        assert real <= made.spent() <= real * (1 + Fraction(1, 2**18)) + 3 * strategy.rows * len(events)

    check()


@pytest.mark.parametrize("scales", [(8.0, 4.0, 3.0, 0.7), (3.1, 3.0, 0.3), (2.0**30, 2.0**29, 2.0**12, 5.0)])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_chain_costs_what_its_end_would_have_cost(neighbours: Neighbours, scales: tuple[float, ...]) -> None:
    chained, direct = book(neighbours), book(neighbours)
    chained.add(Measured(strategy=EYE, noise=laplace(scales[0]), version=1))
    for before, after in pairwise(scales):
        chained.add(refined(EYE, [0, 1, 2], before, after))
    direct.add(Measured(strategy=EYE, noise=laplace(scales[-1]), version=1))
    assert direct.spent() <= chained.spent() <= direct.spent() * (1 + 2.0**-20) + 2 * len(scales)
    if scales[0] < 2.0**20:  # in units of 2^-50 nothing is rounded but the noise itself, and that telescopes
        assert chained.spent() == direct.spent()


def test_a_refinement_is_charged_where_its_rows_are() -> None:
    made = book()
    made.add(Measured(strategy=EYE, noise=laplace(4.0), version=1))
    assert made.price([refined(EYE, [1], 4.0, 1.0)]) == UNIT * 3 // 4
    made.add(refined(EYE, [1], 4.0, 1.0))
    assert made.price([refined(EYE, [0, 2], 4.0, 1.0)]) == 0  # other people, up to the dearest
    assert made.spent() == UNIT


def test_wide_noise_that_becomes_narrow_is_priced_in_units_that_fit() -> None:
    accountant = Accountant(mode=Mode.PURE, unit=Unit())
    (made,) = accountant.footprints(refined(EYE, [0], 2.0**40, 1.0))
    assert (made.finer, made.units) == (0, UNIT - 2**10)
    (made,) = accountant.footprints(refined(EYE, [0], 2.0**40, 2.0**32))
    assert made.finer > 0
    assert Fraction(made.units, 2**made.finer) == 2**18 - 2**10
    assert made.units < 2**30


def test_a_difference_that_has_too_many_digits_is_rounded_up() -> None:
    accountant, rounded = Accountant(mode=Mode.PURE, unit=Unit()), 0
    for before, after in product((2.0**39 / 3, 2.0**36 / 7, 2.0**33 / 11), (1.0 / 3, 2.0**10 / 7, 2.0**24 / 5)):
        charged = [fine_units(partial(accountant.units, laplace(scale))) for scale in (before, after)]
        coarse, fine = (Fraction(units, 2**finer) for units, finer in charged)
        units, finer = accountant.difference(laplace(before), laplace(after))
        assert 0 <= Fraction(units, 2**finer) - (fine - coarse) < Fraction(1, 2**finer)
        rounded += Fraction(units, 2**finer) != fine - coarse
    assert rounded > 3


def test_a_difference_is_as_exact_as_what_was_charged_before() -> None:
    accountant = Accountant(mode=Mode.PURE, unit=Unit())
    (made,) = accountant.footprints(refined(EYE, [0], 2.0**39 / 3 + 0.5, 1.0 / 3))
    exact_difference = UNIT * (1 / Fraction(1.0 / 3) - 1 / Fraction(2.0**39 / 3 + 0.5))
    assert 0 <= Fraction(made.units, 2**made.finer) - exact_difference + Fraction(1, 2**20) <= 2


def test_only_a_pure_budget_pays_for_refinements() -> None:
    with pytest.raises(Unsupported, match="precisions add"):
        book(mode=Mode.CONCENTRATED).price([refined(EYE, [0], 4.0, 1.0)])


NORMAL = Noise(kind=NoiseKind.GAUSSIAN, scale=1.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": np.array([], np.int64)},
        {"rows": np.array([0.0])},
        {"rows": np.array([[0]])},
        {"rows": np.array([-1])},
        {"rows": np.array([3])},
        {"rows": np.array([1, 1])},
        {"rows": np.array([1, 0])},
        {"after": laplace(4.0)},
        {"after": laplace(5.0)},
        {"before": laplace(2.0**30), "after": laplace(2.0**30 - 1)},
    ],
)
def test_what_is_no_refinement_is_refused(changes: dict[str, object]) -> None:
    facts = {"block": 1, "measured": EYE, "rows": np.array([0]), "version": 1}
    laws = {"before": laplace(4.0), "after": laplace(1.0)}
    Refined(**facts, **laws)
    with pytest.raises(QueryError):
        Refined(**{**facts, **laws, **changes})


def test_what_cannot_be_refined_is_refused() -> None:
    facts = {"block": 1, "rows": np.array([0]), "version": 1}
    with pytest.raises(Unsupported, match="buy a fresh row"):
        Refined(**facts, measured=EYE, before=NORMAL, after=laplace(0.5))
    with pytest.raises(Unsupported, match="buy a fresh row"):
        Refined(**facts, measured=EYE, before=laplace(4.0), after=NORMAL)
    with pytest.raises(Unsupported, match="transform"):
        Refined(**facts, measured=sine(), before=laplace(4.0), after=laplace(1.0))


def sine() -> Transform:
    weights = np.ones(3, np.int64)
    numbers = {"column": "a", "size": 3, "first": 0, "start": 1, "period": 4, "shift": 0, "max_rows": 10}
    return Transform(**numbers, row_weights=weights, cell_weights=weights)


def test_rows_that_only_make_sense_together_are_not_taken_by_themselves() -> None:
    whole = sine()
    assert rows_of(whole, np.arange(whole.rows)) is whole
    with pytest.raises(Unsupported, match="kind Transform cannot be taken by themselves"):
        rows_of(whole, np.array([0]))


def test_the_rows_cannot_be_changed_afterwards() -> None:
    rows = np.array([0, 2])
    event = Refined(block=1, measured=EYE, rows=rows, before=laplace(4.0), after=laplace(1.0), version=1)
    rows[1] = 1
    assert event.rows.tolist() == [0, 2]
    with pytest.raises(ValueError, match="read-only"):
        event.rows[0] = 1


def test_same_purchases() -> None:
    measured = Measured(strategy=EYE, noise=laplace(4.0), version=1)
    event = refined(EYE, [0], 4.0, 1.0)
    assert same_purchase(event, refined(EYE, [0], 4.0, 1.0))
    assert same_purchase(measured, Measured(strategy=EYE, noise=laplace(4.0), version=1))
    others = [
        measured,
        Versioned(version=1),
        refined(EYE, [1], 4.0, 1.0),
        refined(EYE, [0, 1], 4.0, 1.0),
        refined(EYE, [0], 5.0, 1.0),
        refined(EYE, [0], 4.0, 2.0),
        refined(EYE, [0], 4.0, 1.0, block=2),
        refined(Product((Mask(("b",), (2,), Steps.identity(2)),)), [0], 4.0, 1.0),
    ]
    assert not any(same_purchase(event, other) for other in others)
    assert not same_purchase(Versioned(version=1), Versioned(version=1))
