"""OpenDP's measurements on a list of values: the user filters the rows and adds up what they cost."""

from __future__ import annotations

from typing import Any

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def open_table(job: dict[str, Any]) -> tuple[Any, Any]:
    frame = pl.read_csv("people.csv")
    space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    spent = 0.0

    def ask(question: dict[str, Any]) -> dict[str, float]:
        nonlocal spent
        column, keys = pl.col(question["where"]), question["keys"]
        if question["equals"] is None:
            condition = column.is_between(question["low"], question["high"])
        else:
            condition = column == question["equals"]
        rows = frame.filter(condition)[question["by"]].to_list()
        counts = space >> dp.t.then_count_by_categories(keys, null_category=False)
        measurement = counts >> dp.m.then_laplace(scale=1 / question["epsilon"])
        spent += measurement.map(1)
        return dict(zip(keys, measurement(rows), strict=True))

    return ask, lambda: spent
