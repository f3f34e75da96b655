"""Presets by name: each answers and says how it charges, and a ledger keeps the one it was begun with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bursar
from bursar import presets
from bursar.core.budget import Budget
from bursar.curate.demo import generate
from bursar.errors import ConfigError, GoalError, LedgerError
from bursar.planner.choose import Preset
from harness.configs import head, read
from harness.small import config, engine
from unit.cli.test_cli_answers import Cli

YOUNG = "SELECT COUNT(*) AS n FROM people WHERE age < 5"
OLD = "SELECT COUNT(*) AS n FROM people WHERE age >= 5"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
SEQUENTIAL = "sequential composition, as published"

BUDGETS = {"boost-gaussian": Budget.of(rho=10.0)}
"""Of presets that were not published for epsilon alone."""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(monkeypatch, capsys)


@pytest.fixture
def toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BURSAR_PRESET", raising=False)
    return generate(tmp_path / "people.csv", rows=2_000)


@pytest.mark.parametrize("name", [name for name in presets.LISTED if name != "multi-analyst"])
def test_every_preset_answers_and_says_how_it_charges(name: str) -> None:
    db = engine(settings=config(budget=BUDGETS.get(name, Budget.of(epsilon=10.0)), preset=name))
    answer = db.query(YOUNG, within=60)
    sequential = presets.named(name).sequential
    assert (SEQUENTIAL in answer.charging) == sequential
    assert (f"({name})" in str(answer)) == sequential
    assert (SEQUENTIAL in " ".join(db.budget().promises())) == sequential
    assert bursar.Answer.from_bytes(answer.to_bytes()) == answer
    assert sequential == (name not in ("default", "cachedp-profile", "boost-profile"))


@pytest.mark.parametrize(("name", "times"), [("laplace", 2), ("boost", 2), ("boost-profile", 1)])
def test_questions_about_other_people_add_up_where_it_is_said(name: str, times: int) -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=10.0), preset=name))
    first = db.query(YOUNG, within=60).charge
    db.query(OLD, within=60)
    spent = db.budget().spent
    assert spent >= times * first * 0.8
    assert spent <= times * first * 1.4  # boost buys the size with its first answer


def test_a_scattered_question_is_no_range_for_pioneer() -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=10.0), preset="pioneer"))
    assert db.query("SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 2 AND 4", within=60).error > 0
    with pytest.raises(GoalError, match='preset "pioneer" has no way'):
        db.query("SELECT COUNT(*) AS n FROM people WHERE age IN (1, 5)", within=60)
    assert len(db.log()) == 1


def test_a_pair_of_columns_is_quartered() -> None:
    asked = "SELECT COUNT(*) AS n FROM people WHERE age < 5 AND region = 'north'"
    joint, quartered = (engine(settings=config(preset=name)) for name in ("cachedp", "cachedp-quads"))
    assert joint.query(asked, within=100).bought != quartered.query(asked, within=100).bought


# -- the charter ---------------------------------------------------------------------------------------------------


def test_a_charter_without_a_preset_is_what_it_always_was() -> None:
    assert "preset" not in config().charter
    assert config(preset="boost").charter == {**config().charter, "preset": "boost"}


def test_a_ledger_keeps_its_preset_for_life(toml: Path) -> None:
    with bursar.create(toml, preset="cachedp") as db:
        db.query(BY_SEX, within=200)
    for other in (None, "boost", "default"):
        with pytest.raises(LedgerError, match=r'the preset "cachedp" for life.*\ntry: preset = "cachedp"'):
            bursar.open(toml, preset=other)
    with bursar.open(toml, preset="cachedp") as db:
        assert db.budget().charging.startswith(SEQUENTIAL)
    toml.write_text('preset = "cachedp"\n' + toml.read_text())
    with bursar.open(toml, analyst="ana") as db:
        assert db.log() == []
    with pytest.raises(ConfigError, match='preset = "cachedp", not "boost"'):
        bursar.open(toml, preset="boost")


def test_the_default_by_name_is_the_default(toml: Path) -> None:
    bursar.create(toml).close()
    with bursar.open(toml, preset="default") as db:
        assert db.budget().charging == ""


# -- the config ----------------------------------------------------------------------------------------------------

REST = '[columns.sex]\nvalues = ["F", "M"]\n[columns.year]\nlower = 2020\nupper = 2029\n'
FAMILY = '[goal]\ncontract = "simultaneous"\nfamily = ["sex"]\nerror = 50\n'
PARTITION = '[partition]\ncolumn = "year"\n'


def test_a_config_names_a_preset(tmp_path: Path) -> None:
    assert read(tmp_path, head() + REST).preset is None
    assert read(tmp_path, 'preset = "default"\n' + head() + REST).preset is None
    assert read(tmp_path, 'preset = "apex"\n' + head() + REST).preset == "apex"
    assert read(tmp_path, 'preset = "boost"\n' + head() + REST + PARTITION).preset == "boost"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bost", head() + REST, 'no preset "bost"'),
        ("cachedp", head().replace("epsilon", "rho") + REST, "epsilon alone"),
        ("boost-gaussian", head() + REST, "Gaussian noise"),
        ("cachedp", head() + REST + PARTITION, "partitions"),
        ("boost", head() + REST + FAMILY, "per-query"),
        ("multi-analyst", head() + REST, "seeded-cache"),
    ],
)
def test_what_a_preset_does_not_know_is_refused_with_its_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        read(tmp_path, f'preset = "{name}"\n{text}')
    assert refused.value.line == 1


# -- commands ------------------------------------------------------------------------------------------------------


def test_presets_are_listed(cli: Cli) -> None:
    assert cli("presets") == 0
    assert all(f"{name} " in cli.out and entry.paper in cli.out for name, entry in presets.LISTED.items())
    assert cli("presets", "--json") == 0
    assert [entry["name"] for entry in json.loads(cli.out)] == list(presets.LISTED)


def test_a_preset_on_the_command_line(toml: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    config = str(toml)
    assert cli("create", "-d", config, "--preset", "apex-cache") == 0
    assert "(apex-cache)" in cli.out
    assert cli("query", BY_SEX, "--within", "200", "-d", config) == 4
    assert "--preset apex-cache" in cli.err
    assert cli("query", BY_SEX, "--within", "200", "-d", config, "--preset", "apex-cache") == 0
    assert "charge sequential" in cli.out
    monkeypatch.setenv("BURSAR_PRESET", "apex-cache")
    assert cli("query", BY_SEX, "--within", "200", "-d", config) == 0
    assert "free" in cli.out
    assert cli("verify", "-d", config) == 0
    assert cli("budget", "-d", config) == 0
    assert "charged by sequential" in cli.out


def test_published_systems_are_listed_with_all_that_is_asked_of_a_preset() -> None:
    for name, entry in presets.LISTED.items():
        assert isinstance(entry.make(), Preset)
        assert entry.make().name == name
        assert entry.modes
