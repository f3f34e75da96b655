"""Boost's Fig. 10 (d): the questions are those of the pool, and each is put down to the way it went."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from benchmarks.boost_data import covid
from benchmarks.boost_questions import covid_pool
from benchmarks.boost_runtime import PRESETS, config, text, way, where

from bursar.answer import Answer
from bursar.config import load
from bursar.core.accounting import Failed
from bursar.core.ledger import Record


@pytest.mark.parametrize("query", [0, 777, 34_424])
def test_a_query_counts_the_cells_of_the_pool(query: int) -> None:
    pool, cells = covid_pool(), np.indices((2, 2, 4, 8)).reshape(4, -1)
    named = dict(zip(pool.columns, cells, strict=True))
    counted = np.ones(pool.cells, np.bool_)
    for test in where(pool, query).replace("TRUE", "").split(" AND "):
        if test:
            name, values = test.removesuffix(")").split(" IN (")
            counted &= np.isin(named[name], [int(value) for value in values.split(", ")])
    assert np.array_equal(counted, pool.incidence[query] > 0)
    assert text(pool, query).endswith("WITH ERROR 5% CONFIDENCE 99.9%")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_a_config_of_the_block(preset: str, tmp_path: Path) -> None:
    blocks = covid(1)
    facts = load(config(tmp_path, "postgresql://reader@localhost/bench", preset, blocks, blocks.size))
    assert facts.public_size == blocks.size
    assert tuple(a.size for a in facts.domain.attributes) == blocks.shape
    assert facts.preset == (None if preset == "default" else preset)


class Came:
    """What `way` looks at in an answer."""

    def __init__(self, source: str, note: str = "", free: bool = False) -> None:
        self.source, self.note, self.free = source, note, free


class Told:
    event = object.__new__(Failed)


@pytest.mark.parametrize(
    ("answer", "new", "before", "told"),
    [
        (Came("pmw", "an estimate that is tested"), [], False, "passed"),
        (Came("pmw", "an estimate that is tested"), [Told()], False, "failed"),
        (Came("pmw", "for a histogram to learn from"), [], False, "bypass"),
        (Came("pmw", "an estimate that is tested"), [], True, "exact"),
        (Came("tree", free=True), [], False, "reused"),
        (Came("direct"), [], False, "bought"),
    ],
)
def test_the_way_is_told_by_the_answer_and_the_log(answer: Came, new: list[Told], before: bool, told: str) -> None:
    assert way(cast(Answer, answer), cast(list[Record], new), before) == told
