"""Reconstruction: the best unbiased estimate of what the rows determine, and nothing where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.estimation import least_squares
from bursar.estimation.estimate import Estimate, WeightedRows
from bursar.estimation.least_squares import Block, Finer, Reconstruction
from harness.maps import columns_matrix, domain_of, maps, mask_of, products

DOMAIN = domain_of(a=3, b=2, c=2)
NOISE = Noise(kind=NoiseKind.LAPLACE, scale=2.0)
noises = st.builds(Noise, kind=st.sampled_from(NoiseKind), scale=st.sampled_from((0.5, 2.0, 9.0)))
Measured = list[tuple[Product, Noise]]
quick = settings(max_examples=60, deadline=None)


def spelt(linear_map: LinearMap) -> np.ndarray:
    """(rows, cells of the whole domain)."""
    return np.array(columns_matrix(linear_map, DOMAIN), float).reshape(12, linear_map.rows).T


def parts_of(queries: LinearMap) -> tuple[Product, ...]:
    return queries.parts if isinstance(queries, Stack) else (queries,)


def learnt(measured: Measured, values: list[np.ndarray]) -> Reconstruction:
    found = Reconstruction(DOMAIN, DOMAIN.names)
    for (product, noise), numbers in zip(measured, values, strict=True):
        assert found.add(Block(product, numbers, noise))
    return found


@quick
@given(st.lists(st.tuples(products(DOMAIN), noises), min_size=1, max_size=5), maps(DOMAIN), st.integers(0, 2**20))
def test_the_best_unbiased_estimate_or_none(measured: Measured, queries: LinearMap, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [rng.integers(-100, 100, product.rows) for product, _ in measured]
    rows = np.concatenate([spelt(product) for product, _ in measured])
    variances = np.concatenate([np.full(product.rows, noise.variance()) for product, noise in measured])
    wanted = spelt(queries)
    determined = np.linalg.matrix_rank(np.concatenate([rows, wanted])) == np.linalg.matrix_rank(rows)
    estimate = learnt(measured, values).answer(queries)
    if all(
        np.all(mask.steps.at_cells(np.arange(mask.steps.size)).any(axis=1))
        for part in parts_of(queries)
        for mask in part.masks
    ):
        assert (estimate is not None) == determined  # a row of zeros may cut through merged cells in another column
    else:
        assert determined or estimate is None
    if estimate is not None:
        assert isinstance(estimate.law, WeightedRows)
        check_best(estimate, rows, variances, np.concatenate(values), wanted)


def check_best(
    estimate: Estimate, rows: np.ndarray, variances: np.ndarray, values: np.ndarray, wanted: np.ndarray
) -> None:
    """Unbiased: weights times rows are the queries. Best: the variance of Gauss and Markov."""
    weights = estimate.law.weights
    owners = [j for j in range(len(rows)) if np.any(rows[j])]
    if weights.shape[1] == len(owners):  # rows of zeros have no weight
        assert np.allclose(weights @ rows[owners], wanted, atol=1e-7)
    assert len(estimate.law.noises) == weights.shape[1]
    inverse = np.linalg.pinv((rows.T / variances) @ rows, rcond=1e-11, hermitian=True)
    best = wanted @ inverse
    assert np.allclose(estimate.values, best @ (rows.T / variances) @ values, rtol=1e-6, atol=1e-5)
    assert np.allclose(estimate.law.variances, (best * wanted).sum(axis=1), rtol=1e-6, atol=1e-8)


def test_the_weights_reproduce_the_values() -> None:
    measured = [(Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=int)),)), NOISE), (Product(()), NOISE)]
    values = [np.array([10, 20, 30]), np.array([100])]
    estimate = learnt(measured, values).answer(Product((mask_of(DOMAIN, ("a",), [[1, 1, 0]]),)))
    assert estimate is not None
    assert estimate.law.weights @ np.concatenate(values) == pytest.approx(estimate.values)
    assert estimate.values.tolist() == pytest.approx([30 + 40 * 2 / 4])


def block(names: str, row: list[int], value: int = 5) -> Block:
    return Block(Product((mask_of(DOMAIN, tuple(names), [row]),)), np.array([value]), NOISE)


def test_a_query_through_a_merged_cell_is_not_answered() -> None:
    found = Reconstruction(DOMAIN, ("a",))
    found.add(block("a", [1, 1, 0]))
    assert found.answer(Product((mask_of(DOMAIN, ("a",), [[1, 0, 0]]),))) is None
    assert found.answer(Product((mask_of(DOMAIN, ("a",), [[2, 2, 0]]),))) is not None
    assert found.answer(Product(())) is None


def test_nothing_is_answered_by_nothing_and_no_query_by_anything() -> None:
    found = Reconstruction(DOMAIN, DOMAIN.names)
    assert found.answer(Product(())) is None
    found.add(block("a", [1, 1, 1]))
    nothing = found.answer(Stack(()))
    assert nothing is not None
    assert nothing.values.shape == (0,)
    assert found.answer(Product(())) is not None  # everybody, by another name


def test_a_measurement_without_rows_changes_nothing() -> None:
    found = Reconstruction(DOMAIN, DOMAIN.names)
    found.add(block("a", [1, 1, 1]))
    empty = Product((Mask(("b",), (2,), Steps.ranges([], [], 2)),))
    assert found.add(Block(empty, np.zeros(0, np.int64), NOISE))
    assert len(found.noises) == 1


def test_foreign_queries_are_not_answered() -> None:
    class Foreign:
        rows, attrs = 1, ("a",)

    found = Reconstruction(DOMAIN, DOMAIN.names)
    found.add(block("a", [1, 1, 1]))
    assert found.answer(Foreign()) is None


@pytest.mark.parametrize(("name", "limit"), [("MOST_MERGED_CELLS", 3), ("MOST_ROW_NUMBERS", 7)])
def test_what_does_not_fit_is_left_out_and_nothing_changed(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(least_squares, name, limit)
    found = Reconstruction(DOMAIN, DOMAIN.names)
    assert found.add(block("b", [1, 0], 7))
    before = found.answer(Product((mask_of(DOMAIN, ("b",), [[1, 0]]),)))
    joint = block("bc", [1, 0, 0, 0])
    assert not found.add(joint)
    assert not found.add(Block(Product((Mask(("a",), (3,), Steps.identity(3)),)), np.arange(3), NOISE))
    after = found.answer(Product((mask_of(DOMAIN, ("b",), [[1, 0]]),)))
    assert before is not None
    assert after is not None
    assert after.values.tolist() == before.values.tolist()
    assert len(found.noises) == 1
    assert {key: len(set(labels.tolist())) for key, labels in found.classes.items()} == {"a": 1, "b": 2, "c": 1}


def test_a_mask_that_tells_too_much_apart_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_squares, "MOST_MERGED_CELLS", 2)
    found = Reconstruction(DOMAIN, DOMAIN.names)
    assert not found.add(Block(Product((Mask(("a",), (3,), Steps.identity(3)),)), np.arange(3), NOISE))
    assert found.answer(Product((mask_of(DOMAIN, ("a",), [[1, 2, 3]]),))) is None


@pytest.mark.thinned(3)
@pytest.mark.parametrize("size", [50, 2000, 2**20])
def test_pairs_of_columns_do_not_tell_a_triple(size: int) -> None:
    """Everything about one value of each column but how often all three meet; in a large domain that is a tiny part of
    a question about the rest, and everybody may be there."""
    domain = domain_of(a=size, b=size, c=size)
    found = Reconstruction(domain, domain.names)

    def those(names: str) -> Product:
        return Product(tuple(Mask((name,), (size,), Steps.ranges([5], [6], size)) for name in names))

    for names in ("", "a", "b", "c", "ab", "bc", "ac"):
        assert found.add(Block(those(names), np.array([1000 if names == "" else 900]), NOISE))
    others = Product(
        tuple(
            Mask((n,), (size,), Steps(size, np.array([0, 3]), np.array([0, 5, 6]), np.array([1, -1, 1]))) for n in "abc"
        )
    )
    assert found.answer(others) is None
    assert found.answer(those("abc")) is None
    assert found.answer(those("ab")) is not None
    assert found.add(Block(those("abc"), np.array([900]), NOISE))
    told = found.answer(others)
    assert told is not None
    assert told.values.tolist() == pytest.approx([100.0])


def test_huge_columns_are_merged_where_nothing_tells_them_apart() -> None:
    domain = domain_of(x=2**21)
    found = Reconstruction(domain, ("x",))
    rows = Product((Mask(("x",), (2**21,), Steps.ranges([0, 2**20], [2**20, 2**21], 2**21)),))
    assert found.add(Block(rows, np.array([30, 70]), NOISE))
    total = found.answer(Product(()))
    assert total is not None
    assert total.values.tolist() == pytest.approx([100.0])
    assert total.law.mean_square() == pytest.approx(2 * NOISE.variance())


def test_later_rows_split_cells_and_earlier_answers_stay() -> None:
    found = Reconstruction(DOMAIN, ("a", "b"))
    asked = Product((mask_of(DOMAIN, ("a",), [[1, 1, 0]]),))
    found.add(block("a", [1, 1, 0], 40))
    before = found.answer(asked)
    found.add(block("b", [1, 0], 3))
    found.add(block("ab", [1, 0, 0, 0, 0, 0], 8))
    after = found.answer(asked)
    assert before is not None
    assert after is not None
    assert after.values.tolist() == pytest.approx(before.values.tolist())
    assert after.law.mean_square() == pytest.approx(before.law.mean_square())
    assert not np.allclose(0, after.values)


def test_masks_are_remembered_as_long_as_the_cells_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen over merged cells is forgotten when they are split, and when too much was seen."""
    monkeypatch.setattr(least_squares, "REMEMBERED_MASKS", 2)
    halves, cells = (mask_of(DOMAIN, ("a",), np.array(rows)) for rows in ([[1, 1, 0], [0, 0, 1]], np.eye(3, dtype=int)))
    found = Reconstruction(DOMAIN, DOMAIN.names)
    assert found.add(Block(Product((halves,)), np.array([5, 2]), NOISE))
    wanted = [Product((halves.take([row]),)) for row in (0, 1)]
    first = Product((cells.take([0]),))
    for _ in range(2):
        assert [found.weights_of(each).tolist() for each in wanted] == [[[1, 0]], [[0, 1]]]
        assert found.weights_of(first) is None
        assert len(found.seen) <= 2
    twin = found.copy()
    assert twin.add(Block(Product((cells,)), np.array([3, 2, 2]), NOISE))
    assert np.allclose(twin.weights_of(first) @ twin.rows, twin.coordinates(first))
    assert found.weights_of(first) is None


