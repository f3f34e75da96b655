"""Transforms: compared with sines to forty digits, and with what neighbours really do to the rounded answers."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Accountant, AddRemove, Book, Measured, Mode, Noise, NoiseKind, ReplaceOne
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions import transform as fourier
from bursar.core.ledger import Purpose
from bursar.core.queries import Transform, decode, encode
from bursar.errors import LedgerError, QueryError
from harness.maps import Table, domain_of
from harness.small import Silence, config, engine

DIGITS = 40
MAX_ROWS = 10_000


@cache
def pi() -> Decimal:
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239)."""

    def atan_inverse(x: int) -> Decimal:
        total, term, n = Decimal(0), Decimal(1) / x, 1
        while abs(term) > Decimal(10) ** -(DIGITS + 5):
            total += term / n * (1 if n % 4 == 1 else -1)
            term, n = term / (x * x), n + 2
        return total

    with localcontext() as context:
        context.prec = DIGITS + 10
        return 16 * atan_inverse(5) - 4 * atan_inverse(239)


@cache
def sine(numerator: int, denominator: int) -> Decimal:
    """sin(pi numerator/denominator) by its series, after a reduction in whole numbers."""
    with localcontext() as context:
        context.prec = DIGITS + 10
        turn = numerator % (2 * denominator)
        sign = 1 if turn < denominator else -1
        turn %= denominator
        turn = min(turn, denominator - turn)
        x = pi() * turn / denominator
        total, term, n = Decimal(0), x, 1
        while abs(term) > Decimal(10) ** -(DIGITS + 5):
            total += term
            term, n = -term * x * x / ((n + 1) * (n + 2)), n + 2
        return sign * total


def exact_answers(transform: Transform, counts: np.ndarray) -> list[Decimal]:
    """Row by row, by the formula of the class, before rounding."""
    with localcontext() as context:
        context.prec = DIGITS + 10
        cells = [int(c) * int(counts[transform.first + i]) for i, c in enumerate(transform.cell_weights)]
        return [
            int(transform.row_weights[k - 1])
            * sum(a * sine(int(k) * (transform.start + i), transform.period) for i, a in enumerate(cells))
            / 2**transform.shift
            for k in transform.frequencies
        ]


def table(transform: Transform, counts: np.ndarray) -> Table:
    return Table(domain_of(**{transform.column: transform.size}), counts)


@st.composite
def transforms(draw: st.DrawFn) -> Transform:
    cells = draw(st.integers(1, 6))
    before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    start = draw(st.integers(1, 3))
    period = draw(st.integers(start + cells, start + cells + 8))
    largest, shift = draw(st.sampled_from(((40, 0), (40, 3), (2**20, 20), (2**20, 25))))
    weights = st.integers(0, largest)
    rows = draw(st.lists(weights, min_size=period - 1, max_size=period - 1))
    columns = draw(st.lists(weights, min_size=cells, max_size=cells))
    return Transform(
        column="x",
        size=before + cells + after,
        first=before,
        start=start,
        period=period,
        shift=shift,
        max_rows=MAX_ROWS,
        row_weights=np.array(rows, np.int64),
        cell_weights=np.array(columns, np.int64),
    )


def example(**changes: object) -> Transform:
    facts: dict[str, object] = {
        "column": "age",
        "size": 10,
        "first": 0,
        "start": 1,
        "period": 11,
        "shift": 4,
        "max_rows": 100_000,
        "row_weights": np.arange(10, 0, -1) * 50,
        "cell_weights": np.full(10, 64),
    }
    return Transform(**{**facts, **changes})


