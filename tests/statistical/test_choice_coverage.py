"""What an answer says of its HAVING, ORDER BY and LIMIT is true at its confidence, at alpha 1e-6.

Each question is planned once as the engine plans it; then its rows are measured over and over with fresh noise of the
planned law, lines are picked by the noisy numbers, and the claims are held against the exact numbers. The wrong twin of
every question draws bars a tenth as wide, so that its claims go too far, and must be rejected.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from bursar.compile.workload import ChosenLines, ResultClauses
from bursar.core.budget import Budget
from bursar.core.noise.system import SystemRandomness
from bursar.estimation.derived import Derived
from bursar.estimation.estimate import error_bars
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.proposers.direct import Direct
from bursar.sql import TRUE
from bursar.sql.query import leaves
from harness.cases import few
from harness.public import COUNTS, DOMAIN
from harness.small import TableSource, config, engine

TRIALS = 1_000
BETA = 0.2
ALPHA = 1e-6
WITHIN = 150
MANY = 50 * COUNTS
GROUPS = "SELECT age, town, COUNT(*) AS n FROM people GROUP BY age, town"


def middle() -> int:
    """A number near to those of several groups."""
    return int(np.median(TableSource(MANY, DOMAIN).table(("age", "town")))) + WITHIN // 10


QUESTIONS = {
    "iceberg": f"{GROUPS} HAVING COUNT(*) >= {middle()}",
    "between": f"{GROUPS} HAVING n > {middle() - WITHIN} AND NOT n > {middle() + WITHIN}",
    "top": f"{GROUPS} ORDER BY n DESC LIMIT 6",
    "bottom": f"{GROUPS} ORDER BY n LIMIT 9",
    "iceberg and top": f"{GROUPS} HAVING n < {middle()} ORDER BY n DESC LIMIT 4",
    "order": f"{GROUPS} ORDER BY n DESC",
    "averages": "SELECT age, town, AVG(code) AS a FROM people GROUP BY age, town ORDER BY a DESC LIMIT 9",
}
TOO_NARROW = {"averages": 0.002}
"""How much narrower the twin's bars are, where a tenth is not enough: intervals of averages are wide."""


def holds(after: ResultClauses, picked: ChosenLines, candidates: np.ndarray, exact: list[np.ndarray]) -> bool:
    """Whether all claims are true of the exact numbers. `candidates` are the lines that the noisy HAVING kept."""
    claims = list(picked.claims)
    good = True
    if after.having != TRUE:
        far = np.ones(len(exact[0]), bool)
        for place, margin in claims.pop(0).margins:
            for leaf in leaves(after.having):
                if leaf.column.text == after.outputs[place]:
                    far &= np.abs(exact[place] - float(leaf.literal)) > margin
        kept, right = np.isin(np.arange(len(far)), candidates), chosen(after, exact)
        good = bool(np.all((kept == right)[far]))
    for claim in claims:
        ((place, margin),) = claim.margins
        sign = 1.0 if after.order[0].descending else -1.0
        shown, left_out = sign * exact[place][picked.lines], sign * exact[place][np.setdiff1d(candidates, picked.lines)]
        if claim.cut is None:
            good &= bool(np.all(np.maximum.accumulate(shown[::-1])[::-1] <= shown + 2 * margin))
        else:
            good &= bool(np.all(shown >= sign * claim.cut - margin))
            good &= bool(np.all(left_out <= sign * claim.cut + margin))
            good &= bool(left_out.max(initial=-np.inf) <= shown.min() + 2 * margin)
    return good


def chosen(after: ResultClauses, numbers: list[np.ndarray]) -> np.ndarray:
    """The lines that HAVING keeps."""
    alone = replace(after, order=(), limit=None)
    kept = alone.pick([Derived(one, one, one) for one in numbers], len(numbers[0]), 0.5).lines
    return np.isin(np.arange(len(numbers[0])), kept)


def covered(sql: str, narrower: float) -> int:
    """In how many trials all claims are true."""
    settings = config(domain=DOMAIN, budget=Budget.of(epsilon=900.0))
    db = engine(table=COUNTS, settings=settings, preset=Preset("direct", (Direct(),)))
    request = db.engine.prepare(sql, Wanted(within=WITHIN, confidence=1 - BETA), None)
    (offer,) = Direct().offers(request, db.engine.planner.views())
    read = TableSource(MANY, DOMAIN).table
    rows, plain = (one.map.apply(read).astype(float) for one in (request.workload, request.asked.workload))
    exact = [output.value for output in request.asked.workload.derive(plain, plain, plain)]
    widths = narrower * error_bars(offer.law, request.goal)
    after = request.workload.after
    assert after is not None
    good = 0
    for draw in SystemRandomness().draw(offer.price.events[0].noise, TRIALS * len(rows)).reshape(TRIALS, -1):
        found = request.workload.derive(rows + draw, rows + draw - widths, rows + draw + widths)
        picked = after.pick(found, len(exact[0]), 1 - BETA)
        candidates = np.flatnonzero(chosen(after, [one.value for one in found]))
        good += holds(after, picked, candidates, exact)
    return good


@pytest.mark.parametrize("right", [True, False], ids=["right", "bars too narrow"])
@pytest.mark.parametrize("name", few(QUESTIONS))
def test_claims_are_true(name: str, right: bool) -> None:
    narrower = 1.0 if right else TOO_NARROW.get(name, 0.1)
    enough = covered(QUESTIONS[name], narrower) >= binom.ppf(ALPHA, TRIALS, 1 - BETA)
    assert bool(enough) == right
