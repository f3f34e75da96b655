"""What is promised between analysts, in words: each property where it holds, and no more."""

from __future__ import annotations

import pytest

from bursar.analysts.guarantee import Guarantee, guarantee_of
from bursar.analysts.shares import POLICIES, SCHEDULERS, AnalystSettings, Shares
from bursar.core.budget import Budget

INCENTIVE, INTERFERENCE, MONOTONE = "sharing incentive", "non-interference", "analyst monotonicity"


def promised(policy: str, scheduler: str = "none", **shares: float) -> Guarantee:
    settings = AnalystSettings(policy=policy, scheduler=scheduler, shares=Shares.of(shares or {"ana": 0.5, "bob": 0.3}))
    return guarantee_of(settings, Budget.of(epsilon=2.0))


def held(found: Guarantee) -> set[str]:
    return {promise.name for promise in found.promises if promise.holds}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_policies_with_own_shares_keep_all_three_whoever_comes_first(scheduler: str) -> None:
    assert held(promised("independent", scheduler)) == {INCENTIVE, INTERFERENCE, MONOTONE}
    assert held(promised("seeded-cache", scheduler)) == {INCENTIVE, INTERFERENCE, MONOTONE}


def test_sharing_everything_promises_nothing_and_schedulers_the_incentive_only() -> None:
    assert held(promised("shared")) == set()
    assert held(promised("shared", "round-robin")) == {INCENTIVE}
    assert held(promised("shared", "randomized")) == {INCENTIVE}


def test_every_promise_names_its_condition() -> None:
    assert "Theorem 7" in str(promised("shared", "round-robin"))
    assert "in proportion to shares" in str(promised("shared", "round-robin"))
    assert "equal shares" in str(promised("shared", "round-robin", ana=0.5, bob=0.5))
    assert "public size" in str(promised("seeded-cache"))
    assert "ends your purchases" in str(promised("seeded-cache"))


def test_the_randomized_order_is_counted_by_the_integral() -> None:
    """Ten equal shares, 100 questions each: 1,159 turns (Theorem 8 prints 849)."""
    shares = {f"analyst {number}": 0.1 for number in range(10)}
    assert "T is 1159" in str(promised("shared", "randomized", **shares))
    assert "T is" not in str(promised("shared", "randomized", ana=1.0))


@pytest.mark.parametrize("policy", POLICIES)
def test_colluding_analysts_know_what_the_whole_budget_reveals(policy: str) -> None:
    text = promised(policy).collusion
    assert "epsilon 2" in text
    assert ("at most 0.5 of it" in text) == (policy == "independent")


def test_one_line_for_explain() -> None:
    assert promised("shared").short == "sharing: shared; no promise between analysts"
    assert promised("shared", "round-robin").short.endswith(f": {INCENTIVE}")
    assert promised("independent").short.endswith(f"{INCENTIVE}, {INTERFERENCE} and {MONOTONE}")
    assert "\n" not in promised("seeded-cache").short
