"""What is decided by a bound, or known from before, is what everything worked out to the end would have decided.

Sessions are played twice on one tape of noise: by the planner as it is, and by one that takes no short cut. Proposer,
price and every number must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from bursar.core.accounting import AddRemove, Noise, NoiseKind
from bursar.core.accounting.profile import LARGEST_SUM, Footprint
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.estimation.least_squares import Reconstruction
from bursar.planner.offer import Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.purchase import CandidateRows, PurchaseProblem, alone_fall_short
from bursar.proposers.invest import Invest
from bursar.proposers.tree import Tree
from bursar.testing import CountsSource, stage
from bursar.views.baseline import Baseline
from bursar.views.learner import Histograms
from harness.cases import few
from harness.small import Silence, config

SIZES = {"age": 24, "hours": 24, "edu": 4, "sex": 2}
DOMAIN = Domain(tuple(IntegerRange(name=name, lower=0, upper=size - 1, null=0) for name, size in SIZES.items()))
EPSILON, RHO = Budget.of(epsilon=100.0), Budget.of(rho=100.0)
COUNTS = np.random.default_rng(0).integers(0, 9, DOMAIN.sizes(DOMAIN.names))


class Tape(Silence):
    """The same noise for the same questions in the same order; about the right size, which is all that counts here."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def draw(self, noise: Noise, size: int) -> np.ndarray:
        law = self._rng.laplace if noise.kind is NoiseKind.LAPLACE else self._rng.normal
        return np.rint(law(0.0, noise.scale, size)).astype(np.int64)


def questions(seed: int, number: int) -> list[tuple[str, int]]:
    """Ranges and groups of one to three columns, many of them about the same ones, with their errors; then medians."""
    rng, texts = random.Random(seed), []
    for _ in range(number):
        columns = rng.sample(list(SIZES), rng.choice([1, 1, 1, 2, 2, 3]))
        grouped = columns[0] if rng.random() < 0.3 else None
        conditions = []
        for name in columns if grouped is None else columns[1:]:
            low = rng.randrange(SIZES[name])
            conditions.append(f"{name} BETWEEN {low} AND {rng.randrange(low, SIZES[name])}")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        told = f"SELECT COUNT(*) FROM people{where}"
        if grouped is not None:
            told = f"SELECT {grouped}, COUNT(*) FROM people{where} GROUP BY {grouped}"
        texts.append((told, rng.choice([40, 80, 80, 300])))
    return [*texts, ("SELECT MEDIAN(hours) FROM people WHERE sex = 1", 40), ("SELECT MEDIAN(age) FROM people", 80)]


def transcript(seed: int, budget: Budget, neighbours: Neighbours) -> list[tuple[object, ...]]:
    settings = config(domain=DOMAIN, budget=budget, unit=Unit(neighbours=neighbours), max_rows=10**6)
    db = stage(settings, lambda key: CountsSource(COUNTS, DOMAIN), randomness=Tape(seed))
    told: list[tuple[object, ...]] = []
    for text, error in questions(seed, 24):
        answer = db.query(text, within=error)
        told.append((text, answer.source, answer.note, answer.charge, str(answer), db.kernel.spent()))
    return told


@cache
def right(seed: int, budget: Budget) -> list[tuple[object, ...]]:
    """The transcript of the planner as it is, for several tests."""
    return transcript(seed, budget, Neighbours.ADD_REMOVE)


def every_bound(self: AddRemove, plus: object = ()) -> int:
    """What is spent, by all sums added up anew."""
    footprints: list[Footprint] = list(plus)  # type: ignore[call-overload]
    fresh = AddRemove(self.domain, dict(self.losses), dict(self.grids))
    fresh.changed = dict.fromkeys(fresh.losses, 0)
    placed = fresh._placed(footprints)
    if not fresh.losses and not placed:
        return 0
    return min(int(fresh._total(onto, placed).max()) for onto in fresh.projections.of(fresh.losses, placed))


