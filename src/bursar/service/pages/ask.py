"""The page to ask at: an editor, what the question would cost while it is typed, and the answer."""

from __future__ import annotations

import json
import math
import secrets
import shlex
import time
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Path, Query, Response
from fastapi.responses import HTMLResponse

from bursar.compile.values import Decimals, known_by_bin
from bursar.config import Config
from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange
from bursar.core.extensions.open_keys import OpenText
from bursar.errors import BursarError, GoalError, QueryError
from bursar.goal import DEFAULT_CONFIDENCE, Goal, GoalKind
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted
from bursar.service.answer_formats import ARROW, answered
from bursar.service.errors import refusal_of
from bursar.service.pages.charts import LineChart, charts_of, curve
from bursar.service.pages.render import fragment, page
from bursar.service.pages.visits import AnyVisit, NotThere, PageRoute, Visit, marked
from bursar.sql.accuracy import cut_accuracy
from bursar.sql.tokens import needs_quotes, statement_tokens

router = APIRouter(route_class=PageRoute, include_in_schema=False)

Sql = Annotated[str, Form(max_length=100_000)]

MOST_LINES = 500
"""Of a table on the page; the files have all of them."""

MOST_VALUES = 200
"""Values of a column that completion offers."""

CURVE_SECONDS = 2.0
"""How long prices at other errors are looked up; those of some questions take a while."""

FACTORS = (1.0, 2.0, 0.5, 4.0, 0.25, 8.0, 0.125)
"""Of the error asked for, the most useful ones first."""


@router.get("/{data}/ask")
def ask_page(visit: AnyVisit, sql: Annotated[str, Query(max_length=100_000)] = "") -> HTMLResponse:
    """An empty editor, or one with the question of a link; nothing is asked before somebody says so."""
    config = visit.data.config
    return page(
        visit.request, "ask.html", visit=visit, sql=sql, examples=examples(config), quoted=_name,
        tables=[(table.table, columns_of(table)) for table in config.private], words=words(config),
    )  # fmt: skip


@router.post("/{data}/ask/explain")
def explain(visit: AnyVisit, sql: Sql = "") -> HTMLResponse:
    """What the question would cost, for nothing; a question that is not finished is told what it lacks."""
    if not sql.strip():
        return fragment("explain.html", explanation=None, refusal=None, visit=visit, sql=sql)
    try:
        explanation = visit.session.explain(sql)
    except BursarError as error:
        fault = refusal_of(error).fault
        return fragment(
            "explain.html", explanation=None, refusal=fault, marked=marked(sql, fault.position), visit=visit
        )
    total = visit.session.budget()
    whole = next((account.total for account in total.accounts if account.analyst == visit.name), total.total)
    return fragment("explain.html", explanation=explanation, refusal=None, visit=visit, whole=whole, sql=sql)


