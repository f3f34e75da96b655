"""The loss of people with each value: the strips that the page draws, and what the overview says of the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import bursar
from bursar.curate.demo import generate
from bursar.report.spending import losses_by_value


def test_every_value_has_its_loss_and_the_largest_is_what_is_spent(tmp_path: Path) -> None:
    with bursar.create(generate(tmp_path / "people.csv", rows=1000)) as db:
        ana, bob = db.as_analyst("ana"), db.as_analyst("bob")
        ana.query("SELECT sex, COUNT(*) FROM people WHERE age >= 65 GROUP BY sex WITH ERROR 40")
        found = losses_by_value(db.kernel, "owner", domain=db.config.domain)
        ages = dict(found["age"])
        assert list(ages) == [*map(str, range(16, 100)), "NULL"]
        assert ages["64"] == 0
        assert ages["65"] == pytest.approx(db.budget().spent)
        assert max(loss for values in found.values() for _, loss in values) == pytest.approx(db.budget().spent)
        for used in db.spending().people:
            assert used.top[0][1] == max(loss for _, loss in found[used.column])
        assert losses_by_value(db.kernel, "ana", domain=db.config.domain) == found
        assert losses_by_value(db.kernel, bob.analyst, domain=db.config.domain) == {}
