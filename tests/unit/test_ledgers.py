"""The ledger of a config: in a file or in PostgreSQL, with its key; from creating it to asking on two machines."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import bursar
from bursar.cli import main
from bursar.config import load
from bursar.core.ledger import PostgresLedger, SqliteLedger
from bursar.curate.demo import generate
from bursar.errors import ConfigError, LedgerError
from bursar.ledgers import KEY_VARIABLE, open_ledger
from harness.servers import administer, shared_postgresql

QUESTION = "SELECT sex, COUNT(*) FROM people GROUP BY sex"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A data set of made-up people whose ledger is to be in PostgreSQL."""
    generate(tmp_path / "people.csv", rows=2_000)
    schema = f"people {os.getpid()} {tmp_path.name}"[:63]
    with (tmp_path / "bursar.toml").open("a") as file:
        file.write(f'\n[ledger]\nurl = "{shared_postgresql().url()}"\nschema = "{schema}"\n')
    yield tmp_path
    administer(shared_postgresql().url(), f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


def test_without_the_section_the_ledger_is_a_file(tmp_path: Path) -> None:
    generate(tmp_path / "people.csv", rows=2_000)
    with bursar.create(tmp_path / "bursar.toml") as made:
        assert isinstance(made.ledger, SqliteLedger)


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of a command."""
    monkeypatch.setattr(sys, "argv", ["bursar", *words])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.mark.heavy
def test_two_machines_ask_on_one_budget(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = str(folder / "bursar.toml")
    assert command(monkeypatch, "create", "-d", here) == 0
    assert "created the schema people " in capsys.readouterr().out
    home = folder / "bursar.bursar"
    assert {stat.S_IMODE((home / name).stat().st_mode) for name in ("ledger.key", "ledger-anchor")} == {0o600}
    assert command(monkeypatch, "query", "-d", here, QUESTION, "--within", "200") == 0
    other = tmp_path / "other"
    (other / "bursar.bursar").mkdir(parents=True)
    for name in ("bursar.toml", "people.csv", "bursar.bursar/ledger.key"):
        shutil.copy(folder / name, other / name)
    there = str(other / "bursar.toml")
    capsys.readouterr()
    assert command(monkeypatch, "budget", "-d", there) == 4
    assert "bursar verify --expect" in capsys.readouterr().err
    with bursar.open(here) as first:
        health = first.owner.verify()
        assert isinstance(first.ledger, PostgresLedger)
    assert command(monkeypatch, "verify", "-d", there, "--expect", f"{health.records}:{health.head}") == 0
    with bursar.open(there) as second, bursar.open(here) as first:
        spent = first.budget().spent
        assert second.budget().spent == spent > 0
        assert second.query(QUESTION, within=200).free
        assert second.query("SELECT COUNT(*) FROM people WHERE age < 30", within=100).charge > 0
        assert first.budget().spent == second.budget().spent > spent
        assert first.query("SELECT COUNT(*) FROM people WHERE age < 30", within=100).free
    assert command(monkeypatch, "recover", "-d", there) == 0


def test_a_key_that_others_can_read_is_refused(folder: Path) -> None:
    bursar.create(folder / "bursar.toml").close()
    key = folder / "bursar.bursar" / "ledger.key"
    key.chmod(0o640)
    with pytest.raises(LedgerError, match="others on this machine can read"):
        bursar.open(folder / "bursar.toml")
    key.chmod(0o600)
    key.write_text("no key")
    with pytest.raises(LedgerError, match="does not hold a key: 64 hexadecimal digits"):
        bursar.open(folder / "bursar.toml")
    key.write_bytes(b"\xff")
    with pytest.raises(LedgerError, match="cannot be read"):
        bursar.open(folder / "bursar.toml")
    key.unlink()
    with pytest.raises(LedgerError, match=r"key of the ledger is missing(.|\n)*copy it"):
        bursar.open(folder / "bursar.toml")


def test_the_key_can_come_from_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "ab" * 32)
    bursar.create(folder / "bursar.toml").close()
    assert not (folder / "bursar.bursar" / "ledger.key").exists()
    open_ledger(load(folder / "bursar.toml")).close()
    monkeypatch.setenv(KEY_VARIABLE, "cd" * 32)
    with pytest.raises(LedgerError, match="the key is not the one"):
        open_ledger(load(folder / "bursar.toml"))


def test_a_key_file_that_is_named(folder: Path) -> None:
    config = folder / "bursar.toml"
    config.write_text(config.read_text() + 'key_file = "elsewhere/people.key"\n')
    bursar.create(config).close()
    assert stat.S_IMODE((folder / "elsewhere" / "people.key").stat().st_mode) == 0o600
    bursar.open(config).close()


def test_a_key_that_cannot_be_written(folder: Path) -> None:
    config = folder / "bursar.toml"
    config.write_text(config.read_text() + 'key_file = "people.csv/people.key"\n')
    with pytest.raises(LedgerError, match="the key of the ledger cannot be written"):
        bursar.create(config)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('url = "mysql://x/y"', "must be that of a PostgreSQL database"),
        ('url = "postgresql://ann:hunter2@x/y"', "has a password in it"),
        ('url = "postgresql://x/y?user=ann&password=hunter2"', "has a password in it"),
        ('url = "postgresql://[x/y"', "cannot be read"),
        ("url = 7", "ledger.url"),
        ("", "ledger.url is missing"),
        ('url = "postgresql://x/y"\nasynchronous = "yes"', "must be true or false"),
        ('url = "postgresql://x/y"\nschemas = "x"', "schemas is not known"),
        ('url = "postgresql://x/y"\nschema = ""', "ledger.schema"),
    ],
)
def test_what_is_wrong_with_the_section_is_said(tmp_path: Path, lines: str, said: str) -> None:
    generate(tmp_path / "people.csv", rows=10)
    config = tmp_path / "bursar.toml"
    config.write_text(f"{config.read_text()}\n[ledger]\n{lines}\n")
    with pytest.raises(ConfigError, match=said) as refused:
        load(config)
    assert "hunter2" not in str(refused.value)
    assert refused.value.line > 0


def test_the_settings_of_the_section(tmp_path: Path) -> None:
    generate(tmp_path / "people.csv", rows=10)
    config, url = tmp_path / "bursar.toml", "postgres://x,y/z?sslmode=require"
    config.write_text(f'{config.read_text()}\n[ledger]\nurl = "{url}"\nasynchronous = true\n')
    settings = load(config).ledger
    assert (settings.url, settings.schema, settings.asynchronous) == (url, "bursar", True)


def test_a_ledger_is_moved_there_and_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = folder / "bursar.toml"
    there = config.read_text()
    here, _, section = there.partition("\n[ledger]\n")
    url, schema = (line.partition(" = ")[2].strip('"') for line in section.splitlines()[:2])
    config.write_text(here)
    with bursar.create(config) as file:
        assert file.query(QUESTION, within=200).charge > 0
        spent = file.budget().spent
    assert command(monkeypatch, "move-ledger", "file", "-d", str(config)) == 4
    assert "of that kind already" in capsys.readouterr().err
    assert command(monkeypatch, "move-ledger", "postgresql://ann:hunter2@x/y", "-d", str(config)) == 2
    assert command(monkeypatch, "move-ledger", url, "--schema", schema, "-d", str(config)) == 0
    told = capsys.readouterr().out
    assert f'[ledger]\nurl = "{url}"\nschema = "{schema}"' in told
    assert f"{folder / 'bursar.bursar' / 'ledger.key'}: keep a copy elsewhere" in told
    assert command(monkeypatch, "budget", "-d", str(config)) == 4
    assert "was moved" in capsys.readouterr().err
    config.write_text(there)
    with bursar.open(config) as schema_ledger:
        assert schema_ledger.budget().spent == spent
        assert schema_ledger.query(QUESTION, within=200).free
    assert command(monkeypatch, "move-ledger", "file", "-d", str(config)) == 4
    assert "try: if a move left it, put the file away, not its anchor, or drop the schema" in capsys.readouterr().err
    (folder / "bursar.bursar" / "ledger.sqlite").unlink()
    assert command(monkeypatch, "move-ledger", "file", "-d", str(config)) == 0
    told = capsys.readouterr().out
    assert "take out [ledger]" in told
    assert "ledger.key" not in told
    config.write_text(here)
    with bursar.open(config) as file:
        assert file.budget().spent == spent
        assert file.query(QUESTION, within=200).free
