"""SELECTs over the lines of an answer, worked off one after the other: they cost nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import numpy as np

from bursar.compile.line_windows import MOST_COMPARED, display_order, group_lines, over_lines, places_before
from bursar.compile.lines import (
    UNKNOWN,
    YES,
    Column,
    LabelColumn,
    LineTable,
    TruthColumn,
    Whole,
    as_number,
    evaluate,
    is_numeric,
    label_of,
    never_null,
    take,
    truth_of,
)
from bursar.compile.scalar import exact
from bursar.compile.workload import Workload
from bursar.core.domain import Value
from bursar.errors import QueryError
from bursar.estimation.derived import Derived
from bursar.sql.terms import Fold, LineSort, Stage, Term, Window, walk_terms

_OF_ALL = ("avg", "count", "min")
"""What a group that nobody is in changes, OVER lines as in GROUP BY."""


def run_stages(workload: Workload, numbers: Sequence[Derived]) -> LineTable:
    """The lines of a workload's answers after all of its stages. `numbers` has every output on all lines."""
    columns: dict[str, Column] = {}
    for place, name in enumerate(workload.keys):
        columns[name] = LabelColumn(tuple(exact(label[place]) for label in workload.labels))
    for name, number, count in zip(workload.outputs, numbers, workload.counts, strict=True):
        null = np.where(number.unknown, np.nan, number.value)  # as it is shown, so that NULL is made of it
        columns[name] = replace(number, value=null, low=np.maximum(number.low, 0.0) if count else number.low)
    every = np.ones(len(workload.labels), np.bool_)
    parts = [part for stage in workload.stages for term in stage.all_terms() for part in walk_terms(term)]
    folded = any(isinstance(part, Fold) or (isinstance(part, Window) and part.function in _OF_ALL) for part in parts)
    groups = f"all {len(every)} groups that are possible are put together here, also those that nobody is in"
    table = LineTable(columns, every, every, (groups,) if folded and workload.keys else ())
    for stage in workload.stages:
        table = run_stage(stage, table)
    return table


def _tried(workload: Workload) -> LineTable:
    """The stages worked off on a few lines, with numbers that nobody measured."""
    lines = min(len(workload.labels), TRIED)
    few = replace(workload, labels=tuple(workload.labels[line] for line in range(lines)))
    number = Derived(np.arange(1.0, lines + 1), np.arange(0.5, lines), np.arange(1.5, lines + 1))
    return run_stages(few, [number] * len(workload.outputs))


TRIED = 16
"""How many lines the stages of a question are tried on before it is bought."""


def check_stages(workload: Workload) -> None:
    """Refuse what cannot be computed of lines before they are bought: that depends on columns, and not on numbers."""
    _tried(workload)
    windows = [part for stage in workload.stages for term in stage.all_terms() for part in walk_terms(term)]
    if len(workload.labels) > MOST_COMPARED and any(isinstance(w, Window) and w.order for w in windows):
        raise QueryError(f"OVER with an order takes at most {MOST_COMPARED} lines")


def stage_columns(workload: Workload) -> list[tuple[str, type]]:
    """What the last stage shows, by name, with the type of its values: numbers with an error are float."""
    table = _tried(workload)
    kinds: list[tuple[str, type]] = []
    for name, column in table.columns.items():
        match column:
            case Derived():
                kinds.append((name, float))
            case TruthColumn():
                kinds.append((name, bool))
            case LabelColumn():
                types = {type(label_of(value)) for value in column.values if value is not None}
                kinds.append((name, types.pop() if len(types) == 1 else str))
    return kinds


def shown_labels(column: LabelColumn | TruthColumn, lines: Whole) -> list[Value]:
    """Labels as they are shown, on some of the lines."""
    if isinstance(column, LabelColumn):
        return [label_of(column.values[line]) for line in lines.tolist()]
    return [None if truth == UNKNOWN else bool(truth == YES) for truth in column.value[lines]]


def run_stage(stage: Stage, table: LineTable) -> LineTable:
    """The lines of a SELECT over lines; below them, those of the SELECTs beside it."""
    lines = _selected(stage, table)
    return _stacked([lines, *(_selected(other, table) for other in stage.beside)]) if stage.beside else lines


def _stacked(tables: Sequence[LineTable]) -> LineTable:
    """Lines one below the other, column by column, under the names of the first."""
    names = list(tables[0].columns)
    columns = {
        name: _below([list(table.columns.values())[place] for table in tables], name)
        for place, name in enumerate(names)
    }
    return LineTable(
        columns,
        np.concatenate([table.shown for table in tables]),
        np.concatenate([table.certain for table in tables]),
        tuple(dict.fromkeys(remark for table in tables for remark in table.remarks)),
    )


