"""Query to Workload: labelled lines of answers over rows that the kernel can evaluate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np

from bursar.compile.conditions import check_types, regions, ties_too_many
from bursar.compile.describe import columns_workload
from bursar.compile.groups import Cells, Groups, KeyReader, end_remark, groups_of, label_ranks, sort_key
from bursar.compile.masks import count_groups, grouped, possible_groups
from bursar.compile.outputs import Outputs
from bursar.compile.partwise import SharedRows
from bursar.compile.per_person import PeopleOutputs, PersonNumber, histogram_of, keyed, spread
from bursar.compile.resolve import (
    Level,
    group_below_levels,
    of_table,
    people_of,
    resolve,
    with_bounds,
    with_levels,
    within_sealed,
    without_levels,
)
from bursar.compile.stages import check_stages
from bursar.compile.values import Decimals, Represented, left_out_remark
from bursar.compile.workload import Order, ResultClauses, Workload
from bursar.core.domain import Attribute, Bins, Categories, Domain, Unit, Value
from bursar.errors import QueryError
from bursar.estimation.derived import Form
from bursar.lazy_dataclass import dataclass
from bursar.sql import (
    TRUE,
    Aggregate,
    Between,
    Compare,
    Condition,
    Flag,
    Function,
    IsNull,
    Key,
    Like,
    Name,
    Not,
    Op,
    Query,
)
from bursar.sql.per_person import PeopleQuery
from bursar.sql.query import EXTREMES, OF_PAIRS, Described, Holds, Made, aggregates_of, all_of, columns_of, leaves
from bursar.sql.tokens import needs_quotes

MOST_ANSWERS, MOST_COUNTS = 100_000, 1_000_000
"""Most answers of one question: lines times the counts and sums that a line needs, known before anything is built; and
where every output is a count or a sum itself, so that nothing is derived of them."""


ALL = "(all)"
"""What is shown for a column that a set of groups puts together, unless the question names it."""

LabelColumn = tuple[list[Value], Cells]
"""A column of labels, and the numbers by which they are sorted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupLines:
    """The lines of one set of groups."""

    index: Cells  # (lines, columns) -> row
    forms: tuple[Form, ...]
    largest: tuple[int, ...]
    remarks: tuple[str, ...]
    read: list[LabelColumn]  # per key, then per flag


def compile(
    query: Query,
    domain: Domain,
    table: str,
    sealed: int | None = None,
    levels: Sequence[Level] = (),
    unit: Unit | None = None,
    most_counts: int = MOST_COUNTS,
) -> Workload:
    """The workload that a question asks for; `sealed` is how many partitions can be asked about, None for all data.

    `unit` says which column tells people apart, where one is declared: they can be counted, and asked about by a number
    of each.

    Guarantees: the lines are all groups that the WHERE leaves possible, whatever the data hold, in the declared order
    of the first key, then of the second; applied to exact counts, the rows give what DuckDB would answer over the
    public view.
    """
    try:
        if query.described is Described.COLUMNS:
            return columns_workload(with_levels(of_table(query, domain, table), levels))
        if isinstance(query, PeopleQuery) and unit is not None:
            return _compile_people(query, domain, table, sealed, levels, unit)
        if query.branches:
            branches = tuple(people_of(branch, unit, domain) for branch in query.branches)
            union = replace(query, branches=branches)
            workload = _compile_union(union, domain, table, sealed, levels, most_counts)
        else:
            workload = _compile(people_of(query, unit, domain), domain, table, sealed, levels, most_counts)
        bounded = _left_out_rows(unit) if unit is not None and workload.map.rows else ()
        return replace(workload, remarks=(*workload.remarks, *query.remarks, *bounded))
    except QueryError as refusal:
        raise replace(refusal, text=query.text) from None


def _left_out_rows(unit: Unit) -> Iterator[str]:
    """What is said of rows that no answer counts, since their person has too many."""
    if unit.column is not None:
        rows = "1 row is" if unit.max_contributions == 1 else f"{unit.max_contributions:,} rows are"
        yield f"of each {unit.column}, at most {rows} counted; further ones are in no answer"


