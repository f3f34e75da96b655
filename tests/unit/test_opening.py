"""Opening and creating: a ledger begins once, on purpose, and belongs to one config."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas
import pytest

import bursar
from bursar.curate.demo import generate
from bursar.errors import LedgerError, SourceError

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return generate(tmp_path / "people.csv", rows=2_000)


def test_what_was_paid_stays_paid(toml: Path) -> None:
    with bursar.create(toml) as db:
        first = db.query(BY_SEX, within=50)
    with bursar.open(toml, analyst="ana") as db:
        again = db.query(BY_SEX, within=50)
        assert again.free
        assert again.values == first.values
        assert db.budget().spent == first.charge


def test_a_ledger_is_never_begun_silently(toml: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="new budget"):
        bursar.open(toml)
    bursar.create(toml).close()
    with pytest.raises(LedgerError):
        bursar.create(toml)
    copied = tmp_path / "copy"
    copied.mkdir()
    shutil.copy(toml, copied / "bursar.toml")
    with pytest.raises(LedgerError):
        bursar.open(copied / "bursar.toml")


def test_a_changed_config_is_not_the_same_data_set(toml: Path) -> None:
    bursar.create(toml).close()
    toml.write_text(toml.read_text().replace("epsilon = 1", "epsilon = 2"))
    with pytest.raises(LedgerError, match="budget"):
        bursar.open(toml)


def test_data_that_cannot_be_read_leave_no_ledger_behind(toml: Path) -> None:
    (toml.parent / "people.csv").unlink()
    with pytest.raises(SourceError, match=r"people\.csv"):
        bursar.create(toml)
    assert not toml.with_suffix(".bursar").exists()


def test_a_data_frame_instead_of_a_file(toml: Path) -> None:
    frame = pandas.read_csv(toml.parent / "people.csv", dtype=str)
    (toml.parent / "people.csv").unlink()
    with bursar.create(toml, data=frame) as db:
        assert not db.query(BY_SEX, within=50).free
    with bursar.open(toml, data=frame) as db:
        assert not db.query(BY_SEX, within=20).free
    with bursar.open(toml, data=frame.head(10)) as db, pytest.raises(SourceError, match="not the ones"):
        db.query(BY_SEX, within=10)
