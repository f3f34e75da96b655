"""Drafts from the metadata files of other tools: SmartNoise SQL, and private-pgm with others on mbi.

SmartNoise has YAML of database, schema, table, then options and columns. What it declares and Bursar needs is taken
over: bounds, the identifier of people, max_ids. What it does not declare (which texts and dates there can be) is left
open; `bursar init data.csv --from FILE` fills it from the data. A domain file of private-pgm is a JSON object of column
names and numbers of codes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from importlib import import_module
from pathlib import Path

from bursar.config.load import LARGEST_ROWS, read_text
from bursar.config.section import shown
from bursar.core.domain import LARGEST_COLUMN
from bursar.curate.draft import Draft, DraftColumn, DraftUnit, LeftOut, listed, numeric
from bursar.curate.survey import rounded_up
from bursar.errors import ConfigError, Unsupported

LEVELS = 3
SMARTNOISE_EXAMPLE = (
    "Database:\n  Schema:\n    People:\n      row_privacy: True\n      age: {type: int, lower: 0, upper: 100}"
)
DEFAULT_ROWS = 1_000_000
LARGEST_BOUND = 10**15


def read_smartnoise(path: Path, table: str | None = None) -> Draft:
    """The table of that name, or the only one, as a draft.

    Raises ConfigError for a file that is wrong, and Unsupported where PyYAML is missing.
    """
    tables = {_name(name): entries for name, entries in _tables(_read(path), LEVELS)}
    if not tables:
        raise ConfigError(f"there is no table in this file\ntry: {SMARTNOISE_EXAMPLE}", str(path))
    if table is None and len(tables) > 1:
        names = ", ".join(tables)
        raise ConfigError(f"there are several tables: {names}\ntry: --table {next(iter(tables))}", str(path))
    name = next(iter(tables)) if table is None else table
    if name not in tables:
        raise ConfigError(f"there is no table {name}\ntry: --table {next(iter(tables))}", str(path))
    return _draft(path, name, tables[name])


def _read(path: Path) -> object:
    text = read_text(path)
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise Unsupported("a SmartNoise file needs PyYAML\ntry: pip install pyyaml") from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError("not valid YAML", str(path), 0 if mark is None else mark.line + 1) from None


def _tables(entries: object, levels: int) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Every node whose children are columns, down to a depth."""
    for name, inner in entries.items() if isinstance(entries, dict) else ():
        if not isinstance(inner, dict):
            continue
        if any(isinstance(child, dict) and "type" in child for child in inner.values()):
            yield str(name), inner
        elif levels > 1:
            yield from _tables(inner, levels - 1)


def _draft(path: Path, table: str, entries: Mapping[str, object]) -> Draft:
    declared = {_name(name): column for name, column in entries.items() if isinstance(column, dict)}
    parts = [_column(path, name, column) for name, column in declared.items()]
    max_rows, rows_why = DEFAULT_ROWS, "A guess."
    rows = entries.get("rows")
    if isinstance(rows, int) and not isinstance(rows, bool) and 0 < rows <= LARGEST_ROWS // 5:
        max_rows, rows_why = int(rounded_up(Fraction(2 * rows))), f"From {path.name}: twice its rows, rounded up."
    return Draft(
        origin=path.name,
        dataset=table,
        path=f"{table}.csv",
        path_why="say where the data are",
        table=table,
        max_rows=max_rows,
        rows_why=f"{rows_why} Must be a number that the table will never exceed, and that you may tell anybody.",
        unit=_unit(path, entries, [name for name, column in declared.items() if column.get("private_id") is True]),
        columns=tuple(part for part in parts if isinstance(part, DraftColumn)),
        left_out=tuple(part for part in parts if isinstance(part, LeftOut)),
    )


