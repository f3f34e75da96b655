"""EXPLAIN tells what will be charged, and why something dearer than the cheapest way is taken."""

from __future__ import annotations

import pytest

from bursar.goal import Horizon
from bursar.session import Bursar
from bursar.testing import EmptySource, stage
from harness.small import config

RANGE = "SELECT COUNT(*) AS n FROM people WHERE age BETWEEN {} AND {}"


def small(horizon: str) -> Bursar:
    settings = config(horizon=Horizon.of(horizon))
    return stage(settings, lambda key: EmptySource(settings.domain))


def test_every_offer_says_what_it_costs_and_which_one_is_taken() -> None:
    plain = small("many").explain(RANGE.format(1, 5), within=50).to_dict()
    offers = {offer["proposer"]: offer for offer in plain["offers"]}
    assert {"proposer", "price", "bid", "error", "meets_goal", "taken", "reuses", "buys", "note"} <= offers[
        "tree"
    ].keys()
    assert [name for name, offer in offers.items() if offer["taken"]] == ["tree"]
    assert offers["tree"]["bid"] < offers["direct"]["bid"] == offers["direct"]["price"] < offers["tree"]["price"]


def test_a_dearer_way_is_taken_with_a_reason() -> None:
    told = small("many").explain(RANGE.format(1, 5), within=50)
    dearer = told.offers[told.chosen]
    (direct,) = (offer for offer in told.offers if offer.proposer == "direct")
    assert f"tree costs {dearer.price - direct.price:.3g} more than direct" in told.why
    assert "serves other questions about age" in told.why
    assert f"as much as {dearer.price / direct.price:.2g} questions like this one; many are expected" in told.why
    assert told.why in str(told)


@pytest.mark.parametrize("horizon", ["one-off", "some"])
def test_the_cheapest_way_needs_no_reason(horizon: str) -> None:
    told = small(horizon).explain(RANGE.format(1, 5), within=50)
    assert (told.offers[told.chosen].proposer, told.why) == ("direct", "")


def test_under_the_cap_the_reason_gives_both_books() -> None:
    db = small("some")
    for low in range(3):
        for high in range(low + 4, 9):
            told = db.explain(RANGE.format(low, high), within=50)
            if told.why:
                compared = db.engine.planner.comparison(None)
                assert f"spent would be {compared.spent + told.price:.3g}, at most 1.1 times the " in told.why
                return
            db.query(RANGE.format(low, high), within=50)
    pytest.fail("nothing was ever bought for later questions")


@pytest.mark.parametrize("horizon", ["one-off", "some", "many"])
def test_what_is_said_to_be_charged_is_charged(horizon: str) -> None:
    db = small(horizon)
    for low, high in [(1, 5), (2, 5), (1, 5), (0, 8), (3, 4), (3, 8)]:
        told = db.explain(RANGE.format(low, high), within=50)
        answer = db.query(RANGE.format(low, high), within=50)
        assert answer.charge == told.price
        assert answer.source == told.offers[told.chosen].proposer
