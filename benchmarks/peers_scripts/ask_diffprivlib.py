"""diffprivlib: a histogram of the codes of the groups, charged to a BudgetAccountant."""

from __future__ import annotations

from typing import Any

import pandas as pd
from diffprivlib import BudgetAccountant, tools


def open_table(job: dict[str, Any]) -> tuple[Any, Any]:
    frame = pd.read_csv("people.csv")
    accountant = BudgetAccountant()

    def ask(question: dict[str, Any]) -> dict[str, float]:
        column, keys = frame[question["where"]], question["keys"]
        if question["equals"] is None:
            chosen = column.between(question["low"], question["high"])
        else:
            chosen = column == question["equals"]
        codes = pd.Categorical(frame.loc[chosen, question["by"]], categories=keys).codes
        span = (0, len(keys))
        counts, _ = tools.histogram(
            codes, epsilon=question["epsilon"], bins=len(keys), range=span, accountant=accountant
        )
        return dict(zip(keys, counts.tolist(), strict=True))

    return ask, lambda: accountant.total()[0]
