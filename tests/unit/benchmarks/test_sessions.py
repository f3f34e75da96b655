"""Sessions against plain noise: what is compared, and that the curves are what they say."""

from __future__ import annotations

import pytest
from benchmarks.sessions import (
    RHO,
    Session,
    curves,
    demo,
    ends,
    generated,
    hindsight,
    named,
    over,
    ranges,
    ratios,
    tightening,
)


@pytest.mark.heavy
def test_curves_rise_and_are_judged_against_the_baseline() -> None:
    session = Session(ranges(0, 3))
    found = curves(session)
    assert {len(curve) for curve in found.values()} == {3}
    assert all(curve == sorted(curve) for curve in found.values())
    assert found["one-off"][0] <= found["default"][0] * (1 + 1e-9) <= found["many"][0] * (1 + 1e-6)
    figures = ratios(found)
    assert figures["worst_prefix"] >= figures["worst_first_10"] >= figures["end_ratio"] > 0
    assert ratios(found, "many")["worst_first_10"] > figures["worst_first_10"]
    assert hindsight(session, found) <= min(curve[-1] for curve in found.values())
    assert ends(found, 2)["plain"] == found["plain"][1] < ends(found)["plain"]


def test_generated_sessions_are_judged_by_the_worst_of_them() -> None:
    many = [curves(Session(tightening(seed), RHO), ["default"]) for seed in (0, 1)]
    figures = over(many)
    assert figures["end_ratio"] == max(ratios(found)["end_ratio"] for found in many) >= figures["mean_end_ratio"]


def test_sessions_follow_from_their_seed() -> None:
    assert named(0, quick=True) == named(0, quick=True)
    assert named(0, quick=True)["ranges, age"] != named(1, quick=True)["ranges, age"]
    assert len(named(0, quick=True)) == 13
    assert len({sql for sql, _ in demo(0)}) == 12
    assert generated(0) == generated(0) != generated(1)
