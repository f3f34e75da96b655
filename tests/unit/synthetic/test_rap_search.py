"""The data-free rule for T and K, and the search for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Event, Measured, Noise, Selected
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.errors import QueryError
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.diagonal_search import Search, SearchGrid, SearchPlan, combined
from bursar.synthetic.rap.projection import never
from bursar.synthetic.rap.rounds import Adaptivity, adaptivity
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload

NAMES = tuple("abcdefgh")
SMALL = ThresholdWorkload(names=NAMES[:3], sizes=(4, 3, 2), sets=(("a", "b", "c"), ("a", "b")))
DIAGONAL = [Adaptivity(rounds=t, picks=k) for t, k in [(1, 4), (4, 16), (16, 64), (64, 256)]]
GRID = [Adaptivity(rounds=t, picks=k) for t in (1, 4, 16, 64) for k in (4, 16, 64, 256)]


def wide(sets: int, least: int | None = None) -> ThresholdWorkload:
    chosen = list(combinations(NAMES, 3))[:sets]
    return ThresholdWorkload(names=NAMES, sizes=(30,) * 8, sets=tuple(chosen), least=least)


def picks_in_all(workload: ThresholdWorkload, spend: Spend, size: int) -> int:
    found = adaptivity(workload, spend, size=size)
    return found.rounds * found.picks


def test_more_budget_people_or_sets_mean_more_picks() -> None:
    for spend, more in [(Spend.rho(1e-3), Spend.rho(1e-1)), (Spend.epsilon(0.1), Spend.epsilon(10.0))]:
        base = picks_in_all(wide(4), spend, 50_000)
        assert picks_in_all(wide(4), more, 50_000) > base
        assert picks_in_all(wide(4), spend, 5_000_000) > base
        assert picks_in_all(wide(50), spend, 50_000) > base


def test_the_rule_is_where_what_is_found_meets_the_noise_of_finding() -> None:
    found = adaptivity(wide(16), Spend.rho(0.02), size=50_000)
    c, m = found.rounds * found.picks, wide(16).queries
    level, noise = 50_000 * np.sqrt(16) / c, np.sqrt(c / 0.02) * np.log(m)
    assert level == pytest.approx(noise, rel=0.15)
    assert abs(found.rounds - found.picks) <= 2


def test_thresholds_below_all_columns_have_many_rounds() -> None:
    found = adaptivity(wide(16, least=2), Spend.rho(0.02), size=50_000)
    assert found.rounds > found.picks
    assert adaptivity(wide(16, least=3), Spend.rho(0.02), size=50_000) == adaptivity(
        wide(16), Spend.rho(0.02), size=50_000
    )


@pytest.mark.parametrize("amount", [1e-12, 1e12])
@pytest.mark.parametrize("size", [1, 10**9])
@pytest.mark.parametrize("kind", [Spend.rho, Spend.epsilon])
def test_extremes_stay_within_the_workload(amount: float, size: int, kind: Any) -> None:
    tiny = ThresholdWorkload(names=("a",), sizes=(1,), sets=(("a",),))
    assert adaptivity(tiny, kind(amount), size=size) == Adaptivity(rounds=1, picks=1)
    found = adaptivity(wide(50), kind(amount), size=size)
    assert 1 <= found.rounds <= 64
    assert 1 <= found.picks <= wide(50).queries


@pytest.mark.parametrize("place", range(4))
def test_the_bottom_of_the_diagonal_and_all_settings_like_it_are_tried(place: int) -> None:
    grid, tried = SearchGrid.of(wide(16)), dict[Adaptivity, float]()
    assert (list(grid.diagonal), list(grid.settings)) == (DIAGONAL, GRID)
    while (setting := grid.following(tried)) is not None:
        tried[setting] = abs(DIAGONAL.index(setting) - place) if setting in DIAGONAL else 9.0
    best = DIAGONAL[place]
    assert {s for s in GRID if s.rounds * s.picks == best.rounds * best.picks} <= set(tried)
    assert len(tried) == grid.trials == 5  # known before, whichever is the best


def test_settings_that_come_to_the_same_are_one() -> None:
    grid = SearchGrid.of(SMALL)  # 36 queries
    assert Adaptivity(rounds=1, picks=36) in grid.settings  # K = 64 and 256, whatever T is
    assert len(grid.settings) == len(set(grid.settings)) < 16
    assert all((s.rounds - 1) * s.picks < SMALL.queries for s in grid.settings)


def price_of(event: Event) -> float:
    """rho: k/(2 g^2) for k picks, k/(2 sigma^2) for k rows that all count the same person."""
    if isinstance(event, Selected):
        return event.count / (2 * event.scale**2)
    assert isinstance(event, Measured)
    return event.strategy.rows / (2 * event.noise.scale**2)


class Till:
    """Answers exactly, and adds up what it sold."""

    def __init__(self) -> None:
        self.picked = 0
        self.records: list[Record] = []
        self.prices: list[float] = []
        self.counts = np.random.default_rng(3).integers(0, 50, (4, 3, 2))

    @property
    def spent(self) -> float:
        return sum(self.prices)

    def _table(self, names: tuple[str, ...]) -> np.ndarray:
        return self.counts.sum(axis=tuple(i for i, name in enumerate("abc") if name not in names))

    def _sold(self, event: Event, values: np.ndarray) -> Record:
        self.prices.append(price_of(event))
        record = Record(
            position=len(self.prices), at=0, analyst="", question="", proposer="", run=0, event=event, values=values
        )
        self.records.append(record)
        return record

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        return self._sold(Measured(strategy=strategy, noise=noise, version=1), strategy.apply(self._table))

    def select(
        self, candidates: LinearMap, estimates: np.ndarray, *, count: int, scale: float, barred: Sequence[int] = ()
    ) -> Record:
        self.picked += 1
        scores = np.abs(candidates.apply(self._table) - estimates)
        scores[np.asarray(barred, int)] = -1
        event = Selected(candidates=candidates, count=count, scale=scale, version=1)
        return self._sold(event, np.argsort(-scores)[:count])


@pytest.fixture(autouse=True)
def larger_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the published rate: a small table is there in hundreds of steps."""
    monkeypatch.setattr("bursar.synthetic.rap.projection.RATE", 1e-3)


