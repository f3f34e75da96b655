"""A batch costs no more than its questions one after the other, with the confidence shared out evenly.

So it is with averages, medians, deviations, maxima and minima among them, and in both kinds of budget.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar import presets
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.estimation.batch_goals import BatchGoal
from bursar.planner import batch
from bursar.planner.choose import Preset
from bursar.proposers.apart import Apart
from bursar.session import Bursar
from bursar.testing import EmptySource, stage
from harness.small import DOMAIN, config

GROUPS = ("", "sex", "region", "age, region")
WITHIN, BETA = 60, 0.05


def question(groups: str, low: int) -> str:
    head, tail = (f"{groups}, ", f" GROUP BY {groups}") if groups else ("", "")
    return f"SELECT {head}COUNT(*) AS n FROM people WHERE age >= {low}{tail}"


SEARCHED_TO = 1.001
"""How closely noise is found that has no closed form."""

COUNTED = ("COUNT(*)", "SUM(age)", "MAX(age)", "MIN(age)")
DERIVED = ("COUNT(*)", "SUM(age)", "AVG(age)", "MEDIAN(age)", "STDDEV(age)")
EPSILON, RHO = Budget.of(epsilon=900.0), Budget.of(rho=900.0)


def derived(output: str, groups: str, low: int) -> str:
    return question(groups, low).replace("COUNT(*)", output)


LARGER = Domain(
    tuple(IntegerRange(name=name, lower=0, upper=most, null=0) for name, most in [("age", 74), ("hours", 99)])
    + tuple(IntegerRange(name=name, lower=1, upper=most, null=0) for name, most in [("job", 9), ("race", 5)])
)


def small(preset: Preset | None = None, budget: Budget = EPSILON, domain: Domain = DOMAIN) -> Bursar:
    facts = config(budget=budget, domain=domain)
    return stage(facts, lambda key: EmptySource(facts.domain), preset=preset)


def prices(
    asked: list[str],
    before: list[str],
    preset: Preset | None = None,
    budget: Budget = EPSILON,
    domain: Domain = DOMAIN,
) -> tuple[float, float]:
    """Of all questions at once, and of all that each of them would measure by itself just then."""
    db = small(preset, budget, domain)
    for sql in before:
        db.query(sql, within=40, horizon="one-off")
    at_once = db.batch(within=WITHIN)
    for sql in asked:
        at_once.query(sql)
    together = at_once.price
    share = 1 - BETA / len(set(asked))
    alone = [db.explain(sql, within=WITHIN, confidence=share, horizon="one-off").price for sql in dict.fromkeys(asked)]
    return together, sum(alone)


asked = st.lists(
    st.builds(derived, st.sampled_from(COUNTED), st.sampled_from(GROUPS), st.integers(0, 3)),
    min_size=2,
    max_size=3,
    unique=True,
)


@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=["epsilon", "rho"])
@settings(max_examples=6, deadline=None)
@given(texts=asked)
def test_all_at_once_is_never_dearer_than_one_after_the_other(budget: Budget, texts: list[str]) -> None:
    together, one_by_one = prices(texts, [], budget=budget)
    assert together <= one_by_one * SEARCHED_TO


def test_a_planner_of_all_rows_together_is_dearer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a maximum by group, beside counts that have no use for its rows."""
    texts = [
        "SELECT COUNT(*) AS n FROM people WHERE hours >= 52",
        "SELECT job, MAX(age) AS n FROM people WHERE hours BETWEEN 65 AND 69 GROUP BY job",
        "SELECT job, race, COUNT(*) AS n FROM people GROUP BY job, race",
    ]
    ours, one_by_one = prices(texts, [], budget=RHO, domain=LARGER)
    assert ours <= one_by_one * (1 + 1e-6)
    monkeypatch.setattr(batch, "MOST_APART", 0)
    dearer, _ = prices(texts, [], budget=RHO, domain=LARGER)
    assert dearer > 1.05 * one_by_one


def test_a_question_that_is_free_stays_free_in_a_batch() -> None:
    cells, total = question("age, region", 0), question("", 2)
    together, _ = prices([cells, total], [cells])
    alone, _ = prices([total], [])
    assert together < 1.5 * alone  # thirty groups are free, and the total has half of the chance to fail


def test_a_planner_without_parts_is_dearer() -> None:
    """The twin."""
    every = tuple(each for each in presets.default.proposers if not isinstance(each, Apart))
    twin = Preset("twin", every, plain=presets.default.plain)
    texts = [question("", 0), question("age, region", 0)]
    together, one_by_one = prices(texts, [], twin)
    assert together > 1.05 * one_by_one
    ours, _ = prices(texts, [])
    assert ours == pytest.approx(one_by_one, rel=1e-3)


averages = st.lists(
    st.builds(derived, st.sampled_from(DERIVED), st.sampled_from(GROUPS[:3]), st.integers(0, 3)),
    min_size=2,
    max_size=4,
    unique=True,
)
AVERAGES = [derived("AVG(age)", "", 0), derived("AVG(age)", "region", 2), derived("COUNT(*)", "sex", 0)]


@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=["epsilon", "rho"])
@settings(max_examples=4, deadline=None)
@given(texts=averages)
def test_averages_at_once_are_never_dearer_than_one_after_the_other(budget: Budget, texts: list[str]) -> None:
    together, one_by_one = prices([derived("AVG(age)", "", 0), *texts], [], budget=budget)
    assert together <= one_by_one * SEARCHED_TO


@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=["epsilon", "rho"])
def test_a_planner_that_reads_averages_from_bars_is_dearer(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: no question of a batch is known to be exact enough by the joint law of its rows."""
    ours, one_by_one = prices(AVERAGES, [], budget=budget)
    assert ours <= one_by_one * (1 + 1e-6)
    monkeypatch.setattr(BatchGoal, "kept_by", lambda *_: False)
    monkeypatch.setattr(BatchGoal, "reach", lambda *_: float("inf"))
    dearer, _ = prices(AVERAGES, [], budget=budget)
    assert dearer > 1.1 * one_by_one
