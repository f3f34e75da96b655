"""The table that is kept beside the ledger: written whole, read only where it belongs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Versioned
from bursar.core.domain import Categories, Domain
from bursar.core.ledger import Record
from bursar.planner.goals import Wanted
from bursar.synthetic.store import StoredTable, TableView, mark
from harness.small import DOMAIN, engine

CODES = np.array([[0, 0, 0], [9, 1, 2], [4, 1, 1], [4, 0, 1]], np.int32)


def record(position: int, event: object | None = None, analyst: str = "ana") -> Record:
    nothing = np.zeros(0, np.int64)
    made = Versioned(version=1, same_rows=False) if event is None else event
    return Record(
        position=position, at=1.5, analyst=analyst, question="why", proposer="", run=0, event=made, values=nothing
    )


LOG = [record(1), record(2)]


def kept(**changes: object) -> StoredTable:
    facts: dict[str, object] = {"domain": DOMAIN, "codes": CODES, "total": 8.0, "position": 2, "method": "marginals"}
    return StoredTable(**{**facts, "mark": mark(LOG[1]), **changes})  # type: ignore[arg-type]


def shelf(path: Path | None, log: list[Record] | None = None, analyst: str | None = None) -> TableView:
    records = LOG if log is None else log
    return TableView(
        domain=DOMAIN,
        path=path,
        records=lambda after: [own for own in records if own.position > after],
        size=None,
        analyst=analyst,
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    kept().save(tmp_path / "made" / "table.npz")
    found = StoredTable.load(tmp_path / "made" / "table.npz", DOMAIN)
    assert found is not None
    assert np.array_equal(found.codes, CODES)
    assert (found.total, found.position, found.mark) == (8.0, 2, mark(LOG[1]))
    assert [file.name for file in (tmp_path / "made").iterdir()] == ["table.npz"]


def test_nothing_else_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    assert StoredTable.load(path, DOMAIN) is None
    path.write_bytes(b"PK no table")
    assert StoredTable.load(path, DOMAIN) is None
    kept().save(path)
    path.write_bytes(path.read_bytes()[:-30])
    assert StoredTable.load(path, DOMAIN) is None
    kept().save(path)
    assert StoredTable.load(path, Domain((Categories(name="x", values=("y",)),))) is None
    kept(codes=CODES + 5).save(path)
    assert StoredTable.load(path, DOMAIN) is None
    kept(codes=CODES[:0]).save(path)
    assert StoredTable.load(path, DOMAIN) is None


@pytest.mark.parametrize("where", ["file", "memory"])
def test_a_table_is_there_until_the_data_change(tmp_path: Path, where: str) -> None:
    log = list(LOG)
    own = shelf(tmp_path / "table.npz" if where == "file" else None, log)
    assert own.rows() is None
    own.put(kept())
    assert own.rows() is own.rows() is not None
    log.append(record(3, Versioned(version=2, same_rows=True)))
    assert own.rows() is None


def test_a_table_of_another_log_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    kept().save(path)
    assert shelf(path).rows() is not None
    assert shelf(path, [record(1), record(2, analyst="somebody else")]).rows() is None
    assert shelf(path, LOG[:1]).rows() is None


def test_a_table_of_own_measurements_is_for_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    kept(analyst="ana").save(path)
    assert shelf(path, analyst="ana").rows() is not None
    assert shelf(path, analyst="bob").rows() is None


def test_a_newer_table_takes_the_place(tmp_path: Path) -> None:
    own = shelf(tmp_path / "table.npz")
    own.put(kept())
    assert own.rows() is not None
    own.put(replace(kept(), codes=CODES[:2]))
    found = own.rows()
    assert found is not None
    assert len(found.table.codes) == 2
    (tmp_path / "table.npz").unlink()
    assert own.rows() is None


def test_answers_are_in_rows_of_the_data() -> None:
    own = shelf(None)
    own.put(kept())
    table, db = own.rows(), engine()
    assert table is not None
    sql = "SELECT sex, COUNT(*) FROM people WHERE age < 9 GROUP BY sex WITH ERROR 5"
    by_sex = db.engine.prepare(sql, _plain(), None).asked.workload.map
    assert table.answers(by_sex) == pytest.approx([4.0, 2.0])  # four rows stand for eight
    assert table.answers(PartwiseMap((by_sex, by_sex))) == pytest.approx([4.0, 2.0, 4.0, 2.0])
    assert table.estimate(by_sex) is None
    assert table.unmeasured(by_sex) == ("age", "sex")
    assert "record 2" in table.note


def _plain() -> Wanted:
    return Wanted()
