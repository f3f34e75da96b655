"""A Query as a Workload: labelled lines of answers over rows that the kernel can evaluate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bursar.domain import Domain, Value
from bursar.errors import QueryError
from bursar.sql import Query, parse, render
from bursar.sql.query import all_of, leaves
from bursar.workload.masks import Cells, count_groups, grouped
from bursar.workload.names import resolve
from bursar.workload.regions import regions
from bursar.workload.repair import repairs
from bursar.workload.sealed import ended, within_sealed
from bursar.workload.shared_rows import SharedRows
from bursar.workload.truth import check_types
from bursar.workload.workload import Workload

MOST_ANSWERS = 100_000
"""Most answers of one question: lines times aggregates, counted from public sizes before anything is built."""


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
    for condition in (query.where, *(aggregate.condition for aggregate in query.aggregates)):
        for leaf in leaves(condition):
            check_types(domain[leaf.column.text], leaf)
    query = within_sealed(query, domain, sealed)
    groups = domain.ordered(key.column.text for key in query.keys)
    lines = _lines(query, groups, domain)
    index = np.full((len(lines), len(query.aggregates)), -1, np.int64)
    rows = SharedRows()
    for output, aggregate in enumerate(query.aggregates):
        found = regions(all_of(query.where, aggregate.condition), domain)
        if found is not None:
            counted = grouped(found, groups, domain)
            index[_line_of(counted.groups, lines), output] = rows.place(counted.product)
    return Workload(
        map=rows.map(),
        keys=tuple(key.alias or key.column.text for key in query.keys),
        labels=_labels(query, lines, groups, domain),
        outputs=tuple(aggregate.name for aggregate in query.aggregates),
        index=index,
    )


def _lines(query: Query, groups: tuple[str, ...], domain: Domain) -> Cells:
    """The cells of the group columns, one line per group that the WHERE leaves possible, sorted.

    Without group columns there is one line. FILTER makes no group impossible: it is counted, as 0.
    """
    found = regions(query.where, domain)
    if found is None:
        return np.zeros((0 if groups else 1, len(groups)), np.int64)
    lines = count_groups(found, groups, domain) if groups else 1
    if lines * len(query.aggregates) > MOST_ANSWERS:
        raise QueryError(
            f"this asks for {lines * len(query.aggregates)} answers; {MOST_ANSWERS} are possible",
            position=query.keys[0].position if groups else -1,
        )
    cells = grouped(found, groups, domain).groups
    return np.unique(cells, axis=0) if groups else cells


def _line_of(cells: Cells, lines: Cells) -> NDArray[np.int64]:
    """The line of each group; every group of an aggregate has one, for its condition contains the WHERE."""
    if not lines.shape[1]:
        return np.zeros(len(cells), np.int64)
    _, number = np.unique(np.concatenate([lines, cells]), axis=0, return_inverse=True)
    return number.reshape(-1)[len(lines) :]


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
