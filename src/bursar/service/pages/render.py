"""Templates: everything that is put into a page is escaped, whatever it is and whoever wrote it."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bursar import __version__
from bursar.service.statement import Statement

FOLDER = Path(__file__).parent


@cache
def templates() -> Environment:
    """The templates of the pages."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        amount=amount, percent=percent, moment=moment, day=day, rows=rows, capitalize_first=capitalize_first
    )
    environment.globals["version"] = __version__
    return environment


def page(request: Request, name: str, *, code: int = 200, **facts: object) -> HTMLResponse:
    """A whole page; `visit` is who looks at it, where somebody is logged in."""
    provider = request.app.state.provider
    elsewhere = None if provider is None else provider.settings.name
    facts = {"visit": None, "path": request.url.path, "elsewhere": elsewhere, **facts}
    return HTMLResponse(templates().get_template(name).render(facts), code)


def fragment(name: str, *, code: int = 200, **facts: object) -> HTMLResponse:
    """A part that a script puts into a page."""
    return HTMLResponse(templates().get_template(name).render(facts), code)


def amount(number: float) -> str:
    """What something costs, in as many digits as matter."""
    return f"{number:.4g}" if math.isfinite(number) else "no bound"


def percent(part: float, whole: float) -> str:
    """A part of the budget, in percent."""
    share = 100 * part / whole if whole else 0.0
    return "less than 0.01 %" if 0 < share < 0.01 else f"{share:.3g} %" if share < 99.95 or share == 100 else "99.9 %"


def rows(number: float) -> str:
    """An error, in rows or whatever the numbers of an answer are."""
    if not math.isfinite(number):
        return "no bound"
    return f"{number:,.0f}" if number >= 1e3 else f"{number:.4g}"


def moment(seconds: float) -> str:
    """A time in UTC, to the minute."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def day(seconds: float) -> str:
    """A day in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def capitalize_first(text: str) -> str:
    """As at the beginning of a sentence; the rest stays as it is."""
    return text[:1].upper() + text[1:]


def statement_page(statement: Statement) -> str:
    """A statement as one HTML file that needs no other."""
    style = Markup((FOLDER / "static" / "page.css").read_text(encoding="utf-8"))
    return templates().get_template("statement_alone.html").render(statement=statement, style=style)
