"""Answers as files, read back by the libraries that people use."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import polars
import pyarrow.parquet
import pytest

from bursar.errors import Unsupported
from bursar.report import files
from unit.test_answer import ANSWER

QUOTED = replace(ANSWER, labels=((None, 'a, "b"\nc'), (None, "é")))


def test_csv_is_read_back(tmp_path: Path) -> None:
    text = ANSWER.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == text
    assert text == "month,kind,n,n_low,n_high\n2024-01-01,a<b,1200,1150,1250\n,other,-3.25,-53,46.5\n"
    rows = duckdb.sql(f"SELECT n, month IS NULL FROM '{tmp_path / 'a.csv'}'").fetchall()
    assert rows == [(1200.0, False), (-3.25, True)]


def test_csv_quotes_what_must_be_quoted(tmp_path: Path) -> None:
    QUOTED.to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        assert [row[1] for row in csv.reader(file)] == ["kind", 'a, "b"\nc', "é"]


def test_parquet_is_read_back_with_its_facts(tmp_path: Path) -> None:
    ANSWER.to_parquet(tmp_path / "a.parquet")
    assert polars.read_parquet(tmp_path / "a.parquet").to_dicts() == ANSWER.to_polars().to_dicts()
    assert b"bursar" in pyarrow.parquet.read_schema(tmp_path / "a.parquet").metadata


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("name", "begins"), [("a.png", b"\x89PNG"), ("a.PNG", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")]
)
def test_the_ending_says_which_kind_of_picture(tmp_path: Path, name: str, begins: bytes) -> None:
    files.write(ANSWER, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.parametrize("name", ["a.xlsx", "a", "no/a.csv", ".", "a\0.csv", "x" * 5000 + ".csv"])
def test_what_cannot_be_written_is_refused_before_it_is_paid_for(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unsupported):
        files.check(tmp_path / name)


def test_a_missing_library_is_found_before_anything_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.check(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(Unsupported, match="pip install pyarrow"):
        files.check(tmp_path / "a.parquet")


def test_a_disk_that_refuses_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(Unsupported, match=r"a\.csv.*cannot be written"):
        ANSWER.to_csv(tmp_path / "a.csv")
