"""`bursar synth`: a table of made-up rows that stands for the real one."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.cli.opened import (
    CONFIG,
    Analyst,
    ChosenPreset,
    Data,
    Json,
    Server,
    Watch,
    opened,
    progress,
    reached,
    read_file,
    working,
)
from bursar.report import text as show

if TYPE_CHECKING:
    from bursar.remote import RemotePrepared
    from bursar.synthetic.session import Prepared


def synth(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the rows go: a .csv or .parquet file.")],
    data: Data = CONFIG,
    server: Server = None,
    preset: ChosenPreset = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many rows; as many as the data have unless named.")
    ] = None,
    ways: Annotated[
        int | None,
        typer.Option(metavar="2|3", help="Be right about all sets of 2 or 3 columns; 2 unless something is named."),
    ] = None,
    marginals: Annotated[
        str | None, typer.Option(metavar='"age,sex; age,region"', help="Instead: about these sets of columns.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Instead: about what these SELECTs ask for, with semicolons between them."),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Instead: about what was asked before, by how often it was asked.")
    ] = False,
    augment: Annotated[
        float, typer.Option(metavar="0.1", min=0, max=0.9, help="With --history, a share for what was never asked.")
    ] = 0.0,
    spend: Annotated[
        float | None,
        typer.Option(metavar="0.1", help="What may be spent, in the unit of the budget. Without it nothing is spent."),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="auto|marginals|rap|both", help="How; auto takes the least error to expect.")
    ] = "auto",
    rounds: Annotated[
        int | None, typer.Option(metavar="T", min=1, help="With --method rap: how many rounds; beside --picks.")
    ] = None,
    picks: Annotated[
        int | None, typer.Option(metavar="K", min=1, help="With --method rap: how many counts each round picks.")
    ] = None,
    relaxed: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="With --method rap: how many relaxed rows; else 1000."),
    ] = None,
    agree: Annotated[
        int | None,
        typer.Option(metavar="R", min=1, help="With --method rap: rows that agree in at least R columns of a set."),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="With --method rap: try several rounds and picks; each trial is paid.")
    ] = False,
    time: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="Stop after so long, with what there is then.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write report.md with pictures into this folder.")
    ] = None,
    price: Annotated[
        bool, typer.Option("--price", help="Only say what it would cost and how exact it is. Free.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only list every way to make it, with its price and error. Free.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Pay without asking; scripts are never asked.")] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="If it is not your turn, print a ticket that keeps your place, and end.")
    ] = False,
    ticket: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The ticket that an earlier call with --no-wait printed.")
    ] = None,
    analyst: Analyst = "owner",
    json: Json = False,
) -> None:
    """Make a synthetic table: made-up rows that answer many questions like the real ones.

    Free without --spend: then it is made of what was measured before. What a stopped run has paid for is kept, and the
    same command goes on from there. Example: bursar synth --out people2.csv --spend 0.2
    """
    from bursar.synthetic.report import check_pictures
    from bursar.synthetic.table.synthetic_data import check_file

    check_file(out)
    if report is not None:
        check_pictures()
    questions = None
    if workload is not None:
        from bursar.sql.tokens import questions_of

        questions = questions_of(read_file(workload))
    with reached(server, data, analyst, preset) as bursar, show.ticket(as_json=json):
        with working("planning"):
            prepared = bursar.prepare_synthesis(
                rows=rows,
                ways=ways,
                marginals=marginals,
                workload=questions,
                history=history,
                augment=augment,
                spend=spend,
                method=method,
                rounds=rounds,
                picks=picks,
                relaxed=relaxed,
                agree=agree,
                search=search,
                wait=not no_wait,
                ticket=ticket,
            )
        if price:
            _tell(prepared, as_json=json)
            return
        if explain:
            told = prepared.explain()
            print(json_module.dumps(told.to_json(), indent=2) if json else str(told))
            return
        prepared.check()
        if not (yes or json or _agreed(prepared)):
            print("nothing was made, and nothing was paid")
            return
        with Watch(bursar).over(prepared.text), working("at work"):
            table = prepared.make(progress=progress, seconds=time)
        table.write(out)
        if report is not None:
            table.report.write(report)
    if json:
        print(json_module.dumps({"out": str(out), "charge": table.charge, **table.report.to_json()}, indent=2))
    else:
        print(table.report.summary())
        print(f"written to {out}" + ("" if report is None else f", the report to {report}"), file=sys.stderr)


def drift(
    spend: Annotated[float, typer.Option(metavar="0.1", help="What may be spent, in the unit of the budget.")],
    data: Data = CONFIG,
    preset: ChosenPreset = None,
    ways: Annotated[
        int | None,
        typer.Option(metavar="2|3", help="What the table was made for: all sets of 2 or 3 columns; else 2."),
    ] = None,
    marginals: Annotated[
        str | None, typer.Option(metavar='"age,sex; age,region"', help="Instead: these sets of columns.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Instead: what these SELECTs ask for, with semicolons between them."),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Instead: what was asked before, by how often it was asked.")
    ] = False,
    agree: Annotated[
        int | None, typer.Option(metavar="R", min=1, help="Rows that agree in at least R columns of a set.")
    ] = None,
    analyst: Analyst = "owner",
    json: Json = False,
) -> None:
    """How the last synthetic table does when questions drift away from those that it was made for.

    New questions are drawn about other columns, and the worst count of the table on them is measured. The same command
    again costs nothing. Example: bursar drift --marginals "age,sex; age,region" --spend 0.05
    """
    questions = None
    if workload is not None:
        from bursar.sql.tokens import questions_of

        questions = questions_of(read_file(workload))
    with opened(data, analyst, preset=preset) as bursar, working("at work"):
        drift = bursar.drift(
            spend=spend, ways=ways, marginals=marginals, workload=questions, history=history, agree=agree
        )
    print(json_module.dumps(drift.to_json(), indent=2) if json else drift.summary())


def _tell(prepared: Prepared | RemotePrepared, *, as_json: bool) -> None:
    """What the table would cost, and how exact it would be."""
    unit, left = prepared.unit, prepared.left
    if as_json:
        facts = {"price": prepared.price, "unit": unit, "left": left, "method": prepared.method, "why": prepared.why}
        print(json_module.dumps(facts, indent=2))
        return
    print(f"method  {prepared.why}")
    cost = f"{unit} {prepared.price:.6g} at most" if prepared.price else "free"
    print(f"price   {cost}; {left:.6g} is left")


def _agreed(prepared: Prepared | RemotePrepared) -> bool:
    """Whether the person at the terminal wants to pay. A script is not asked, and neither is anybody if it is free."""
    if prepared.price == 0 or sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    _tell(prepared, as_json=False)
    try:
        said = input("pay? [y/N] ")
    except EOFError:
        said = ""
    return said.strip().casefold() in ("y", "yes")
