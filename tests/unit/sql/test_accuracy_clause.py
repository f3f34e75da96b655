"""The accuracy clause and the hint comment."""

from __future__ import annotations

import pytest

from bursar.errors import QueryError
from bursar.goal import Goal, GoalKind
from bursar.sql import parse
from harness.asking import parsed

COUNT = "SELECT COUNT(*) FROM t"


def error(amount: float, **rest: object) -> Goal:
    return Goal(kind=GoalKind.ERROR, amount=amount, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        (f"{COUNT}", None),
        (f"{COUNT} WITH ERROR 50", error(50)),
        (f"{COUNT} with error 50 confidence 99%", error(50, confidence=0.99)),
        (f"{COUNT} WITH ERROR 50 CONFIDENCE 0.99;", error(50, confidence=0.99)),
        (f"{COUNT} WITH ERROR 50 CONFIDENCE .9", error(50, confidence=0.9)),
        (f"{COUNT} WITH ERROR 50 CONFIDENCE 99.9%", error(50, confidence=0.999)),
        (f"{COUNT} WITH CONFIDENCE 90% ERROR 1e3", error(1000, confidence=0.9)),
        (f"{COUNT} WITH ERROR 2%", error(2, percent=True)),
        (f"{COUNT} WITH ERROR .5 % -- of all", error(0.5, percent=True)),
        (f"{COUNT} WITH RMSE 20", Goal(kind=GoalKind.RMSE, amount=20)),
        (f"{COUNT} WITH EPSILON 0.1", Goal(kind=GoalKind.SPEND, amount=0.1, unit="epsilon")),
        (
            f"{COUNT} WITH RHO 0.01 CONFIDENCE 80%",
            Goal(kind=GoalKind.SPEND, amount=0.01, unit="rho", confidence=0.8),
        ),
        (f"{COUNT} WHERE a = 1 GROUP BY b WITH ERROR 5", error(5)),
        ("SELECT /*+ error(50) confidence(95%) */ COUNT(*) FROM t", error(50)),
        ("SELECT/*+ERROR(2%),CONFIDENCE(.9)*/COUNT(*) FROM t", error(2, percent=True, confidence=0.9)),
        (f"/*+ rmse(3) */ {COUNT}", Goal(kind=GoalKind.RMSE, amount=3)),
        (f"EXPLAIN {COUNT} /*+ epsilon(0.5) */", Goal(kind=GoalKind.SPEND, amount=0.5, unit="epsilon")),
        (f"{COUNT}\n/*+ rho(1) */;", Goal(kind=GoalKind.SPEND, amount=1, unit="rho")),
    ],
)
def test_goals(text: str, goal: Goal | None) -> None:
    assert parse(text).goal == goal


@pytest.mark.parametrize(
    "text",
    [
        f"{COUNT} WHERE a = 'x WITH ERROR 5'",
        f"{COUNT} WHERE \"with error\" = '/*+ error(5) */'",
        f"{COUNT} -- WITH ERROR 5",
        f"{COUNT} /* WITH ERROR 5 /*+ error(5) */ */",
        f"{COUNT} -- /*+ error(5) */",
        f"{COUNT} --+ error(5)",
        "SELECT COUNT(*) AS error, confidence FROM t GROUP BY confidence",
        f"{COUNT} /*+ parallel(4) */",
        "SELECT /*+ INDEX(t by_age) MAX_EXECUTION_TIME(1000) */ COUNT(*) FROM t",
        "SELECT /*+ BROADCAST(t) */ COUNT(*) FROM t",
        "/*+ HashJoin(a b) SeqScan(a) */ SELECT COUNT(*) FROM t",
    ],
)
def test_words_that_are_no_clause(text: str) -> None:
    assert parse(text).goal is None


@pytest.mark.parametrize(
    ("text", "at", "says", "rewrite"),
    [
        (f"{COUNT} WITH ERROR", "", "number is expected after ERROR", ""),
        (f"{COUNT} WITH ERROR -5", "-5", "number is expected after ERROR", ""),
        (f"{COUNT} WITH ERROR 'x'", "'x'", "number is expected after ERROR", ""),
        (f"{COUNT} WITH ERROR 0", "0", "must be a positive number", ""),
        (f"{COUNT} WITH ERROR 1e400", "1e400", "must be a positive number", ""),
        (f"{COUNT} WITH ERROR 5x", "x", "nothing can follow", ""),
        (f"{COUNT} WITH", "", "after WITH comes ERROR", ""),
        (f"{COUNT} WITH PRECISION 5", "PRECISION", "after WITH comes ERROR", ""),
        (f'{COUNT} WITH "ERROR" 5', '"ERROR"', "after WITH comes ERROR", ""),
        (f"{COUNT} WITH CONFIDENCE 95%", "95%", "exactly one of ERROR", ""),
        (f"{COUNT} WITH ERROR 5 RMSE 6", "6", "exactly one of ERROR", ""),
        (f"{COUNT} WITH ERROR 5 CONFIDENCE 90% CONFIDENCE 80%", "80%", "confidence is given twice", ""),
        (f"{COUNT} WITH EPSILON 5%", "5%", "EPSILON is a price", ""),
        (f"{COUNT} WITH ERROR 5 CONFIDENCE 100%", "100%", "strictly between", ""),
        (f"{COUNT} WITH ERROR 5 CONFIDENCE 95", "95", "strictly between", f"{COUNT} WITH ERROR 5 CONFIDENCE 95%"),
        (
            f"{COUNT} WITH ERROR 5 WHERE a = 1 GROUP BY b;",
            "WHERE",
            "nothing can follow",
            f"{COUNT} WHERE a = 1 GROUP BY b WITH ERROR 5",
        ),
        (f"{COUNT} WITH ERROR 5 /*+ error(5) */", "/*+", "given twice", f"{COUNT} WITH ERROR 5 "),
        (f"/*+ error(5) */ {COUNT} /*+ error(6) */", "/*+ error(6)", "given twice", ""),
        (f"{COUNT} /*+ eror(4) */", "/*+", "states an accuracy", ""),
        (f"{COUNT} /*+ parallel(4) confidance(95%) */", "/*+", "states an accuracy", ""),
        (f"{COUNT} /*+ error 4 */", "/*+", "states an accuracy", ""),
        (f"{COUNT} /*+ */", "/*+", "states an accuracy", ""),
        (f"{COUNT} /*+ error(x) */", "x)", "number is expected after error", ""),
        (f"{COUNT} /*+ error(4 */", " */", "closing bracket is missing", ""),
        (f"{COUNT} /*+ error(it's) */", "/*+", "states an accuracy", ""),
    ],
)
def test_clauses_that_are_refused(text: str, at: str, says: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as refused:
        parsed(text)
    assert says in refused.value.reason
    assert refused.value.rewrite == rewrite
    assert text[refused.value.position :].startswith(at)
    assert at or refused.value.position == len(text)
    if rewrite:
        assert parse(rewrite).goal is not None
