"""Policies: whose measurements answer whose questions, and who pays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bursar import presets
from bursar.analysts.policy import Independent, PlannerParts, SeededCache, Shared, policy_of
from bursar.analysts.shares import AnalystSettings
from bursar.errors import ConfigError
from bursar.estimation.simultaneous import Family
from harness.collective import LINE, Collective, settings_of

HALVES = {"ana": 0.5, "bob": 0.5}
ERROR = 10.0
FREE = ("exact", "reconstruct")


def test_the_config_names_the_policy() -> None:
    assert isinstance(policy_of(AnalystSettings()), Shared)
    assert isinstance(policy_of(settings_of(HALVES, policy="independent")), Independent)
    assert isinstance(policy_of(settings_of(HALVES)), SeededCache)


def test_shared_measurements_answer_everybody() -> None:
    people = Collective(settings_of(HALVES, policy="shared"))
    people.ask("ana", 0b0011, ERROR)
    assert people.ask("bob", 0b0011, ERROR) in FREE
    assert people.spent("bob") == 0 < people.spent("ana")


def test_independent_analysts_see_nothing_of_each_other() -> None:
    people = Collective(settings_of(HALVES, policy="independent"))
    people.ask("ana", 0b0011, ERROR)
    first = people.spent("ana")
    assert people.ask("bob", 0b0011, ERROR) not in FREE
    assert people.spent("bob") == first > 0
    assert people.ask("ana", 0b0011, ERROR) in FREE
    assert people.spent("ana") == first


def test_what_independent_analysts_get_does_not_depend_on_others() -> None:
    questions = [0b1, 0b11, 0b110, 0b1111, 0b101, 0b11, 0b10000]
    alone = Collective(settings_of({"ana": 0.5}, policy="independent"))
    before = [(alone.ask("ana", mask, ERROR), alone.spent("ana")) for mask in questions]
    people = Collective(settings_of(HALVES, policy="independent"))
    found = []
    for mask in questions:
        people.ask("bob", mask ^ 0b111, 1.5 * ERROR)
        found.append((people.ask("ana", mask, ERROR), people.spent("ana")))
    assert found == before


def test_what_explain_calls_taken_is_what_the_question_then_takes() -> None:
    """The cap is part of EXPLAIN: without it the first range would be put together from nodes."""
    people = Collective(settings_of(HALVES, policy="independent"), epsilon=10.0)
    ana, sources = people.engines["ana"], []
    for ages in ((1, 3), (1, 5), (3, 6), (0, 2), (2, 5)):
        sql = "SELECT COUNT(*) FROM people WHERE age BETWEEN {} AND {}".format(*ages)
        shown = ana.explain(sql, within=50)
        (taken,) = (line for place, line in enumerate(shown.offers) if place == shown.chosen)
        answer = ana.query(sql, within=50)
        assert (taken.proposer, taken.price) == (answer.source, answer.charge)
        sources.append(answer.source)
    assert sources[0] == "direct"


def test_seeded_cache_refuses_the_simultaneous_contract() -> None:
    people = Collective(settings_of(HALVES))
    family = Family(domain=LINE, sets=(("age",),))
    preset = presets.under(family, presets.default, LINE)
    owner = people.owner
    mode, kernel, ledger = owner.config.budget.mode, owner.kernel, owner.ledger
    parts = PlannerParts(
        domain=LINE, mode=mode, preset=preset, prices=kernel, ledger=ledger, records=ledger.records, analyst="ana"
    )
    with pytest.raises(ConfigError, match="simultaneous"):
        owner.engine.policy.planner(parts)


def test_budget_and_explain_say_what_is_promised() -> None:
    people = Collective(settings_of(HALVES))
    ana = people.engines["ana"]
    assert "analyst monotonicity" in ana.budget().sharing
    sql = "SELECT COUNT(*) FROM people WHERE age < 3"
    assert "seeded-cache" in str(ana.explain(sql, within=50))
    bare = Collective(replace(settings_of(HALVES, policy="shared"), shares=AnalystSettings().shares))
    assert bare.owner.budget().sharing == ""
    assert "sharing" not in str(bare.owner.explain(sql, within=50))


def test_explain_never_tells_what_others_have_asked() -> None:
    people = Collective(settings_of(HALVES, policy="shared"))
    for mask in (0b0001, 0b0110, 0b1011):
        people.ask("ana", mask, ERROR)
    sql = "SELECT COUNT(*) FROM people WHERE age < 3"
    shown = str(people.engines["bob"].explain(sql, within=ERROR / 2, horizon="many"))
    assert "rent" not in shown
    assert "answers many questions at once" in shown
    bare = Collective(replace(settings_of(HALVES, policy="shared"), shares=AnalystSettings().shares))
    for ages in ("0", "1, 2", "0, 1, 3"):
        bare.owner.query(f"SELECT COUNT(*) FROM people WHERE age IN ({ages})", within=3 * ERROR)
    assert "rent so far" in str(bare.owner.explain(sql, within=ERROR, horizon="many"))
