"""Record-play with two private tables: with the answers given, nothing that is seen tells whether somebody is there.

Both runs get the same noisy answers from a generator that knows no data, so everything else must be the same: prices,
records, refusals, explanations, the budget. The true answers behind them differ by the rows of one person alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from bursar.config import Config, load
from bursar.core.ledger.record_codec import encode_record
from bursar.core.public import Public
from bursar.core.source import duckdb as duckdb_source
from bursar.errors import BursarError
from bursar.planner.goals import Wanted
from bursar.session import Bursar
from bursar.sources import source_of
from bursar.testing import memory_ledger
from harness.cases import few
from harness.clock import same_clock
from harness.configs import JOINED, clinic
from harness.given_answers import OneKey, Played, given_answers

CONFIG = clinic(epsilon=3, visits=2) + JOINED

PEOPLE = [("ann", "F"), ("bob", "M"), ("cyd", "M"), ("dan", None)]
VISITS = [("ann", "A"), ("ann", "B"), ("ann", "B"), ("bob", "C"), ("zoe", "A")]
EVE = {"people": [("eve", "F"), ("eve", "M")], "visits": [("eve", "B"), ("eve", "C"), ("eve", "C"), ("eve", "A")]}

QUESTIONS = (
    "SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ERROR 40",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward WITH ERROR 60",
    "SELECT p.sex, COUNT(*) FROM visits v JOIN people p ON v.person = p.person GROUP BY p.sex WITH ERROR 50",
    "SELECT COUNT(DISTINCT person) FROM visits WHERE ward = 'C' WITH ERROR 40",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward WITH ERROR 30",
    "SELECT COUNT(*) FROM visits v JOIN visits w ON v.ward = w.ward WITH ERROR 30",
    "SELECT (SELECT COUNT(*) FROM visits) / (SELECT COUNT(*) FROM people) WITH ERROR 30",
    "EXPLAIN SELECT COUNT(*) FROM people WITH ERROR 2",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ERROR 20",
    "SELECT ward, sex, COUNT(*) FROM visits GROUP BY ward, sex WITH ERROR 1",
    "SELECT COUNT(*) FROM people WHERE sex = 'F' WITH ERROR 30",
)


def play(folder: Path, there: bool, seed: int) -> Played:
    run = Played()
    (folder / "bursar.toml").write_text(CONFIG)
    (folder / "clinic.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        for table, column, rows in (("people", "sex", PEOPLE), ("visits", "ward", VISITS)):
            connection.execute(f"CREATE TABLE {table} (person VARCHAR, {column} VARCHAR)")
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", [*rows, *(EVE[table] if there else [])])
    config = load(folder / "bursar.toml")
    with same_clock(), given_answers(run, seed), session(config) as db:
        rng = np.random.default_rng(seed)
        for number in rng.permutation(len(QUESTIONS)):
            try:
                asked = db.run(QUESTIONS[number], Wanted())
                run.seen.append((type(asked).__name__, str(asked)))
            except BursarError as refusal:
                run.seen.append((type(refusal).__name__, str(refusal)))
            run.seen.append((db.budget(), db.log()))
        run.seen += [encode_record(record) for record in db.ledger.records()]
    return run


def session(config: Config) -> Bursar:
    source = source_of(config)
    ledger = memory_ledger(config, source, OneKey())
    db = Bursar(config, ledger, open_source=source, randomness=OneKey())
    for name in db.owner.not_added():
        db.owner.add_table(name)
    return db


def faults(folder: Path, seed: int) -> list[str]:
    """What tells the two apart, or moves further than is paid for."""
    left, right = (play(folder, there, seed) for there in (False, True))
    found = [f"seen {place}" for place, (a, b) in enumerate(zip(left.seen, right.seen, strict=True)) if a != b]
    most = {"people": 1, "visits": 2}
    for (strategy, here), (same, there) in zip(left.inputs, right.inputs, strict=True):
        assert strategy.digest == same.digest
        table = "people" if set(strategy.attrs) <= {"sex"} and strategy.attrs else "visits"
        largest = max(norm.largest() for norm in strategy.norms(1))
        if np.abs(there - here).sum() > most[table] * largest:
            found.append(f"{table} moves too far")
    return found


@pytest.mark.parametrize("seed", few(range(3)))
def test_nothing_tells_whether_somebody_is_there(tmp_path: Path, seed: int) -> None:
    assert faults(tmp_path, seed) == []


def test_the_play_buys_in_both_tables_and_is_refused(tmp_path: Path) -> None:
    run = play(tmp_path, True, 0)
    assert len(run.inputs) >= 4
    endings = {seen[0] for seen in run.seen if isinstance(seen, tuple) and isinstance(seen[0], str)}
    assert endings >= {"Answer", "Explanation", "QueryError", "BudgetError"}


def test_a_bound_that_is_not_kept_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = duckdb_source.DuckDBSource.__init__

    def unbounded(self: Any, location: Any, domain: Any, unit: Any, **rest: Any) -> None:
        original(self, location, domain, type(unit)(column=unit.column, max_contributions=9), **rest)

    monkeypatch.setattr(duckdb_source.DuckDBSource, "__init__", unbounded)
    assert any("moves too far" in fault for seed in range(2) for fault in faults(tmp_path, seed))


@pytest.mark.heavy
def test_a_budget_that_looks_at_the_data_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = Public.spent

    def leaking(self: Any) -> int:
        data = getattr(self, "_data", None)
        return spent(self) + (int(data[2].counts(()).sum()) if data is not None else 0)

    monkeypatch.setattr(Public, "spent", leaking)
    assert any(fault.startswith("seen") for fault in faults(tmp_path, 0))