def _compile(
    query: Query, domain: Domain, table: str, sealed: int | None, levels: Sequence[Level], most_counts: int
) -> Workload:
    query = resolved_query(query, domain, table, sealed, levels)
    query, bounded = with_bounds(query, with_levels(domain, levels))
    rows = SharedRows()
    sets = query.sets or (tuple(range(len(query.keys))),)
    keyed = [groups_of([query.keys[place] for place in grouping], domain) for grouping in sets]
    _check_size(query, [groups for groups, _ in keyed], domain, most_counts)
    parts: list[GroupLines] = []
    for places, (groups, readers) in zip(sets, keyed, strict=True):
        parts.append(_part(query, places, groups, readers, rows, domain))
    first = parts[0]
    assert all(part.forms == first.forms for part in parts)  # they do not depend on groups
    read = [_joined([part.read[key] for part in parts]) for key in range(len(query.keys) + len(query.flags))]
    lines = sum(len(part.index) for part in parts)
    workload = Workload(
        map=rows.map(),
        keys=_marks(query),
        labels=tuple(zip(*(labels for labels, _ in read), strict=True)) if read else ((),) * lines,
        outputs=query.names,
        index=np.concatenate([part.index for part in parts]),
        forms=first.forms,
        largest=first.largest,
        remarks=(*first.remarks, *_unlisted(query, domain), *_declared_bounds(bounded)),
        after=_after(query, read, domain),
        stages=query.stages,
        counts=_counts(query),
    )
    if query.stages:
        check_stages(workload)
    return workload


def resolved_query(query: Query, domain: Domain, table: str, sealed: int | None, levels: Sequence[Level]) -> Query:
    """A SELECT that reads the table, about declared columns and sealed partitions."""
    query = without_levels(resolve(query, with_levels(domain, levels), table), levels)
    for condition in query.conditions():
        for leaf in leaves(condition):
            check_types(domain[leaf.column.text], leaf)
    return group_below_levels(within_sealed(query, domain, sealed), levels)


def _counts(query: Query) -> tuple[bool, ...]:
    return tuple(isinstance(item, Aggregate) and item.function is Function.COUNT for item in query.aggregates)


def _compile_union(
    query: Query, domain: Domain, table: str, sealed: int | None, levels: Sequence[Level], most_counts: int
) -> Workload:
    """SELECTs of a UNION ALL: the lines of all of them, one below the other, each with its own outputs alone."""
    branches = [resolved_query(branch, domain, table, sealed, levels) for branch in query.branches]
    query, bounded = with_bounds(query, with_levels(domain, levels))
    rows = SharedRows()
    keyed = [groups_of(branch.keys, domain) for branch in branches]
    answers = 0
    for branch, (groups, _) in zip(branches, keyed, strict=True):
        answers += _check_size(branch, [groups], domain, most_counts, answers)
    branches = [_without_null(branch, groups, domain) for branch, (groups, _) in zip(branches, keyed, strict=True)]
    lines = [_lines(branch, groups, domain) for branch, (groups, _) in zip(branches, keyed, strict=True)]
    outputs = [
        Outputs(branch.where, groups, branch_lines, domain, rows)
        for branch, (groups, _), branch_lines in zip(branches, keyed, lines, strict=True)
    ]
    forms = tuple(_shared_form(name, branches, outputs) for name in query.names)
    names = list(dict.fromkeys(key.name for branch in branches for key in branch.keys))
    labels: list[tuple[Value, ...]] = []
    orders = [_order_by_keys(readers, branch_lines) for (_, readers), branch_lines in zip(keyed, lines, strict=True)]
    for number, (branch, (_, readers), branch_lines) in enumerate(zip(branches, keyed, lines, strict=True)):
        read = {
            key.name: reader.read(branch_lines[orders[number]])[0]
            for key, reader in zip(branch.keys, readers, strict=True)
        }
        columns = [[number] * len(branch_lines), *(read.get(name, [None] * len(branch_lines)) for name in names)]
        labels += zip(*columns, strict=True)
    unlisted = [remark for branch in branches for remark in _unlisted(branch, domain)]
    remarks = [remark for each in outputs for remark in each.remarks]
    workload = Workload(
        map=rows.map(),
        keys=(query.branch, *names),
        labels=tuple(labels),
        outputs=query.names,
        index=np.concatenate([each.index()[order] for each, order in zip(outputs, orders, strict=True)]),
        forms=forms,
        largest=tuple(outputs[0].largest),
        remarks=tuple(dict.fromkeys([*remarks, *unlisted, *_declared_bounds(bounded)])),
        stages=query.stages,
        counts=_counts(query),
    )
    check_stages(workload)
    return workload