def _unit(path: Path, entries: Mapping[str, object], ids: list[str]) -> DraftUnit:
    if len(ids) > 1:
        reason = f"people are told apart by several columns together ({', '.join(ids)}), and Bursar takes one"
        raise ConfigError(f"{reason}\ntry: add a column that joins them, and keep private_id on that one", str(path))
    if entries.get("row_privacy") is True or not ids:
        why = f"From {path.name}: each row is a person of its own. If that is not so, nobody is protected as promised."
        return DraftUnit(why=why) if entries.get("row_privacy") is True else DraftUnit()
    rows = entries.get("max_ids", 1)
    if type(rows) is not int or rows < 1:
        raise ConfigError(f"max_ids must be a whole number of at least 1, not {shown(rows)}", str(path))
    why = f"From {path.name}: private_id and max_ids. Further rows of the same person are not counted."
    return DraftUnit(column=ids[0], max_contributions=rows, why=why)


def _column(path: Path, name: str, column: Mapping[str, object]) -> DraftColumn | LeftOut:
    kind, origin = column.get("type"), f"From {path.name}"
    if column.get("private_id") is True:
        return LeftOut(name=name, reason="tells people apart; it stays the unit and cannot be asked about")
    if kind == "boolean":
        why = f"{origin}: true or false. Must be public: nothing else."
        return DraftColumn(name=name, keys=listed([True, False]), why=why)
    if kind in ("int", "float"):
        low, high = (_bound(path, name, key, column.get(key)) for key in ("lower", "upper"))
        if low is None or high is None:
            return LeftOut(name=name, reason="numbers without lower and upper", open=True)
        if low >= high:
            raise ConfigError(f"column {name}: lower must be below upper", str(path))
        why = f"{origin}: lower and upper; what lies beyond counts as the nearest end. Must be public: both ends."
        return DraftColumn(name=name, keys=numeric(low, high, whole=kind == "int"), why=why)
    if kind in ("string", "datetime"):
        what = "texts" if kind == "string" else "dates"
        return LeftOut(name=name, reason=f"{path.name} does not say which {what} there can be", open=True)
    return LeftOut(name=name, reason=f"of type {shown(kind)}, which cannot be asked about")


def _bound(path: Path, name: str, key: str, value: object) -> Fraction | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"column {name}: {key} must be a number, not {shown(value)}", str(path))
    if abs(value) > LARGEST_BOUND:
        raise ConfigError(f"column {name}: {key} must lie within {LARGEST_BOUND:g}", str(path))
    return Fraction(str(value))


def _name(name: object) -> str:
    """A name without the quotes that a database would need."""
    text = str(name)
    quoted = len(text) > 2 and text[0] + text[-1] in ('""', "``", "[]")
    return text[1:-1] if quoted else text


PGM_EXAMPLE = '{"age": 85, "sex": 2}: the number of codes of each column'


def read_private_pgm(path: Path) -> Draft:
    """A column of n codes becomes the whole numbers 0 ... n - 1. Raises ConfigError and nothing else."""
    try:
        sizes = json.loads(read_text(path))
    except (ValueError, RecursionError):
        raise ConfigError(f"not valid JSON\ntry: {PGM_EXAMPLE}", str(path)) from None
    if not isinstance(sizes, dict) or not sizes:
        raise ConfigError(f"not a domain file\ntry: {PGM_EXAMPLE}", str(path))
    return Draft(
        origin=path.name,
        dataset=path.stem,
        path=f"{path.stem}.csv",
        path_why="the coded data: say where they are",
        table=path.stem.replace("-", "_"),
        max_rows=1_000_000,
        rows_why="A guess: must be a number that the table will never exceed, and that you may tell anybody.",
        columns=tuple(_codes(path, name, size) for name, size in sizes.items()),
    )


def _codes(path: Path, name: str, size: object) -> DraftColumn:
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < LARGEST_COLUMN:
        reason = f"column {name} must have a whole number of codes from 1 to {LARGEST_COLUMN - 1}"
        raise ConfigError(f"{reason}\ntry: {PGM_EXAMPLE}", str(path))
    why = f"From {path.name}: {size} codes. Must be public: that these codes are all there can be."
    return DraftColumn(name=name, keys={"lower": 0, "upper": size - 1}, why=why)
