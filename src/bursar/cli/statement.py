"""`bursar statement`: what is promised and what was spent, to hand to a data protection officer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bursar.cli.opened import CONFIG, Data, opened


def statement(
    data: Data = CONFIG,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write one HTML file, to print or to hand on.")
    ] = None,
    questions: Annotated[
        bool, typer.Option("--questions", help="Also every purchase: when, who, what was asked, and its cost.")
    ] = False,
) -> None:
    """For the data owner: one page that says what is promised, who may ask, what was spent, and how to check it."""
    from bursar.errors import Unsupported
    from bursar.report.files import written
    from bursar.service.datasets import people_of
    from bursar.service.statement import statement_of

    with opened(data) as bursar:
        told = statement_of(bursar, people_of(bursar.config), questions=questions)
    if out is None:
        print(told)
        return
    try:
        from bursar.service.pages.render import statement_page
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("bursar"):
            raise
        hint = "pip install '.[serve]' in a checkout of Bursar, or leave out -o for plain text"
        raise Unsupported(f"a statement as HTML needs {missing.name}\ntry: {hint}") from None
    with written(out):
        out.write_text(statement_page(told), encoding="utf-8")
    print(f"written to {out}")
