"""RAP's baselines behind a real kernel on a small table, and runs that are remembered."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from benchmarks import rap_bench, rap_run, rap_store
from benchmarks.rap_bench import Bench
from benchmarks.rap_data import Coded, stand_in
from benchmarks.rap_grids import Grid
from benchmarks.rap_projected import projected
from benchmarks.rap_run import MEASURED, Setting, Stopwatch, future, sets_of
from benchmarks.rap_store import Runs, averaged
from benchmarks.rap_systems import SYSTEMS
from benchmarks.rap_training import Curve
from benchmarks.rap_world import CodedSource, World, budget_of, published_rho

from bursar.core.queries import Mask, Product, Steps

pytestmark = pytest.mark.thinned(3)

SIZES = (4, 2, 3, 5)
DATA = Coded(name="small", names=tuple("abcd"), sizes=SIZES, codes=stand_in(SIZES, 300), real=False)
SETS = ((0, 1, 2), (1, 2, 3))


def setting(system: str, **changes: object) -> Setting:
    return replace(Setting(system=system, size=2), **changes)


def test_the_total_is_a_table_without_columns() -> None:
    assert CodedSource(DATA).table(()) == 300
    assert CodedSource(DATA).table(()).shape == ()
    everybody = Product((Mask((), (), Steps.dense([[1]])),))
    assert everybody.apply(CodedSource(DATA).table).tolist() == [300]


def test_the_published_conversion_is_the_inverse_of_the_simple_one() -> None:
    rho, delta = published_rho(0.7, 1e-9), 1e-9
    assert rho + 2 * math.sqrt(rho * math.log(1 / delta)) == pytest.approx(0.7)
    assert rho < budget_of(0.7, 31_623).amount  # delta is 1e-9 there too, and the conversion tight


def test_all_zero_costs_nothing() -> None:
    released = SYSTEMS["all-zero"](DATA, setting("all-zero"))(SETS)
    assert released.spent == 0
    assert [answers.tolist() for answers in released.answers(SETS)] == [[0.0] * 24, [0.0] * 30]


@pytest.mark.parametrize("least", [1, 2, 3])
def test_the_calibrated_gaussian_spends_its_budget_and_no_more(least: int) -> None:
    asked = setting("gaussian", least=least)
    released = SYSTEMS["gaussian"](DATA, asked)(SETS)
    rho = budget_of(1.0, 300).amount
    assert rho * (1 - 1e-6) < released.spent <= rho
    assert [len(answers) for answers in released.answers(SETS)] == [24, 30]


def test_a_marginal_costs_two_cells_where_the_baseline_pays_for_all() -> None:
    world = World(DATA, budget_of(1.0, 300), sequential=True)
    assert world.calibrated(SETS, 3) == pytest.approx(math.sqrt(2 / world.budget.amount))
    naive = SYSTEMS["gaussian-naive"](DATA, setting("gaussian-naive"))(SETS)
    assert naive.spent == pytest.approx(2 * 2 / 54 * published_rho(1.0, 300**-2.0))


@pytest.mark.heavy
def test_noise_of_the_baseline_is_as_large_as_it_says() -> None:
    """sigma = sqrt(54 / (2 rho)) people; the mean square of 540 draws is within .5 to 2 times that, and not 4."""
    sigma = math.sqrt(54 / (2 * published_rho(1.0, 300**-2.0))) / 300
    truth = [DATA.counts(features).ravel() / 300 for features in SETS]
    squares = []
    for _ in range(10):
        released = SYSTEMS["gaussian-naive"](DATA, setting("gaussian-naive"))(SETS)
        squares += [np.mean((a - t) ** 2) for a, t in zip(released.answers(SETS), truth, strict=True)]
    assert 0.5 < np.mean(squares) / sigma**2 < 2


@pytest.mark.heavy
@pytest.mark.parametrize("system", ["rap-nonadaptive", "default", "rap"])
def test_synthetic_rows_answer_within_the_budget(system: str) -> None:
    released = SYSTEMS[system](DATA, setting(system, rounds=2, picks=2, rows=20, epsilon=20.0))(SETS)
    assert 0 < released.spent <= budget_of(20.0, 300).amount
    assert [len(answers) for answers in released.answers(SETS)] == [24, 30]
    assert released.table is not None
    assert released.table.shape == DATA.codes.shape
    assert np.all((released.table >= 0) & (released.table < SIZES))


def test_relaxed_rows_answer_sets_that_they_were_not_made_for() -> None:
    released = SYSTEMS["rap"](DATA, setting("rap", rounds=2, picks=2, rows=20))(SETS)
    (answers,) = released.answers(((0, 2, 3),))
    assert answers.sum() == pytest.approx(1, abs=1e-4)


def test_a_curve_has_points_that_get_farther_apart() -> None:
    curve = Curve(world=World(DATA, budget_of(1.0, 300), sequential=True), history=SETS, later=SETS[:1], least=3)
    projected(curve.world, setting("rap", rounds=2, picks=2, rows=20), SETS, on_step=curve)
    gaps = np.diff(curve.steps)
    assert curve.steps[0] == 1
    assert np.all(gaps[1:] >= gaps[:-1] - 1)
    assert len(curve.steps) == len(curve.losses) == len(curve.present) == len(curve.future)
    assert all(late <= early for late, early in zip(curve.future, curve.present, strict=True))


def test_a_history_has_each_set_once_and_future_errors_are_those_of_its_draws() -> None:
    asked = setting("all-zero", sets="history-geometric", size=50, k=2, least=2, future=40)
    sets = sets_of(asked, DATA)
    assert len(set(sets)) == len(sets) <= 6

    def zeros(asked_for: object) -> list[np.ndarray]:
        return [np.zeros(DATA.cells(features)) for features in asked_for]  # type: ignore[attr-defined]

    found = future(asked, DATA, zeros)
    largest = {features: DATA.counts(features).max() / 300 for features in ((a, b) for b in range(4) for a in range(b))}
    assert min(largest.values()) <= found["future_0"] <= max(largest.values())
    assert found["future_square_1"] >= found["future_1"] ** 2


def test_filtered_sets_are_no_larger_than_the_table() -> None:
    few = replace(DATA, codes=DATA.codes[:24])
    assert sets_of(setting("rap", sets="filtered", size=9), few) == ((0, 1, 2),)
    assert len(sets_of(setting("rap", sets="uniform", size=9), few)) == 4


def test_a_stopwatch_gives_every_item() -> None:
    watch = Stopwatch(np.full(2, i) for i in range(3))
    assert [item.tolist() for item in watch] == [[0, 0], [1, 1], [2, 2]]
    assert watch.seconds >= 0


def test_a_run_is_not_done_twice(tmp_path: Path) -> None:
    known = setting("all-zero", epsilon=0.1)
    outcome = {"max_error": 0.1 + 0.2, "peak_mb": 3.0}
    Runs(tmp_path, "loans")._keep(known, outcome)
    Runs(tmp_path, "loans")._keep(replace(known, seed=1), outcome)
    assert Runs(tmp_path, "loans")([known]) == {known: outcome}
    assert len((tmp_path / "rap-loans-stand-in-runs.csv").read_text().splitlines()) == 3


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "rap-loans-stand-in-runs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit, match="other columns"):
        Runs(tmp_path, "loans")


def test_averages_are_of_what_all_seeds_have() -> None:
    first = {"max_error": 0.2, "tv": 1.0, "peak_mb": 10.0}
    assert averaged([first, {"max_error": 0.4, "peak_mb": 12.0}]) == pytest.approx({"max_error": 0.3, "peak_mb": 12.0})
    assert set(first) <= set(MEASURED)


def test_a_run_in_this_process_has_every_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rap_run, "DATA", {"adult": lambda: DATA})
    found = rap_run.run(setting("gaussian", sets="uniform", epsilon=2.0))
    assert {"max_error", "mean_error", "tv", "cpu_s", "peak_mb", "queries_per_s", "spent"} <= set(found)
    assert "table_max_error" not in found
    assert set(found) <= set(MEASURED)
    assert rap_store.KEY[0] == "data"


def test_what_is_too_large_for_a_system_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All four sets of three features are in the workload of either seed."""
    monkeypatch.setattr(rap_bench, "DATA", {"small": lambda: DATA})
    bench = Bench(data="small", grid=Grid(sizes=(4,)), seeds=(0, 1), out=None, runs=Runs(None, "small"))
    asked = setting("rap", data="small", sets="uniform", size=4)
    whole = sum(DATA.cells(features) for features in combinations(range(4), 3))
    for most, fits in ((whole, True), (whole - 1, False)):
        monkeypatch.setattr(rap_bench, "MOST_QUERIES", {"rap": most})
        assert bench.can(asked) is fits
        assert bench.can(replace(asked, system="gaussian"))
