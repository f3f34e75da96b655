"""MIN and MAX with an error: at most so many rows lie beyond what is shown, at the stated confidence, at alpha 1e-6.

One row more than may lie beyond a bound has the first value of a column, and as many have the last: a bound that
comes later than these is a wrong one.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from bursar.compile.workload import Workload
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.core.noise.system import SystemRandomness
from bursar.estimation.derived import Extreme
from bursar.estimation.estimate import error_bars
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.proposers.direct import Direct
from harness.small import TableSource, config, engine

SIZE, WITHIN, BETA, TRIALS, ALPHA = 40, 30, 0.2, 400, 1e-6

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=SIZE - 1, null=0),
        Categories(name="sex", values=("F", "M"), outside=0, null=0),
    )
)


def table(groups: bool) -> np.ndarray:
    """WITHIN + 1 rows at both ends, in each group or in all of them together; many in the middle."""
    rows = np.zeros(DOMAIN.sizes(DOMAIN.names), np.int64)
    rows[[0, -1], : 2 if groups else 1] = WITHIN + 1
    rows[SIZE // 2] = 500
    return rows


def kept(sql: str) -> int:
    """How often at most WITHIN rows lie beyond every bound that is shown."""
    settings = config(domain=DOMAIN, budget=Budget.of(epsilon=900.0))
    counts = table(groups="GROUP BY" in sql)
    db = engine(table=counts, settings=settings, preset=Preset("direct", (Direct(),)))
    request = db.engine.prepare(sql, Wanted(within=WITHIN, confidence=1 - BETA))
    (offer,) = Direct().offers(request, db.engine.planner.views())
    workload, widths = request.workload, error_bars(offer.law, request.goal)
    rows = workload.map.apply(TableSource(counts, DOMAIN).table).astype(float)
    draws = SystemRandomness().draw(offer.price.events[0].noise, TRIALS * len(rows)).reshape(TRIALS, -1)
    return sum(_all_within(workload, rows + draw, widths) for draw in draws)


def _all_within(workload: Workload, values: np.ndarray, widths: np.ndarray) -> bool:
    ((form, number),) = zip(workload.forms, workload.derive(values, values - widths, values + widths), strict=True)
    assert isinstance(form, Extreme)
    return bool(np.all(number.value == (SIZE - 1 if form.most else 0)))


QUESTIONS = [
    "SELECT MIN(age) AS a FROM people",
    "SELECT MAX(age) AS a FROM people",
    "SELECT sex, MAX(age) AS a FROM people GROUP BY sex",
]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_no_more_rows_than_asked_lie_beyond_a_bound(sql: str) -> None:
    assert kept(sql) >= binom.ppf(ALPHA, TRIALS, 1 - BETA)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_bars_of_the_whole_error_leave_too_many(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: counts that are as exact as others are would not do."""
    monkeypatch.setattr(Extreme, "steps", property(lambda form: (1.0,) * len(form.columns)))
    assert kept(sql) < binom.ppf(ALPHA, TRIALS, 1 - BETA)
