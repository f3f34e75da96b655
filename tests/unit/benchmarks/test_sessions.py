"""Sessions against plain noise: what is compared, and that the curves are what they say."""

from __future__ import annotations

from benchmarks.sessions import curves, figures_of, ranges, sessions


def test_curves_rise_and_are_judged_against_the_baseline() -> None:
    asked = ranges(0, 3)
    found = curves(asked)
    assert {len(curve) for curve in found.values()} == {3}
    assert all(curve == sorted(curve) for curve in found.values())
    assert found["one-off"][0] <= found["default"][0] * (1 + 1e-9) <= found["many"][0] * (1 + 1e-6)
    figures = figures_of(found)
    assert figures["worst_prefix"] >= figures["worst_first_10"] >= figures["end_ratio"] > 0


def test_sessions_follow_from_their_seed() -> None:
    assert sessions(0, quick=True) == sessions(0, quick=True)
    assert sessions(0, quick=True)["age 60"] != sessions(1, quick=True)["age 60"]
    assert len(sessions(0, quick=True)) == 13
