"""Record-play with an open column: with the answers given, nothing that is seen tells whether somebody is there.

Both runs get the same noisy answers from a generator that knows no data; texts get cells between them. Whatever else is
seen must be the same, and every true answer moves by what its row says at the cells of the one person's texts, under
the list of the time as under the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from bursar.config import load
from bursar.core.extensions.discovery import Found, weigh
from bursar.core.extensions.open_keys import KeyedText, normalised
from bursar.core.ledger.record_codec import encode_record
from bursar.core.public import Public
from bursar.core.queries import Distinct
from bursar.core.tables import Tables
from bursar.errors import BursarError
from bursar.planner.goals import Wanted
from bursar.session import Bursar
from bursar.sources import source_of
from bursar.testing import memory_ledger
from harness.cases import few
from harness.cells import coefficients
from harness.clock import same_clock
from harness.configs import towns
from harness.given_answers import OneKey, Played, given_answers

CONFIG = (
    towns(epsilon=3, unit='{ column = "person" }\nmax_contributions = 2')
    + """
delta = 1e-6
[columns.city]
domain = "open"
capacity = 6
[columns.sex]
values = ["F", "M"]
"""
)

ROWS = [("ann", "Rome", "F"), ("bob", "Oslo", "M"), ("bob", "Rome", "M"), ("cyd", None, "F"), ("dan", "Kiel", None)]
EVE = [("eve", " Rome", "F"), ("eve", "Eveville", "F"), ("eve", "Nowhere", "M")]

LOOK, AMONG = "look for texts", "look for texts among women"
"""In the place of a question: the data owner discovers texts."""

GIVEN = {"Rome": 90_000, "Oslo": 3_000, "Kiel": 1}
"""What the generator hands to a search in place of true weights; `Rome` is found."""

QUESTIONS = (
    LOOK,
    LOOK,
    AMONG,
    "SELECT city, COUNT(*) FROM people GROUP BY city WITH ERROR 60",
    "SELECT COUNT(*) FROM people WHERE city = 'Rome' WITH ERROR 50",
    "SELECT COUNT(*) FROM people WHERE city = 'Eveville' AND sex = 'F' WITH ERROR 50",
    "SELECT sex, COUNT(*) FROM people WHERE city NOT IN ('Oslo', 'Rome') GROUP BY sex WITH ERROR 60",
    "SELECT COUNT(DISTINCT city) FROM people WITH ERROR 60",
    "EXPLAIN SELECT COUNT(*) FROM people WHERE city = 'nobody' WITH ERROR 60",
    "SELECT COUNT(*) FROM people WHERE city IN ('a', 'b', 'c') WITH ERROR 60",
    "SELECT COUNT(*) FROM people WHERE city = 'Kiel' WITH ERROR 2",
    "SELECT city, sex, COUNT(*) FROM people GROUP BY city, sex WITH ERROR 40",
    "SELECT DISTINCT city FROM people WITH ERROR 5",
)

SHORT = (LOOK, "SELECT city, COUNT(*) FROM people GROUP BY city WITH ERROR 60")
"""Enough for some wrong twins to show themselves."""


class Searched(Played):
    """One run that also looks for texts: the weights of those, and the keys at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: tuple[str, ...] = ()
        self.weights: list[tuple[int, dict[str, int]]] = []  # of a person, and of texts


@contextmanager
def given_weights(run: Searched) -> Iterator[None]:
    """A search finds what `GIVEN` says; the exact weights are written down."""

    def given(tables: Tables, event: Any) -> Any:
        run.weights.append((event.weight, dict(weigh(tables, event))))
        return [(text, weight) for text, weight in GIVEN.items() if text not in tables.texts["city"]]

    with patch("bursar.core.extensions.discovery.weigh", given):
        yield


