"""Synthetic rows as files: labels of the domain, in any number of rows."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.errors import Unsupported
from bursar.synthetic.table import synthetic_data
from bursar.synthetic.table.synthetic_data import write_rows

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=16, upper=18),
        Categories(name="plan", values=("a", "b")),
        Bins(name="income", edges=(0, 10, 20), null=Stray.OTHER),
        Dates(name="joined", first=date(2024, 1, 1), last=date(2024, 3, 1), by=Period.MONTH),
        Categories(name="member", values=(True, False), outside=1, null=1),
    )
)
CODES = np.array([[0, 0, 0, 0, 0], [2, 1, 1, 2, 1], [3, 2, 2, 3, 0], [1, 3, 0, 1, 1]], np.int32)


def test_csv_has_the_labels(tmp_path: Path) -> None:
    write_rows(DOMAIN, CODES, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["age", "plan", "income", "joined", "member"],
            ["16", "a", "[0, 10)", "2024-01-01", "True"],
            ["18", "b", "[10, 20]", "2024-03-01", "False"],
            ["", "other", "other", "", "True"],
            ["17", "", "[0, 10)", "2024-02-01", "False"],
        ]


def test_parquet_has_the_types(tmp_path: Path) -> None:
    write_rows(DOMAIN, CODES, tmp_path / "rows.parquet")
    found = pq.read_table(tmp_path / "rows.parquet")
    assert found.column("age").to_pylist() == [16, 18, None, 17]
    assert found.column("joined").to_pylist() == [date(2024, 1, 1), date(2024, 3, 1), None, date(2024, 2, 1)]
    assert found.column("member").to_pylist() == [True, False, True, False]
    assert found.column("plan").to_pylist() == ["a", "b", "other", None]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_are_written_in_portions(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(DOMAIN, CODES, tmp_path / f"once.{ending}")
    monkeypatch.setattr(synthetic_data, "BATCH_ROWS", 3)
    write_rows(DOMAIN, CODES, tmp_path / f"rows.{ending}")
    if ending == "csv":
        assert (tmp_path / "rows.csv").read_bytes() == (tmp_path / "once.csv").read_bytes()
    else:
        assert pq.read_table(tmp_path / "rows.parquet").equals(pq.read_table(tmp_path / "once.parquet"))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"\.csv or \.parquet"):
        write_rows(DOMAIN, CODES, tmp_path / "rows.png")
    with pytest.raises(Unsupported, match="no folder"):
        write_rows(DOMAIN, CODES, tmp_path / "nowhere" / "rows.csv")
