"""A Query as a Workload: labelled lines of answers over rows that the kernel can evaluate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bursar.domain import Domain, Value
from bursar.errors import QueryError
from bursar.sql import Aggregate, Function, Name, Query, parse, render
from bursar.sql.query import aggregates_of, leaves
from bursar.workload.masks import Cells, count_groups, grouped
from bursar.workload.names import resolve
from bursar.workload.outputs import Outputs
from bursar.workload.regions import regions
from bursar.workload.repair import repairs
from bursar.workload.sealed import ended, within_sealed
from bursar.workload.truth import check_types
from bursar.workload.workload import Workload

MOST_ANSWERS = 100_000
"""Most answers of one question: lines times the counts and sums that a line needs, known before anything is built."""


def compile(query: Query, domain: Domain, table: str, sealed: int | None = None) -> Workload:
    """The workload that a question asks for; `sealed` is how many partitions can be asked about, None for all data.

    Guarantees: the lines are all groups that the WHERE leaves possible, whatever the data hold, in the order of the
    domain; applied to exact counts, the rows give what DuckDB would answer over the public view. A rewrite that a
    refusal offers is itself accepted.
    """
    try:
        return _compile(query, domain, table, sealed)
    except QueryError as refusal:
        raise replace(refusal, text=query.text, rewrite=_rewrite(query, domain, table, sealed)) from None


def _compile(query: Query, domain: Domain, table: str, sealed: int | None) -> Workload:
    query = resolve(query, domain, table)
    for condition in query.conditions():
        for leaf in leaves(condition):
            check_types(domain[leaf.column.text], leaf)
    query = within_sealed(query, domain, sealed)
    groups = domain.ordered(key.column.text for key in query.keys)
    lines = _lines(query, groups, domain)
    outputs = Outputs(query.where, groups, lines, domain)
    forms = tuple(outputs.add(item) for item in query.aggregates)
    return Workload(
        map=outputs.map(),
        keys=tuple(key.alias or key.column.text for key in query.keys),
        labels=_labels(query, lines, groups, domain),
        outputs=query.names,
        index=outputs.index(),
        forms=forms,
        largest=tuple(outputs.largest),
        remarks=tuple(outputs.remarks),
    )


def _lines(query: Query, groups: tuple[str, ...], domain: Domain) -> Cells:
    """The cells of the group columns, one line per group that the WHERE leaves possible, sorted.

    Without group columns there is one line. FILTER makes no group impossible: it is counted, as 0.
    """
    found = regions(query.where, domain)
    if found is None:
        return np.zeros((0 if groups else 1, len(groups)), np.int64)
    lines = count_groups(found, groups, domain) if groups else 1
    numbers = lines * _numbers(query, domain)
    if numbers > MOST_ANSWERS:
        raise QueryError(
            f"this asks for {numbers} answers; {MOST_ANSWERS} are possible",
            position=query.keys[0].position if groups else query.aggregates[0].position,
        )
    cells = grouped(found, groups, domain).groups
    return np.unique(cells, axis=0) if groups else cells


def _numbers(query: Query, domain: Domain) -> int:
    """How many counts and sums one line is made of."""
    return sum(_columns(part, domain) for item in query.aggregates for part in aggregates_of(item))


def _columns(part: Aggregate, domain: Domain) -> int:
    if part.fraction is not None and isinstance(part.of, Name):
        return domain[part.of.text].declared
    return {Function.COUNT: 1, Function.SUM: 1, Function.AVG: 2}.get(part.function, 3)


def _labels(query: Query, lines: Cells, groups: tuple[str, ...], domain: Domain) -> tuple[tuple[Value, ...], ...]:
    columns: list[list[Value]] = []
    for key in query.keys:
        name = key.column.text
        shown, place = np.unique(lines[:, groups.index(name)], return_inverse=True)
        labels = [domain[name].label(int(cell)) for cell in shown]
        columns.append([labels[i] for i in place.reshape(-1)])
    return tuple(zip(*columns, strict=True)) if columns else ((),) * len(lines)


def _rewrite(query: Query, domain: Domain, table: str, sealed: int | None) -> str:
    for repaired in repairs(query, domain, table):
        for candidate in (repaired, ended(repaired, domain, sealed)):
            try:
                text = render(candidate)
                _compile(parse(text), domain, table, sealed)
                return text
            except QueryError:
                continue
    return ""