@pytest.mark.thinned(4)
@pytest.mark.parametrize("length", [1, 2, 3, 8, 12, 61, 60, 88, 122, 256, 2 * 7 * 11, 1024])
def test_the_fourier_transform_errs_by_no_more_than_it_says(length: int) -> None:
    x = np.random.default_rng(length).integers(-1000, 1000, length).astype(float)
    re, im = fourier.dft(x)
    bound = Decimal(fourier.error_of(length) * float(np.abs(x).sum()))
    single = np.fft.fft(x.astype(np.complex64)).astype(np.complex64)
    worst_single = Decimal(0)
    for k in range(0, length, max(length // 16, 1)):
        terms = [(Decimal(int(v)), 2 * j * k) for j, v in enumerate(x)]
        imaginary = -sum(v * sine(t, length) for v, t in terms)
        real = sum(v * sine(2 * t + length, 2 * length) for v, t in terms)  # cos y = sin(y + pi/2)
        assert abs(Decimal(float(re[k])) - real) <= bound
        assert abs(Decimal(float(im[k])) - imaginary) <= bound
        worst_single = max(worst_single, abs(Decimal(float(single[k].real)) - real))
    assert fourier.error_of(length) < 1e-13
    if length > 200:
        assert worst_single > bound  # the bound is no formality: single precision breaks it


def test_lengths_with_large_prime_factors_are_not_transformed() -> None:
    assert fourier.factors_of(67) is None
    assert fourier.factors_of(2 * 67 * 8) is None
    assert fourier.smooth_from(67) == 68
    assert all(math.prod(fourier.factors_of(n) or ()) == n for n in (1, 2, 61, 1048698, 2**21, 3**9))


def test_sines_of_numpy_are_as_good_as_the_proof_assumes() -> None:
    for turn in np.random.default_rng(1).integers(-(2**20), 2**20, 400):
        got = float(fourier._weights(2**21, np.array([turn]))[1][0])
        assert abs(Decimal(got) - sine(int(turn), 2**20)) < Decimal(fourier.WEIGHT_ERROR)


@settings(max_examples=60, deadline=None)
@given(transform=transforms(), seed=st.integers(0, 2**16))
def test_answers_are_the_nearest_whole_numbers(transform: Transform, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 50, transform.size)
    got = transform.apply(table(transform, counts))
    slack = Decimal(transform.float_error)
    for value, exact in zip(got, exact_answers(transform, counts), strict=True):
        assert abs(Decimal(int(value)) - exact) <= Decimal("0.5") + slack


def moved(transform: Transform, counts: np.ndarray, cells: dict[int, int]) -> np.ndarray:
    before = table(transform, counts)
    return transform.apply(before.changed(cells)) - transform.apply(before)


@settings(max_examples=150, deadline=None)
@given(transform=transforms(), seed=st.integers(0, 2**16), data=st.data())
def test_no_row_moves_the_answers_further_than_the_norm_says(
    transform: Transform, seed: int, data: st.DataObject
) -> None:
    counts = np.random.default_rng(seed).integers(0, 50, transform.size)
    v, w = (data.draw(st.integers(0, transform.size - 1)) for _ in range(2))
    for power in (1, 2):
        (norm,) = transform.norms(power)
        added = moved(transform, counts, {v: 1})
        assert int((np.abs(added) ** power).sum()) <= int(norm.vectors[0][v])
        replaced = moved(transform, counts + 1, {v: -1, w: 1} if v != w else {})
        pairs = norm.pairs()
        assert pairs is not None
        assert int((np.abs(replaced) ** power).sum()) <= int(pairs[v, w]) <= norm.pair_factor * norm.largest()
        twice = moved(transform, counts, {v: 2})
        assert int((np.abs(twice) ** power).sum()) <= 2**power * int(norm.vectors[0][v])


def test_a_norm_without_the_rounding_would_be_too_small() -> None:
    """The twin prices the exact column: then some neighbours are further apart than was paid for."""

    def breaks(case: tuple[Transform, int, int]) -> bool:
        transform, seed, v = case
        counts = np.random.default_rng(seed).integers(0, 50, transform.size)
        unit = np.zeros(transform.size, np.int64)
        unit[v % transform.size] = 1
        length = sum(x * x for x in exact_answers(transform, unit))
        return int((moved(transform, counts, {v % transform.size: 1}) ** 2).sum()) > math.ceil(length)

    cases = st.tuples(transforms(), st.integers(0, 2**16), st.integers(0, 9))
    find(cases, breaks, settings=settings(max_examples=500, deadline=None, phases=[Phase.generate]))


@settings(max_examples=40, deadline=None)
@given(transform=transforms())
def test_the_norm_is_close_to_the_length_of_the_column(transform: Transform) -> None:
    (norm,) = transform.norms(2)
    for v in range(transform.size):
        unit = np.zeros(transform.size, np.int64)
        unit[v] = 1
        length = math.sqrt(float(sum((x * x for x in exact_answers(transform, unit)), start=Decimal(0))))
        scale = (
            math.sqrt(np.square(transform.row_weights).sum())
            * int(transform.cell_weights.max())
            * 2.0**-transform.shift
        )
        most = length * (1 + 1e-6) + math.sqrt(transform.rows) + 2 * transform.float_error + 1e-6 * scale + 2
        assert length - 1e-9 <= math.sqrt(int(norm.vectors[0][v])) + (0 if length else 1e-9) <= most


def test_cells_without_weight_cost_nothing() -> None:
    weights = np.full(10, 64)
    weights[3] = 0
    transform = example(cell_weights=weights)
    assert transform.norms(2)[0].vectors[0][3] == 0
    assert not moved(example(column="x", cell_weights=weights), np.arange(10), {3: 5}).any()


def test_bytes_and_back() -> None:
    transform = example()
    data = encode(transform)
    again = decode(data)
    assert isinstance(again, Transform)
    assert encode(again) == data
    assert again.digest == transform.digest != example(shift=5).digest
    assert again.row_weights.tolist() == transform.row_weights.tolist()
    for broken in (data[:-8], data + bytes(8), data.replace(b'"period":11', b'"period":12')):
        with pytest.raises(LedgerError):
            decode(broken)


@pytest.mark.parametrize(
    "wrong",
    [
        {"period": 67, "row_weights": np.ones(66, np.int64)},  # a large prime
        {"period": 10, "row_weights": np.ones(9, np.int64)},  # no room for ten cells
        {"start": 0},
        {"first": 1},
        {"shift": -1},
        {"shift": 65},
        {"max_rows": 2**36 + 1},
        {"max_rows": 1.5},
        {"row_weights": np.full(10, -1)},
        {"row_weights": np.full(10, 2**26 + 1)},
        {"cell_weights": np.full(10, 2.0)},
        {"cell_weights": np.zeros(0, np.int64)},
    ],
    ids=str,
)
def test_malformed_transforms_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        example(**wrong)


def test_rows_are_taken_all_or_none() -> None:
    transform = example()
    assert transform.take(range(10)) is transform
    with pytest.raises(QueryError):
        transform.take([0, 1])


def test_what_is_priced_cannot_be_written_to() -> None:
    given = np.full(10, 64)
    transform = example(cell_weights=given)
    given[0] = 10**6
    assert transform.cell_weights[0] == 64
    with pytest.raises(ValueError, match="read-only"):
        transform.cell_weights[0] = 1


RHO = config(budget=Budget.of(rho=10.0))
GAUSSIAN = Noise(kind=NoiseKind.GAUSSIAN, scale=2000.0)


def test_the_kernel_measures_a_transform_and_charges_its_norm() -> None:
    bursar = engine(settings=RHO, randomness=Silence())
    transform = example()
    record, charge = bursar.kernel.measure(
        transform, GAUSSIAN, analyst="ana", purpose=Purpose("", "test"), at_most=2**60
    )
    assert record.values.tolist() == transform.apply(lambda attrs: bursar.kernel._opened()[1].counts(attrs)).tolist()
    exact = Fraction(transform.norms(2)[0].largest()) / (2 * 2000**2)
    assert exact <= Fraction(charge.total, 2**50) < exact * (1 + Fraction(1, 2**19))
    stored = bursar.kernel.ledger.records()[-1].event
    assert isinstance(stored, Measured)
    assert stored.strategy.digest == transform.digest


def test_the_kernel_refuses_a_transform_made_for_less_data() -> None:
    kernel = engine(settings=RHO).kernel
    with pytest.raises(QueryError, match="fewer rows"):
        kernel.check(example(max_rows=RHO.max_rows - 1))
    kernel.check(example(max_rows=RHO.max_rows))


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_profiles_take_a_transform(neighbours: Neighbours, mode: Mode) -> None:
    domain = Domain((IntegerRange(name="age", lower=0, upper=9, null=0),))
    around = AddRemove(domain)
    profile = ReplaceOne(domain, around) if neighbours is Neighbours.REPLACE_ONE else around
    book = Book(Accountant(mode=mode, unit=Unit(neighbours=neighbours)), lambda: profile)
    noise = GAUSSIAN if mode is Mode.CONCENTRATED else Noise(kind=NoiseKind.LAPLACE, scale=2000.0)
    book.add(Measured(strategy=example(), noise=noise, version=1))
    power = 2 if mode is Mode.CONCENTRATED else 1
    each = noise.concentrated_units() if power == 2 else noise.pure_units()
    times = 1 if neighbours is Neighbours.ADD_REMOVE else 2**power
    reach = example().norms(power)[0].vectors[0]
    assert 0.9 * times * each * reach.max() <= book.spent() <= times * each * reach.max()
