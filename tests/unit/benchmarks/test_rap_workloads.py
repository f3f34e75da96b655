"""RAP's tables and workloads: sizes that the paper states, drift as it is defined, and draws by their laws."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from benchmarks import rap_data, rap_workloads
from benchmarks.rap_data import ADULT, LOANS, Coded, adult, loans, stand_in
from benchmarks.rap_workloads import distinct, drawn, drifted, masses, queries, uniform, workload


@pytest.fixture(autouse=True)
def without_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rap_data, "data_folder", lambda: None)
    monkeypatch.setattr(rap_workloads, "data_folder", lambda: None)


def small(rows: int = 50) -> Coded:
    sizes = (4, 2, 3, 5)
    return Coded(name="small", names=tuple("abcd"), sizes=sizes, codes=stand_in(sizes, rows), real=False)


@pytest.mark.parametrize(("made", "rows", "features", "values"), [(adult, 48_842, 14, 588), (loans, 42_535, 48, 4_427)])
def test_the_stand_ins_have_the_sizes_of_table_2(made: object, rows: int, features: int, values: int) -> None:
    data = made()  # type: ignore[operator]
    assert not data.real
    assert (data.rows, data.features, sum(data.sizes)) == (rows, features, values)
    assert data.codes.shape == (rows, features)
    assert np.all(data.codes >= 0)
    assert np.all(data.codes.max(axis=0) < data.sizes)


def test_every_marginal_of_three_features_is_one_measurement() -> None:
    for sizes in (ADULT.values(), LOANS.values()):
        assert np.prod(sorted(sizes)[-3:]) <= 2**22


def test_features_of_a_stand_in_depend_on_each_other() -> None:
    data = small(20_000)
    pair = data.counts((0, 3)) / data.rows
    apart = np.abs(pair - np.outer(pair.sum(axis=1), pair.sum(axis=0))).sum() / 2
    assert apart > 0.02  # rows drawn independently would be apart by about sqrt(20 / 20,000) / 3 = .01


def test_numbers_fall_into_bins_of_equal_width_and_lists_are_numbered() -> None:
    assert rap_data._codes("age", ["15", "16", "17", "100", "101"]).tolist() == [0, 0, 1, 84, 84]
    assert rap_data._codes("fnlwgt", ["14999", "15000", "1490400"]).tolist() == [0, 1, 99]
    assert rap_data._codes("sex", ["Male", "Female", "Male"]).tolist() == [1, 0, 1]


def test_counts_are_those_of_the_rows() -> None:
    data = small()
    table = data.counts((3, 1))
    expected = np.zeros((5, 2), int)
    for row in data.codes:
        expected[row[3], row[1]] += 1
    assert np.array_equal(table, expected)


def test_uniform_workloads_have_different_sets_and_differ_by_seed() -> None:
    data = small()
    assert set(uniform(data, 3, 99, 0)) == set(combinations(range(4), 3))
    drawings = [uniform(data, 2, 3, seed) for seed in range(30)]
    assert all(len(set(sets)) == 3 for sets in drawings)
    assert {features for sets in drawings for features in sets} == set(combinations(range(4), 2))
    assert workload(data, 2, 3, 5) == uniform(data, 2, 3, 5)


def test_filtered_workloads_have_no_large_set() -> None:
    data = small()
    kept = uniform(data, 2, 99, 0, most_cells=10)
    assert set(kept) == {(0, 1), (1, 2), (1, 3)}
    assert queries(data, kept) == 8 + 6 + 10


def test_distributions_of_features() -> None:
    assert masses("uniform", 4).tolist() == [0.25] * 4
    zipf, geometric = masses("zipf", 4), masses("geometric", 4)
    np.testing.assert_allclose(zipf[0] / zipf, [1, 2, 3, 4])
    np.testing.assert_allclose(geometric[1:] / geometric[:-1], 0.75)
    assert zipf.sum() == pytest.approx(1)
    assert geometric.sum() == pytest.approx(1)


def test_without_drift_nothing_changes_and_full_drift_reverses() -> None:
    historical, rng = masses("geometric", 9), np.random.default_rng(0)
    np.testing.assert_array_equal(drifted(historical, 0.0, rng), historical)
    np.testing.assert_array_equal(drifted(historical, 1.0, rng), historical[::-1])


def test_half_drift_forgets_the_order_and_less_drift_does_not() -> None:
    """The mass of the first feature: on average 1/d where the order is forgotten."""
    historical, rng = masses("geometric", 9), np.random.default_rng(0)
    first = {gamma: np.mean([drifted(historical, gamma, rng)[0] for _ in range(4000)]) for gamma in (0.1, 0.5)}
    spread = historical.std() / np.sqrt(4000)
    assert abs(first[0.5] - 1 / 9) < 6 * spread
    assert first[0.1] > 1 / 9 + 20 * spread
    assert sorted(drifted(historical, 0.3, rng)) == pytest.approx(sorted(historical))


def test_drawn_thresholds_have_each_feature_once_and_may_repeat() -> None:
    rng = np.random.default_rng(0)
    sets = drawn(masses("geometric", 6), 3, 500, rng)
    assert len(sets) == 500
    assert all(len(set(features)) == 3 and list(features) == sorted(features) for features in sets)
    assert len(distinct(sets)) < 21
    counts = np.bincount([f for features in sets for f in features], minlength=6)
    assert counts[0] > 1.5 * counts[5]
