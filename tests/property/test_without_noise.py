"""Without noise every answer is the truth, whatever was asked before and however it is put together."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bursar.core.budget import Budget
from harness.small import Silence, config, counts, engine

COLUMNS = ("age", "sex", "region")
CONDITIONS = {
    "age IN (0, 5)": lambda table: table[[0, 5]],
    "age BETWEEN 2 AND 7": lambda table: table[2:8],
    "sex = 'F'": lambda table: table[:, :1],
    "region <> 'north' AND age < 4": lambda table: table[:4, :, 1:],
}
steps = st.one_of(st.sampled_from(sorted(CONDITIONS)), st.permutations(COLUMNS), st.permutations(COLUMNS[:2]))


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(steps, st.sampled_from((1.0, 0.7, 0.2))), min_size=2, max_size=5))
@example([("age IN (0, 5)", 0.2), ("sex = 'F'", 1.0), (["region", "sex", "age"], 1.0), (["region", "sex", "age"], 0.7)])
def test_answers_are_the_truth(asked: list[tuple[str | list[str], float]]) -> None:
    db, table = engine(settings=config(budget=Budget.of(epsilon=1000.0)), randomness=Silence()), counts()
    within = 600.0
    for step, finer in asked:
        within *= finer
        if isinstance(step, str):
            found = db.query(f"SELECT COUNT(*) FROM people WHERE {step}", within=within).value
            assert round(found) == CONDITIONS[step](table).sum()
            continue
        texts = [f"SELECT {column}, COUNT(*) FROM people GROUP BY {column}" for column in step]
        for column, answer in zip(step, db.batch(texts, within=within).answers, strict=True):
            others = tuple(axis for axis, name in enumerate(COLUMNS) if name != column)
            assert np.allclose([value for (value,) in answer.values], table.sum(axis=others), atol=0.5)
