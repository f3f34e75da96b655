"""What the simultaneous contract refuses before anything is planned: nothing was spent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bursar.compile import compile
from bursar.compile.partwise import PartwiseMap, pieces_of
from bursar.core.queries import Distinct, LinearMap, PerPerson, Predicate, Stack, Thresholds
from bursar.errors import GoalError, QueryError
from bursar.estimation.simultaneous import Family
from bursar.goal import GoalKind
from bursar.planner.request import PlanningRequest
from bursar.sql import TRUE, Aggregate, And, Condition, Function, Key, Name, Query, parse, render
from bursar.sql.query import all_of, change_parts, leaves
from bursar.views.measurements import products_of

NO_MEASURED_SIZE = (
    'under contract = "simultaneous" a percentage is taken of a public size only, and public_size is not declared; '
    "give the error in rows, for example: WITH ERROR 50"
)


def admit(family: Family, request: PlanningRequest) -> None:
    """Refuse what the simultaneous contract for a family of questions cannot promise anything about.

    Guarantees: a rewrite that is offered is a question of the family.
    """
    if request.goal.kind is GoalKind.RMSE:
        reason = "a mean square error says nothing about a question that was chosen after seeing noisy answers, and "
        raise GoalError(f'{reason}contract = "simultaneous" covers those; ask for an error: WITH ERROR 50')
    outside = _outside(family, request.asked.workload.map)
    if outside is not None:
        raise _refusal(family, request, outside)
    if request.workload.times is not None:
        raise GoalError('under contract = "simultaneous" outputs share one error: leave out ON, or ask one by one')


Outside = tuple[QueryError, tuple[str, ...]]
"""Why the declared family does not have a question, and the columns that are to blame."""


def _outside(family: Family, queries: LinearMap) -> Outside | None:
    """What keeps a question out of the family; None where it is in it."""
    if any(isinstance(piece, Distinct | PerPerson) for piece in pieces_of(queries)):
        return QueryError("the declared family has no distinct counts; it has counts of rows"), ()
    if isinstance(queries, Predicate | PartwiseMap):
        reason = (
            f"the declared family has no questions that tie {' and '.join(queries.attrs)} together; it has conditions "
            "on single columns, joined by AND"
        )
        return QueryError(reason), queries.attrs
    if any(isinstance(part, Thresholds) for part in (queries.parts if isinstance(queries, Stack) else (queries,))):
        return QueryError("the declared family has no thresholds of some columns; r = k asks for their marginals"), ()
    for product in products_of(queries):
        uneven = family.uneven(product)
        if uneven:
            what = " and ".join(uneven)
            reason = f"the declared family has one range of neighbouring values per column, and for {what} this is none"
            return QueryError(reason), uneven
        beyond = family.beyond(product)
        if beyond:
            reason = (
                f"the declared family has no questions about {' and '.join(product.attrs)} (it has: "
                f"{family.describe()}); the data owner declares families under [goal]"
            )
            return QueryError(reason), beyond
    return None


def _refusal(family: Family, request: PlanningRequest, outside: Outside) -> QueryError:
    error, columns = outside
    try:
        query = parse(request.text)
    except QueryError:  # several questions, or none in SQL
        return replace(error, text=request.text)
    rewrite = _rewrite(family, query, columns)
    return replace(error, text=request.text, position=_mention(query, columns), rewrite=rewrite)


def _mention(query: Query, columns: Iterable[str]) -> int:
    """Where one of the columns is first named."""
    named = [*(key.column for select in query.selects for key in select.keys), *query.columns()]
    places = [name.position for name in named if _about(name, columns)]
    return min((place for place in places if place >= 0), default=-1)


def _rewrite(family: Family, query: Query, columns: tuple[str, ...]) -> str:
    """A question of the family that is near to the given one; nothing where none is found."""
    for near in _nearer(query, columns):
        try:
            text = render(near)
            queries = compile(parse(text), family.domain, near.table.text).map
        except QueryError:
            continue
        if _outside(family, queries) is None:
            return text
    return ""


def _nearer(query: Query, columns: tuple[str, ...]) -> Iterator[Query]:
    """All values of the columns in place of what is asked about them; or the question without these columns."""
    goal = None if query.goal is None or query.goal.parts else query.goal  # outputs share one error here
    query = replace(query, having=TRUE, order=(), limit=None, offset=0, sets=(), flags=(), goal=goal)
    about = [name for name in (*(key.column for key in query.keys), *query.columns()) if _about(name, columns)]
    every = {next(column for column in columns if name.names(column)): Key(column=name) for name in about}
    keys = tuple(key for key in query.keys if not any(_about(Name(text=name), columns) for name in key.columns))
    where = _without(query.where, columns)
    items = tuple(change_parts(item, lambda part: _without_filter(part, columns)) for item in query.aggregates)
    counts = Aggregate(name=Function.COUNT.value.lower())
    for aggregates in (items, (counts,)):
        yield replace(query, keys=(*every.values(), *keys), where=where, aggregates=aggregates)
        yield replace(query, keys=keys, where=where, aggregates=aggregates)


def _about(name: Name, columns: Iterable[str]) -> bool:
    return any(name.names(column) for column in columns)


def _without_filter(part: Aggregate, columns: tuple[str, ...]) -> Aggregate:
    return replace(part, condition=_without(part.condition, columns))


def _without(condition: Condition, columns: tuple[str, ...]) -> Condition:
    """What a condition says about other columns alone."""
    parts = condition.parts if isinstance(condition, And) else (condition,)
    return all_of(*(part for part in parts if not any(_about(leaf.column, columns) for leaf in leaves(part))))
