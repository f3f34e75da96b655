"""Any text behind a good question, as its accuracy: an explanation of what it would cost, or a refusal."""

from __future__ import annotations

import atheris
from target import fuzz, text_of

with atheris.instrument_imports(include=["bursar.sql", "bursar.goal", "bursar.planner", "bursar.inference"]):
    from bursar.errors import BudgetError, GoalError, QueryError

    from harness.small import engine

from fuzz.seeds import CLAUSES, COUNT

DATABASE = engine()


def price(data: bytes) -> None:
    try:
        found = DATABASE.explain(f"{COUNT} {text_of(data)}")
    except (QueryError, GoalError, BudgetError) as refusal:
        if not str(refusal):
            raise AssertionError("a refusal that helps nobody") from refusal
        return
    str(found)


if __name__ == "__main__":
    fuzz(price, seeds=CLAUSES.values())
