"""A process that dies while it takes a file in, at every step: the file is in as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.curate import intake
from bursar.curate.intake import ASIDE, FILES, Store
from bursar.errors import SourceError
from harness.cases import few
from harness.faults import KILLED, die, run

DOMAIN = Domain((IntegerRange(name="week", lower=0, upper=3), Categories(name="kind", values=("a",))), partition="week")


def store(folder: Path) -> Store:
    facts: Any = {"table": "people", "domain": DOMAIN, "unit": Unit(), "max_rows": 1_000_000}
    return Store(path=folder / "data.duckdb", **facts)


def csv(folder: Path, name: str, week: int) -> Path:
    path = folder / name
    path.write_text("week,kind\n" + f"{week},a\n" * 2000 + "0,a\n" * 10)
    return path


def dying(folder: Path, file: Path, at: int, behind: bool) -> None:
    """Take a file in, and die before or behind the statement with a number."""
    real, passed = Store._run, 0

    def counting(self: Store, connection: Any, sql: str, *given: object) -> Any:
        nonlocal passed
        passed += 1
        if passed == at and not behind:
            die()
        found = real(self, connection, sql, *given)
        if passed == at and behind:
            die()
        return found

    Store._run = counting  # type: ignore[method-assign]
    store(folder).take_in(file, sealed=1)


def contents(folder: Path) -> tuple[int, int, int]:
    with duckdb.connect(str(folder / "data.duckdb"), read_only=True) as connection:
        counted = [
            connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0] for what in ("people", ASIDE, FILES)
        ]
    return counted[0], counted[1], counted[2]


@pytest.mark.parametrize(
    ("behind", "apart"), few([(False, 5), (True, 4), (True, 1)]), ids=["before some", "behind some", "behind every"]
)
def test_a_death_at_any_step_leaves_all_or_nothing(tmp_path: Path, behind: bool, apart: int) -> None:
    place = store(tmp_path)
    place.create()
    place.take_in(csv(tmp_path, "first.csv", 1), sealed=1)
    taken = 1
    died = set()
    for at in range(1, 40, apart):
        file = csv(tmp_path, f"{at}.csv", 2)
        file.write_text(file.read_text() + f"0,{at}\n")
        code = run(dying, tmp_path, file, at, behind)
        died.add(code)
        rows, aside, files = contents(tmp_path)
        assert files in (taken, taken + 1)
        assert (rows, aside) == (2000 * files, 10 + 11 * (files - 1))
        if files == taken:
            place.take_in(file, sealed=1)
        else:
            with pytest.raises(SourceError, match="taken in before"):
                place.take_in(file, sealed=1)
        taken += 1
        if code == 0:
            break  # there are no more steps
    assert died == {KILLED, 0}
    assert taken > 12 / apart


def test_a_broken_write_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = store(tmp_path)
    place.create()
    place.take_in(csv(tmp_path, "first.csv", 1), sealed=1)
    before = contents(tmp_path)
    real = Store._run

    def failing(self: Store, connection: Any, sql: str, *given: object) -> Any:
        if sql == "COMMIT":
            raise SourceError("the disk is full")
        return real(self, connection, sql, *given)

    monkeypatch.setattr(intake.Store, "_run", failing)
    with pytest.raises(SourceError, match="full"):
        place.take_in(csv(tmp_path, "second.csv", 2), sealed=1)
    monkeypatch.undo()
    assert contents(tmp_path) == before
    assert place.take_in(csv(tmp_path, "second.csv", 2), sealed=1).added == 2000
