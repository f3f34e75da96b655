"""What is remembered of a question while it is planned is forgotten with it: a server answers for months."""

from __future__ import annotations

import gc
from dataclasses import replace
from weakref import ref

from bursar.planner.goals import Wanted
from bursar.proposers.direct import Direct
from harness.small import engine

QUESTION = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def test_a_question_that_was_answered_is_not_kept() -> None:
    db = engine()
    request = db.engine.prepare(QUESTION, Wanted(within=30))
    db.engine.ask(request)
    kept = ref(request)
    del request
    gc.collect()
    assert kept() is None


def test_offers_are_made_once_for_a_log_and_its_prices() -> None:
    planner = engine().engine.planner
    views, direct = planner.views(), Direct()
    request = engine().engine.prepare(QUESTION, Wanted(within=30))
    offers = direct.offers(request, views)
    assert direct.offers(request, views) is offers
    assert direct.offers(request, replace(views, position=views.position + 1)) is not offers
