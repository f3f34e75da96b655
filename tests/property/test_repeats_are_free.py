"""What was paid for is free when it is asked again, whatever else was measured before or since."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bursar import Bursar
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange
from harness.small import config, engine

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=12, null=0, outside=0),
        Categories(name="sex", values=("F", "M")),
        Categories(name="region", values=("a", "b", "c", "d")),
        IntegerRange(name="pay", lower=1, upper=5, null=0, outside=0),
        IntegerRange(name="day", lower=0, upper=11, null=0, outside=0),
    )
)
OUTPUTS = ("COUNT(*)", "AVG(pay)", "SUM(pay)", "COUNT(*), AVG(pay)", "STDDEV(pay)")
CONDITIONS = ("age > 4", "day >= 3", "region = 'a'", "sex = 'F'", "age BETWEEN 2 AND 7", "day < 9")
FULL = "SELECT sex, COUNT(*), AVG(pay) FROM people WHERE age > 4 AND day >= 3 AND region = 'a' GROUP BY sex"


def door(mode: str) -> Bursar:
    table = np.ones(DOMAIN.sizes(DOMAIN.names), np.int64)
    budget = Budget.of(epsilon=1e3) if mode == "epsilon" else Budget.of(rho=1e3)
    return engine(table=table, settings=config(domain=DOMAIN, budget=budget, max_rows=10**6))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["epsilon", "rho"])
def test_beside_many_cells(mode: str) -> None:
    """Everything together tells more cells apart than one reconstruction holds."""
    db = door(mode)
    for by in ("age", "region", "region, sex", "sex", "day"):
        db.query(f"SELECT {by}, COUNT(*) FROM people GROUP BY {by}", within=70)
    assert not db.query(FULL, within=70).free
    assert db.query(FULL, within=70).free


@pytest.mark.parametrize("mode", ["epsilon", "rho"])
def test_of_more_cells_than_are_reconstructed(mode: str) -> None:
    """And with a looser goal too, by whoever opens the log anew."""
    db, text = door(mode), "SELECT age, day, AVG(pay) FROM people WHERE region = 'a' AND sex = 'F' GROUP BY age, day"
    first = db.query(text, within=200)
    again, looser = db.query(text, within=200), db.query(text, within=230)
    assert (first.free, again.free, looser.free) == (False, True, True)
    assert again.values == first.values


@st.composite
def questions(draw: st.DrawFn) -> str:
    by = draw(st.lists(st.sampled_from(("age", "sex", "region", "day")), max_size=2, unique=True))
    where = draw(st.lists(st.sampled_from(CONDITIONS), max_size=3, unique=True))
    select = ", ".join([*by, draw(st.sampled_from(OUTPUTS))])
    return " ".join(
        [
            f"SELECT {select} FROM people",
            *([f"WHERE {' AND '.join(where)}"] if where else []),
            *([f"GROUP BY {', '.join(by)}"] if by else []),
        ]
    )


@pytest.mark.heavy
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(asked=st.lists(questions(), min_size=2, max_size=5, unique=True), mode=st.sampled_from(["epsilon", "rho"]))
def test_after_whatever_was_asked(asked: list[str], mode: str) -> None:
    db = door(mode)
    for text in asked:
        db.query(text, within=200)
        assert db.query(text, within=200).free, text
    for text in asked:
        assert db.query(text, within=200).free, text
