"""Boost's tables, pools and sequences of questions: sizes that the paper states, and counts by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import boost_data
from benchmarks.boost_data import CITIBIKE_COLUMNS, CITIBIKE_ROWS, COVID_COLUMNS, COVID_ROWS, Blocks, citibike, covid
from benchmarks.boost_questions import TEMPLATES, Pool, citibike_pool, covid_pool, drawn, single, static, stream

SMALL = Blocks(
    name="small",
    columns=("a", "b"),
    shape=(2, 3),
    counts=np.array([[1, 2, 3, 4, 5, 5], [4, 4, 4, 4, 4, 0]]),
    real=False,
)


@pytest.fixture
def without_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boost_data, "data_folder", lambda: None)


def test_the_pools_have_the_sizes_of_the_paper() -> None:
    assert len(covid_pool()) == len(set(covid_pool().subsets)) == 34_425
    assert len(TEMPLATES.split(";")) == 30
    assert len(citibike_pool()) == len(set(citibike_pool().subsets)) == 2_485
    assert citibike_pool().cells == 604_800


@pytest.mark.usefixtures("without_files")
def test_the_stand_in_for_covid_has_its_domain_and_size() -> None:
    made = covid(3)
    assert not made.real
    assert made.counts.shape == (3, 128)
    assert made.counts.sum(axis=1).tolist() == [COVID_ROWS] * 3
    assert np.array_equal(made.counts, covid(3).counts)
    positive = made.counts.reshape(3, *COVID_COLUMNS.values()).sum(axis=(2, 3, 4))[:, 1] / COVID_ROWS
    assert np.all((positive > 0.03) & (positive < 0.2))


def test_the_stand_in_for_citibike_has_the_shares_that_are_known() -> None:
    made = citibike(1)
    assert made.size == CITIBIKE_ROWS
    assert made.number == 1
    cube = made.counts.reshape(tuple(CITIBIKE_COLUMNS.values()))
    subscribers = [boost_data._who(block)[1][0].sum() for block in range(boost_data.BLOCKS)]
    assert np.mean(subscribers) == pytest.approx(0.82, abs=0.005)
    genders = np.mean([boost_data._who(b)[1].sum(axis=(0, 2, 3)) for b in range(boost_data.BLOCKS)], axis=0)
    np.testing.assert_allclose(genders, [0.70, 0.22, 0.08], atol=0.01)
    starts = cube.sum(axis=(0, 1, 2, 4, 5, 6, 7)) / made.size
    assert starts.max() > 5 * starts.min()


def test_fractions_are_counts_over_the_size_of_a_block() -> None:
    subsets = ((0b01, 0b111), (0b11, 0b101), (0b10, 0b010), (0b11, 0b111))
    pool = Pool(columns=SMALL.columns, shape=SMALL.shape, subsets=subsets)
    expected = np.array([[6, 12], [13, 12], [5, 4], [20, 20]]) / 20
    np.testing.assert_allclose(pool.fractions(SMALL), expected)
    assert [bins.tolist() for bins in pool.selectors] == [[0, 1, 2], [0, 2, 3, 5], [4], [0, 1, 2, 3, 4, 5]]


def test_large_domains_are_counted_like_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    subsets = ((0b01, 0b111), (0b11, 0b100), (0b10, 0b010), (0b11, 0b111))
    small = Pool(columns=SMALL.columns, shape=SMALL.shape, subsets=subsets)
    listed = small.fractions(SMALL)
    monkeypatch.setattr("benchmarks.boost_questions.FEW_CELLS", 1)
    large = Pool(columns=SMALL.columns, shape=SMALL.shape, subsets=subsets)
    np.testing.assert_allclose(large.fractions(SMALL), listed)
    assert large.selectors[1] == (slice(None), 2)
    cube = SMALL.counts[0].reshape(large.histogram_shape)
    assert [cube[bins].sum() / 20 for bins in large.selectors] == listed[:, 0].tolist()


def test_what_a_uniform_histogram_answers() -> None:
    pool = Pool(columns=SMALL.columns, shape=SMALL.shape, subsets=((0b01, 0b111), (0b11, 0b001), (0b11, 0b111)))
    fractions = pool.fractions(SMALL)  # .3 and .6, .25 and .4, 1 and 1; a uniform histogram says .5, .333, 1
    assert pool.unlearned(fractions, 0.09) == pytest.approx(4 / 6)
    assert pool.unlearned(fractions, 0.15) == pytest.approx(5 / 6)


def test_zipf_prefers_few_queries() -> None:
    uniform = np.bincount(drawn(100, 0, 100_000, np.random.default_rng(0)), minlength=100)
    skewed = np.sort(np.bincount(drawn(100, 1, 100_000, np.random.default_rng(0)), minlength=100))[::-1]
    assert uniform.min() > 800
    assert uniform.max() < 1_200
    harmonic = (1 / np.arange(1, 101)).sum()
    assert skewed[0] / 100_000 == pytest.approx(1 / harmonic, rel=0.05)
    assert skewed[9] / 100_000 == pytest.approx(0.1 / harmonic, rel=0.1)


def test_a_seed_gives_the_same_questions_again() -> None:
    for kind in (single, lambda *given: static(*given, blocks=7), lambda *given: stream(*given, blocks=7)):
        assert list(kind(50, 1, 200, 3)) == list(kind(50, 1, 200, 3)) != list(kind(50, 1, 200, 4))


def test_windows_lie_within_the_blocks_that_have_come() -> None:
    asked = static(50, 0, 20_000, 0, blocks=10)
    lengths = asked.last - asked.first + 1
    assert asked.first.min() == 0
    assert asked.last.max() == 9
    np.testing.assert_allclose(np.bincount(lengths, minlength=11)[1:] / 20_000, 0.1, atol=0.02)
    around = static(50, 0, 20_000, 0, blocks=50, mean=25)
    assert np.mean(around.last - around.first + 1) == pytest.approx(25, abs=0.2)
    assert np.std(around.last - around.first + 1) == pytest.approx(5, abs=0.2)
    coming = stream(50, 0, 20_000, 0, blocks=10)
    assert np.array_equal(coming.last, coming.there - 1)
    assert coming.first.min() == 0
    assert np.bincount(coming.there).tolist() == [0, *[2_000] * 10]
    newest = (coming.last - coming.first + 1)[coming.there == 10]
    np.testing.assert_allclose(np.bincount(newest, minlength=11)[1:] / 2_000, 0.1, atol=0.04)
