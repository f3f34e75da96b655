"""The inner loops of the projection against their definitions."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest

from bursar.errors import QueryError, Unsupported
from bursar.synthetic.entropy import entropy
from bursar.synthetic.rap import relaxed as compiled
from bursar.synthetic.rap.projection import Patience, Targets, Terms, add_gradient, means, project
from bursar.synthetic.rap.relaxed import (
    Relaxed,
    marginal,
    randomized_rounding,
    relaxed_answers,
    relaxed_counts,
    sparsemax,
    start,
    table_answers,
)
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload, generalized_products

RNG = np.random.default_rng(5)
NAMES, SIZES = ("a", "b", "c", "d", "e"), (5, 3, 1, 4, 2)


def workload(*sets: str, least: int | None = None) -> ThresholdWorkload:
    return ThresholdWorkload(names=NAMES, sizes=SIZES, sets=tuple(tuple(one) for one in sets), least=least)


def one_hot(codes: np.ndarray) -> Relaxed:
    blocks = [np.eye(size, dtype=np.float32)[:, codes[:, i]] for i, size in enumerate(SIZES)]
    return Relaxed(names=NAMES, sizes=SIZES, values=np.concatenate(blocks))


def projected_by_sorting(z: np.ndarray) -> np.ndarray:
    """Martins and Astudillo 2016, Alg. 1."""
    falling = np.sort(z)[::-1]
    sums = np.cumsum(falling)
    k = int(np.flatnonzero(1 + np.arange(1, len(z) + 1) * falling > sums)[-1]) + 1
    return np.maximum(z - (sums[k - 1] - 1) / k, 0)


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("shift", [-5.0, 0.0, 3.0])
@pytest.mark.parametrize("size", [1, 2, 40])
def test_sparsemax_is_the_projection_onto_the_simplex(spread: float, shift: float, size: int) -> None:
    block = (shift + spread * RNG.standard_normal((size, 300))).astype(np.float32)
    wanted = np.stack([projected_by_sorting(z.astype(float)) for z in block.T], axis=1)
    sparsemax(block)
    assert np.abs(block - wanted).max() < 2e-5
    before = block.copy()
    sparsemax(block)
    assert np.abs(block - before).max() < 1e-5  # a projection


def test_softmax_would_not_pass_for_it() -> None:
    z = RNG.standard_normal(6)
    assert np.abs(np.exp(z) / np.exp(z).sum() - projected_by_sorting(z)).max() > 1e-3


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("k", "r"), [(k, r) for k in range(1, 6) for r in range(1, k + 1)])
def test_means_and_gradients_are_those_of_the_surrogate(k: int, r: int) -> None:
    rows, lines = 600, 9  # more rows than a tile
    values = RNG.random((lines, rows)).astype(np.float32)
    places = np.stack([RNG.choice(lines, k, replace=False) for _ in range(4)]).astype(np.int32)
    terms = Terms.of(k, r)
    slow = [generalized_products([values[p].astype(float) for p in own], r).mean() for own in places]
    assert means(values, places, terms) == pytest.approx(slow, abs=1e-5)
    slopes, gradient = RNG.standard_normal(4).astype(np.float32), np.zeros_like(values)
    add_gradient(values, places, terms, slopes, gradient)
    for line, row in [(int(places[0, 0]), 0), (int(places[1, -1]), 599), (int(places[2, 0]), 300)]:
        up, down = values.astype(float), values.astype(float)
        up[line, row] += 0.5
        down[line, row] -= 0.5  # the surrogate is linear in each entry: the difference is exact
        ends = [
            sum(s * generalized_products(list(v[own]), r).mean() for s, own in zip(slopes, places, strict=True))
            for v in (up, down)
        ]
        assert gradient[line, row] == pytest.approx(ends[0] - ends[1], abs=1e-6)


def test_a_gradient_with_one_sign_wrong_would_be_seen() -> None:
    values, gradient = np.full((3, 10), 0.5, np.float32), np.zeros((3, 10), np.float32)
    add_gradient(values, np.array([[0, 1, 2]], np.int32), Terms.of(3, 1), np.ones(1, np.float32), gradient)
    assert gradient == pytest.approx(np.full((3, 10), 0.025))  # (1 - .5)^2 / 10


SETS = [("abd", "ce", "b"), ("abde", "ad"), ("abcde",)]


@pytest.mark.heavy
@pytest.mark.sampled(3)
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize("least", [None, 1, 2])
def test_on_one_hot_rows_all_ways_to_answer_agree(sets: tuple[str, ...], least: int | None) -> None:
    asked = workload(*[s for s in sets if least is None or len(s) >= least], least=least)
    codes = np.stack([RNG.integers(0, size, 37) for size in SIZES], axis=1)
    rows = one_hot(codes)
    brute = []
    for names in asked.sets:
        at = [NAMES.index(name) for name in names]
        need = len(names) if least is None else least
        for target in product(*(range(SIZES[i]) for i in at)):
            brute.append(int(((codes[:, at] == target).sum(axis=1) >= need).sum()))
    assert table_answers(asked, codes).tolist() == brute
    assert relaxed_counts(asked, rows, size=37).tolist() == brute
    assert relaxed_answers(asked, rows) == pytest.approx(np.array(brute) / 37, abs=1e-6)
    padded = np.vstack([rows.values, np.full((1, 37), asked.padding, np.float32)])
    places = asked.places(np.arange(asked.queries))
    found = means(padded, places, Terms.of(asked.together, asked.agreeing))
    assert found == pytest.approx(np.array(brute) / 37, abs=1e-6)


@pytest.mark.parametrize("least", [None, 2])
def test_queries_by_number_are_rows_of_the_workload(least: int | None) -> None:
    """Of a marginal with more than 2,048 cells, their price takes no number for each of these."""
    workload = ThresholdWorkload(
        names=("a", "b", "c"), sizes=(20, 15, 10), sets=(("a", "b", "c"), ("c", "a")), least=least
    )
    rng = np.random.default_rng(3)
    table = rng.integers(0, 9, workload.sizes)

    def counts(names: tuple[str, ...]) -> np.ndarray:
        kept = tuple(workload.names.index(name) for name in names)
        summed = table.sum(axis=tuple(i for i in range(3) if i not in kept))
        return summed.transpose(np.argsort(np.argsort(kept)))

    queries = rng.choice(workload.queries, 50, replace=False)
    taken = workload.taken(queries)
    assert taken.apply(counts).tolist() == workload.candidates.apply(counts)[np.sort(queries)].tolist()
    numbers = max(vector.size for norm in taken.norms(2) for vector in norm.vectors)
    assert numbers == (200 if least is None else 3000)


def test_relaxed_answers_are_means_of_products() -> None:
    rows = start(workload("abd"), rows=70, rng=entropy())
    slow = np.einsum("ar,br,dr->abd", rows.block("a"), rows.block("b"), rows.block("d")) / 70
    assert marginal(rows, ("a", "b", "d")) == pytest.approx(slow, abs=1e-6)
    assert marginal(rows, ("d", "a")) == pytest.approx(slow.sum(axis=1).T, abs=1e-5)


def test_rows_start_in_the_simplex_and_differ() -> None:
    rows = start(workload("a"), rows=50, rng=entropy())
    for name in NAMES:
        assert rows.block(name).sum(axis=0) == pytest.approx(np.ones(50), abs=1e-5)
    assert rows.block("c") == pytest.approx(np.ones((1, 50)))
    assert not np.array_equal(rows.values, start(workload("a"), rows=50, rng=entropy()).values)


def aims(asked: ThresholdWorkload, answers: np.ndarray, **changes: object) -> Targets:
    facts = {"answers": answers.astype(np.float32), "weights": np.ones(len(answers), np.float32)}
    places, terms = asked.places(np.arange(asked.queries)), Terms.of(asked.together, asked.agreeing)
    return Targets(**{**facts, "places": places, "terms": terms, "padding": asked.padding, **changes})


def test_the_projection_reaches_answers_that_can_be_reached_and_leaves_its_start_alone() -> None:
    asked = workload("ab", "e")
    truth = relaxed_answers(
        asked, one_hot(np.stack([RNG.integers(0, size, 200) ** 2 // size for size in SIZES], axis=1))
    )
    begin = start(asked, rows=50, rng=entropy())
    kept = begin.values.copy()
    losses: list[float] = []
    end = project(begin, aims(asked, truth), rng=entropy(), on_step=lambda at, loss, now: losses.append(loss))
    assert np.array_equal(begin.values, kept)
    assert np.abs(relaxed_answers(asked, end) - truth).max() < 0.05
    assert losses[-1] < losses[0] / 100
    assert np.array_equal(end.block("d"), begin.block("d"))  # nothing was asked about it
    assert end.block("a").sum(axis=0) == pytest.approx(np.ones(50), abs=1e-5)


def test_it_ends_at_the_noise_with_patience_or_at_the_last_epoch() -> None:
    asked = workload("ab")
    truth, begin = np.zeros(15), start(asked, rows=20, rng=entropy())
    truth[0] = 1

    def epochs(patience: Patience, **changes: object) -> int:
        seen: list[int] = []
        hook = lambda at, loss, now: seen.append(at)  # noqa: E731
        project(begin, aims(asked, truth, **changes), rng=entropy(), patience=patience, on_step=hook)
        return len(seen)

    assert epochs(Patience(most=7)) == 7
    assert epochs(Patience(least=100.0, epochs=3)) == 4  # the first loss counts as a fall
    assert epochs(Patience(most=3000), noise=0.5) < epochs(Patience(most=3000), noise=0.05)
    assert epochs(Patience(most=3000), noise=100.0) == 1


def test_batches_see_every_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.synthetic.rap.projection.LARGEST_BATCH", 4)
    monkeypatch.setattr("bursar.synthetic.rap.projection.RATE", 1e-3)
    asked = workload("ab")
    truth = relaxed_answers(asked, one_hot(np.zeros((5, 5), int)))
    end = project(start(asked, rows=20, rng=entropy()), aims(asked, truth), rng=entropy(), patience=Patience(most=600))
    assert np.abs(relaxed_answers(asked, end) - truth).max() < 0.1  # a batch left out would stay near its start, 1/15


def test_precise_answers_count_more() -> None:
    asked = workload("e", "e")  # the same two queries twice, with contradicting answers
    answers, weights = np.array([1.0, 0.0, 0.0, 1.0]), np.array([1, 1, 0.01, 0.01], np.float32)
    targets = aims(asked, answers, weights=weights)
    end = project(start(asked, rows=20, rng=entropy()), targets, rng=entropy())
    assert relaxed_answers(asked, end)[0] > 0.8  # equal weights would end at 1/2


@pytest.mark.parametrize("size", [0, 1, 49, 50, 1000, 1013])
def test_a_rounded_table_has_the_size_asked_for_and_values_of_the_domain(size: int) -> None:
    table = randomized_rounding(start(workload("a"), rows=50, rng=entropy()), size=size)
    assert table.shape == (size, 5)
    assert np.all(table >= 0)
    assert np.all(table < np.array(SIZES))


def test_rounding_keeps_answers() -> None:
    asked = workload("abd", "e")
    rows = start(asked, rows=100, rng=entropy())
    truth = relaxed_answers(asked, rows)

    def off(counts: np.ndarray) -> float:
        return float(np.abs(counts / 20_000 - truth).max())

    assert (
        off(table_answers(asked, randomized_rounding(rows, size=20_000))) < 0.02
    )  # five standard deviations, with room
    wrong = randomized_rounding(start(asked, rows=100, rng=entropy()), size=20_000)[:, ::-1] % np.array(SIZES)
    assert off(table_answers(asked, wrong)) > 0.05


def test_one_hot_rows_round_to_themselves() -> None:
    codes = np.stack([RNG.integers(0, size, 30) for size in SIZES], axis=1)
    assert sorted(randomized_rounding(one_hot(codes), size=30).tolist()) == sorted(codes.tolist())


@pytest.mark.parametrize(
    "facts",
    [
        {"sets": ()},
        {"sets": (("a", "a"),)},
        {"sets": (("a", "x"),)},
        {"sets": ((),)},
        {"sets": (NAMES,), "names": NAMES[:4]},
        {"sets": (("a",),), "least": 2},
        {"sets": (("a",),), "least": 0},
        {"sets": (("a",),), "sizes": (5, 3, 0, 4, 2)},
        {"sets": (tuple("abcdef"),), "names": tuple("abcdef"), "sizes": (2,) * 6},
    ],
)
def test_workloads_that_make_no_sense(facts: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(QueryError):
        ThresholdWorkload(**{"names": NAMES, "sizes": SIZES, **facts})


def test_tables_need_rows_that_are_there() -> None:
    with pytest.raises(QueryError):
        randomized_rounding(start(workload("a"), rows=2, rng=entropy()), size=-1)


def test_without_the_compiler_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(Unsupported, match="pip install numba"):
        compiled.compiled(lambda: None)
