"""SmartNoise SQL: epsilon belongs to the reader, so there is a reader per epsilon, opened before the first question."""

from __future__ import annotations

from typing import Any

import pandas as pd
import snsql


def open_table(job: dict[str, Any]) -> tuple[Any, Any]:
    frame = pd.read_csv("people.csv")
    table: dict[str, Any] = {"row_privacy": True, "censor_dims": False, "rows": len(frame)}
    table |= {name: {"type": "string"} for name in job["values"]}
    table |= {name: {"type": "int", "lower": low, "upper": high} for name, (low, high) in job["spans"].items()}
    metadata = {"": {"adult": {"people": table}}}

    def reader(epsilon: float) -> Any:
        return snsql.from_df(frame, privacy=snsql.Privacy(epsilon=epsilon, delta=1e-9), metadata=metadata)

    readers = {epsilon: reader(epsilon) for epsilon in {question["epsilon"] for question in job["questions"]}}

    def ask(question: dict[str, Any]) -> dict[str, float]:
        sql = question["sql"].replace("FROM people", "FROM adult.people")
        return dict(readers[question["epsilon"]].execute(sql)[1:])

    return ask, lambda: float(sum(each.odometer.spent[0] for each in readers.values()))