def _below(columns: Sequence[Column], name: str) -> Column:
    """Columns one below the other: labels of one kind, or numbers."""
    labels = [column for column in columns if isinstance(column, LabelColumn)]
    if len(labels) == len(columns):
        values = tuple(value for column in labels for value in column.values)
        kinds = {bool if isinstance(v, bool) else str if isinstance(v, str) else date if isinstance(v, date) else int
                 for v in values if v is not None}  # fmt: skip
        if len(kinds) > 1:
            raise QueryError(f"{name} has values of one type in all SELECTs of a UNION ALL")
        return LabelColumn(values)
    if any(not is_numeric(column) for column in labels):
        raise QueryError(f"{name} has values of one type in all SELECTs of a UNION ALL")
    numbers = [as_number(column) for column in columns]
    value, low, high = (np.concatenate([getattr(n, end) for n in numbers]) for end in ("value", "low", "high"))
    return Derived(value, low, high, np.concatenate([never_null(number) for number in numbers]))


def _selected(stage: Stage, table: LineTable) -> LineTable:
    if stage.where is not None:
        table = _filtered(table, stage.where, "WHERE")
    folds = list(dict.fromkeys(part for term in stage.terms() for part in walk_terms(term) if isinstance(part, Fold)))
    computed: dict[Term, Column] = {}
    if stage.keys is not None or folds:
        table, computed = group_lines(table, stage.keys, folds)
    if stage.having is not None:
        condition_truth = truth_of(evaluate(stage.having, table, computed), stage.having.position, len(table))
        table, computed = _chosen(table, computed, condition_truth, "HAVING")
    windows = [part for term in stage.terms() for part in walk_terms(term) if isinstance(part, Window)]
    for window in dict.fromkeys(windows):
        computed[window] = over_lines(window, table, computed)
    columns = {name: evaluate(term, table, computed) for name, term in stage.columns}
    if stage.qualify is not None:
        condition_truth = truth_of(evaluate(stage.qualify, table, computed), stage.qualify.position, len(table))
        before = len(table)
        lines = np.flatnonzero(condition_truth.high == YES)
        columns = {name: take(column, lines) for name, column in columns.items()}
        table, computed = _chosen(table, computed, condition_truth, "QUALIFY")
        assert len(table) == len(lines) <= before
    sorts = [(sort, evaluate(sort.by, table, computed)) for sort in stage.order]
    result = LineTable(columns, table.shown, table.certain, table.remarks)
    return _limited(result, sorts, stage.limit, stage.offset)


def _filtered(table: LineTable, condition: Term, word: str) -> LineTable:
    condition_truth = truth_of(evaluate(condition, table, {}), condition.position, len(table))
    return _chosen(table, {}, condition_truth, word)[0]


def _chosen(
    table: LineTable, computed: dict[Term, Column], condition_truth: TruthColumn, word: str
) -> tuple[LineTable, dict[Term, Column]]:
    """The lines that a condition leaves, perhaps; and what was computed of them."""
    lines = np.flatnonzero(condition_truth.high == YES)
    shown, certain = table.shown & (condition_truth.value == YES), table.certain & (condition_truth.low == YES)
    doubtful = int(np.sum(shown & ~certain)), int(np.sum(~shown & (condition_truth.high == YES)))
    remarks = table.remarks
    if any(doubtful) and np.any(condition_truth.low != condition_truth.high):
        remarks = (*remarks, _doubt(word, int(shown.sum()), *doubtful))
    chosen = replace(table, shown=shown, certain=certain, remarks=remarks).take(lines)
    return chosen, {term: take(column, lines) for term, column in computed.items()}


def _doubt(word: str, shown: int, perhaps: int, missing: int) -> str:
    words = (
        f"{word} chose lines by noisy numbers, at no cost: {shown} are chosen, {shown - perhaps} of them for certain"
    )
    return f"{words}; {missing} of the others may belong there too" if missing else words


def _limited(table: LineTable, sorts: Sequence[tuple[LineSort, Column]], limit: int | None, offset: int) -> LineTable:
    """ORDER BY, and LIMIT with OFFSET."""
    order = display_order(sorts, len(table))
    if limit is None and not offset:
        return table.take(order)
    least, most = places_before(table, sorts)
    end = math.inf if limit is None else offset + limit
    rank = np.empty(len(table), np.int64)
    rank[order] = np.cumsum(table.shown[order]) - 1
    shown = table.shown & (rank >= offset) & (rank < end)
    certain = table.certain & (least >= offset) & (most < end)
    perhaps = (most >= offset) & (least < end)
    remarks = table.remarks
    doubtful = int(np.sum(shown & ~certain)), int(np.sum(~shown & perhaps))
    if any(doubtful):
        remarks = (*remarks, _doubt("LIMIT", int(shown.sum()), *doubtful))
    elif int(shown.sum()) < int(table.shown.sum()):
        remarks = (*remarks, f"LIMIT shows {int(shown.sum())} of {int(table.shown.sum())} lines; all were paid for")
    chosen = replace(table, shown=shown, certain=certain & shown, remarks=remarks)
    return chosen.take(order[(perhaps | shown)[order]])
