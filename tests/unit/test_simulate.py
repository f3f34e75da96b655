"""Simulated collectives: what arrives when, in which order it is answered, and what each policy makes of it."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

from bursar.analysts.scheduler import Randomized, RoundRobin
from bursar.analysts.shares import AnalystSettings, Seed, Shares
from bursar.core.budget import Budget
from bursar.errors import AnalystError, GoalError, QueryError, Unsupported
from bursar.planner.goals import Wanted
from bursar.simulate import (
    POLICIES,
    AnalystQuestion,
    Figures,
    Setting,
    TrialPolicy,
    check_matplotlib,
    compare,
    expected,
    plot,
    replayed,
    served,
    shares_of,
    utilities,
)
from harness.small import config

HALF = Fraction(1, 2)
EVEN = {"ann": HALF, "bob": HALF}
WITHIN = Wanted(within=100)


def point(age: int, who: str = "ann") -> AnalystQuestion:
    return AnalystQuestion(analyst=who, sql=f"SELECT COUNT(*) FROM people WHERE age = {age}")


def up_to(age: int, who: str = "ann") -> AnalystQuestion:
    return AnalystQuestion(analyst=who, sql=f"SELECT COUNT(*) FROM people WHERE age <= {age}")


def names(asked: list[AnalystQuestion]) -> str:
    return "".join(one.analyst for one in asked)


def arriving(order: str) -> list[AnalystQuestion]:
    return [AnalystQuestion(analyst=who, sql=str(place)) for place, who in enumerate(order)]


# -- what is asked ------------------------------------------------------------------------------------------


def test_a_mix_is_merged_by_rates_until_nothing_is_left() -> None:
    assert names(expected({"a": ["1", "2", "3"], "b": ["4"]})) == "abaa"
    mixed = expected({"a": ["1"] * 4, "b": ["4"] * 4}, {"b": Fraction(3)})
    assert names(mixed) == "bbabbaaa"
    with pytest.raises(AnalystError, match="'c' has a rate, and no questions"):
        expected({"a": ["1"]}, {"c": Fraction(1)})


def test_a_log_is_replayed_question_by_question() -> None:
    log = [
        SimpleNamespace(analyst="owner", purpose="declared the data", rows=0),
        SimpleNamespace(analyst="a", purpose="SELECT 1", rows=3),
        SimpleNamespace(analyst="a", purpose="SELECT 1", rows=2),
        SimpleNamespace(analyst="b", purpose="SELECT 1;\nSELECT 2", rows=1),
        SimpleNamespace(analyst="a", purpose="SELECT 1", rows=1),
        SimpleNamespace(analyst="gone", purpose="SELECT 9", rows=1),
    ]
    found = replayed(log, ["a", "b"])
    assert [(one.analyst, one.sql[-1]) for one in found] == [("a", "1"), ("b", "1"), ("b", "2"), ("a", "1")]
    with pytest.raises(QueryError, match="no question of an analyst who has a share"):
        replayed(log, ["zoe"])


# -- in which order -----------------------------------------------------------------------------------------


def test_without_a_scheduler_questions_are_answered_as_they_arrive() -> None:
    assert served(arriving("aab"), None) == (arriving("aab"), 3)


def test_in_turn_everybody_waits_for_whoever_is_next() -> None:
    """Alice's questions come first, as in Section 7.1: after her first one the queue waits for Bob."""
    order, steps = served(arriving("aaab"), RoundRobin(weights={"a": HALF, "b": HALF}))
    assert (names(order), steps) == ("abaa", 6)


def test_in_turn_nothing_is_lost_where_everybody_asks_in_turn() -> None:
    assert served(arriving("ababab"), RoundRobin(weights={"a": HALF, "b": HALF})) == (arriving("ababab"), 6)


def test_by_lot_a_step_is_lost_whose_lot_falls_on_somebody_who_has_not_asked() -> None:
    draws = iter([0.9, 0.9, 0.1, 0.9])  # b, b: not there yet; a; and then b is the only one left
    order, steps = served(arriving("aab"), Randomized(weights={"a": HALF, "b": HALF}, draw=lambda: next(draws, 0.0)))
    assert steps == 5
    assert [one.sql for one in order if one.analyst == "a"] == ["0", "1"]


# -- one try ------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_utility_counts_answers_within_their_goal() -> None:
    """Laplace noise of one point within 100 costs about .03; points of different ages cost the dearest of them."""
    settings = config(budget=Budget.of(epsilon=0.07))
    asked = [up_to(age) for age in range(10)]
    alone = utilities(settings, TrialPolicy(name="one", shares=False), asked, shares={"ann": Fraction(1)}, goal=WITHIN)
    assert 0 < alone["ann"] < 10
    half = utilities(settings, TrialPolicy(name="one", shares=False), asked, shares={"ann": HALF}, goal=WITHIN)
    assert half["ann"] < alone["ann"]