COARSE = [10.0**power for power in range(4, 10)]


def halves_of_a(coarse: float) -> Reconstruction:
    """Everybody with much noise, then the values of a with little, in two measurements; and no noise came out."""
    everybody, low, high = (mask_of(DOMAIN, "a", rows) for rows in ([[1, 1, 1]], [[1, 0, 0], [0, 1, 0]], [[0, 0, 1]]))
    measured = [
        (Product((everybody,)), Noise(kind=NoiseKind.LAPLACE, scale=coarse)),
        (Product((low,)), NOISE),
        (Product((high,)), NOISE),
    ]
    return learnt(measured, [np.array([60_000_006]), np.array([10_000_001, 20_000_002]), np.array([30_000_003])])


@pytest.mark.parametrize("coarse", COARSE)
@pytest.mark.parametrize("rounds", [least_squares.RESIDUAL_ROUNDS, 0])
def test_what_is_known_very_roughly_does_not_bend_what_is_known_well(
    coarse: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(least_squares, "RESIDUAL_ROUNDS", rounds)
    known = halves_of_a(coarse)
    for rows, truth in (([[1, 1, 1]], 60_000_006), ([[1, 1, 0]], 30_000_003), ([[0, 1, 1]], 50_000_005)):
        wanted = Product((mask_of(DOMAIN, "a", rows),))
        for found in (known.answer(wanted), known.answered(wanted)):
            assert found is not None
            assert found.values == pytest.approx([truth], abs=1e-2)


def test_weights_by_the_covariance_alone_bend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And are not offered, as they do not add up to the query; they would be if nobody looked."""
    monkeypatch.setattr(least_squares, "LARGEST_RESIDUAL", np.inf)
    everybody = Product((mask_of(DOMAIN, "a", [[1, 1, 1]]),))
    assert None in [halves_of_a(coarse).answer(everybody) for coarse in COARSE]
    monkeypatch.setattr(least_squares, "IN_SPAN", np.inf)
    off = [abs(float(halves_of_a(coarse).answer(everybody).values[0]) - 60_000_006) for coarse in COARSE]
    assert max(off) > 10


def test_rows_that_are_refined_together_know_what_fresh_ones_of_their_noise_would() -> None:
    """Some of them twice, each to a noise of its own, beside rows that stay as they are."""
    rng = np.random.default_rng(3)
    cells, pairs = (
        Product((mask_of(DOMAIN, columns, np.eye(DOMAIN.cells(columns), dtype=int)),))
        for columns in (("a",), ("a", "b"))
    )
    values = [rng.integers(-50, 50, product.rows) for product in (cells, pairs)]
    news: list[Block | Finer] = [Block(cells, values[0], NOISE, 1), Block(pairs, values[1], NOISE, 2)]
    finer = {scale: Noise(kind=NoiseKind.LAPLACE, scale=scale) for scale in (1.5, 0.7, 0.3)}
    for position, row, scale in ((1, 0, 1.5), (2, 4, 0.7), (1, 0, 0.3), (2, 1, 1.5)):
        news.append(Finer(position, np.array([row]), rng.integers(-50, 50, 1), finer[scale]))
    together, apart = (Reconstruction(DOMAIN, ("a", "b")) for _ in range(2))
    together.take(news)
    for one in news:
        apart.take([one])
    without_the_last = Reconstruction(DOMAIN, ("a", "b"))
    without_the_last.take(news[:-1])
    fresh = Reconstruction(DOMAIN, ("a", "b"))
    for product, first in ((cells, 0), (pairs, cells.rows)):
        for row in range(product.rows):
            place = first + row
            assert fresh.add(
                Block(product.row(row), together.values[place : place + 1].astype(int), together.noises[place])
            )
    found, *others, coarser = (answered(known, pairs) for known in (together, apart, fresh, without_the_last))
    assert all(np.allclose(found, other, rtol=1e-9, atol=1e-9) for other in others)
    assert not np.allclose(found, coarser, rtol=1e-3)
    assert {noise.scale for noise in together.noises} == {2.0, 0.3, 0.7, 1.5}


def answered(known: Reconstruction, queries: Product) -> np.ndarray:
    """Estimates and their variances."""
    estimate = known.answer(queries)
    assert estimate is not None
    assert isinstance(estimate.law, WeightedRows)
    return np.array([estimate.values, estimate.law.variances])


EXACT = Noise(kind=NoiseKind.LAPLACE, scale=2.0**-6)


def given_total(rows: np.ndarray, variances: np.ndarray, queries: np.ndarray) -> np.ndarray | None:
    """Variances of the best estimates where the sum of all cells is known, over all cells but the last."""
    rows, queries = rows[:, :-1] - rows[:, -1:], queries[:, :-1] - queries[:, -1:]
    if np.linalg.matrix_rank(np.concatenate([rows, queries]), tol=1e-9) > np.linalg.matrix_rank(rows, tol=1e-9):
        return None
    information = np.linalg.pinv((rows.T / variances) @ rows, rcond=1e-12)
    return np.einsum("ij,jk,ik->i", queries, information, queries)


@pytest.mark.heavy
@quick
@given(
    st.lists(st.tuples(products(DOMAIN), noises), min_size=0, max_size=5),
    maps(DOMAIN),
    st.integers(0, 2**20),
    st.integers(0, 5),
)
def test_an_exact_total_is_a_constraint(measured: Measured, queries: LinearMap, seed: int, place: int) -> None:
    """Wherever it comes in the log, answers are exact without noise, and have the least variance that it allows."""
    cells = np.random.default_rng(seed).integers(0, 1000, 12)
    log = list(measured)
    log.insert(place, (Product(()), EXACT))
    found = learnt(log, [(spelt(product) @ cells).astype(np.int64) for product, _ in log])
    rows = np.concatenate([np.zeros((0, 12)), *(spelt(product) for product, _ in measured)])
    variances = np.concatenate([np.zeros(0), *(np.full(p.rows, noise.variance()) for p, noise in measured)])
    least, estimate = given_total(rows, variances, spelt(queries)), found.answer(queries)
    if estimate is None:
        return  # a row of zeros may cut through merged cells
    assert least is not None
    assert isinstance(estimate.law, WeightedRows)
    np.testing.assert_allclose(estimate.values, spelt(queries) @ cells, atol=1e-6)
    np.testing.assert_allclose(estimate.law.variances, least, atol=1e-7 * (1 + least.max(initial=0)))
    quickly = found.answered(queries)
    assert quickly is not None
    np.testing.assert_allclose(quickly.values, estimate.values, atol=1e-6)


def test_half_of_the_cells_has_the_variance_of_a_quarter_of_them() -> None:
    domain = domain_of(x=128)
    cells = np.arange(128) ** 2
    found = Reconstruction(domain, ("x",))
    found.add(Block(Product((Mask(("x",), (128,), Steps.identity(128)),)), cells, NOISE))
    found.add(Block(Product(()), np.array([cells.sum()]), EXACT))
    for size, variance in ((64, 32), (128, 0), (1, 127 / 128), (127, 127 / 128), (32, 24)):
        query = Product((Mask(("x",), (128,), Steps.ranges(np.array([0]), np.array([size]), 128)),))
        for estimate in (found.answer(query), found.quick(query)):
            assert estimate is not None
            assert estimate.values[0] == pytest.approx(cells[:size].sum())
            assert estimate.law.mean_square() == pytest.approx(variance * NOISE.variance(), abs=1e-6)


def test_the_noise_of_an_exact_total_is_in_the_law() -> None:
    """Beside a noise of its own it would change no tail that can be computed; as a chance it is counted in."""
    found = Reconstruction(domain_of(x=6), ("x",))
    found.add(Block(Product((Mask(("x",), (6,), Steps.identity(6)),)), np.zeros(6, np.int64), NOISE))
    found.add(Block(Product(()), np.zeros(1, np.int64), EXACT))
    query = Product((Mask(("x",), (6,), Steps.ranges(np.array([0]), np.array([2]), 6)),))
    weights = found.weights_of(query)
    assert weights is not None
    law, beside = found.law_of(weights), WeightedRows(weights=weights, noises=list(found.noises))
    assert law.chance >= 2 * np.exp(-64) / (1 + np.exp(-64))
    for alpha in (3.0, 9.0, 20.0):
        assert law.tail(alpha, 0.0) == pytest.approx(beside.tail(alpha, 0.0), rel=1e-6)
    np.testing.assert_allclose(law.half_widths(0.01), beside.half_widths(0.01), rtol=1e-6)


@pytest.mark.parametrize("size", [10**3, 10**11, 5 * 10**11])
def test_small_weights_of_rows_with_large_coefficients_are_no_rounding(size: int) -> None:
    """A sum of values in fine steps: its row says as much of the cells as counts do, by weights far below theirs."""
    domain, cells = domain_of(x=6), np.array([7, 0, 300, 12, 5000, 1])
    weighed = Product((mask_of(domain, ("x",), size * np.arange(1, 7).reshape(1, 6)),))
    found = Reconstruction(domain, ("x",))
    found.add(Block(Product((Mask(("x",), (6,), Steps.identity(6)),)), cells, NOISE))
    found.add(Block(weighed, np.array([size * int(np.arange(1, 7) @ cells)]), Noise(kind=NOISE.kind, scale=2.0 * size)))
    query = Product((Mask(("x",), (6,), Steps.ranges(np.array([0]), np.array([2]), 6)),))
    weights = found.weights_of(query)
    assert weights is not None
    np.testing.assert_allclose(weights @ found.rows, found.coordinates(query), atol=1e-9)
    assert weights[0, -1] * size == pytest.approx(3 / (1 + 91), rel=1e-2)
    estimate = found.answer(query)
    assert estimate is not None
    assert estimate.values[0] == pytest.approx(cells[:2].sum(), abs=1e-6)


def test_a_covariance_that_rounding_has_broken_is_made_anew() -> None:
    domain, cells = domain_of(x=6), np.array([7, 0, 300, 12, 5000, 1])
    blocks = [
        Block(Product((Mask(("x",), (6,), Steps.identity(6)),)), cells, NOISE),
        Block(Product((Mask(("x",), (6,), Steps.ranges([0, 2], [3, 5], 6)),)), np.array([308, 5310]), NOISE),
    ]
    sound, broken = (Reconstruction(domain, ("x",)) for _ in range(2))
    assert all(sound.add(block) for block in blocks)
    assert broken.add(blocks[0])
    broken.state.reduced_covariance = broken.state.reduced_covariance - 100 * np.eye(6)
    assert not broken.state.sound
    assert broken.add(blocks[1])
    assert broken.state.sound
    np.testing.assert_allclose(broken.state.covariance, sound.state.covariance, atol=1e-9)
    np.testing.assert_allclose(broken.state.estimate, sound.state.estimate, atol=1e-9)