def went(plan: SearchPlan, till: Till, *, records: Sequence[Record] = (), stop: Any = never, **changes: Any) -> Search:
    """A search that goes on to its end."""
    facts: dict[str, Any] = {"size": int(till.counts.sum()), "rows": 20, "rng": np.random.default_rng(0)}
    search = Search(plan, records=records, stop=stop, **{**facts, **changes})
    while (trial := search.following()) is not None and not stop():
        search.run(trial, till)
    return search


def searched(till: Till, rounds: Sequence[int] = (1, 2, 4), picks: Sequence[int] = (2, 4, 8), **changes: Any) -> Any:
    plan = SearchPlan(workload=SMALL, spend=Spend.rho(5.0), sized=True, grid=SearchGrid.of(SMALL, rounds, picks))
    return went(plan, till, **changes).trials


def test_every_trial_is_charged_and_all_fit_the_budget() -> None:
    till = Till()
    trials = searched(till)
    assert 4.99 < till.spent <= 5.0
    assert [t.error for t in trials] == sorted(t.error for t in trials)
    assert len({t.adaptivity for t in trials}) == len(trials) == SearchGrid.of(SMALL, (1, 2, 4), (2, 4, 8)).trials < 9
    assert all(t.projected.finished for t in trials)


def test_the_error_of_a_trial_is_that_of_its_worst_answer() -> None:
    till = Till()
    trial = searched(till)[0]
    size = till.counts.sum()
    truth = SMALL.candidates.apply(till._table)
    assert trial.error == pytest.approx(np.abs(trial.projected.answers() * size - truth).max(), abs=1.0)


def test_the_table_is_fitted_to_what_all_trials_have_measured() -> None:
    till = Till()
    trials = searched(till)
    best = combined(trials, rng=np.random.default_rng(0))
    assert len(best.rounds) == sum(len(t.projected.rounds) for t in trials)
    truth = SMALL.candidates.apply(till._table) / till.counts.sum()
    assert np.abs(best.answers() - truth).max() <= np.abs(trials[0].projected.answers() - truth).max() + 0.01


def test_a_stopped_search_returns_what_it_has() -> None:
    till = Till()
    assert searched(till, stop=lambda: True) == ()
    assert till.spent == 0
    trials = searched(till, stop=lambda: till.picked > 3)
    assert 0 < till.spent < 5.0
    assert len(trials) < 5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cut", [0, 1, 2, 5, 8, 100])
def test_an_interrupted_search_goes_on_and_pays_for_nothing_twice(cut: int) -> None:
    whole = Till()
    searched(whole)
    till = Till()
    searched(till, records=whole.records[:cut])
    assert till.spent + sum(whole.prices[:cut]) <= 5.0
    if cut >= len(whole.records):
        assert till.spent == 0


def test_a_finished_search_is_free_again() -> None:
    till, plan = Till(), SearchPlan(workload=SMALL, spend=Spend.rho(5.0), sized=True, grid=SearchGrid.of(SMALL))
    went(plan, till)
    assert list(plan.remaining_events(till.records, 1)) == []
    spent = till.spent
    again = went(plan, till, records=tuple(till.records)).trials
    assert till.spent == spent
    assert len(again) == plan.grid.trials


@pytest.mark.parametrize("sized", [True, False])
def test_what_is_kept_aside_covers_what_is_bought(sized: bool) -> None:
    """At every moment of the search, whatever it still buys fits into the events that it says are to come."""
    till = Till()
    plan = SearchPlan(workload=SMALL, spend=Spend.rho(1e-3), sized=sized, grid=SearchGrid.of(SMALL))
    went(plan, till, size=int(till.counts.sum()) if sized else None)
    for cut in range(len(till.records) + 1):
        kept = sum(price_of(event) for event in plan.remaining_events(till.records[:cut], 1))
        assert sum(till.prices[cut:]) <= kept <= plan.spend.amount


@pytest.mark.parametrize("changes", [{"rounds": ()}, {"rounds": (1, 2)}, {"picks": (0, 1, 2)}])
def test_grids_that_make_no_sense(changes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(QueryError):
        searched(Till(), **changes)