def test_independent_analysts_do_not_profit_from_each_other_and_others_do() -> None:
    settings = config(budget=Budget.of(epsilon=0.07))
    asked = [up_to(5, "ann"), up_to(5, "bob"), up_to(3, "ann"), up_to(3, "bob")]
    found = {
        name: utilities(settings, TrialPolicy(name=name, policy=name), asked, shares=EVEN, goal=WITHIN)
        for name in ("shared", "independent")
    }
    assert found["independent"] == {"ann": 1, "bob": 1}
    assert sum(found["shared"].values()) > 2


def test_a_goal_that_makes_no_sense_is_told_with_its_question() -> None:
    with pytest.raises(GoalError, match="in the question of 'ann': SELECT COUNT"):
        utilities(
            config(), TrialPolicy(name="x", shares=False), [point(1)], shares={"ann": HALF}, goal=Wanted(within="2%")
        )


# -- policies side by side ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def figures() -> dict[str, Figures]:
    asked = expected(
        {"ann": [up_to(age).sql for age in range(6)], "bob": [point(age).sql for age in range(3)]},
        {"ann": Fraction(5)},
    )
    seed = Seed(fraction=Fraction(1, 4), basis="histogram", columns=("age",))
    small = config(budget=Budget.of(epsilon=0.15))
    setting = Setting(config=small, arrivals=asked, shares=EVEN, seed=seed, goal=WITHIN)
    done: list[tuple[int, int]] = []
    found = compare(setting, lambda now, of: done.append((now, of)))
    assert done == [(place, len(POLICIES)) for place in range(1, len(POLICIES) + 1)]
    return {one.policy: one for one in found}


@pytest.mark.heavy
def test_every_policy_has_its_figures(figures: dict[str, Figures]) -> None:
    assert list(figures) == ["one budget", "shared", "round-robin", "randomized", "independent", "seeded-cache"]
    for one in figures.values():
        assert one.asked == 9
        assert one.answered == sum(one.utility.values()) <= 9
        assert one.ratio_error >= 0
        assert one.steps == 9 if one.policy not in ("round-robin", "randomized") else one.steps >= 9


@pytest.mark.heavy
def test_what_is_promised_is_seen(figures: dict[str, Figures]) -> None:
    for name in ("independent", "seeded-cache"):
        assert figures[name].ratio_error <= 1
        assert figures[name].interference <= 1


@pytest.mark.heavy
def test_who_comes_first_takes_it_all_from_one_budget() -> None:
    """Ann spends nearly everything (.088 of .1) on one answer; from half the budget Bob could have paid his (.03)."""
    dear = AnalystQuestion(analyst="ann", sql="SELECT COUNT(*) FROM people WHERE age >= 1 WITH ERROR 34")
    cheap = AnalystQuestion(analyst="bob", sql="SELECT COUNT(*) FROM people WHERE sex = 'F' WITH ERROR 100")
    small = config(budget=Budget.of(epsilon=0.1))
    seen = compare(Setting(config=small, arrivals=[dear, cheap], shares=EVEN))
    assert [one.policy for one in seen] == ["one budget", "shared", "round-robin", "randomized", "independent"]
    one, *others = seen
    assert (one.utility, one.ratio_error, one.interference) == ({"ann": 1, "bob": 0}, math.inf, math.inf)
    for other in others:
        assert (other.utility, other.ratio_error, other.interference) == ({"ann": 0, "bob": 1}, 1, 1)


def test_shares_are_those_of_the_config_or_equal() -> None:
    assert shares_of(config(), ["ann", "bob"]) == EVEN
    declared = config(analysts=AnalystSettings(shares=Shares.of({"ann": 0.5, "bob": 0.3, "cat": 0.2})))
    assert shares_of(declared, ["bob", "cat"]) == {"bob": Fraction(3, 10), "cat": Fraction(1, 5)}
    with pytest.raises(AnalystError, match="'eve' has no share in the config"):
        shares_of(declared, ["eve"])


# -- the picture --------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_picture_is_drawn_also_of_what_is_infinite(tmp_path: Path, figures: dict[str, Figures]) -> None:
    pytest.importorskip("matplotlib")
    worst = Figures(policy="x", asked=1, answered=0, utility={}, ratio_error=math.inf, interference=1, steps=1)
    plot([*figures.values(), worst], tmp_path / "policies.png")
    assert (tmp_path / "policies.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(Unsupported, match="cannot be written"):
        plot([worst], tmp_path / "missing" / "policies.png")


def test_without_matplotlib_there_is_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(Unsupported, match="pip install matplotlib"):
        check_matplotlib()
