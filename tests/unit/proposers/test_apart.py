"""Parts that have no use for each other are answered by themselves, where that is cheaper, within the goal of all."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Mode, Noise, NoiseKind, Refined
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.estimation.estimate import IndependentRows, JointLaw, WeightedRows, error_bars, meets
from bursar.estimation.least_squares import Block, Reconstruction
from bursar.goal import Goal, GoalKind
from bursar.planner.batch import together
from bursar.planner.goals import Wanted
from bursar.planner.offer import Offer
from bursar.proposers.apart import Apart, LawOfFreshParts, LawOfParts
from bursar.proposers.strategy import Strategy
from bursar.proposers.tree import Tree
from bursar.session import Bursar
from harness.small import Silence, config, counts, engine

TOTAL = "SELECT COUNT(*) AS n FROM people"
CELLS = "SELECT age, sex, region, COUNT(*) AS n FROM people GROUP BY age, sex, region"
LONG = Domain(
    (IntegerRange(name="x", lower=1, upper=70, null=0), IntegerRange(name="y", lower=1, upper=5, null=0)),
)


def offered(db: Bursar, *texts: str, within: float = 50) -> list[Offer]:
    request = together([db.engine.prepare(sql, Wanted(within=within), None) for sql in texts], None)
    return Apart(Strategy()).offers(request, db.engine.planner.views())


def test_a_total_is_not_measured_as_finely_as_very_many_groups() -> None:
    """Of 60 cells and a total the cells need most of the noise; one noise for all costs a tenth more."""
    db = engine()
    request = together([db.engine.prepare(sql, Wanted(within=50), None) for sql in (TOTAL, CELLS)], None)
    (offer,) = offered(db, TOTAL, CELLS)
    total, cells = (event.noise.scale for event in offer.price.events)
    assert total > 1.3 * cells
    assert meets(offer.law, request.goal)
    direct = next(line for line in db.explain(f"{CELLS}", within=50).offers if line.proposer == "direct")
    assert offer.price.at_most / 2**50 < 1.9 * direct.price
    assert db.batch([TOTAL, CELLS], within=50).answers[0].source == "apart"


def test_what_is_bought_for_one_part_is_taken_in_once_for_all_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: Counter[tuple[tuple[str, ...], str]] = Counter()
    add = Reconstruction.add

    def counting(reconstruction: Reconstruction, block: Block) -> bool:
        taken[reconstruction.columns, block.product.digest] += 1
        return add(reconstruction, block)

    monkeypatch.setattr(Reconstruction, "add", counting)
    domain = Domain(tuple(IntegerRange(name=name, lower=1, upper=3, null=0) for name in "abcd"))
    db = engine(table=np.full((3,) * 4, 25, np.int64), settings=config(domain=domain))
    db.explain("SELECT a, b, c, d, COUNT(*) AS n FROM people GROUP BY CUBE (a, b, c, d)", within=50)
    assert len(taken) >= 5
    assert max(taken.values()) <= 2  # 15 where all that was bought is read anew for each part


@pytest.mark.heavy
def test_quantiles_of_two_columns_cost_no_more_than_one_after_the_other() -> None:
    table = np.full((70, 5), 25, np.int64)
    ends, both = ("SELECT MAX(x) FROM people", "SELECT MIN(y) FROM people"), "SELECT MAX(x), MIN(y) FROM people"
    db = engine(table=table, settings=config(domain=LONG))
    alone = sum(db.explain(sql, within=300, confidence=0.975).price for sql in ends)
    explained = db.explain(both, within=300)
    assert explained.price <= alone * (1 + 1e-6)
    assert "apart" in str(explained)
    answer = db.query(both, within=300)
    assert float(answer.low[0][0]) <= 70 <= float(answer.high[0][0])
    assert db.query(both, within=300).charge == 0


def test_what_the_log_has_is_not_bought_again() -> None:
    db = engine(randomness=Silence())
    db.query(CELLS, within=20)
    (offer,) = offered(db, TOTAL, CELLS)
    assert [event.strategy.rows for event in offer.price.events] == [1]
    assert (offer.buys, offer.reuses) == (1, counts().size)
    assert not isinstance(offer.law, JointLaw)  # rows of the log may be in several parts


def test_parts_that_are_alike_are_measured_together() -> None:
    assert offered(engine(), *(f"SELECT COUNT(*) FROM people WHERE age < {age}" for age in (3, 4))) == []


def test_rows_that_two_questions_would_refine_are_refined_once() -> None:
    """By itself each of them refines nodes of the log; in a batch the second would find them changed."""
    db = engine(settings=config(budget=Budget.of(epsilon=900.0)))
    texts = [f"SELECT COUNT(*) AS n FROM people WHERE age < {age}" for age in (7, 8)]
    texts.append(CELLS)
    for sql in texts[:2]:
        db.query(sql, within=60, horizon="many")
    plans = [
        Tree(theta={Mode.PURE: 1.0}).offers(db.engine.prepare(sql, Wanted(within=40), None), db.engine.planner.views())
        for sql in texts[:2]
    ]
    assert all(isinstance(event, Refined) for offers in plans for offer in offers for event in offer.price.events[:1])
    (offer,) = offered(db, *texts, within=40)
    refined = [event for event in offer.price.events if isinstance(event, Refined)]
    rows = [(event.block, row) for event in refined for row in event.rows.tolist()]
    assert rows
    assert len(rows) == len(set(rows))
    assert len(db.batch(texts, within=40).answers) == 3


def test_only_for_errors_and_for_parts_of_one_question_with_laplace_noise() -> None:
    rho = engine(settings=config(budget=Budget.of(rho=900.0)))
    assert offered(rho, "SELECT COUNT(*) AS n, MAX(age) AS oldest FROM people") == []
    assert [offer.proposer for offer in offered(rho, TOTAL, CELLS)] == ["apart"]
    db = engine()
    request = together([db.engine.prepare(sql, Wanted(rmse=20), None) for sql in (TOTAL, CELLS)], None)
    assert Apart(Strategy()).offers(request, db.engine.planner.views()) == []


@pytest.mark.thinned(3)
@pytest.mark.parametrize("confidence", [0.99999, 1 - 1e-9, 1 - 1e-12])
def test_shares_of_a_very_small_chance_are_rounded_downwards(confidence: float) -> None:
    table, both = np.full((70, 5), 25, np.int64), "SELECT MEDIAN(x), MEDIAN(y), AVG(x) FROM people"
    db = engine(table=table, settings=config(domain=LONG))
    request = together([db.engine.prepare(both, Wanted(within=300, confidence=confidence), None)], None)
    (offer,) = Apart(Strategy()).offers(request, db.engine.planner.views())
    assert meets(offer.law, request.goal)


def test_the_smallest_chance_has_no_shares() -> None:
    """Half of it would be a confidence of 1: parts by themselves are no way then, and others are."""
    db = engine(settings=config(budget=Budget.of(epsilon=9.0)))
    answer = db.query("SELECT COUNT(*) AS n, AVG(age) AS a FROM people", within=300, confidence=1 - 2.0**-53)
    assert answer.charge > 0


COARSE, FINE = (
    IndependentRows(noise=Noise(kind=NoiseKind.LAPLACE, scale=s), rows=n) for s, n in ((20.0, 1), (10.0, 9))
)
LAW = LawOfFreshParts(laws=(COARSE, FINE), sizes=(1, 9))


def test_chances_add_up_and_shares_are_even() -> None:
    beta = 2 * COARSE.tail(90.0, 1.0)
    each = COARSE.tail(90.0, 1.0) + FINE.tail(90.0, 1.0)
    assert LAW.tail(90.0, beta) == pytest.approx(each)
    assert LAW.tail(90.0, 0.9 * beta) == 1
    assert LAW.half_widths(0.1) == pytest.approx(np.concatenate([COARSE.half_widths(0.05), FINE.half_widths(0.05)]))
    assert LAW.mean_square() == pytest.approx((COARSE.mean_square() + 9 * FINE.mean_square()) / 10)


def test_fresh_parts_are_combined_by_their_own_draws() -> None:
    """A twin with the parts in the other order has other noises."""
    weights, noises = LAW.as_draws(np.eye(10))
    assert np.array_equal(weights, np.eye(10))
    assert list(noises) == [COARSE.noise] + [FINE.noise] * 9
    assert list(replace(LAW, laws=(FINE, COARSE), sizes=(9, 1)).as_draws(np.eye(10))[1]) != list(noises)
    assert not isinstance(LawOfParts(laws=LAW.laws, sizes=LAW.sizes), JointLaw)


def test_bars_that_the_goal_replaces_are_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The widest row has a tenth of its part's chance, and needs little of the others': its bar is above the goal."""
    weights = np.diag([1.5, *([0.5] * 9)])
    law = LawOfParts(laws=(COARSE, WeightedRows(weights=weights, noises=[FINE.noise] * 10)), sizes=(1, 10))
    widths, wide = law.half_widths(0.1), Goal(kind=GoalKind.ERROR, amount=200.0, confidence=0.9)
    widest = float(widths.max())
    assert np.array_equal(error_bars(law, wide), widths)
    assert law.exceeds(0.999 * widest, 0.1)
    assert not law.exceeds(1.001 * widest, 0.1)
    assert LAW.exceeds(0.9 * float(LAW.half_widths(0.1).max()), 0.1)
    monkeypatch.setattr(WeightedRows, "half_widths", lambda law, beta: pytest.fail("worked out"))
    near = replace(wide, amount=0.98 * widest)
    assert meets(law, near)
    assert np.array_equal(error_bars(law, near), np.full(11, near.amount))
