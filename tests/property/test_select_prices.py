"""A SELECT of several numbers costs no more than these one after the other, with the confidence shared out evenly.

So it is in both kinds of budget, also where a number would reuse what those before it have bought.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Event, Measured, Noise, NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.estimation.estimate import LawOfQuestions
from bursar.goal import Goal
from bursar.planner.goals import Wanted
from bursar.proposers import apart, reuse
from bursar.session import Bursar
from bursar.testing import EmptySource, stage
from harness.small import Silence, TableSource, config, engine

WITHIN, BETA = 60, 0.05
SEARCHED_TO = 1.001
"""How closely noise is found that has no closed form."""

EPSILON, RHO = Budget.of(epsilon=900.0), Budget.of(rho=900.0)
BUDGETS = pytest.mark.parametrize("budget", [EPSILON, RHO], ids=["epsilon", "rho"])
DOMAIN = Domain(
    tuple(
        IntegerRange(name=name, lower=low, upper=high, null=low)
        for name, low, high in (("age", 0, 39), ("hours", 0, 29), ("race", 1, 3))
    )
)
TABLE = 100 + np.arange(40 * 30 * 3, dtype=np.int64).reshape(40, 30, 3) % 7
NUMBERS = (
    *("COUNT(*)", "AVG(age)", "AVG(hours)", "VARIANCE(hours)", "STDDEV(age)", "MEDIAN(hours)", "MAX(age)"),
    *(
        "MIN(hours)",
        "CORR(age, hours)",
        "AVG(CASE WHEN age >= 20 THEN 1 ELSE 0 END)",
        "COUNT(*) FILTER (WHERE age < 9)",
    ),
)


def small(budget: Budget) -> Bursar:
    facts = config(budget=budget, domain=DOMAIN, max_rows=10**7)
    return stage(facts, lambda key: EmptySource(facts.domain))


def select(numbers: list[str], groups: str, low: int) -> str:
    head, tail = (f"{groups}, ", f" GROUP BY {groups}") if groups else ("", "")
    return f"SELECT {head}{', '.join(numbers)} FROM people WHERE age >= {low}{tail}"


def prices(numbers: list[str], groups: str, low: int, budget: Budget) -> tuple[float, float, float]:
    """Of all numbers at once, what they cost when each is bought before the next is planned, and of all once more."""
    db, other = small(budget), small(budget)
    share = 1 - BETA / len(numbers)
    alone = [select([number], groups, low) for number in numbers]
    in_order = sum(other.query(sql, within=WITHIN, confidence=share, horizon="one-off").charge for sql in alone)
    at_once = db.query(select(numbers, groups, low), within=WITHIN, horizon="one-off")
    again = db.query(select(numbers, groups, low), within=WITHIN, horizon="one-off")
    assert at_once.charge == pytest.approx(db.budget().spent)
    return at_once.charge, in_order, again.charge


@BUDGETS
@settings(max_examples=10, deadline=None)
@given(
    numbers=st.lists(st.sampled_from(NUMBERS), min_size=2, max_size=4, unique=True),
    groups=st.sampled_from(("", "", "race")),
    low=st.sampled_from((0, 5)),
)
def test_all_at_once_is_no_dearer_than_one_after_the_other(
    budget: Budget, numbers: list[str], groups: str, low: int
) -> None:
    at_once, in_order, again = prices(numbers, groups, low, budget)
    assert at_once <= in_order * SEARCHED_TO
    assert again == 0


WITHOUT_USE = pytest.mark.parametrize(
    ("budget", "numbers"),
    [(EPSILON, ["MEDIAN(hours)", "CORR(age, hours)"]), (RHO, ["AVG(age)", "VARIANCE(hours)"])],
    ids=["epsilon", "rho"],
)
"""Numbers that have no use for each other's rows."""


