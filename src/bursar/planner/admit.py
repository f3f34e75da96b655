"""What the simultaneous contract refuses before anything is planned: nothing was spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bursar.errors import GoalError, QueryError
from bursar.goal import GoalKind
from bursar.inference.simultaneous import Family
from bursar.inference.views import products_of
from bursar.planner.request import Request
from bursar.queries import Predicate, Stack, Thresholds
from bursar.sql import Query, parse

NO_MEASURED_SIZE = (
    'under contract = "simultaneous" a percentage is taken of a public size only, and public_size is not declared; '
    "give the error in rows, for example: WITH ERROR 50"
)


def admit(family: Family | None, request: Request) -> None:
    """Refuse what the contract in force cannot promise anything about; a family of None stands for per-query."""
    if family is None:
        return
    if request.goal.kind is GoalKind.RMSE:
        reason = "a mean square error says nothing about a question that was chosen after seeing noisy answers, and "
        raise GoalError(f'{reason}contract = "simultaneous" covers those; ask for an error: WITH ERROR 50')
    asked = request.compiled.map
    if isinstance(asked, Predicate):
        reason = f"the declared family has no questions that tie {' and '.join(asked.attrs)} together"
        raise _refusal(request, asked.attrs, reason, "conditions on single columns, joined by AND")
    if any(isinstance(part, Thresholds) for part in (asked.parts if isinstance(asked, Stack) else (asked,))):
        raise QueryError("the declared family has no thresholds of some columns; r = k asks for their marginals")
    for product in products_of(asked):
        uneven = family.uneven(product)
        if uneven:
            what = " and ".join(uneven)
            reason = f"the declared family has one range of neighbouring values per column, and for {what} this is none"
            hint = f"{uneven[0]} BETWEEN ... AND ..., or GROUP BY {', '.join(uneven)}"
            raise _refusal(request, uneven, reason, hint)
        beyond = family.beyond(product)
        if beyond:
            together = " and ".join(product.attrs)
            reason = f"the declared family has no questions about {together} (it has: {family.describe()})"
            hint = f"the same without {' and '.join(beyond)}; the data owner declares families under [goal]"
            raise _refusal(request, beyond, reason, hint)
    if request.workload.times is not None:
        raise GoalError('under contract = "simultaneous" outputs share one error: leave out ON, or ask one by one')


def _refusal(request: Request, columns: Sequence[str], reason: str, hint: str) -> QueryError:
    return QueryError(reason, text=request.text, position=_mention(parse(request.text), columns), rewrite=hint)


def _mention(query: Query, columns: Iterable[str]) -> int:
    """Where one of the columns is first named."""
    named = [*(key.column for key in query.keys), *query.columns()]
    places = [name.position for name in named if any(name.names(column) for column in columns)]
    return min((place for place in places if place >= 0), default=-1)
