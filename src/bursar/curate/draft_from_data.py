"""Drafting a config from data, from another tool's file, or from both. Holds no rows: a survey looks at them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bursar.config.load import Config, parse_draft, read_text
from bursar.config.section import nearest
from bursar.curate import guess
from bursar.curate.catalog import draft_from_catalog, table_of
from bursar.curate.draft import Draft, DraftColumn, DraftUnit, LeftOut
from bursar.curate.edit import save
from bursar.curate.guess import calendar_spans, names_identifiers
from bursar.curate.metadata import read_private_pgm, read_smartnoise
from bursar.curate.plain_csv import Plain, plain_copy
from bursar.curate.survey import survey
from bursar.errors import ConfigError
from bursar.sources import PASSWORD

ROWS_WHY = (
    "From the data: about twice the number of rows, rounded up. Must be a number that the table will never exceed, and "
    "that you may tell anybody."
)
SERVERS = ("postgresql://", "postgres://", "mysql://", "mariadb://")
BESIDE = "relative to this file"
NO_COLUMN = "no column can be drafted: each holds identifiers, free text, or nothing that enough rows share"
UNTOLD = (
    "no column can be drafted: the catalog says of none which values it can have (a boolean, an enum or a CHECK does), "
    "and rows are not looked at"
)
OTHER_DATABASE = "all tables of a database are in the schema of the first, and are reached by the same url"
BY_HAND = "write the config by hand, as docs/config.md shows"
BY_EXPORT = f"{BY_HAND}; or draft from a CSV export, and put the url into [source]"


@dataclass(frozen=True, kw_only=True)
class Drafted:
    """A draft that was written, and the config that it is."""

    draft: Draft
    config: Config
    plain: Plain | None = None  # the copy that the config is about, where the file itself cannot be read

    @property
    def candidates(self) -> tuple[str, ...]:
        """Columns in which nearly every row has a value of its own, while the row is the unit."""
        return self.draft.unit.candidates


def init(
    data: object | None = None,
    path: str | os.PathLike[str] = "bursar.toml",
    *,
    table: str | None = None,
    source: str | os.PathLike[str] | None = None,
    unit: str | None = None,
    epsilon: float | None = None,
    copy: bool = False,
    told: Callable[[str], None] = lambda step: None,
) -> Drafted:
    """Write a draft of a config to `path`, which must not exist.

    `data` is the url of a table in PostgreSQL (postgresql://user@host/database/table) or MariaDB (mysql://...), of
    which the catalog is read and no row; or a CSV, Parquet or DuckDB file (of which `table` names the table) or a data
    frame. A CSV file that is not written with commas, points and ISO days is refused; with `copy`, it is copied first
    into one that is, and the config is about the copy. `source` is a SmartNoise YAML or private-pgm JSON file; what it
    leaves open comes from the data. `unit` ("row" or a column) and `epsilon` are the owner's word, and need no
    confirmation.
    `told` hears what is done next, in a few words, while a long table is read.

    Guarantees: everything that comes from the data is marked as unconfirmed, and a config with such a mark does not
    open. The draft is a config that can be read.
    """
    if os.path.lexists(path):
        raise ConfigError(
            "this file exists, and is left as it is\ntry: -d another.toml, or --add to draft a further table for it",
            os.fspath(path),
        )
    url = data if isinstance(data, str) and data.startswith(SERVERS) else None
    file = data if isinstance(data, str | os.PathLike) and url is None else None
    plain = None if file is None else plain_copy(Path(file), allowed=copy, told=told)
    try:
        rows = data if plain is None else plain.path
        if url is not None:
            draft = draft_from_catalog(url, os.environ.get(PASSWORD))
        else:
            draft = _draft(rows, Path(path), table, None if source is None else Path(source), unit, told)
        if unit is not None:
            draft = _with_unit(draft, unit)
        draft = replace(draft, epsilon=epsilon)
        if not draft.columns:
            raise ConfigError(f"{NO_COLUMN}\ntry: {BY_HAND}" if url is None else f"{UNTOLD}\ntry: {BY_EXPORT}")
        config = parse_draft(draft.text(), path)
        save(path, draft.text())
    except BaseException:
        if plain is not None:
            plain.path.unlink(missing_ok=True)
        raise
    return Drafted(draft=draft, config=config, plain=plain)


def add_table(
    data: str | os.PathLike[str],
    path: str | os.PathLike[str] = "bursar.toml",
    *,
    table: str | None = None,
    unit: str | None = None,
    told: Callable[[str], None] = lambda step: None,
) -> Drafted:
    """Draft a further private table, and add its sections to the config at `path`.

    `data` is a file, or the url of a table that is in the database and the schema of the config's first one.
    `unit` is the column that says whose each row is; that of the config unless said. `table` is the table in a DuckDB
    file, or else the name behind FROM.

    Guarantees: what the config says stays as it is; everything that is added is marked as unconfirmed.
    """
    before = read_text(path)
    config = parse_draft(before, path)
    people = config.unit.column
    if people is None:
        reason = "people who have rows in several tables are told apart by a column, and privacy.unit is the row"
        raise ConfigError(f'{reason}\ntry: unit = {{ column = "person" }} under [privacy]', os.fspath(path))
    url = data if isinstance(data, str) and data.startswith(SERVERS) else None
    if url is None:
        plain_copy(Path(data), allowed=False, told=told)
        drafted = _surveyed(data, Path(path), table, unit or people, told)
    elif config.url is None or table_of(url)[:2] != (config.url.url, config.url.schema):
        hint = "try: the url under [source], with /SCHEMA.TABLE behind the database"
        raise ConfigError(f"{OTHER_DATABASE}\n{hint}", os.fspath(path))
    else:
        drafted = draft_from_catalog(url, os.environ.get(PASSWORD))
    names = [*(column.name for column in drafted.columns), *(omitted.name for omitted in drafted.left_out)]
    if unit is None and people not in names:
        raise ConfigError(f"{drafted.origin} has no column {people}, which tells people apart\ntry: --unit COLUMN")
    if drafted.table.casefold() in [each.table.casefold() for each in config.private]:
        raise ConfigError(f"{drafted.table} is declared already\ntry: --table another_name", os.fspath(path))
    draft = _with_unit(drafted, unit or people)
    if not draft.columns:
        hint = "try: write the table by hand, as docs/tables.md shows"
        raise ConfigError(f"{NO_COLUMN}\n{hint}") if url is None else ConfigError(f"{UNTOLD}\n{hint}")
    text = f"{before.rstrip()}\n\n{draft.table_text(people)}"
    config = parse_draft(text, path)
    save(path, text)
    return Drafted(draft=draft, config=next(each for each in config.private if each.table == draft.table))


def _draft(
    data: object | None,
    path: Path,
    table: str | None,
    source: Path | None,
    unit: str | None,
    told: Callable[[str], None],
) -> Draft:
    if source is None and data is None:
        raise ConfigError("say what to draft a config from\ntry: bursar init data.csv, or bursar init --from FILE")
    if source is None:
        return _surveyed(data, path, table, unit, told)
    imported = read_private_pgm(source) if source.suffix.lower() == ".json" else read_smartnoise(source, table)
    return imported if data is None else _filled(imported, _surveyed(data, path, table, unit, told))


def _surveyed(data: object, path: Path, table: str | None, unit: str | None, told: Callable[[str], None]) -> Draft:
    file = Path(os.fspath(data)) if isinstance(data, str | os.PathLike) else None
    if file is not None and file.suffix.lower() in (".duckdb", ".db") and table is None:
        raise ConfigError("a DuckDB file may hold several tables\ntry: --table NAME", str(file))
    surveyed = survey(data, table, named=names_identifiers, calendar=calendar_spans, told=told)
    parts = guess.columns(surveyed.columns)
    name = table or ("data" if file is None else re.sub(r"\W+", "_", file.name.split(".")[0]).strip("_") or "data")
    return Draft(
        origin="a data frame" if file is None else file.name,
        dataset=name,
        path=f"{name}.parquet" if file is None else _relative(file, path),
        path_why="not read while you pass the data frame itself: create(..., data=frame)" if file is None else BESIDE,
        table=name,
        max_rows=surveyed.max_rows,
        rows_why=ROWS_WHY,
        unit=guess.unit(surveyed.columns, unit),
        columns=tuple(part for part in parts if isinstance(part, DraftColumn)),
        left_out=tuple(part for part in parts if isinstance(part, LeftOut)),
    )


def _relative(file: Path, path: Path) -> str:
    """The way from the config to the data; a full path where there is none."""
    try:
        return Path(os.path.relpath(file, os.path.realpath(path.parent))).as_posix()
    except ValueError:  # another drive
        return os.path.abspath(file)


def _filled(imported: Draft, seen: Draft) -> Draft:
    """The import, with what it leaves open from the data, and the data's own path and size."""
    open_ = {omitted.name for omitted in imported.left_out if omitted.open}
    added = {column.name: column for column in seen.columns if column.name in open_}
    reasons = {omitted.name: omitted for omitted in seen.left_out}
    left = [
        reasons.get(omitted.name, omitted) if omitted.open else omitted
        for omitted in imported.left_out
        if omitted.name not in added
    ]
    return replace(
        imported,
        origin=f"{imported.origin} and {seen.origin}",
        path=seen.path,
        path_why=seen.path_why,
        table=seen.table,
        max_rows=seen.max_rows,
        rows_why=seen.rows_why,
        columns=(*imported.columns, *added.values()),
        left_out=tuple(left),
    )


def _with_unit(draft: Draft, unit: str) -> Draft:
    """The owner's word for who is protected. How many rows a person has stays a guess."""
    if unit == "row":
        return replace(draft, unit=DraftUnit(why="Each row is a person of its own.", given=True))
    names = [*(column.name for column in draft.columns), *(omitted.name for omitted in draft.left_out)]
    if unit not in names:
        near = nearest(unit, names)
        hint = f"--unit {near}" if near else "--unit row, or the name of a column"
        raise ConfigError(f"there is no column {unit}\ntry: {hint}")
    looked = draft.unit.column == unit
    why = f"Rows with the same {unit} are one person's; more rows than max_contributions are in no answer."
    if looked:
        why += " How many most people have was read off the data, for you to change."
    else:
        why += f" How many rows one {unit} has was not looked at: 1 stands here until you say."
    itself = LeftOut(name=unit, reason="tells people apart; a question about it would be about one person")
    return replace(
        draft,
        unit=DraftUnit(column=unit, max_contributions=draft.unit.max_contributions if looked else 1, why=why),
        columns=tuple(column for column in draft.columns if column.name != unit),
        left_out=(itself, *(omitted for omitted in draft.left_out if omitted.name != unit)),
    )