@WITHOUT_USE
def test_a_planner_of_all_numbers_together_is_dearer(
    budget: Budget, numbers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin."""
    ours, in_order, _ = prices(numbers, "race", 0, budget)
    assert ours <= in_order * SEARCHED_TO
    monkeypatch.setattr(reuse, "numbers_alone", lambda request: ())
    dearer, _, _ = prices(numbers, "race", 0, budget)
    assert dearer > 1.05 * in_order


def test_a_planner_that_does_not_see_rows_to_come_is_dearer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the third number is read from the rows of the second, and a median has no use for them."""
    numbers = ["MEDIAN(hours)", "REGR_SLOPE(age, hours)", "CORR(age, hours)"]
    for groups in ("", "race"):  # of more cells than are reconstructed
        ours, in_order, _ = prices(numbers, groups, 0, EPSILON)
        assert ours <= in_order * SEARCHED_TO
    monkeypatch.setattr(apart, "_reusable", lambda *_: False)
    dearer, _, _ = prices(numbers, groups, 0, EPSILON)
    assert dearer > 1.05 * in_order


@BUDGETS
@settings(max_examples=4, deadline=None)
@given(
    some=st.lists(
        st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=2, unique=True).map(tuple),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_a_batch_of_them_costs_no_more_than_they_do(budget: Budget, some: list[tuple[str, ...]]) -> None:
    texts = [select(list(numbers), "", 5) for numbers in some]
    db = small(budget)
    with db.batch(within=WITHIN) as batch:
        for sql in texts:
            batch.query(sql)
        together = batch.price
        batch.cancel()
    share = 1 - BETA / len(texts)
    alone = sum(db.explain(sql, within=WITHIN, confidence=share, horizon="one-off").price for sql in texts)
    assert together <= alone * SEARCHED_TO


@WITHOUT_USE
def test_each_number_is_read_from_rows_of_its_own(budget: Budget, numbers: list[str]) -> None:
    db = engine(table=TABLE, settings=config(budget=budget, domain=DOMAIN, max_rows=10**7), randomness=Silence())
    sql = f"SELECT race, {numbers[0]} AS a, {numbers[1]} AS b FROM people GROUP BY race"
    explained = db.explain(sql, within=WITHIN)
    answer = db.query(f"{sql} HAVING a > 0 ORDER BY race DESC", within=WITHIN)
    assert answer.source == "apart"
    assert "2 numbers one by one" in answer.note
    assert answer.charge == explained.price
    assert [label for (label,) in answer.labels] == [3, 2, 1]
    for (first, second), race in zip(answer.values, (2, 1, 0), strict=True):
        x = np.repeat(np.arange(40), TABLE[:, :, race].sum(axis=1))
        y = np.concatenate([np.repeat(np.arange(30), row) for row in TABLE[:, :, race]])
        truth = (np.median(y), np.corrcoef(x, y)[0, 1]) if budget is EPSILON else (x.mean(), y.var(ddof=1))
        assert (first, second) == pytest.approx(truth, abs=1e-9)
    for within in (WITHIN, 2 * WITHIN):
        assert db.query(sql, within=within).free


def test_numbers_that_need_no_rows_and_shares_of_others_stay_what_they_are() -> None:
    """One number is 0 by definition, and one needs the last row of another's table alone."""
    db = engine(table=TABLE, settings=config(budget=RHO, domain=DOMAIN, max_rows=10**7), randomness=Silence())
    outputs = "COUNT(*) FILTER (WHERE age > 50) AS nobody, MEDIAN(age) AS m, COUNT(*) AS n, MAX(hours) AS h"
    sql = f"SELECT {outputs} FROM people"
    numbers = reuse.one_by_one(db.engine.prepare(sql, Wanted(within=WITHIN)))
    assert [number.workload.outputs for number in numbers] == [("nobody", "m"), ("n",), ("h",)]
    assert numbers[1].workload.map.rows == 1
    assert all(number.goal.beta <= BETA / 3 for number in numbers)
    answer = db.query(sql, within=WITHIN)
    assert answer.values[0][0] == 0
    assert answer.values[0][2:] == pytest.approx((TABLE.sum(), 29))


VERSION = 1
"""Of the data, as a ledger begins with."""


class Noisy:
    """The verb of a kernel that knows the truth, with noise of the same law from a generator that tests may seed."""

    def __init__(self, seed: int) -> None:
        self._rng, self._position = np.random.default_rng(seed), 0
        self._source = TableSource(TABLE, DOMAIN)

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        exact = strategy.apply(self._source.table)
        if noise.kind is NoiseKind.GAUSSIAN:
            drawn = np.rint(self._rng.normal(0.0, noise.scale, len(exact))).astype(np.int64)
        else:
            one, other = self._rng.geometric(1 - np.exp(-1 / noise.scale), (2, len(exact)))
            drawn = one - other
        event: Event = Measured(strategy=strategy, noise=noise, version=VERSION)
        self._position += 1
        facts = {"at": 0.0, "analyst": "", "question": "", "proposer": "", "run": 0}
        return Record(position=self._position, event=event, values=exact + drawn, **facts)  # type: ignore[arg-type]


def misses(budget: Budget, confidence: float, runs: int) -> float:
    """How often some number is not within its ends."""
    db = small(budget)
    request = db.engine.prepare("SELECT AVG(age), MAX(hours), AVG(hours) FROM people", Wanted(within=WITHIN))
    request = db.engine.prepare(request.text, Wanted(within=WITHIN, confidence=confidence))
    (offer,) = (
        offer
        for proposer in db.engine.planner.preset.proposers
        if isinstance(proposer, apart.Apart)
        for offer in [proposer._questions(request, db.engine.planner.views(), np.inf)]
    )
    assert offer is not None
    assert isinstance(offer.law, LawOfQuestions)
    ages, hours = TABLE.sum(axis=(1, 2)), TABLE.sum(axis=(0, 2))
    truth = [ages @ np.arange(40) / ages.sum(), 29.0, hours @ np.arange(30) / hours.sum()]
    failed = 0
    for seed in range(runs):
        estimate = offer.run(Noisy(seed))  # type: ignore[arg-type]
        numbers = request.workload.derive(estimate.values, estimate.values, estimate.values, estimate.law)
        failed += any(not n.low[0] <= true <= n.high[0] for n, true in zip(numbers, truth, strict=True))
    return failed / runs


def test_all_error_bars_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin gives every number the whole chance to fail."""
    runs, beta = 300, 0.4
    spread = 5 * np.sqrt(beta * (1 - beta) / runs)
    assert 0.25 * beta < misses(EPSILON, 1 - beta, runs) < beta + spread
    monkeypatch.setattr(Goal, "shared", lambda goal, among: goal)
    assert misses(EPSILON, 1 - beta, runs) > beta + spread
