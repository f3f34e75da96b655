"""Holds of plans that pick what they measure, and that take their time."""

from __future__ import annotations

import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Selected
from bursar.core.budget import Budget
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import Stale
from bursar.planner.grant import HOLD_SECONDS, Grant
from harness.faults import Clock
from harness.small import config, engine

ROWS = Product((Mask(("age",), (10,), Steps.identity(10)),))
NOISE = Noise(kind=NoiseKind.GAUSSIAN, scale=8.0)


def test_only_as_many_rows_as_were_to_be_picked_can_take_their_place() -> None:
    db = engine(settings=config(budget=Budget.of(rho=1.0)))
    picks = Selected(candidates=ROWS, count=3, scale=8.0, version=1)
    old = Selected(candidates=ROWS, count=9, scale=8.0, version=7)  # of other data
    with Grant(db.kernel, "ana", "picked", [old, picks], 2**50) as grant:
        for wrong in (ROWS, ROWS.take([0, 1, 2, 3])):
            with pytest.raises(Stale, match="not part of the plan"):
                grant.measure(wrong, NOISE)
        grant.measure(ROWS.take([1, 5]), NOISE)
        with pytest.raises(Stale, match="not part of the plan"):
            grant.measure(ROWS.take([1]), NOISE)


@pytest.mark.parametrize("renewed", [True, False])
def test_a_hold_lasts_as_long_as_it_is_renewed(renewed: bool) -> None:
    db, clock = engine(settings=config(budget=Budget.of(rho=1.0))), Clock()
    events = [Measured(strategy=ROWS, noise=NOISE, version=1)] * 2
    with clock.running(), Grant(db.kernel, "ana", "slow", events, 2**50) as grant:
        assert grant.fence is not None
        for _ in range(5):
            clock.off += HOLD_SECONDS / 3
            if renewed:
                grant.renew()
        assert (db.kernel.held() > 0) is renewed
        grant.renew()
        assert (db.kernel.held() > 0) is renewed  # what is gone does not come back
        if renewed:
            grant.measure(ROWS, NOISE)
        else:
            with pytest.raises(Stale, match="expired"):
                grant.measure(ROWS, NOISE)
    assert db.kernel.held() == 0


def test_a_plan_of_one_verb_has_nothing_to_renew() -> None:
    db = engine(settings=config(budget=Budget.of(rho=1.0)))
    with Grant(db.kernel, "ana", "one", [Measured(strategy=ROWS, noise=NOISE, version=1)], 2**50) as grant:
        assert grant.fence is None
        grant.renew()
        assert db.kernel.held() == 0
        grant.measure(ROWS, NOISE)


def test_renewing_a_hold_leaves_those_of_others_alone() -> None:
    db, clock = engine(settings=config(budget=Budget.of(rho=1.0))), Clock()
    events = [Measured(strategy=ROWS, noise=NOISE, version=1)] * 2
    with (
        clock.running(),
        Grant(db.kernel, "bob", "quick", events, 2**50),
        Grant(db.kernel, "ana", "slow", events, 2**50) as slow,
    ):
        clock.off += HOLD_SECONDS * 2 / 3
        slow.renew()
        clock.off += HOLD_SECONDS * 2 / 3
        assert db.kernel.held("bob") == 0
        assert db.kernel.held("ana") > 0


def test_an_answer_without_a_key_is_stored_nowhere() -> None:
    db = engine(settings=config(budget=Budget.of(rho=1.0)))
    with Grant(db.kernel, "ana", "one", [Measured(strategy=ROWS, noise=NOISE, version=1)], 2**50) as grant:
        grant.measure(ROWS, NOISE)
        assert grant.store(b"answer") == b"answer"
    assert db.ledger.answered(analyst="ana", key="", question="") is None
