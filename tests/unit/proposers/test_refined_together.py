"""Rows of one record that are refined together, each on its own place, and what is computed from them afterwards."""

from __future__ import annotations

import pytest

from bursar.core.budget import Budget
from harness.collective import Collective, settings_of
from harness.small import Silence, config, counts, engine

HISTOGRAMS = [f"SELECT {column}, COUNT(*) FROM people GROUP BY {column}" for column in ("region", "sex", "age")]


@pytest.mark.heavy
def test_rows_of_a_batch_keep_their_places_when_they_are_refined() -> None:
    """Its products stand in the order of the columns that were asked about before, not in that of the batch."""
    db = engine(settings=config(budget=Budget.of(epsilon=1000.0)), randomness=Silence())
    db.query("SELECT COUNT(*) FROM people WHERE age IN (0, 5)", within=200)
    db.query("SELECT COUNT(*) FROM people WHERE sex = 'F'", within=200)
    table = counts()
    truths = [table.sum(axis=axes).tolist() for axes in ((0, 1), (0, 2), (1, 2))]
    for within in (200, 133):
        answers = db.batch(HISTOGRAMS, within=within).answers
        assert [[round(value) for (value,) in answer.values] for answer in answers] == truths
    assert all(answer.charge > 0 for answer in answers[:1])


def test_rounding_in_rows_that_were_far_coarser_makes_nothing_free() -> None:
    """A covariance that went down from 10^17 to 1 has lost all digits; a count of noise 2 is not exact to .01."""
    db = engine(settings=config(budget=Budget.of(epsilon=1000.0)), table=counts() * 10**7)
    for within in (1e9, 10):
        db.query(HISTOGRAMS[2], within=within)
    assert db.query("SELECT COUNT(*) FROM people WHERE age <= 4", rmse=0.01).charge > 0


def test_what_is_left_falls_with_purchases_that_an_analyst_may_not_look_at() -> None:
    both = Collective(settings_of({"ana": 0.5, "bob": 0.5}, policy="independent"))
    ana, text = both.engines["ana"], "SELECT COUNT(*) FROM people WHERE age < 3"
    before = ana.explain(text, within=30).total_left
    both.ask("bob", 0b11, 5.0)
    after = ana.explain(text, within=30).total_left
    assert before is not None
    assert after is not None
    assert after < before
    assert after * 2**50 == ana.kernel.left()
