"""What each way of answering offers, and that its error law is the law of what it then delivers."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.budget import Budget
from bursar.estimation.estimate import IndependentRows, meets
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.proposers.direct import Direct
from bursar.proposers.reuse import Exact, Reconstruct
from harness.small import config, engine

BY_AGE = "SELECT age, COUNT(*) FROM people GROUP BY age"


def test_direct_uses_as_much_noise_as_the_goal_allows() -> None:
    db = engine()
    request = db.engine.prepare(BY_AGE, Wanted(within=40, confidence=0.9), None)
    (offer,) = Direct().offers(request, db.engine.planner.views())
    assert isinstance(offer.law, IndependentRows)
    assert meets(offer.law, request.goal)
    more = Noise(kind=NoiseKind.LAPLACE, scale=offer.law.noise.scale * 1.01)
    assert not meets(IndependentRows(noise=more, rows=10), request.goal)


def test_direct_offers_both_noises_in_concentrated_mode() -> None:
    db = engine(settings=config(budget=Budget.of(rho=0.5)))
    offers = Direct().offers(db.engine.prepare(BY_AGE, Wanted(rmse=10), None), db.engine.planner.views())
    kinds = [offer.law.noise.kind for offer in offers if isinstance(offer.law, IndependentRows)]
    assert kinds == [NoiseKind.LAPLACE, NoiseKind.GAUSSIAN]
    for offer in offers:
        assert offer.law.mean_square() == pytest.approx(100, rel=1e-6)


def test_direct_spends_what_may_be_spent_and_no_more() -> None:
    db = engine()
    views = db.engine.planner.views()
    (offer,) = Direct().offers(db.engine.prepare(BY_AGE, Wanted(epsilon=0.25), None), views)
    assert 0.25 * (1 - 1e-6) < offer.price.at_most / 2**50 <= 0.25


def test_exact_remembers_the_finest_measurement() -> None:
    db = engine()
    db.query(BY_AGE, within=50)
    fine = db.query(BY_AGE, within=10)
    (offer,) = Exact().offers(db.engine.prepare(BY_AGE, Wanted(within=50), None), db.engine.planner.views())
    assert offer.bid == 0
    assert tuple(offer.run(None).values) == tuple(v for (v,) in fine.values)


def test_exact_has_nothing_for_a_new_question() -> None:
    db = engine()
    db.query(BY_AGE, within=50)
    request = db.engine.prepare("SELECT sex, COUNT(*) FROM people GROUP BY sex", Wanted(within=50), None)
    assert Exact().offers(request, db.engine.planner.views()) == []
    assert Reconstruct().offers(request, db.engine.planner.views()) == []


def test_reconstruct_weighs_repeated_measurements() -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=100.0)), preset=Preset("again", (Exact(), Direct())))
    for within in (50, 49):
        db.query(BY_AGE, within=within)
    request = db.engine.prepare(BY_AGE, Wanted(within=49), None)
    (exact,) = Exact().offers(request, db.engine.planner.views())
    (offer,) = Reconstruct().offers(request, db.engine.planner.views())
    assert offer.reuses == 20
    assert offer.law.mean_square() < 0.6 * exact.law.mean_square()
    assert np.all(offer.law.half_widths(0.05) < exact.law.half_widths(0.05))
