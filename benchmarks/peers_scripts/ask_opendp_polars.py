"""OpenDP's Context over a Polars frame in memory, with the groups given as keys."""

from __future__ import annotations

from typing import Any

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def open_table(job: dict[str, Any]) -> tuple[Any, Any]:
    context = dp.Context.compositor(
        data=pl.read_csv("people.csv").lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=job["budget"]),
        margins=[dp.polars.Margin(max_length=100_000, max_groups=100)],
    )

    def ask(question: dict[str, Any]) -> dict[str, float]:
        by, column = question["by"], pl.col(question["where"])
        if question["equals"] is None:
            condition = (column >= question["low"]) & (column <= question["high"])
        else:
            condition = column == question["equals"]
        query = context.query(epsilon=question["epsilon"]).filter(condition).group_by(by).agg(dp.len(signed=True))
        counts = query.with_keys(pl.LazyFrame({by: question["keys"]})).release().collect()
        return dict(counts.rows())

    return ask, context.current_privacy_loss
