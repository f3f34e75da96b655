"""Under shares: bids are about the account, slack is slack in both, and refusals and EXPLAIN name both limits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.ledger import Purpose
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import AnalystError, BudgetError
from bursar.estimation.estimate import Certain, Estimate
from bursar.planner.choose import best, choose, refusal
from bursar.planner.goals import Wanted
from bursar.planner.offer import Offer, Price
from bursar.session import Bursar
from harness.small import Silence, config, engine

ONE = 2**50
HALVES = {"ann": Fraction(1, 2), "bob": Fraction(1, 2)}
YOUNG, OLD = (f"SELECT COUNT(*) FROM people WHERE age {ages}" for ages in ("< 5", ">= 5"))


def pair() -> tuple[Bursar, Bursar]:
    """Ann's and Bob's engine on one ledger."""
    ann = engine(analyst="ann", randomness=Silence())
    ann.kernel.allot(HALVES)
    return ann, engine(analyst="bob", ledger=ann.ledger, randomness=Silence())


def offer(name: str, at_most: int, total: int | None = None) -> Offer:
    law = Certain()
    price = Price(at_most=at_most, total=total)
    return Offer(proposer=name, price=price, law=law, run=lambda verbs: Estimate(values=None, law=law))


def event(cell: int, scale: float) -> Measured:
    strategy = Product((Mask(("age",), (10,), Steps.identity(10).take([cell])),))
    return Measured(strategy=strategy, noise=Noise(kind=NoiseKind.LAPLACE, scale=scale), version=1)


def test_the_least_bid_of_the_account_wins_then_the_data_set_counts() -> None:
    db = engine()
    goal = db.engine.prepare(YOUNG, Wanted(within=50), None).goal
    dear, cheap, cheaper = offer("dear", 5, 1), offer("cheap", 3, 9), offer("cheaper", 3, 8)
    assert best([dear, cheap, cheaper], goal) is cheaper
    assert best([dear, cheap], goal) is cheap


def test_free_means_free_to_both() -> None:
    assert offer("a", 0).free
    assert offer("a", 0, 0).free
    assert not offer("a", 0, 1).free
    assert not offer("a", 1, 0).free


def test_slack_means_slack_in_both() -> None:
    ann, bob = pair()
    for db, cell in ((ann, 0), (bob, 1)):
        db.kernel.measure(
            event(cell, 2.0).strategy,
            event(cell, 2.0).noise,
            analyst=db.analyst,
            purpose=Purpose("", "test"),
            at_most=ONE,
        )
    views = ann.engine.planner.views("ann")
    assert views.slack((), (event(2, 2.0),))  # nobody knows much about them
    assert not views.slack((), (event(1, 2.0),))  # slack to Ann, not to the data set
    assert not views.slack((), (event(0, 2.0),))
    unlimited = engine().engine.planner.views()
    assert unlimited.slack((event(0, 2.0),), (event(1, 2.0),))
    assert not unlimited.slack((event(0, 2.0),), (event(0, 2.0),))


def test_what_is_left_is_the_own_share() -> None:
    ann, bob = pair()
    assert (ann.engine.planner.views("ann").left, ann.engine.planner.views("ann").total_left) == (ONE // 2, ONE)
    answer = ann.query(YOUNG, epsilon=0.375)
    assert (answer.payer, answer.total, answer.whole_left) == ("ann", 0.5, pytest.approx(0.625, rel=1e-6))
    assert answer.charge == answer.whole_charge == pytest.approx(0.375, rel=1e-6)
    assert "0.125 of 0.5 is left to ann (data set: 0.375, 0.625 is left)" in str(answer)
    other = bob.query(OLD, epsilon=0.25)
    assert (other.charge, other.whole_charge) == (pytest.approx(0.25, rel=1e-6), 0.0)
    assert not other.free
    assert ann.query(YOUNG, within=1000).free


def test_a_refusal_names_the_share_and_a_goal_that_fits_it() -> None:
    ann, _ = pair()
    with pytest.raises(BudgetError, match=r"and 0\.5 is left of the share of ann; nothing was spent") as met:
        ann.query(YOUNG, within=4)
    fitting = met.value.fits
    assert ann.query(f"{YOUNG} {fitting}").charge <= 0.5
    with pytest.raises(BudgetError, match="is the most you would pay"):
        ann.query(OLD, within=4, max_cost=0.01)


def test_a_refusal_can_name_the_data_set() -> None:
    """The kernel never lets it come to this; a price that says so is believed."""
    ann, _ = pair()
    request = ann.engine.prepare(YOUNG, Wanted(within=50), None)
    views = replace(ann.engine.planner.views("ann"), total_left=ONE // 1000)
    chosen = choose(ann.engine.planner.preset, request, views)
    assert chosen is not None
    assert not views.payable(chosen)
    error = refusal(ann.engine.planner.preset, request, views, chosen)
    assert "is left of the data set's budget; nothing was spent" in str(error)


def test_explain_shows_both() -> None:
    ann, bob = pair()
    ann.query(YOUNG, epsilon=0.25)
    shown = bob.explain(OLD, within=40)
    assert (shown.analyst, shown.left, shown.total_left) == ("bob", 0.5, pytest.approx(0.75, rel=1e-6))
    chosen = shown.offers[shown.chosen]
    assert chosen.price > 0
    assert chosen.total == 0.0
    text = str(shown)
    assert "of all" in text
    assert "left: epsilon 0.5 of the share of bob, 0.75 of the data set's budget" in text
    plain = engine().explain(OLD, within=40)
    assert (plain.analyst, plain.offers[0].total, plain.total_left) == (None, None, 1.0)
    assert "of all" not in str(plain)


def test_an_unknown_analyst_is_refused_before_anything_is_planned() -> None:
    ann, _ = pair()
    eve = engine(analyst="eve", ledger=ann.ledger)
    for work in (lambda: eve.query(YOUNG, within=50), lambda: eve.explain(YOUNG, within=50), eve.budget):
        with pytest.raises(AnalystError, match="'eve' has no share"):
            work()


def test_batches_and_plans_of_several_verbs_keep_to_the_share() -> None:
    ann, _ = pair()
    batch = ann.batch([YOUNG, OLD], within=30)
    assert batch.charge == pytest.approx(ann.budget().accounts[0].spent)
    assert "is left to ann" in str(batch)


def test_an_analyst_sees_own_and_total_the_owner_everybody() -> None:
    ann, bob = pair()
    ann.query(YOUNG, epsilon=0.25)
    bob.query(OLD, epsilon=0.5)
    owner = engine(analyst="owner", ledger=ann.ledger)
    assert [(a.analyst, a.share) for a in ann.budget().accounts] == [("ann", 0.5)]
    assert [(a.analyst, a.left) for a in owner.budget().accounts] == [
        ("ann", pytest.approx(0.25, rel=1e-6)),
        ("bob", pytest.approx(0.0, abs=1e-6)),
    ]
    assert ann.budget().spent == owner.budget().spent == pytest.approx(0.5, rel=1e-6)
    assert {line.analyst for line in bob.log()} == {"bob"}
    assert [line.purpose for line in ann.log()] == [YOUNG]
    assert [line.analyst for line in owner.log()] == ["owner", "owner", "ann", "bob"]
    assert [line.kind for line in owner.log()][:2] == ["version 1", "shares: ann 0.5, bob 0.5"]
    paid = [(line.paid, line.charge) for line in owner.log()][2:]
    assert paid == [(pytest.approx(0.25, rel=1e-6),) * 2, (pytest.approx(0.5, rel=1e-6), pytest.approx(0.25, rel=1e-6))]


def test_without_shares_nothing_is_different() -> None:
    db = engine(settings=config())
    assert db.budget().accounts == ()
    answer = db.query(YOUNG, within=50)
    assert (answer.payer, answer.whole_charge, answer.whole_left) == (None, None, None)
