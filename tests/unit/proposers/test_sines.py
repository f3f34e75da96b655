"""Many ranges of a long column, from SQL to answers: bought once, consistent, and free afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bursar.core.accounting import Mode
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.core.queries import Mask, Product, Steps
from bursar.estimation.estimate import meets
from bursar.goal import Goal, GoalKind
from bursar.planner.batch import Batch, together
from bursar.planner.goals import Wanted
from bursar.proposers.buying.strategy_plans import SinePlan, sines
from bursar.proposers.direct import Direct
from bursar.proposers.strategy import Strategy
from bursar.session import Bursar
from bursar.strategies.ranges import RangeFamily
from harness.maps import domain_of
from harness.small import config, engine

VALUES, ASKED = 100_000, 500
SURE = 1 - 1e-6


@dataclass(frozen=True)
class Asked:
    db: Bursar
    table: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    batch: Batch

    def errors(self) -> np.ndarray:
        sums = np.concatenate([[0], np.cumsum(self.table)])
        answered = np.array([answer.values[0][0] for answer in self.batch.answers])
        return answered - (sums[self.highs + 1] - sums[self.lows])


def between(low: int, high: int) -> str:
    return f"SELECT COUNT(*) FROM people WHERE x BETWEEN {low} AND {high}"


@pytest.fixture(scope="module")
def asked() -> Asked:
    """500 ranges, all within 3,000 with a chance of at least 1 - 1e-6."""
    numbers = np.random.default_rng(0)
    domain = Domain((IntegerRange(name="x", lower=0, upper=VALUES - 1),))
    assert domain["x"].size == VALUES + 1  # NULL has a cell
    table = numbers.poisson(5, VALUES + 1)
    lows = numbers.integers(0, VALUES, ASKED)
    highs = numbers.integers(lows, VALUES)
    lows[0], highs[0] = 0, VALUES - 1
    db = engine(settings=config(domain=domain, budget=Budget.of(rho=1.0), max_rows=10**7), table=table)
    texts = [between(low, high) for low, high in zip(lows, highs, strict=True)]
    return Asked(db, table, lows, highs, db.batch(texts, within=3000, confidence=SURE))


@pytest.mark.heavy
def test_a_sine_plan_answers_and_is_cheaper_than_the_ranges_themselves(asked: Asked) -> None:
    first = asked.batch.answers[0]
    assert (first.source, first.note.split()[0]) == ("strategy", "sines")
    assert first.bought >= VALUES
    assert 0 < asked.batch.charge < 0.2 * asked.batch.one_by_one


@pytest.mark.heavy
@pytest.mark.parametrize(("narrower", "right"), [(1, True), (6, False)], ids=["as stated", "six times narrower"])
def test_all_errors_are_within_their_bars(asked: Asked, narrower: float, right: bool) -> None:
    """False alarms have a chance of 1e-6. Bars of about one deviation would fail: 500 ranges have many directions."""
    bars = np.array([(answer.high[0][0] - answer.low[0][0]) / 2 for answer in asked.batch.answers])
    assert bars.max() <= 3000
    assert bool(np.all(np.abs(asked.errors()) <= bars / narrower)) == right


@pytest.mark.heavy
def test_other_ranges_are_free_and_agree_with_each_other(asked: Asked) -> None:
    spent = asked.db.budget().spent
    left, right, whole = (asked.db.query(between(*r), within=3000) for r in ((77, 4999), (5000, 90_000), (77, 90_000)))
    assert [answer.source for answer in (left, right, whole)] == ["reconstruct"] * 3
    assert asked.db.budget().spent == spent
    assert left.values[0][0] + right.values[0][0] == pytest.approx(whole.values[0][0], abs=1e-6)
    again = asked.db.query(between(int(asked.lows[1]), int(asked.highs[1])), within=3000)
    assert again.values[0][0] == pytest.approx(asked.batch.answers[1].values[0][0], abs=1e-6)


@pytest.mark.heavy
def test_what_the_plan_does_not_settle_has_a_price(asked: Asked) -> None:
    """Nearly all of the column was asked for, so the NULL cell takes part; a closer look has to be bought."""
    assert asked.db.explain("SELECT COUNT(*) FROM people WHERE x IS NULL", within=3000).price == 0
    assert asked.db.explain(between(10, 90_000), within=100).price > 0


def ranges(rows: list[tuple[int, int]], size: int) -> Product:
    lows, highs = zip(*rows, strict=True)
    return Product((Mask(("x",), (size,), Steps.ranges(lows, highs, size)),))


def planned(rows: list[tuple[int, int]], size: int) -> SinePlan | None:
    return sines(ranges(rows, size), domain_of(x=size))


def test_the_cells_are_those_that_the_queries_look_at() -> None:
    part = planned([(100 + i, 1000 - i) for i in range(300)], 5000)
    assert part is not None
    transform = part.strategy.transform
    assert (transform.first, len(transform.cell_weights), part.strategy.family) == (100, 900, RangeFamily.RANGES)
    nearly_all = planned([(20 + i, 1980 - i) for i in range(300)], 2000)
    assert nearly_all is not None
    assert len(nearly_all.strategy.transform.cell_weights) == 2000
    running = planned([(300, 301 + i) for i in range(600)], 5000)
    assert running is not None
    assert running.strategy.family is RangeFamily.PREFIXES
    to_the_end = planned([(4000, 5000), *((4000 + i, 4990 - i) for i in range(300))], 5000)
    assert to_the_end is not None
    assert len(to_the_end.strategy.transform.cell_weights) == 1000


def test_there_is_no_plan_for_few_pieces_or_several_columns() -> None:
    assert planned([(100 + i, 1000 - i) for i in range(200)], 5000) is None
    mask = Mask(("y",), (2,), Steps.total(2))
    several = Product((*ranges([(i, 1000 - i) for i in range(300)], 5000).masks, mask))
    assert sines(several, domain_of(x=5000, y=2)) is None


GOALS = [{"within": 400}, {"rmse": 150.0}, {"rho": 0.01}]


@pytest.mark.heavy
@pytest.mark.sampled(3)
@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: next(iter(goal)))
def test_goals_are_kept_at_a_lower_price(goal: dict[str, float]) -> None:
    domain = Domain((IntegerRange(name="x", lower=0, upper=1999, null=0),))
    db = engine(
        settings=config(domain=domain, budget=Budget.of(rho=900.0)), table=np.random.default_rng(1).integers(0, 9, 2000)
    )
    request = together([db.engine.prepare(between(3 * i, 1999 - i), Wanted(**goal), None) for i in range(300)], None)
    (offer,) = Strategy().offers(request, db.engine.planner.views())
    assert offer.note.startswith("sines")
    assert meets(offer.law, request.goal)
    direct = min(Direct().offers(request, db.engine.planner.views()), key=lambda each: each.law.mean_square())
    if request.goal.kind is GoalKind.SPEND:
        assert 0.99 * 0.01 < offer.bid / 2**50 <= 0.01
        assert offer.law.mean_square() < 0.2 * direct.law.mean_square()
    else:
        assert offer.bid < 0.2 * direct.bid
        closer = Goal(kind=request.goal.kind, amount=0.99 * request.goal.amount)
        assert not meets(offer.law, closer)  # and no more is bought than was asked for


@pytest.mark.heavy
def test_pure_mode_has_no_sines() -> None:
    domain = Domain((IntegerRange(name="x", lower=0, upper=1999, null=0),))
    db = engine(settings=config(domain=domain, budget=Budget.of(epsilon=9.0)), table=np.zeros(2000, int))
    assert db.config.budget.mode is Mode.PURE
    request = together(
        [db.engine.prepare(between(3 * i, 1999 - i), Wanted(within=400), None) for i in range(300)], None
    )
    assert all(not offer.note.startswith("sines") for offer in Strategy().offers(request, db.engine.planner.views()))
