"""The data-free rule for T and K, and the search for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, Selected
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.errors import QueryError
from bursar.papers.rap.diagonal_search import bisected, diagonal_search, most_trials
from bursar.synthetic.plan.spend import Spend
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
def test_bisection_finds_the_bottom_in_fewer_trials_than_the_grid_has(place: int) -> None:
    tried: list[Adaptivity] = []

    def error(setting: Adaptivity) -> float:
        tried.append(setting)
        return abs(DIAGONAL.index(setting) - place)

    assert bisected(DIAGONAL, error) == DIAGONAL[place]
    alike = {s for s in GRID if s.rounds * s.picks == DIAGONAL[place].rounds * DIAGONAL[place].picks}
    assert len(set(tried) | alike) <= most_trials(DIAGONAL, GRID) < len(GRID)


class Till:
    """Answers exactly, and adds up rho at the prices of DESIGN: k/(2 g^2) for k picks, k/(2 sigma^2) for k rows."""

    def __init__(self) -> None:
        self.spent, self.picked = 0.0, 0
        self.counts = np.random.default_rng(3).integers(0, 50, (4, 3, 2))

    def _table(self, names: tuple[str, ...]) -> np.ndarray:
        return self.counts.sum(axis=tuple(i for i, name in enumerate("abc") if name not in names))

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        self.spent += strategy.rows / (2 * noise.scale**2)
        event = Measured(strategy=strategy, noise=noise, version=1)
        return Record(
            position=1,
            at=0,
            analyst="",
            question="",
            proposer="",
            run=0,
            event=event,
            values=strategy.apply(self._table),
        )

    def select(
        self, candidates: LinearMap, estimates: np.ndarray, *, count: int, scale: float, barred: Sequence[int] = ()
    ) -> Record:
        self.spent += count / (2 * scale**2)
        self.picked += 1
        scores = np.abs(candidates.apply(self._table) - estimates)
        scores[np.asarray(barred, int)] = -1
        event = Selected(candidates=candidates, count=count, scale=scale, version=1)
        return Record(
            position=1,
            at=0,
            analyst="",
            question="",
            proposer="",
            run=0,
            event=event,
            values=np.argsort(-scores)[:count],
        )


@pytest.fixture(autouse=True)
def larger_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the published rate: a small table is there in hundreds of steps."""
    monkeypatch.setattr("bursar.synthetic.rap.projection.RATE", 1e-3)


def search(till: Till, **changes: Any) -> Any:
    facts: dict[str, Any] = {"rounds": (1, 2, 4), "picks": (2, 4, 8), "rows": 20, "spend": Spend.rho(5.0)}
    return diagonal_search(SMALL, till, size=int(till.counts.sum()), **{**facts, **changes})


def test_every_trial_is_charged_and_all_fit_the_budget() -> None:
    till = Till()
    trials = search(till)
    assert 0 < till.spent <= 5.0
    assert [t.error for t in trials] == sorted(t.error for t in trials)
    assert 2 <= len({t.adaptivity for t in trials}) == len(trials) < 9
    best = trials[0].adaptivity
    assert all(t.projected.finished for t in trials)
    assert best in [Adaptivity(rounds=t, picks=k) for t in (1, 2, 4) for k in (2, 4, 8)]


def test_the_error_of_a_trial_is_that_of_its_worst_answer() -> None:
    till = Till()
    trial = search(till)[0]
    size = till.counts.sum()
    truth = SMALL.candidates.apply(till._table)
    assert trial.error == pytest.approx(np.abs(trial.projected.answers() * size - truth).max(), abs=1.0)


def test_a_stopped_search_returns_what_it_has() -> None:
    assert len(search(Till(), stop=lambda: True)) == 1


@pytest.mark.parametrize("changes", [{"rounds": ()}, {"rounds": (1, 2)}, {"picks": (0, 1, 2)}])
def test_grids_that_make_no_sense(changes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(QueryError):
        search(Till(), **changes)
