"""Looking back: the budget, the log, the columns, and the queue. An owner sees everybody's part, others the own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from bursar.arrays import Reals
from bursar.report.spending import Portion, growth_of, losses_by_value
from bursar.report.status import OWNER, log_of
from bursar.service.pages.ask import columns_of
from bursar.service.pages.charts import steps
from bursar.service.pages.render import page
from bursar.service.pages.visits import AnyVisit, PageRoute, Visit
from bursar.service.statement import statement_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

WEEK = 7 * 86_400.0

MOST_CELLS = 240
"""Of a heat strip: more values than that are drawn in groups, each as its largest."""

MOST_STEPS = 500
"""Of the curve of what was spent."""

MOST_LINES = 200
"""Of the log on one page."""


@dataclass(frozen=True, kw_only=True)
class HeatCell:
    """Neighbouring values of a column, and the most that was learnt about anybody with one of them."""

    begin: float  # percent
    width: float
    share: float  # of the budget, from 0 to 1
    heat: float  # of the most of all, from 0 to 1
    text: str


@router.get("/{data}/budget")
def budget(visit: AnyVisit) -> HTMLResponse:
    """What is spent and left, on what, by whom, and about whom."""
    sight = visit.sight
    status = sight.budget()
    account = next((account for account in status.accounts if account.analyst == visit.name), None)
    mine = None if visit.owner else account
    total = status.total if mine is None else mine.total
    times, charges = growth_of(sight.kernel, sight.analyst)
    now = time.time()
    week = float(charges[times > now - WEEK].sum())
    left = status.left if mine is None else mine.left
    spending = sight.spending(saved=True)
    return page(
        visit.request,
        "budget.html",
        visit=visit,
        status=status,
        account=mine,
        total=total,
        left=left,
        spent=status.spent if mine is None else mine.spent,
        growth=_growth(times, charges, total, now),
        week=week,
        lasts=left / week if week else None,
        spending=spending,
        parts=[
            ("by way of answering", spending.by_proposer),
            ("by columns asked about", spending.by_columns),
            *([("by person", spending.by_analyst)] if visit.owner else []),
        ],
        questions=_shares(spending.by_question[:10], spending.paid),
        strips=_strips(visit, status.total),
    )


def _growth(times: Reals, charges: Reals, cap: float, now: float) -> object:
    shown = np.unique(np.linspace(0, max(len(times) - 1, 0), MOST_STEPS).astype(int))[: len(times)]
    at, totals = times[shown].tolist(), charges.cumsum()[shown].tolist()
    return steps("Spent since the beginning", at, totals, cap=cap, end=max([now, *at]))


def _shares(portions: Sequence[Portion], paid: float) -> list[tuple[Portion, float]]:
    return [(portion, 100 * portion.charge / paid if paid else 0.0) for portion in portions]


def _strips(visit: Visit, total: float) -> dict[str, list[HeatCell]]:
    sight = visit.sight
    losses = losses_by_value(sight.kernel, sight.analyst, domain=sight.engine.cells)
    most = max((loss for values in losses.values() for _, loss in values), default=0.0)
    return {name: _strip(values, total, most) for name, values in losses.items()}


def _strip(values: Sequence[tuple[str, float]], total: float, darkest: float) -> list[HeatCell]:
    group = -(-len(values) // MOST_CELLS)
    cells = []
    for start in range(0, len(values), group):
        some = values[start : start + group]
        most = max(loss for _, loss in some)
        name = some[0][0] if len(some) == 1 else f"{some[0][0]} to {some[-1][0]}"
        begin, width = 100 * start / len(values), 100 * len(some) / len(values)
        cells.append(
            HeatCell(
                begin=begin,
                width=width,
                share=most / total,
                heat=most / darkest if darkest else 0.0,
                text=f"{name}: {most:.4g}",
            )
        )
    return cells


@router.get("/{data}/log")
def log(
    visit: AnyVisit,
    before: Annotated[int | None, Query(ge=1, le=10**18)] = None,
    contains: Annotated[str, Query(max_length=200)] = "",
) -> HTMLResponse:
    """What was asked and what it cost, the newest first."""
    sight = visit.sight
    whose = OWNER if sight.config.analysts.log == "all" else sight.analyst
    lines = log_of(sight.kernel, whose, last=MOST_LINES, before=before, contains=contains)
    return page(
        visit.request, "log.html", visit=visit, lines=lines[::-1], older=lines.older, contains=contains, before=before,
        unit=visit.data.config.budget.mode.unit, shared=any(line.paid != line.charge for line in lines),
    )  # fmt: skip


@router.get("/{data}/columns")
def columns(visit: AnyVisit) -> HTMLResponse:
    """What can be asked about: everything here was declared by the data owner, nothing is read from the data."""
    tables = [
        (config, columns_of(config), {level.name: level for level in config.levels})
        for config in visit.data.config.private
    ]
    return page(visit.request, "columns.html", visit=visit, tables=tables)


@router.get("/{data}/queue")
def queue(visit: AnyVisit) -> HTMLResponse:
    """Whose turn it is, where questions wait for their turn."""
    return page(visit.request, "queue.html", visit=visit, status=visit.session.engine.queue.status(visit.name))


@router.post("/{data}/queue/pass")
def let_go(visit: AnyVisit, away: Annotated[bool, Form()] = False) -> Response:
    """Let the own turn go."""
    visit.session.engine.queue.let_go(visit.name, away=away)
    return RedirectResponse(f"{visit.home}/queue", 303)


@router.get("/{data}/statement")
def statement(visit: AnyVisit, questions: Annotated[bool, Query()] = False) -> HTMLResponse:
    """What is promised and what was spent, to print or to hand on; with every purchase where that is asked for."""
    told = statement_of(visit.sight, visit.data.people if visit.owner else None, questions=questions)
    return page(visit.request, "statement.html", visit=visit, statement=told)
