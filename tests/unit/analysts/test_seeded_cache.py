"""The phases of Seeded Cache and Reconstruct, in the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from benchmarks.systems.collective import Questions
from benchmarks.systems.collective import SeededCache as Model
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bursar import presets
from bursar.core.accounting import NoiseKind, to_units
from bursar.errors import BudgetError, GoalError
from bursar.goal import Goal, GoalKind
from bursar.papers.multi_analyst.seeded_cache import Phases
from harness.collective import CELLS, Collective, request_of, rmse, settings_of

HALVES = {"ana": 0.5, "bob": 0.5}
ERROR = 10.0
EACH = math.sqrt(2) / ERROR
GAMMA = 0.05


def people_for(purchases: float, shares: dict[str, float] = HALVES, **changes: Any) -> Collective:
    """Everybody together can buy so many questions of error ERROR, beside the seed."""
    return Collective(settings_of(shares, fraction=GAMMA, **changes), epsilon=purchases * EACH / (1 - GAMMA))


def reconstructs(people: Collective, analyst: str) -> bool:
    return Phases(people.owner.ledger).reconstructing(analyst)


def test_while_there_is_budget_a_question_is_bought_although_rows_would_tell() -> None:
    people = people_for(8)
    assert people.ask("ana", 0b01, ERROR) == "direct"
    assert people.ask("ana", 0b10, ERROR) == "direct"
    assert people.ask("ana", 0b11, 5 * ERROR) == "direct"
    assert people.ask("bob", 0b11, 5 * ERROR) == "exact"
    assert people.spent("bob") == 0


def test_an_identical_question_is_a_hit_only_if_it_is_as_fine() -> None:
    people = people_for(20)
    people.ask("ana", 0b01, ERROR)
    assert people.ask("bob", 0b01, 2 * ERROR) == "exact"
    assert people.ask("bob", 0b01, ERROR / 2) == "direct"
    assert people.spent("bob") > 0
    assert people.ask("ana", 0b01, ERROR / 2) == "exact"


def test_the_first_question_that_cannot_be_paid_ends_phase_2_for_good() -> None:
    people = people_for(3)  # 1.5 each
    assert people.ask("ana", 0b0011, ERROR) == "direct"
    assert not reconstructs(people, "ana")
    assert people.ask("ana", 0b0111, ERROR) is None  # too dear, and the seed is too coarse
    assert reconstructs(people, "ana")
    assert people.ask("ana", 0b1000, ERROR) is None  # other people: it could be paid, but no more
    assert people.spent("ana") == pytest.approx(EACH, rel=0.01)
    assert not reconstructs(people, "bob")
    assert people.ask("bob", 0b1000, ERROR) == "direct"
    assert people.ask("ana", 0b1000, ERROR) == "exact"
    assert people.ask("ana", 0b1011, 2 * ERROR) == "reconstruct"  # two purchases, one of them of bob


def test_the_refusal_says_that_the_share_buys_nothing_more() -> None:
    people = people_for(2)
    ana = people.engines["ana"]
    ana.engine.ask(request_of(0b1, rmse(ERROR), "ana"))
    with pytest.raises(BudgetError, match="share of ana, which buys nothing more") as refusal:
        ana.engine.ask(request_of(0b1, rmse(ERROR / 2), "ana"))
    assert "WITH RMSE" in refusal.value.fits


def test_looking_ahead_ends_no_phase() -> None:
    people = people_for(1)
    ana = people.engines["ana"]
    ana.engine.planner.explain(request_of(0b1, rmse(ERROR / 4), "ana"))
    assert not reconstructs(people, "ana")


def test_explain_shows_the_phase_that_is_in_force() -> None:
    people = people_for(3)
    planner = people.engines["ana"].engine.planner
    people.ask("ana", 0b1, ERROR)
    assert [line.proposer for line in planner.explain(request_of(0b11, rmse(ERROR), "ana")).offers] == ["direct"]
    people.ask("ana", 0b11, ERROR)
    assert [line.proposer for line in planner.explain(request_of(0b11, rmse(ERROR), "ana")).offers] == ["reconstruct"]


def test_a_question_that_no_purchase_answers_ends_no_phase() -> None:
    people = people_for(8)
    capped = Goal(kind=GoalKind.RMSE, amount=ERROR, most=EACH / 10)
    with pytest.raises((BudgetError, GoalError)):
        people.plan("ana", 0b1, capped)
    assert not reconstructs(people, "ana")
    people.ask("bob", 0b1, ERROR)
    assert people.plan("ana", 0b1, capped)[1].free


def test_a_price_as_a_goal_is_bought_for_and_found_again() -> None:
    people = people_for(8)
    goal = Goal(kind=GoalKind.SPEND, amount=EACH)
    request, offer = people.plan("ana", 0b11, goal)
    assert offer.price.at_most == pytest.approx(to_units(EACH), rel=1e-6)
    people.engines["ana"].engine.ask(request)
    assert people.plan("bob", 0b11, goal)[1].free
    assert not people.plan("bob", 0b11, Goal(kind=GoalKind.SPEND, amount=2 * EACH))[1].free


def test_a_preset_without_such_proposers_buys_directly() -> None:
    people = Collective(settings_of(HALVES, fraction=GAMMA), epsilon=8 * EACH, preset=presets.cachedp)
    assert people.ask("ana", 0b11, ERROR) == "direct"


def test_as_published_a_question_is_bought_as_it_is_asked() -> None:
    """And charged by its largest loss: two people in different cells cost the sum."""
    people = Collective(settings_of(HALVES, fraction=GAMMA), epsilon=8 * EACH, preset=presets.multi_analyst)
    assert people.ask("ana", 0b01, ERROR) == "direct"
    assert people.ask("bob", 0b01, ERROR) == "exact"
    assert people.ask("ana", 0b10, ERROR) == "direct"
    assert people.spent("ana") == pytest.approx(2 * EACH, rel=2e-3)
    assert people.spent("bob") == 0


@pytest.mark.parametrize("basis", ["histogram", "hierarchical", "wavelet", "best"])
def test_the_seed_is_measured_once_and_paid_by_everyone(basis: str) -> None:
    people = people_for(8, basis=basis)
    people.ask("ana", 0b1, ERROR)
    people.ask("bob", 0b10, ERROR)
    records = people.owner.ledger.records()
    seeds = [record for record in records if record.analyst == "everyone"]
    assert len(seeds) == 1
    assert seeds[0].event.noise.kind is NoiseKind.LAPLACE
    account = people.owner.kernel.account("everyone")
    assert 0.999 * account.cap <= account.spent <= account.cap
    assert people.owner.kernel.spent() <= people.owner.config.budget.units


Turns = Sequence[tuple[str, int]]


def utilities(people: Collective, turns: Turns, members: Sequence[str]) -> dict[str, int]:
    found = dict.fromkeys(members, 0)
    for who, mask in turns:
        if who in members:
            found[who] += people.ask(who, mask, ERROR) is not None
    return found


turn_lists = st.lists(st.tuples(st.sampled_from(["ana", "bob", "cy"]), st.integers(1, 31)), min_size=1, max_size=14)


def losses(turns: Turns, purchases: float, basis: str) -> list[tuple[str, str]]:
    """Who answers fewer of whose questions for being there: pairs of the joining analyst and the loser."""
    shares = {"ana": 0.4, "bob": 0.3, "cy": 0.3}
    together = utilities(people_for(purchases, shares, basis=basis), turns, list(shares))
    found = []
    for leaver in shares:
        rest = {name: share for name, share in shares.items() if name != leaver}
        without = utilities(people_for(purchases, rest, basis=basis), turns, list(rest))
        found += [(leaver, name) for name in rest if together[name] < without[name]]
    return found


PHASE_3_MATTERS: tuple[tuple[float, Turns], ...] = (
    (4.443, [("cy", 30), ("ana", 30), ("cy", 7), ("ana", 29), ("ana", 1), ("ana", 14), ("ana", 8), ("bob", 1),
             ("ana", 17), ("bob", 31)]),
    (5.024, [("cy", 12), ("bob", 12), ("cy", 27), ("bob", 15), ("cy", 19), ("cy", 27), ("bob", 18), ("bob", 1),
             ("cy", 29), ("ana", 6), ("bob", 1), ("cy", 14)]),
    (8.965, [("ana", 21), ("bob", 19), ("ana", 10), ("ana", 6), ("ana", 7), ("ana", 16), ("bob", 10), ("bob", 23),
             ("bob", 20), ("cy", 30), ("cy", 31), ("cy", 1), ("bob", 9)]),
)  # fmt: skip
"""Sequences in which somebody loses an answer if phase 3 is left for a question that can be paid. They are rare, one in
five thousand that are drawn at random, so the property alone would hardly ever notice."""


@pytest.mark.heavy
@given(turn_lists, st.floats(1.05, 9.0), st.sampled_from(["histogram", "hierarchical"]))
@example(PHASE_3_MATTERS[0][1], PHASE_3_MATTERS[0][0], "histogram")
@example(PHASE_3_MATTERS[1][1], PHASE_3_MATTERS[1][0], "histogram")
@example(PHASE_3_MATTERS[2][1], PHASE_3_MATTERS[2][0], "histogram")
@settings(max_examples=25, deadline=None)
def test_nobody_loses_an_answer_because_somebody_joins(turns: Turns, purchases: float, basis: str) -> None:
    """Lemma 3 in the engine: the joining analyst brings a share of the same budget, the seed is as large."""
    assert losses(turns, purchases, basis) == []


@pytest.mark.parametrize(("purchases", "turns"), PHASE_3_MATTERS)
def test_the_property_notices_if_phase_3_is_left(
    purchases: float, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong twin: whoever could not pay once buys again as soon as a question can be paid."""
    monkeypatch.setattr(Phases, "begin_reconstructing", lambda self, analyst: None)
    assert losses(turns, purchases, "histogram")


@given(turn_lists, st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_the_engine_answers_what_the_model_of_the_benchmark_says(turns: Turns, purchases: int) -> None:
    """The benchmark computes `default` without an engine; here both are asked the same."""
    names, shares = ("ana", "bob", "cy"), {"ana": 0.4, "bob": 0.3, "cy": 0.3}
    budget = purchases + 0.07  # no share is a whole number of purchases
    rows = np.array([[mask >> cell & 1 for cell in range(CELLS)] for _, mask in turns])
    queries, numbers = np.unique(rows, axis=0, return_inverse=True)
    who = np.array([names.index(name) for name, _ in turns])
    questions = Questions(queries=queries, asked=numbers.ravel(), analysts=who, people=3)
    model = Model(basis=np.eye(CELLS), gamma=GAMMA, each=EACH, largest=ERROR, by_cell=True)
    brought = np.array([0.4, 0.3, 0.3]) * budget * EACH / (1 - GAMMA)
    found = utilities(people_for(budget, shares), turns, names)
    assert list(found.values()) == model(questions, [brought])[0].tolist()