def _shared_form(name: str, branches: Sequence[Query], outputs: Sequence[Outputs]) -> Form:
    """The form of an output of a UNION ALL; in SELECTs that do not ask for it, it is made of nothing."""
    forms: list[Form] = []
    asking: list[Outputs] = []
    for branch, columns in zip(branches, outputs, strict=True):
        if name in branch.names:
            forms.append(columns.add(branch.aggregates[branch.names.index(name)]))
            asking.append(columns)
    assert all(form == forms[0] for form in forms)  # shared are counts, and what is asked of the same rows
    for columns in outputs:
        columns.leave_out(asking[0].largest[columns.width :])
    return forms[0]


def _declared_bounds(columns: Sequence[str]) -> list[str]:
    told = f"MIN and MAX are the declared bounds of {' and '.join(columns)}, whoever there is between them"
    return [f"{told}; with an accuracy, as in WITH ERROR 50, those of numbers are measured"] if columns else []


def _compile_people(
    query: PeopleQuery, domain: Domain, table: str, sealed: int | None, levels: Sequence[Level], unit: Unit
) -> Workload:
    """A question about one number of each person."""
    query = replace(query, inner=resolved_query(people_of(query.inner, unit, domain), domain, table, sealed, levels))
    places, at = keyed(query)
    groups, readers = groups_of(list(query.inner.keys), domain)
    query = replace(query, inner=_without_null(query.inner, groups, domain))
    number = PersonNumber.of(query, domain, unit)
    lines = _lines(query.inner, groups, domain)
    bins, values = ((), []) if at is None else histogram_of(number, query.where, query.keys[at])
    shared = SharedRows()
    everybody = at is not None and number.counted_as_zero(query.where, query.keys[at])
    outputs = PeopleOutputs(number, query.where, groups, lines, domain, shared, bins, everybody=everybody)
    forms = tuple(outputs.add(item) for item in query.aggregates)
    unnumbered = [] if everybody else _without_number(number, query.where, at)
    index, line, bin_of = outputs.index(), *spread(lines, max(len(values), 1 if at is None else 0))
    if len(line) * len(query.aggregates) > MOST_ANSWERS:
        raise QueryError(f"this asks for {len(line)} lines; {MOST_ANSWERS} answers are possible")
    inner = iter(places)
    by_key = [None if place == at else readers[next(inner)] for place in range(len(query.keys))]
    order = np.lexsort([bin_of if key is None else key.codes(lines)[line] for key in reversed(by_key)] or [line])
    line, bin_of = line[order], bin_of[order]
    read = [
        ([values[each] for each in bin_of], label_ranks(values, by_code=False)[bin_of])
        if key is None
        else key.read(lines[line])
        for key in by_key
    ]
    return Workload(
        map=shared.map(),
        keys=_marks(query),
        labels=tuple(zip(*(labels for labels, _ in read), strict=True)) if read else ((),) * len(line),
        outputs=query.names,
        index=index[order],
        forms=forms,
        largest=tuple(outputs.largest),
        remarks=(*outputs.remarks, *_unlisted(query.inner, domain), *unnumbered),
        after=_after(query, read, domain),
    )


def _without_number(number: PersonNumber, where: Condition, shown: int | None) -> list[str]:
    """What is said where people are grouped by a number that some of them may not have."""
    told = f"people of whom every value is NULL have no {number.name}, and are in no line"
    return [told] if number.nullable and where == TRUE and shown is not None else []


def _unlisted(query: Query, domain: Domain) -> list[str]:
    """What conditions and groups make of values that are not listed: text reads 'other', numbers are left out."""
    tests = [leaf for condition in query.conditions() for leaf in leaves(condition)]
    looked_at = [column.text for leaf in tests if isinstance(leaf, Like | Holds) for column in columns_of(leaf)]
    looked_at += [name for key in query.keys if isinstance(key.by, Made) for name in key.columns]
    columns = [domain[name] for name in dict.fromkeys(looked_at)]
    texts = [column for column in columns if holds_text(column) and column.other is not None]
    compared = dict.fromkeys(
        column.text
        for leaf in tests
        if isinstance(leaf, Holds | Between) or (isinstance(leaf, Compare) and leaf.op not in (Op.EQ, Op.NE))
        for column in columns_of(leaf)
        if isinstance(leaf, Holds) or isinstance(domain[column.text], Categories)
    )
    numbers = [domain[name] for name in compared if not holds_text(domain[name])]
    return [
        *(f"values of {column.name} that are not listed read 'other' here, whatever they are" for column in texts),
        *(remark for column in numbers if (remark := left_out_remark(column))),
        *(remark for key in query.keys if (remark := end_remark(key, domain))),
    ]


