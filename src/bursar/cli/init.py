"""`bursar init` and `bursar check`: a first draft of a config, and what a config promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.cli.opened import CONFIG, Data, Json, working
from bursar.report.text import commands as show

if TYPE_CHECKING:
    from bursar.curate.draft_from_data import Drafted


def init(
    file: Annotated[
        str | None,
        typer.Argument(help="A CSV, Parquet or DuckDB file.", show_default=False),
    ] = None,
    data: Data = CONFIG,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="The table in a DuckDB file; else the name behind FROM.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="A SmartNoise YAML or private-pgm JSON file; it may stand beside the data."
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="row|COLUMN", help="Who is protected: each row, or all rows with one value of a column."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="1.0", help="The budget, if you know it already.")] = None,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Write a CSV file with other separators or numbers once more, plainly, beside it."),
    ] = False,
) -> None:
    """For the data owner, first: draft a config from your data. Looks at the rows, and tells nobody but you.

    Example: bursar init people.csv
    """
    from bursar.curate.draft_from_data import init as draft

    with working(f"reading {file or source}") as told:
        made = draft(file, data, table=table, source=source, unit=unit, epsilon=epsilon, copy=copy, told=told)
    _tell(made, data, looked=file is not None)


def check(data: Data = CONFIG, json: Json = False) -> None:
    """For the data owner: what a config promises, what it does to your values, and what questions would cost. Free.

    How many values each declaration changes is counted exactly, from the rows: it is for your eyes only.
    """
    from bursar.config import load_draft
    from bursar.curate.check import check as checked

    config = load_draft(data)
    with working(f"looking at {config.location.name}"):
        found = checked(config, data=config.location if config.location.is_file() else None)
    show.result(found, as_json=json)


def _tell(made: Drafted, data: Path, *, looked: bool) -> None:
    from bursar.curate.check import first_question, protected
    from bursar.curate.confirm import says

    draft, config = made.draft, made.config
    option = "" if data == CONFIG else f" -d {data}"
    print(f"wrote {data}, a draft from {draft.origin}\n")
    if made.plain is not None:
        print(f"{made.plain.told}.")
        print(f"{made.plain.path} has the same rows, as they are read without guessing, and the config is about it:")
        print("keep it as safe as the original.\n")
    for column in draft.columns:
        print(f"  {column.name:<16} {says(config, ('columns', column.name))}")
    for left in draft.left_out:
        print(f"  {left.name:<16} left out: {left.reason}")
    print(f"\n  protected is {protected(config)}")
    if config.unit.column is None and not draft.unit.given:
        print("  (if people have several rows: --unit COLUMN, or in bursar confirm; COLUMN says whose row it is)")
        if made.candidates:
            names = ", ".join(made.candidates)
            print(f"  Is one of these whose row it is? Nearly every row has a value of its own in: {names}")
    if config.unit.column is not None and config.unit.max_contributions == 1:
        print("  (if people have more rows, say how many in bursar confirm: what is beyond is in no answer)")
    if looked:
        print("\nThe draft shows what is in the data: keep it to yourself until you have confirmed it.")
    print(f"\nnext:  bursar confirm{option}    look at each guess; what you confirm becomes public")
    print(f"       bursar check{option}      what is promised then, and what questions cost")
    print(f"       bursar create{option}     open the budget, once")
    if (first := first_question(config)) is not None:
        cost = f"{first.unit} {first.price:.3g} of {config.budget.amount:g}"
        print(f'       bursar query{option} "{first.sql} WITH ERROR {first.within:g}"    costs {cost}')