def play(folder: Path, there: bool, seed: int, questions: Sequence[str] = QUESTIONS) -> Searched:
    run = Searched()
    (folder / "bursar.toml").write_text(CONFIG)
    rows = [*ROWS, *(EVE if there else [])]
    pd.DataFrame(rows, columns=["person", "city", "sex"]).to_csv(folder / "towns.csv", index=False)
    config = load(folder / "bursar.toml")
    source = source_of(config)
    with same_clock(), given_answers(run, seed), given_weights(run):
        ledger = memory_ledger(config, source, OneKey())
        db = Bursar(config, ledger, open_source=source, randomness=OneKey())
        rng = np.random.default_rng(seed)
        for number in rng.permutation(len(questions)):
            try:
                if questions[number] in (LOOK, AMONG):
                    where = None if questions[number] == LOOK else "sex = 'F'"
                    run.seen.append(str(db.owner.discover("city", spend=0.02, where=where)))
                    continue
                asked = db.run(questions[number], Wanted())
                run.seen.append((type(asked).__name__, str(asked)))
            except BursarError as refusal:
                run.seen.append((type(refusal).__name__, str(refusal)))
            run.seen.append((db.budget(), db.log(), db.columns()))
        run.seen += [encode_record(record) for record in db.ledger.records()]
        run.keys = tuple(key.text for key in db.kernel.known_keys()["city"])
        db.close()
    return run


def faults(folder: Path, seed: int, questions: Sequence[str] = QUESTIONS) -> list[str]:
    """What tells the two apart, or moves otherwise than the rows of one person say."""
    left, right = (play(folder, there, seed, questions) for there in (False, True))
    found = [f"seen {place}" for place, (a, b) in enumerate(zip_longest(left.seen, right.seen)) if a != b]
    domain = load(folder / "bursar.toml").domain
    if found:
        return found
    for (weight, before), (_, after) in zip(left.weights, right.weights, strict=True):
        moved_by = [after.get(text, 0) - before.get(text, 0) for text in {*before, *after}]
        if min(moved_by, default=0) < 0 or sum(each**2 for each in moved_by) > weight**2:
            found.append("weighs too much")
    for (strategy, here), (same, there) in zip(left.inputs, right.inputs, strict=True):
        assert strategy.digest == same.digest
        moved = there - here
        if isinstance(strategy, Distinct):
            found += ["moves too far"] if np.abs(moved).sum() > 2 else []
            continue
        rows = coefficients(strategy, domain).reshape(-1, *domain.sizes(domain.names))
        cells = [right.keys.index(normalised(c)) if normalised(c) in right.keys else 6 for _, c, _ in EVE]
        sexes = ["FM".index(sex) for _, _, sex in EVE]
        each = [rows[:, cell, sex] for cell, sex in zip(cells, sexes, strict=True)]
        pairs = [each[0] + each[1], each[0] + each[2], each[1] + each[2]]  # two of the three rows count
        if not any(np.array_equal(moved, pair) for pair in pairs):
            found.append("moves otherwise")
    return found


@pytest.mark.parametrize("seed", few(range(6)))
def test_nothing_tells_whether_somebody_is_there(tmp_path: Path, seed: int) -> None:
    assert faults(tmp_path, seed) == []


@pytest.mark.heavy
def test_the_play_names_texts_and_is_refused(tmp_path: Path) -> None:
    runs = [play(tmp_path, True, seed) for seed in range(2)]
    assert all(len(run.inputs) >= 4 and len(run.keys) >= 2 and len(run.weights) == 3 for run in runs)
    assert all("Rome" in run.keys for run in runs)
    told = [seen for run in runs for seen in run.seen if isinstance(seen, tuple) and isinstance(seen[0], str)]
    endings = {seen[0] for seen in told}
    assert endings >= {"Answer", "Explanation", "QueryError", "BudgetError"}


def test_a_source_that_forgets_a_key_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text stays in `other`, and the row that is priced is not the one that is answered."""
    monkeypatch.setattr("bursar.core.kernel.give_cells", lambda source, texts: None)
    assert "moves otherwise" in faults(tmp_path, 0)


@pytest.mark.heavy
def test_an_engine_as_it_is_passes_the_short_play(tmp_path: Path) -> None:
    assert faults(tmp_path, 0, SHORT) == []


@pytest.mark.heavy
def test_a_list_that_looks_at_the_data_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Public.known_keys

    def leaking(self: Any) -> Any:
        data, found = getattr(self, "_data", None), keys(self)
        there = data is not None and data[2].counts(()).sum() > len(ROWS)
        return {"city": (*found["city"], *([KeyedText("Eveville", "owner")] if there else []))}

    monkeypatch.setattr(Public, "known_keys", leaking)
    assert any(fault.startswith("seen") for fault in faults(tmp_path, 0, SHORT))


@pytest.mark.heavy
def test_people_who_weigh_more_than_is_priced_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Found, "share", lambda self, texts: self.weight)
    assert "weighs too much" in faults(tmp_path, 0, SHORT)
