"""From the domain file of private-pgm (and other tools on mbi): a JSON object of column names and numbers of codes."""

from __future__ import annotations

import json
from pathlib import Path

from bursar.config.load import read_text
from bursar.core.domain import LARGEST_COLUMN
from bursar.curate.draft import Draft, DraftColumn
from bursar.errors import ConfigError

EXAMPLE = '{"age": 85, "sex": 2}: the number of codes of each column'


def read_private_pgm(path: Path) -> Draft:
    """A column of n codes becomes the whole numbers 0 ... n - 1. Raises ConfigError and nothing else."""
    try:
        sizes = json.loads(read_text(path))
    except (ValueError, RecursionError):
        raise ConfigError(f"not valid JSON\ntry: {EXAMPLE}", str(path)) from None
    if not isinstance(sizes, dict) or not sizes:
        raise ConfigError(f"not a domain file\ntry: {EXAMPLE}", str(path))
    return Draft(
        origin=path.name,
        dataset=path.stem,
        path=f"{path.stem}.csv",
        path_why="the coded data: say where they are",
        table=path.stem.replace("-", "_"),
        max_rows=1_000_000,
        rows_why="A guess: must be a number that the table will never exceed, and that you may tell anybody.",
        columns=tuple(_column(path, name, size) for name, size in sizes.items()),
    )


def _column(path: Path, name: str, size: object) -> DraftColumn:
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < LARGEST_COLUMN:
        reason = f"column {name} must have a whole number of codes from 1 to {LARGEST_COLUMN - 1}"
        raise ConfigError(f"{reason}\ntry: {EXAMPLE}", str(path))
    why = f"From {path.name}: {size} codes. Must be public: that these codes are all there can be."
    return DraftColumn(name=name, keys={"lower": 0, "upper": size - 1}, why=why)