@pytest.fixture
def exhaustive(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the planner take no short cut."""

    def patch() -> None:
        monkeypatch.setattr(Baseline, "certainly", lambda self, plain: 0)
        monkeypatch.setattr("bursar.views.baseline.MOST_UNBOOKED", -1)
        monkeypatch.setattr("bursar.views.baseline.SURELY_PRICED", -1.0)
        monkeypatch.setattr(AddRemove, "spent", every_bound)
        monkeypatch.setattr("bursar.tails.sums._of_widest_draws", lambda matrix, noises, alpha: 0.0)
        monkeypatch.setattr("bursar.tails.sums._alike", lambda weights: None)
        monkeypatch.setattr("bursar.tails.inversion.GATHERED_WITHIN", ())
        monkeypatch.setattr("bursar.tails.inversion.LOOKED_AT_FIRST", 2**20)
        monkeypatch.setattr(Reconstruction, "too_coarse", lambda self, queries, amount: False)
        monkeypatch.setattr(Tree, "_dear_level", lambda self, candidates, direct, columns, views: None)
        monkeypatch.setattr(PurchaseProblem, "cheapest", PurchaseProblem._cheapest)
        monkeypatch.setattr(Tree, "_beaten", lambda self, problem, direct, columns: False)
        monkeypatch.setattr(Invest, "_certainly_beaten", lambda self, columns, request, views: False)
        monkeypatch.setattr(Histograms, "most_updates", lambda self, enough: enough)
        free_total = Views.free_total

        def priced_anew(self: Views) -> object:
            self.lasting.clear()
            return free_total(self)

        monkeypatch.setattr(Views, "free_total", priced_anew)

    return patch


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("budget", "neighbours"),
    few(
        [
            (EPSILON, Neighbours.ADD_REMOVE),
            (RHO, Neighbours.ADD_REMOVE),
            (EPSILON, Neighbours.REPLACE_ONE),
        ]
    ),
    ids=["epsilon", "rho", "replace-one"],
)
def test_short_cuts_change_nothing(
    budget: Budget, neighbours: Neighbours, exhaustive: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bursar.estimation.least_squares.MANY_ROW_NUMBERS", 0)  # as in a long log
    quick = transcript(1, budget, neighbours)
    exhaustive()
    assert transcript(1, budget, neighbours) == quick
    assert len({source for _, source, *_ in quick}) > 2


@pytest.mark.heavy
def test_a_bound_that_is_too_high_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cap over all columns decides by itself: that of the question's own columns is the stricter one here."""
    monkeypatch.setattr("bursar.views.baseline.MOST_BY_COLUMNS", -1)
    expected = transcript(1, EPSILON, Neighbours.ADD_REMOVE)
    monkeypatch.setattr(Baseline, "certainly", lambda self, plain: LARGEST_SUM)
    assert transcript(1, EPSILON, Neighbours.ADD_REMOVE) != expected


@pytest.mark.heavy
@pytest.mark.parametrize("look", ["alone_fall_short", "falls_short"])
def test_nodes_that_are_taken_for_dear_too_soon_would_be_seen(look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are dismissed where too little of them is dearer than the question already: never where it is enough."""
    expected = right(2, EPSILON)
    if look == "falls_short":
        monkeypatch.setattr(PurchaseProblem, look, lambda self, level: True)
    else:
        monkeypatch.setattr(f"bursar.proposers.tree.{look}", lambda candidates, level, request, views: True)
    monkeypatch.setattr("bursar.proposers.tree.LEVEL_TO_LOOK_AT", 12.0)
    assert transcript(2, EPSILON, Neighbours.ADD_REMOVE) != expected


@pytest.mark.heavy
@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=["epsilon", "rho"])
def test_nodes_that_cannot_win_are_dismissed_by_one_look(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    """By themselves where hardly anything else is known, and then with all of it they fall short as well."""
    alone: list[bool] = []
    together: list[bool] = []
    look_alone, look = alone_fall_short, PurchaseProblem.falls_short

    def noted_alone(candidates: CandidateRows, level: float, request: PlanningRequest, views: Views) -> bool:
        alone.append(look_alone(candidates, level, request, views))
        problem = PurchaseProblem.of(candidates, request, views)
        assert not alone[-1] or (problem is not None and look(problem, level))
        return alone[-1]

    def noted(self: PurchaseProblem, level: float) -> bool:
        together.append(look(self, level))
        return together[-1]

    monkeypatch.setattr("bursar.proposers.tree.alone_fall_short", noted_alone)
    monkeypatch.setattr(PurchaseProblem, "falls_short", noted)
    transcript(1, budget, Neighbours.ADD_REMOVE)
    assert any(alone)
    assert not all(alone)
    assert any(together)


def test_what_two_proposers_would_buy_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that were measured are nodes of a tree and rows to refine; another goal is another purchase."""
    found: list[float] = []
    find = PurchaseProblem._cheapest
    monkeypatch.setattr(
        PurchaseProblem, "_cheapest", lambda self: (found.append(self.request.goal.amount), find(self))[1]
    )
    settings = config(domain=DOMAIN, budget=EPSILON, max_rows=10**6)
    db = stage(settings, lambda key: CountsSource(COUNTS, DOMAIN), randomness=Tape(1))
    text = "SELECT edu, COUNT(*) FROM people GROUP BY edu"
    db.query(text, within=300)
    found.clear()
    for amount in (80, 40):
        lines = {line.proposer: line.price for line in db.explain(text, within=amount).offers}
        assert lines["tree"] == lines["refine"]
    assert found == [80, 40]


@pytest.mark.heavy
def test_what_is_taken_for_too_coarse_too_soon_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = right(1, EPSILON)
    monkeypatch.setattr(Reconstruction, "too_coarse", lambda self, queries, amount: True)
    assert transcript(1, EPSILON, Neighbours.ADD_REMOVE) != expected


@pytest.mark.heavy
def test_weights_that_are_taken_for_equal_too_soon_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = right(1, EPSILON)
    monkeypatch.setattr("bursar.tails.sums._alike", np.ceil)
    assert transcript(1, EPSILON, Neighbours.ADD_REMOVE) != expected