@router.post("/{data}/ask/curve")
def price_curve(visit: AnyVisit, sql: Sql) -> HTMLResponse:
    """What other errors would cost, for nothing."""
    return fragment("curve.html", curve=_curve(visit, sql))


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Prices by error, in the unit that the question has: rows or whatever it counts, or percent."""

    chart: LineChart
    errors: tuple[float, ...]  # rising, of the points looked up
    prices: tuple[float, ...]
    error: float  # asked for
    suffix: str  # "%" or nothing
    unit: str
    left: float


def _curve(visit: Visit, sql: str) -> Curve | None:
    """None where there is no one error to move: no question, several errors, or nothing that can pay."""
    try:
        tokens, _ = statement_tokens(sql)
        cut = cut_accuracy(sql, tokens)
        body = sql[cut.tokens[0].start : cut.tokens[-1].end + 1]
        explanation = visit.session.explain(sql)
    except (BursarError, IndexError):
        return None
    goal = cut.goal or visit.data.config.goal
    error = _error_of(goal, explanation)
    if error is None or (goal is not None and goal.parts):
        return None
    suffix = "%" if goal is not None and goal.kind is GoalKind.ERROR and goal.percent else ""
    sure = DEFAULT_CONFIDENCE if goal is None else goal.confidence
    points: dict[float, float] = {}
    give_up = time.monotonic() + CURVE_SECONDS
    for factor in FACTORS:
        if time.monotonic() > give_up:
            break
        at = float(f"{factor * error:.3g}")
        try:
            price = visit.session.explain(body, within=f"{at:g}{suffix}", confidence=sure).price
        except (GoalError, QueryError):
            continue
        if math.isfinite(price):
            points[at] = price
    if len(points) < 2:
        return None
    by_error, left = sorted(points.items()), explanation.left
    title = f"{explanation.unit} by error"
    chart = curve(title, "largest error", by_error, mark=(left, "all that is left"))
    return Curve(
        chart=chart,
        errors=tuple(x for x, _ in by_error),
        prices=tuple(y for _, y in by_error),
        error=error,
        suffix=suffix,
        unit=explanation.unit,
        left=left,
    )


def _error_of(goal: Goal | None, explanation: Explanation) -> float | None:
    """The error that a question asks for, or would get."""
    if goal is not None and goal.kind is GoalKind.ERROR:
        return goal.amount
    if explanation.chosen is None:
        return None
    error = explanation.offers[explanation.chosen].error
    return error if math.isfinite(error) and error > 0 else None


@router.post("/{data}/ask/answer")
def answer(visit: AnyVisit, sql: Sql) -> HTMLResponse:
    """The answer, kept under a key so that files can be made of it later without asking again."""
    key = f"page-{secrets.token_hex(8)}"
    answer = visit.session.query(sql, key=key, wait=False)
    query = urlencode({"sql": sql})
    return fragment(
        "answer.html",
        visit=visit,
        answer=answer,
        lines=answer.cells()[:MOST_LINES],
        hidden=max(0, len(answer.values) - MOST_LINES),
        charts=charts_of(answer),
        files=f"{visit.home}/ask/{key}",
        query=query,
        copies=copies(visit, sql),
    )


@router.get("/{data}/ask/{key}.{kind}")
def file(
    visit: AnyVisit,
    key: Annotated[str, Path(pattern="^page-[0-9a-f]{16}$")],
    kind: Annotated[str, Path(pattern="^(csv|arrow)$")],
    sql: Annotated[str, Query(max_length=100_000)],
) -> Response:
    """An answer that was given before, as a file; nothing is ever asked or charged here."""
    engine = visit.session.engine
    stored = engine.answered(engine.tables.asked(sql, engine).prepare(sql, Wanted(), key=key).asked)
    if stored is None:
        raise NotThere
    response = answered(stored, "text/csv" if kind == "csv" else ARROW)
    response.headers["Content-Disposition"] = f'attachment; filename="{visit.data.name}-{key[5:]}.{kind}"'
    return response


def copies(visit: Visit, sql: str) -> list[tuple[str, str]]:
    """The same question for other doors; the token stands in none of them."""
    url, data, port = visit.request.base_url, visit.data.name, visit.request.app.state.wire_port
    python = (
        "import os\nimport bursar\n\n"
        f'db = bursar.connect("{url}{data}", token=os.environ["BURSAR_TOKEN"])\n'
        f"answer = db.query({_quoted(sql)})\nprint(answer)"
    )
    name = visit.name
    if not name.isalnum():
        name = "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
    place = f"host={url.hostname} port={port} dbname={data} user={name}"
    psql = f'PGPASSWORD="$BURSAR_TOKEN" psql {shlex.quote(place)} \\\n  -c {shlex.quote(sql)}'
    body = json.dumps({"sql": sql})
    curl = f"curl -H \"Authorization: Bearer $BURSAR_TOKEN\" --json @- {url}v1/{data}/query <<'END'\n{body}\nEND"
    return [("Python", python), *([] if port is None else [("psql", psql)]), ("curl", curl)]


def _quoted(sql: str) -> str:
    return f'"""{sql}"""' if "\n" in sql and '"' not in sql and "\\" not in sql else repr(sql)


# -- what is public about the columns ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """A column as its declaration has it."""

    name: str
    kind: str
    told: str  # its values in a few words
    values: tuple[str, ...]  # as SQL, for completion
    outside: str
    null: str
    cells: int


def columns_of(config: Config) -> list[ColumnFacts]:
    """All columns that a question can name."""
    return [_facts(column) for column in config.columns.attributes]


def _facts(column: Attribute) -> ColumnFacts:
    match column:
        case Categories(values=values):
            kind, told = "listed values", f"{len(values)} values"
        case IntegerRange(lower=lower, upper=upper):
            kind, told = "whole numbers", f"{_told(lower)} to {_told(upper)}"
        case Decimals(lower=first, step=step):
            last = column.number(column.declared - 1)
            kind, told = "decimals", f"{_told(first)} to {_told(last)}, in steps of {_told(step)}"
        case Bins(edges=edges):
            kind, told = "numbers in bins", f"{_told(edges[0])} to {_told(edges[-1])}, {len(edges) - 1} bins"
        case OpenText(capacity=capacity):
            kind, told = "open texts", f"up to {capacity:,} of them are told apart, once a question names them"
        case Dates(by=by):
            kind, told = f"dates by {by.value}", f"{column.start(0)} to {column.last}"
        case _:
            kind, told = "values", f"{column.declared} values"
    labels = [column.declared_label(cell) for cell in range(min(column.declared, MOST_VALUES))]
    listed = not known_by_bin(column) and not isinstance(column, OpenText)
    return ColumnFacts(
        name=column.name,
        kind=kind,
        told=told,
        values=tuple(map(_literal, labels)) if listed else (),
        outside=_stray(column, column.outside, "other values"),
        null=_stray(column, column.null, "missing values") if column.nullable else "no value is missing",
        cells=column.size,
    )


def _told(end: float | Decimal) -> str:
    """An end of a range; years and the like without a comma."""
    number = Decimal(str(end)).normalize()
    return f"{number:,f}" if abs(number) >= 10_000 else f"{number:f}"


def _stray(column: Attribute, place: object, what: str) -> str:
    if isinstance(place, int):
        return f"{what} count as {column.declared_label(place)}"
    match getattr(place, "value", ""):
        case "clip":
            return f"{what} count as the nearest end"
        case "other":
            return f'{what} are a group of their own, "other"'
    return f"{what} are a group of their own, NULL"


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, date):
        return f"DATE '{value}'"
    text = str(value).replace("'", "''")
    return f"'{text}'"


def words(config: Config) -> dict[str, object]:
    """What the editor completes."""
    columns: dict[str, dict[str, object]] = {}
    for table in config.private:
        where = f" ({table.table})" if config.further else ""
        for facts in columns_of(table):
            told = f"{facts.kind}, {facts.told}{where}"
            columns.setdefault(facts.name, {"name": _name(facts.name), "told": told, "values": facts.values})
    tables = [_name(table.table) for table in config.private]
    return {"tables": tables, "unit": config.budget.mode.unit, "columns": list(columns.values())}


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if needs_quotes(name) else name


def examples(config: Config) -> list[tuple[str, str]]:
    """A few questions that this data set can be asked, with an error that costs little."""
    table, error = _name(config.table), _error(config)
    short = [c for c in config.columns.attributes if isinstance(c, Categories) and 2 <= c.declared <= 30]
    long = [c for c in config.columns.attributes if isinstance(c, IntegerRange | Dates) and 13 <= c.declared <= 400]
    questions = [("How many rows are there?", f"SELECT COUNT(*) AS n\nFROM {table}\nWITH ERROR {error:g}")]
    about = [
        *((column.name, "How many of each") for column in sorted(short, key=lambda column: -column.declared)[:1]),
        *((column.name, "How are they spread over") for column in long[:1]),
    ]
    for column, what in about:
        name = _name(column)
        sql = f"SELECT {name}, COUNT(*) AS n\nFROM {table}\nGROUP BY {name}\nWITH ERROR {error:g}"
        questions.append((f"{what} {column}?", sql))
    for other in config.further[:1]:
        sql = f"SELECT COUNT(*) AS n\nFROM {_name(other.table)}\nWITH ERROR {_error(other):g}"
        questions.append((f"How many rows are there in {other.table}?", sql))
    return questions


def _error(config: Config) -> float:
    """About one percent, in rows."""
    return float(f"{max(10.0, (config.public_size or config.max_rows) / 100):.1g}")
