"""Measurements to take away: coefficients times counts plus noise is what the log holds; others' rows stay theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import bursar
from bursar.core.budget import Budget
from bursar.errors import Unsupported
from bursar.report import noisy_rows
from bursar.report.noisy_rows import NoisyLog, NoisyRows
from bursar.testing import CountsSource
from harness.small import DOMAIN, Silence, config, counts, engine
from unit.cli.test_cli_answers import Cli
from unit.cli.test_shell import made

TABLE = counts()
SETTINGS = config(budget=Budget.of(epsilon=50.0))
ASKED = (
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people WHERE age < 5 AND region = 'north'",
    "SELECT sex, region, COUNT(*) AS n FROM people GROUP BY CUBE (sex, region)",
    "SELECT SUM(age) AS years FROM people WHERE sex = 'F'",
)


def asked(*, noise: bool = False) -> bursar.Bursar:
    db = engine(table=TABLE, settings=SETTINGS, randomness=None if noise else Silence())
    for sql in ASKED:
        db.query(sql, within=200)
    return db


def exact(block: NoisyRows) -> np.ndarray:
    """What the rows count."""
    matrix = block.coefficients()
    assert matrix is not None
    return matrix @ CountsSource(TABLE, DOMAIN).table(block.columns).ravel()


def test_coefficients_times_counts_are_the_values_where_there_is_no_noise() -> None:
    found = asked().measurements()
    assert sum(len(block.values) for block in found.blocks) >= 10
    for block in found.blocks:
        np.testing.assert_array_equal(exact(block), block.values)


@pytest.mark.heavy
@pytest.mark.parametrize("agree", [None, 1])
def test_what_rap_has_picked_is_told_as_well(agree: int | None) -> None:
    """Cells or thresholds; a twin that takes the columns in the wrong order, or another r, counts others."""
    pytest.importorskip("numba")
    settings = config(budget=Budget.of(rho=50.0), public_size=int(TABLE.sum()))
    db = engine(table=TABLE, settings=settings, analyst="owner", randomness=Silence())
    db.synthesize(marginals="sex,region", spend=30.0, method="rap", rounds=2, picks=2, relaxed=40, agree=agree)
    picked = [block for block in db.measurements().blocks if block.agreeing is not None]
    assert picked
    wrong = 0
    for block in picked:
        assert block.agreeing is not None
        assert block.agreeing.cells.shape == (len(block.values), len(block.columns))
        np.testing.assert_array_equal(exact(block), block.values)
        other = replace(block, agreeing=replace(block.agreeing, least=3 - block.agreeing.least))
        turned = replace(block, agreeing=replace(block.agreeing, cells=block.agreeing.cells[:, ::-1]))
        wrong += np.any(exact(other) != block.values) and np.any(exact(turned) != block.values)
        plain = json.loads(json.dumps(block.to_json()))
        assert plain["agreeing"] == {"least": agree or 2, "cells": block.agreeing.cells.tolist()}
    assert wrong


def test_what_is_shown_is_short() -> None:
    found = asked().measurements()
    numbers = sum(len(block.values) for block in found.blocks)
    assert repr(found) == f"<measurements: {len(found)}, numbers: {numbers}, columns: sex, age, region>"
    assert all(len(repr(block)) < 100 for block in found.blocks)
    assert repr(NoisyLog(domain=DOMAIN, blocks=())) == "<measurements: 0, numbers: 0, columns: none>"


def test_with_noise_they_are_as_far_off_as_the_noise_says() -> None:
    """Within 12 deviations; and not all exact, as they would be if the counts themselves were given away."""
    found = asked(noise=True).measurements()
    errors = [np.abs(exact(block) - block.values) / block.deviation for block in found.blocks]
    assert max(float(each.max()) for each in errors) < 12
    assert any(float(each.max()) > 0 for each in errors)


def test_a_refined_number_is_there_once_at_its_finest() -> None:
    db = engine(table=TABLE, settings=config(budget=Budget.of(epsilon=50.0), preset="cachedp"), randomness=Silence())
    sql = "SELECT COUNT(*) AS n FROM people WHERE age < 5"
    db.query(sql, within=200)
    before = db.measurements()
    db.query(sql, within=20)
    assert "refined" in " ".join(line.kind for line in db.log())
    after = db.measurements()
    finest = min(block.noise.scale for block in after.blocks)
    assert finest < min(block.noise.scale for block in before.blocks)
    assert sum(len(block.values) for block in after.blocks) == sum(len(block.values) for block in before.blocks)
    for block in after.blocks:
        np.testing.assert_array_equal(exact(block), block.values)


def test_an_analyst_takes_the_own_rows_only() -> None:
    ana = engine(table=TABLE, settings=SETTINGS, analyst="ana")
    bob, owner = ana.as_analyst("bob"), ana.as_analyst("owner")
    ana.query(ASKED[0], within=100)
    bob.query(ASKED[1], within=100)
    assert {block.analyst for block in ana.measurements().blocks} == {"ana"}
    assert {block.analyst for block in bob.measurements().blocks} == {"bob"}
    assert {block.analyst for block in owner.measurements().blocks} == {"ana", "bob"}
    assert len(ana.as_analyst("cy").measurements()) == 0


def test_taking_away_costs_nothing_and_writes_nothing() -> None:
    db = asked()
    spent, records = db.budget().spent, len(db.ledger.records())
    db.measurements()
    assert (db.budget().spent, len(db.ledger.records())) == (spent, records)


def test_files_hold_the_same(tmp_path: Path) -> None:
    found = asked().measurements()
    parquet, plain = found.write(tmp_path / "new")
    table = pyarrow.parquet.read_table(parquet).to_pydict()
    read = json.loads(plain.read_text())
    assert table["value"] == [value for block in read["measurements"] for value in block["values"]]
    assert table["scale"][0] == read["measurements"][0]["noise"]["scale"]
    assert [column["name"] for column in read["columns"]] == list(DOMAIN.names)
    assert read["columns"][1]["cells"] == ["F", "M"]


def test_a_block_that_is_too_large_is_described_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_rows, "MOST_CELLS", 1)
    found = asked().measurements()
    assert all(block.coefficients() is None for block in found.blocks)
    assert all(block.columns and block.strategy for block in found.blocks)


@pytest.mark.soak  # mbi brings JAX, which weighs as much as everything else together
def test_private_pgm_fits_a_model_to_them() -> None:
    pytest.importorskip("mbi")
    from mbi import estimation

    db = engine(table=TABLE, settings=SETTINGS, randomness=Silence())
    db.query("SELECT sex, region, COUNT(*) AS n FROM people GROUP BY sex, region", within=50)
    db.query("SELECT age, COUNT(*) AS n FROM people WHERE age < 8 GROUP BY age", within=50)
    found = db.measurements()
    model = estimation.mirror_descent(found.mbi_domain(), found.to_mbi(), known_total=float(TABLE.sum()), iters=400)
    fitted = np.asarray(model.project(("sex", "region")).values)
    truth = TABLE.sum(axis=0)
    assert np.abs(fitted - truth).max() < 0.02 * truth.max()
    assert np.abs(fitted - truth[::-1]).max() > 0.02 * truth.max()  # a wrong order of cells would show


def test_without_a_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mbi", None)
    with pytest.raises(Unsupported, match="needs mbi"):
        NoisyLog(domain=DOMAIN, blocks=()).to_mbi()


def test_the_command_writes_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path)
    cli = Cli(monkeypatch, capsys)  # type: ignore[arg-type]
    assert cli("query", "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "--within", "60") == 0
    assert cli("export", "measurements", "--out", "away") == 0
    assert "written to away/measurements.parquet" in cli.out
    assert (tmp_path / "away" / "measurements.json").stat().st_size > 0
    assert cli("export", "measurements", "--json", "--as", "somebody") == 0
    assert json.loads(cli.out)["measurements"] == []