def holds_text(column: Attribute) -> bool:
    """Whether a column is a list of texts."""
    return isinstance(column, Categories) and column.of is str


def _part(
    query: Query,
    places: tuple[int, ...],
    groups: Groups,
    readers: Sequence[KeyReader],
    rows: SharedRows,
    domain: Domain,
) -> GroupLines:
    """The lines of one set of groups."""
    query = _without_null(query, groups, domain)
    lines = _lines(query, groups, domain)
    outputs = Outputs(query.where, groups, lines, domain, rows)
    forms = tuple(outputs.add(item) for item in query.aggregates)
    order = _order_by_keys(readers, lines)
    read: list[LabelColumn] = [([_total(key)] * len(lines), np.full(len(lines), -1, np.int64)) for key in query.keys]
    for place, reader in zip(places, readers, strict=True):
        read[place] = reader.read(lines[order])
    read += [_flagged(flag, places, len(lines)) for flag in query.flags]
    return GroupLines(
        index=outputs.index()[order],
        forms=forms,
        largest=tuple(outputs.largest),
        remarks=tuple(outputs.remarks),
        read=read,
    )


def _order_by_keys(readers: Sequence[KeyReader], lines: Cells) -> Cells | slice:
    """The order of lines in which the first key changes slowest, each key in the order in which it is declared."""
    if [reader.axis for reader in readers] == list(range(lines.shape[1])):
        return slice(None)  # the keys stand as the columns are declared, and so do the lines
    return np.lexsort([reader.codes(lines) for reader in reversed(readers)])


def _total(key: Key) -> Value:
    """What is shown for a key that a set of groups puts together."""
    total = ALL if key.total is None else key.total
    return float(total) if isinstance(total, Decimal) else total


def _flagged(flag: Flag, places: tuple[int, ...], lines: int) -> LabelColumn:
    """A flag on the lines of the set that groups by the keys in these places."""
    number = flag.number(places)
    return [number] * lines, np.full(lines, number, np.int64)


def _marks(query: Query) -> tuple[str, ...]:
    """The names of the columns that tell lines apart."""
    return (*(key.name for key in query.keys), *(flag.name for flag in query.flags))


def _joined(columns: Sequence[LabelColumn]) -> LabelColumn:
    """Columns of labels one below the other, with places that are comparable."""
    return [label for labels, _ in columns for label in labels], np.concatenate([ranks for _, ranks in columns])


def _after(query: Query, read: Sequence[LabelColumn], domain: Domain) -> ResultClauses | None:
    """What is done with the answers; None where they are shown as they are."""
    if query.having == TRUE and not query.order and query.limit is None and not query.offset:
        return None
    order: list[Order] = []
    for sort in query.order:
        if sort.output is None:
            name, (labels, ranks) = _marks(query)[sort.key], read[sort.key]
            named = sort.key < len(query.keys) and query.keys[sort.key].total is not None and not sort.unnamed
            ranks = _with_total(query.keys[sort.key], labels, ranks, domain) if named else ranks
            empty = (ranks < 0) | np.fromiter((label is None for label in labels), np.bool_, len(labels))
            beyond = np.iinfo(np.int64).max // (-2 if sort.nulls_first else 2)
            order.append(Order(name=name, ranks=np.where(empty, beyond, -ranks if sort.descending else ranks)))
        else:
            place = query.names.index(sort.output)
            down, first = sort.descending, sort.nulls_first
            order.append(Order(name=sort.output, output=place, descending=down, nulls_first=first))
    return ResultClauses(
        outputs=query.names, having=query.having, order=tuple(order), limit=query.limit, offset=query.offset
    )


