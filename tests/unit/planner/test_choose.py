"""The least bid that meets the goal wins; ties go to the preset's order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.estimate import Estimate, IndependentRows
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import Preset, best, choose
from bursar.planner.explain import explain
from bursar.planner.goals import Wanted
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from harness.small import engine


def offer(name: str, price: int, scale: float) -> Offer:
    law = IndependentRows(noise=Noise(kind=NoiseKind.LAPLACE, scale=scale), rows=1)
    return Offer(proposer=name, price=Price(at_most=price), law=law, run=lambda verbs: Estimate(values=None, law=law))


@dataclass
class Fixed(Proposer):
    name: str
    made: list[Offer]
    asked: int = 0

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        self.asked += 1
        return self.made


@pytest.fixture
def request_and_views() -> tuple[PlanningRequest, Views]:
    db = engine()
    return db.engine.prepare("SELECT COUNT(*) FROM people", Wanted(within=50), None), db.engine.planner.views()


def test_the_cheapest_that_meets_the_goal(request_and_views: tuple[PlanningRequest, Views]) -> None:
    proposers = (Fixed("a", [offer("dear", 9, 1.0)]), Fixed("b", [offer("wrong", 1, 500.0), offer("cheap", 5, 1.0)]))
    chosen = choose(Preset("p", proposers), *request_and_views)
    assert chosen is not None
    assert chosen.proposer == "cheap"


def test_a_free_offer_ends_the_search(request_and_views: tuple[PlanningRequest, Views]) -> None:
    late = Fixed("late", [offer("late", 0, 1.0)])
    chosen = choose(Preset("p", (Fixed("early", [offer("early", 0, 1.0)]), late)), *request_and_views)
    assert chosen is not None
    assert (chosen.proposer, late.asked) == ("early", 0)


def test_what_is_free_is_taken_whatever_others_would_bid_below_their_price(
    request_and_views: tuple[PlanningRequest, Views],
) -> None:
    for credit in (9, 20):  # the rent that was paid may exceed the price
        strategy = replace(offer("strategy", 9, 1.0), credit=credit)
        preset = Preset("p", (Fixed("a", [strategy]), Fixed("b", [offer("known", 0, 1.0)])))
        chosen = choose(preset, *request_and_views)
        explained = explain(preset, *request_and_views)
        assert chosen is not None
        assert explained.chosen is not None
        assert explained.offers[explained.chosen].proposer == chosen.proposer == "known"
        assert (explained.price, explained.why) == (0, "")


def test_ties_go_to_the_order_of_the_preset() -> None:
    goal = Goal(kind=GoalKind.ERROR, amount=50)
    first, second = offer("first", 3, 2.0), offer("second", 3, 1.0)
    assert best([first, second], goal) is first


def test_a_price_as_goal_buys_the_least_error() -> None:
    goal = Goal(kind=GoalKind.SPEND, amount=1)
    coarse, fine = offer("coarse", 0, 9.0), offer("fine", 7, 2.0)
    assert best([coarse, fine], goal) is fine


def test_credit_for_rows_ends_where_as_many_cost_less(request_and_views: tuple[PlanningRequest, Views]) -> None:
    nodes = replace(offer("nodes", 9, 1.0), credit=9, rows_for_later=4, buys=4)
    for rows, taken in ((4, "strategy"), (3, "nodes")):
        preset = Preset("p", (Fixed("a", [nodes]), Fixed("b", [replace(offer("strategy", 5, 1.0), buys=rows)])))
        chosen = choose(preset, *request_and_views)
        assert chosen is not None
        assert chosen.proposer == taken
        explained = explain(preset, *request_and_views)
        assert explained.chosen is not None
        assert explained.offers[explained.chosen].proposer == taken
        assert (explained.offers[0].bid == explained.offers[0].price) == (taken == "strategy")
        assert ("nodes costs" in explained.why) == (taken == "nodes")


def test_nothing_that_meets_the_goal(request_and_views: tuple[PlanningRequest, Views]) -> None:
    preset = Preset("p", (Fixed("a", [offer("wrong", 1, 500.0)]),))
    assert choose(preset, *request_and_views) is None
    shown = explain(preset, *request_and_views)
    assert shown.chosen is None
    assert "nothing meets the goal" in str(shown)
    assert shown.to_json()["offers"][0]["meets_goal"] is False
