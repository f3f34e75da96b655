"""`bursar demo`: what it is like to ask, to repeat, to look ahead, to tighten, and to be refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.errors import BudgetError, ConfigError, QueryError

if TYPE_CHECKING:
    from rich.console import Console

    from bursar import Bursar

MARK = ".bursar-demo"
OWN_FILES = ("people.csv", "bursar.toml", MARK)
OWN_FOLDER = "bursar.bursar"

BY_REGION = "SELECT region, COUNT(*) AS people FROM people GROUP BY region"
TWO_REGIONS = "SELECT COUNT(*) AS people FROM people WHERE region IN ('Northmark', 'Lakeside')"
BY_JOB = """SELECT occupation, COUNT(*) AS people, COUNT(*) FILTER (WHERE age >= 50) AS over_50
  FROM people GROUP BY occupation WITH ERROR 0.5% CONFIDENCE 95%"""
TOO_EXACT = "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex"
UNDECLARED_COLUMN = "SELECT COUNT(*) FROM people WHERE salary > 50000"


def tour(folder: Path, *, rows: int) -> None:
    """Make up the data in `folder` and walk through eight questions."""
    from rich.console import Console

    import bursar

    console = Console(highlight=False, markup=False, soft_wrap=True)
    config = begin(folder, rows=rows)
    console.print(f"Made up {rows:,} people in {folder / 'people.csv'}, and declared their columns in {config}.")
    with bursar.create(config) as db:
        console.print(f"The budget, for all questions ever: {db.budget().description}.")
        _walk(console, db, rows)
    _heading(console, "Now you")
    console.print(f'cd {folder}\nbursar query "SELECT sex, COUNT(*) FROM people GROUP BY sex" --within 1%')
    console.print("bursar budget\nbursar log\nbursar --help")


def begin(folder: Path, *, rows: int) -> Path:
    """Make up the data, without a ledger yet; what an earlier demo has left is gone. Returns the config."""
    from bursar.curate.demo import generate

    try:
        _clear(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARK).write_text("made by `bursar demo`, which may overwrite this folder\n", encoding="utf-8")
        return generate(folder / "people.csv", rows=rows)
    except OSError as error:
        raise ConfigError(f"the demo data cannot be written: {error.strerror}\ntry: --dir PATH", str(folder)) from None


def _walk(console: Console, db: Bursar, rows: int) -> None:
    wide, narrow = rows // 200, rows // 500
    _heading(console, "1. Ask, and say what error you can live with")
    _ask(console, db, BY_REGION, within=wide)
    _heading(console, "2. Ask again: the same answer, free")
    _ask(console, db, BY_REGION, within=wide)
    _heading(console, "3. Ask something that follows from it: also free")
    _ask(console, db, TWO_REGIONS, within=2 * wide)
    _heading(console, "4. Look ahead: EXPLAIN shows every way to answer, with its price, and costs nothing")
    _show_sql(console, f"EXPLAIN {BY_REGION}", narrow)
    console.print(str(db.explain(BY_REGION, within=narrow)))
    _heading(console, "5. Tighten: the price that was shown is the price that is paid")
    _ask(console, db, BY_REGION, within=narrow)
    _heading(console, "6. The accuracy may stand in the SQL itself, and several numbers may be asked at once")
    _ask(console, db, BY_JOB)
    _heading(console, "7. Be refused: too exact for what is left; nothing is spent")
    _refused(console, db, TOO_EXACT, within=max(rows // 10_000, 1))
    _heading(console, "8. Be refused: a question that does not fit the table; nothing is spent")
    _refused(console, db, UNDECLARED_COLUMN, within=wide)
    _heading(console, "What it came to")
    status = db.budget()
    console.print(f"Spent {status.unit} {status.spent:.4g} of {status.total:g}; {status.left:.4g} is left.")


def _ask(console: Console, db: Bursar, sql: str, *, within: int | None = None) -> None:
    _show_sql(console, sql, within)
    console.print(str(db.query(sql, within=within)))


def _refused(console: Console, db: Bursar, sql: str, *, within: int) -> None:
    try:
        _ask(console, db, sql, within=within)
    except (BudgetError, QueryError) as error:
        console.print(str(error), style="red")


def _heading(console: Console, text: str) -> None:
    console.print(f"\n{text}", style="bold")


def _show_sql(console: Console, sql: str, within: int | None) -> None:
    option = "" if within is None else f"  --within {within}"
    console.print(f"  {sql}{option}\n", style="cyan")


def _clear(folder: Path) -> None:
    """Make way for a new demo: an earlier demo's own files go, and nothing else is ever touched."""
    if not folder.exists():
        return
    if not folder.is_dir() or (not (folder / MARK).is_file() and any(folder.iterdir())):
        raise ConfigError("this exists and was not made by the demo\ntry: --dir PATH, with a new folder", str(folder))
    for name in OWN_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / OWN_FOLDER, ignore_errors=True)
