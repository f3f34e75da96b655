"""The simulated systems of Boost's evaluation, on cases small enough to work out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from benchmarks.boost_data import Blocks
from benchmarks.boost_package import Single, product
from benchmarks.boost_plots import per_path
from benchmarks.boost_questions import Pool, single
from benchmarks.boost_run import Size, Trace, ask, full, job, systems
from benchmarks.systems import boost_calibration as calibrated
from benchmarks.systems.boost_caches import exact_cache, exact_cache_tree, laplace
from benchmarks.systems.boost_histogram import TIDIED, Histogram
from benchmarks.systems.boost_reference import COVID, Constants, Printed, Published, Vanilla, Warm, longest_run
from benchmarks.systems.boost_world import PATH, World, covering, leaves

from bursar import presets

pytestmark = pytest.mark.thinned(3)

ALPHA, BETA, SIZE = 0.05, 0.001, 100_000
EPSILON = math.log(1000) / (SIZE * ALPHA)
FRACTIONS = np.array([[0.5, 0.5, 0.5, 0.5], [0.8, 0.8, 0.8, 0.8], [0.1, 0.2, 0.3, 0.4]])
BINS = [np.array([0, 1]), np.array([1, 2]), np.array([3])]
TRUSTING = Constants(ready=0, step=5)


def world(blocks: int = 1) -> World:
    return World(fractions=FRACTIONS[:, :blocks], size=SIZE, selectors=BINS, bins=(4,))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_calibrations_are_the_least_that_keep_their_bounds() -> None:
    def missed(epsilon: float) -> float:
        x = ALPHA * SIZE * epsilon / 2
        return (0.5 + x / 4) * math.exp(-x)

    def either(epsilon: float) -> float:
        return math.exp(-ALPHA * SIZE * epsilon) + missed(epsilon)

    assert calibrated.laplace(ALPHA, BETA, SIZE) == pytest.approx(EPSILON)
    assert calibrated.printed(ALPHA, BETA, SIZE) == pytest.approx(4 * EPSILON)
    for failure, epsilon in ((missed, calibrated.sparse_vector), (either, calibrated.vanilla)):
        least = epsilon(ALPHA, BETA, SIZE)
        assert failure(least) <= BETA < failure(least * 0.999)
        assert epsilon(ALPHA, BETA, 2 * SIZE) == pytest.approx(least / 2)
        assert EPSILON < least < 4 * EPSILON


def test_the_simulated_calibration_is_close_to_the_law_of_a_sum() -> None:
    assert calibrated.together(ALPHA, BETA, SIZE, 1) == pytest.approx(EPSILON)
    draws = np.abs(np.random.default_rng(1).laplace(size=(400_000, 4)).sum(axis=1))
    exact = float(np.quantile(draws, 1 - BETA)) / (SIZE * ALPHA)
    assert calibrated.together(ALPHA, BETA, SIZE, 4) == pytest.approx(exact, rel=0.15)
    assert calibrated.together(ALPHA, BETA, SIZE, 4) == calibrated.together(ALPHA, BETA, SIZE, 4)


def test_windows_are_cut_into_the_fewest_nodes() -> None:
    nodes = {(a, a + 2**k - 1) for k in range(5) for a in range(0, 16, 2**k)}
    for first in range(16):
        for last in range(first, 16):
            found = covering(first, last)
            assert set(found) <= nodes
            assert [b for a, z in found for b in range(a, z + 1)] == list(range(first, last + 1))
            inside = [node for node in nodes if first <= node[0] and node[1] <= last]
            fewer = (c for size in range(1, len(found)) for c in combinations(inside, size))
            assert len(found) <= 3 or not any(
                sum(z - a + 1 for a, z in some) == last - first + 1
                and len({b for a, z in some for b in range(a, z + 1)}) == last - first + 1
                for some in fewer
            )
    assert leaves(2, 4) == [(2, 2), (3, 3), (4, 4)]


def test_the_longest_run_has_the_most_blocks() -> None:
    assert longest_run([]) == []
    assert longest_run([(0, 0), (2, 3), (4, 4), (8, 9)]) == [(2, 3), (4, 4)]
    assert longest_run([(0, 0), (1, 1), (3, 3), (4, 7)]) == [(3, 3), (4, 7)]


def test_the_histogram_of_figure_2() -> None:
    """Bins (P, A); Q1 counts P = 1, Q2 counts A = 0, both found too large, with a learning rate of 1."""
    histogram = Histogram((2, 4), 0)
    positive, minors = (1, slice(None)), (slice(None), 0)
    histogram.update(positive, -1.0)
    assert 100 * histogram.estimate((0, slice(0, 1))) == pytest.approx(18.3, abs=0.05)
    assert 100 * histogram.estimate((1, slice(0, 1))) == pytest.approx(6.7, abs=0.05)
    histogram.update(minors, -1.0)
    shown = 100 * histogram.weights / histogram.total
    np.testing.assert_allclose(shown, [[8.0, 21.7, 21.7, 21.7], [2.9, 8.0, 8.0, 8.0]], atol=0.06)
    assert histogram.updates.tolist() == [[1, 0, 0, 0], [2, 1, 1, 1]]


def test_lazy_normalisation_is_normalisation() -> None:
    histogram, plain = Histogram((6,), 0), np.full(6, 1 / 6)
    moves = np.random.default_rng(0)
    for _ in range(3 * TIDIED + 5):
        bins = np.flatnonzero(moves.random(6) < 0.5)
        rate = float(moves.normal(0, 0.3))
        if len(bins):
            histogram.update(bins, rate)
            plain[bins] *= math.exp(rate)
            plain /= plain.sum()
    np.testing.assert_allclose(histogram.weights / histogram.total, plain, rtol=1e-9)


def test_two_ways_to_wait_after_a_failure() -> None:
    every, least = Histogram((4,), 3), Histogram((4,), 3)
    for histogram in (every, least):
        histogram.updates[:] = [5, 7, 5, 9]
    every.raise_all(np.array([0, 1, 2]), 5)
    least.raise_least(np.array([0, 1, 2]), 5)
    assert every.thresholds.tolist() == [10, 10, 10, 3]
    assert least.thresholds.tolist() == [8, 3, 8, 3]
    assert not every.ready(np.array([1]))
    assert least.ready(np.array([1]))


@pytest.mark.parametrize(("maker", "repeated"), [(laplace, 1.0), (exact_cache, 0.0), (exact_cache_tree, 0.0)])
def test_bought_answers_cost_what_the_formula_says(maker: type, repeated: float) -> None:
    system = maker(world(), rng())
    system.answer(0, 0, 0)
    assert system.spent.tolist() == pytest.approx([EPSILON])
    system.answer(0, 0, 0)
    assert system.spent.tolist() == pytest.approx([EPSILON * (1 + repeated)])
    system.answer(1, 0, 0)
    assert system.spent.tolist() == pytest.approx([EPSILON * (2 + repeated)])


def test_blocks_pay_for_the_windows_they_are_in() -> None:
    window = exact_cache(world(4), rng())
    window.answer(0, 0, 1)
    window.answer(0, 1, 3)
    assert window.spent.tolist() == pytest.approx([EPSILON / 2, EPSILON / 2 + EPSILON / 3, EPSILON / 3, EPSILON / 3])
    tree = exact_cache_tree(world(4), rng())
    tree.answer(0, 1, 3)
    both = calibrated.together(ALPHA, BETA, 3 * SIZE, 2)
    assert tree.spent.tolist() == pytest.approx([0, both, both, both])
    tree.answer(0, 2, 3)
    alone = calibrated.laplace(ALPHA, BETA, 2 * SIZE)
    assert both < alone  # so what is kept is too coarse
    assert tree.spent.tolist() == pytest.approx([0, both, both + alone, both + alone])
    tree.answer(0, 1, 3)
    assert tree.spent.tolist() == pytest.approx([0, both, both + alone, both + alone])


def test_boost_buys_until_its_histogram_is_ready_and_then_tests() -> None:
    system = Published(world(), Constants(ready=2, step=5, cached=False), rng())
    tested = calibrated.sparse_vector(ALPHA, BETA, SIZE)
    paths = [system.answer(1, 0, 0)[1] for _ in range(3)]
    assert paths == [PATH.bought, PATH.bought, PATH.failed]
    assert system.updates == 3
    assert system.spent[0] == pytest.approx(3 * EPSILON + 3 * tested)
    assert system.histograms[0, 0].thresholds.tolist() == [2, 7, 7, 2]
    spent = float(system.spent[0])
    assert [system.answer(1, 0, 0)[1] for _ in range(4)] == [PATH.bought] * 4  # bins 1 and 2 have 3 updates of 7
    assert system.updates == 7
    assert system.answer(1, 0, 0)[1] in (PATH.estimated, PATH.failed)
    assert system.spent[0] - spent >= 4 * EPSILON + 3 * tested * (1 - 1e-9)


def test_the_learning_rate_falls_with_the_updates() -> None:
    assert [COVID.rate(updates) for updates in (0, 49, 50, 99, 100, 1000)] == [0.25, 0.25, 0.0625, 0.0625, 0.025, 0.025]


def test_a_cached_answer_is_free_and_teaches_nothing() -> None:
    system = Published(world(), COVID, rng())
    first = system.answer(1, 0, 0)
    again = system.answer(1, 0, 0)
    assert again == (first[0], PATH.cached)
    assert system.updates == 1
    assert system.spent.tolist() == pytest.approx([EPSILON])


def test_a_good_estimate_is_within_the_margin() -> None:
    """The uniform histogram is right about query 0: a test passes, and only the sparse vector is paid for."""
    system = Published(world(), TRUSTING, rng())
    system.histograms[0, 0] = Histogram((4,), 0)
    tested = calibrated.sparse_vector(ALPHA, BETA, SIZE)
    for _ in range(5):
        assert system.answer(0, 0, 0) == (pytest.approx(0.5), PATH.estimated)
    assert system.spent.tolist() == pytest.approx([3 * tested])


def test_one_sparse_vector_per_window() -> None:
    system = Published(world(4), TRUSTING, np.random.default_rng(1))  # whose noise lets both tests pass
    for node in [(0, 0), (1, 1), (2, 3), (0, 3), (0, 1)]:
        system.histograms[node] = Histogram((4,), 0)
    system.answer(0, 0, 0)
    system.answer(0, 0, 2)  # (0, 1) from its histogram, (2, 2) bought
    one, three = (calibrated.sparse_vector(ALPHA, BETA, blocks * SIZE) for blocks in (1, 3))
    part = calibrated.together(ALPHA, BETA, 3 * SIZE, 2)
    assert system.spent.tolist() == pytest.approx([3 * one + 3 * three, 3 * three, 3 * three + part, 0])


def test_boost_as_printed_pays_at_once() -> None:
    system = Printed(world(), TRUSTING, rng())
    epsilon = 4 * EPSILON
    assert system.spent.tolist() == pytest.approx([3 * epsilon])
    assert system.answer(1, 0, 0)[1] == PATH.bought
    assert system.spent.tolist() == pytest.approx([4 * epsilon])
    spent = float(system.spent[0])
    system.histograms[0, 0].weights[:] = [0.97, 0.01, 0.01, 0.01]
    system.histograms[0, 0].total = 1.0
    assert system.answer(0, 0, 0)[1] == PATH.failed
    assert system.spent[0] - spent == pytest.approx(4 * epsilon)
    assert system.histograms[0, 0].thresholds.tolist() == [5, 0, 0, 0]


def test_boost_as_printed_tests_a_run_of_nodes() -> None:
    system = Printed(world(4), TRUSTING, rng())
    assert system.spent.tolist() == [0, 0, 0, 0]
    system.histograms[1, 1] = Histogram((4,), 0)
    value, path = system.answer(0, 1, 3)
    assert path == PATH.estimated
    assert value == pytest.approx(0.5, abs=ALPHA)
    tested = calibrated.printed(ALPHA, BETA / 2, SIZE)
    other = calibrated.together(ALPHA, BETA / 2, 2 * SIZE, 1)
    assert system.spent.tolist() == pytest.approx([0, 3 * tested, other, other])


def test_what_new_histograms_start_from() -> None:
    for warm, leaf, inner in ((Warm.NONE, 0.25, 0.25), (Warm.LEAVES, 0.4, 0.25), (Warm.ALL, 0.4, 0.3)):
        system = Published(world(4), replace(COVID, warm=warm), rng())
        for block, weight in ((0, 0.2), (1, 0.4)):
            system.histograms[block, block] = known = Histogram((4,), 7)
            known.weights[:] = [weight, *[(1 - weight) / 3] * 3]
            known.updates[:] = 10 * block
        assert system._begin((3, 3)).weights[0] == pytest.approx(leaf)
        assert system._begin((0, 1)).weights[0] == pytest.approx(inner)
        assert system._begin((2, 3)).weights[0] == pytest.approx(0.25)
        assert system._begin((3, 3)).updates[0] == (0 if warm is Warm.NONE else 10)
        assert system._begin((0, 1)).updates[0] == (5 if warm is Warm.ALL else 0)


def test_vanilla_pmw_pays_three_and_then_four() -> None:
    system = Vanilla(world(), rng())
    epsilon = calibrated.vanilla(ALPHA, BETA, SIZE)
    assert system.answer(0, 0, 0) == (0.5, PATH.estimated)
    assert system.spent.tolist() == pytest.approx([3 * epsilon])
    assert system.answer(1, 0, 0)[1] == PATH.failed
    assert system.spent.tolist() == pytest.approx([7 * epsilon])
    raised = math.exp(ALPHA / 8)
    assert system.histograms[0, 0].estimate(BINS[1]) == pytest.approx(raised / (1 + raised))


def test_answers_are_as_accurate_as_promised_and_a_twin_with_half_the_budget_is_not() -> None:
    """Misses of 40,000 answers at beta = .001 are at most 80 but for 1e-6; with half of epsilon there are 1,265."""
    exact = world()
    system = laplace(exact, rng())
    twin = laplace(replace(exact, beta=math.sqrt(BETA)), rng())
    missed = [sum(abs(made.answer(0, 0, 0)[0] - 0.5) > ALPHA for _ in range(40_000)) for made in (system, twin)]
    assert missed[0] <= 80 < missed[1]


TABLE = Blocks(name="small", columns=("a", "b"), shape=(2, 3), counts=np.array([[10, 20, 30, 40, 50, 50]]), real=False)
POOL = Pool(
    columns=TABLE.columns, shape=TABLE.shape, subsets=((0b01, 0b111), (0b11, 0b101), (0b10, 0b010), (0b11, 0b111))
)


def test_the_package_answers_the_same_questions() -> None:
    exact = World(fractions=POOL.fractions(TABLE), size=200, selectors=POOL.selectors, bins=(6,), alpha=0.5)
    system = Single(TABLE, POOL, exact, presets.default)
    trace = ask(system, exact, single(len(POOL), 0, 12, 0), Trace(system="default", seed=0), 1)
    assert trace.paths.total() == len(trace.epsilon) == 12
    assert trace.epsilon == sorted(trace.epsilon)
    assert 0 < trace.epsilon[-1] <= 2 * 3 * math.log(1000) / 99.5  # at most twice what three answers cost
    assert trace.paths["free"] >= 8
    assert system.answer(3, 0, 0)[1] == "free"  # sizes are public
    assert "goal met" in system.explain(0)
    assert product(POOL, 1).attrs == ("b",)
    assert product(POOL, 3).attrs == ()


def test_a_run_by_names() -> None:
    trace = job("covid", "stream", 1.0, Size(questions=800, blocks=4), "boost-cold", 0)
    assert trace.at == list(range(2, 801, 2))
    assert trace.epsilon == pytest.approx(sorted(trace.epsilon), rel=0.6)
    assert trace.epsilon[-1] <= trace.largest[-1]
    assert trace.paths.total() == 800
    assert trace.updates > 0
    assert trace.histograms_mb == pytest.approx(7 * 128 * 16 / 2**20)
    assert set(per_path([trace])) == set(trace.paths)


def test_every_setting_has_the_systems_that_the_paper_compares() -> None:
    assert {"boost", "boost-printed", "laplace"} <= set.intersection(
        *(set(systems(s)) for s in ("single", "static", "stream"))
    )
    assert {"exact-cache", "pmw", "default"} <= set(systems("single"))
    assert {"exact-cache-window", "exact-cache-tree"} <= set(systems("static")) & set(systems("stream"))
    assert "boost-cold" in systems("stream")
    assert full("single") == Size(questions=70_000, blocks=1)
    assert full("stream") == Size(questions=300_000, blocks=50)