def _with_total(key: Key, labels: Sequence[Value], ranks: Cells, domain: Domain) -> Cells:
    """The places of labels in ascending order, with the name of the total where it belongs among them.

    Edge cases: a label that is the same shares its place; a bin stands where the number does that it counts as, and
    words, such as other, behind numbers and days.
    """
    if np.all(ranks >= 0):
        return ranks
    bins = {} if key.by is not None else _counted_as(domain[key.column.text])
    ranked = [
        (bins.get(label, label), int(rank))
        for label, rank in zip(labels, ranks, strict=True)
        if rank >= 0 and label is not None
    ]
    name = sort_key(_typed(_total(key), [label for label, _ in ranked]))
    below = [2 * rank + 2 for label, rank in ranked if sort_key(label) < name]
    equal = [2 * rank + 1 for label, rank in ranked if sort_key(label) == name]
    return np.where(ranks < 0, max([0, *below, *equal]), 2 * ranks + 1)


def _typed(name: Value, labels: Sequence[Value]) -> Value:
    """The name of a total as a number or a day, where it is one in quotes among such labels."""
    kinds = {type(label) for label in labels}
    try:
        if isinstance(name, str) and date in kinds:
            return date.fromisoformat(name)
        return float(name) if isinstance(name, str) and kinds & {int, float} else name
    except ValueError:
        return name


def _counted_as(attribute: Attribute) -> dict[Value, Value]:
    """The number that stands for each bin, by its label; nothing for a column without bins."""
    if not isinstance(attribute, Bins) or isinstance(attribute, Decimals):
        return {}
    middles = [(low + high) / 2 for low, high in pairwise(attribute.edges)]
    points = attribute.representatives if isinstance(attribute, Represented) else middles
    return {attribute.label(cell): point for cell, point in enumerate(points)}


def _without_null(query: Query, groups: Groups, domain: Domain) -> Query:
    """The question about rows that have a value in every column of its groups that is said to have no NULL."""
    columns = [Name(text=name, quoted=needs_quotes(name)) for name in groups.names if not domain[name].nullable]
    there = [Not(part=IsNull(column=column)) for column in columns if domain[column.text].has_null]
    return replace(query, where=all_of(query.where, *there)) if there else query


def _lines(query: Query, groups: Groups, domain: Domain) -> Cells:
    """The groups of each axis, one line per group that the WHERE leaves possible, sorted.

    Without axes there is one line. FILTER makes no group impossible: it is counted, as 0.
    """
    if not groups.axes:
        return np.zeros((1, 0), np.int64)
    if ties_too_many(query.where, domain):
        return possible_groups(query.where, groups, domain)
    kept_regions = regions(query.where, domain)
    if kept_regions is None:
        return np.zeros((0, len(groups.axes)), np.int64)
    combined = grouped(kept_regions, groups, domain).groups
    return np.unique(combined, axis=0, return_index=True)[0]  # without the index, numpy loads its masked arrays


def _check_size(query: Query, sets: Sequence[Groups], domain: Domain, most_counts: int, before: int = 0) -> int:
    """How many answers a question has; refused is what would have too many, with those before, ere they are built."""
    if ties_too_many(query.where, domain):
        return 0  # few counts, or refused for that
    kept_regions = regions(query.where, domain)
    if kept_regions is None:
        return 0
    lines = sum(count_groups(kept_regions, groups, domain) if groups.axes else 1 for groups in sets)
    each = _numbers(query, domain)
    numbers, most = before + lines * sum(each), most_counts if set(each) <= {1} else MOST_ANSWERS
    if numbers > most:
        raise QueryError(
            f"this asks for {numbers} answers; {most} are possible",
            position=query.keys[0].position if query.keys else query.aggregates[0].position,
        )
    return lines * sum(each)


def _numbers(query: Query, domain: Domain) -> list[int]:
    """How many counts and sums each output of one line is made of."""
    return [sum(_columns(part, domain) for part in aggregates_of(item)) for item in query.aggregates]


def _columns(part: Aggregate, domain: Domain) -> int:
    if (part.fraction is not None or part.function in EXTREMES) and isinstance(part.of, Name):
        return domain[part.of.text].declared
    if part.function in OF_PAIRS:
        return 6
    return {Function.COUNT: 1, Function.SUM: 1, Function.AVG: 2}.get(part.function, 3)
