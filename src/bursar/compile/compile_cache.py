"""Texts to queries, and queries to workloads, remembered for the threads of a process."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from bursar.compile.compiler import compile, holds_text, resolved_query
from bursar.compile.conditions import normal_form
from bursar.compile.describe import tables_workload
from bursar.compile.masks import predicate
from bursar.compile.open_columns import Keys, OpenColumns, groups_remark, keys_named, open_columns
from bursar.compile.resolve import Level, with_levels
from bursar.compile.workload import Workload
from bursar.core.domain import Attribute, Categories, Dates, Domain, IntegerRange, Unit
from bursar.core.extensions.open_keys import OpenText
from bursar.core.queries import Predicate
from bursar.errors import QueryError
from bursar.sql import TRUE, Name, Query, parse
from bursar.sql.joins import DeclaredTables, parse_joined
from bursar.sql.per_person import PeopleQuery, asks_about_people, parse_people
from bursar.sql.pivots import MOST_PIVOTED
from bursar.sql.query import Described
from bursar.sql.render import quoted, render_literal

REMEMBERED = 256
"""How many questions are remembered; the one not asked for longest goes first."""

MOST_REMEMBERED = 2**20
"""Most answers of all questions that are remembered together: each takes about 200 bytes for its labels, which answers
that are kept share with it. One question of the largest size that is answered fits."""

_EXTREME = re.compile(r"\b(?:min|max)\s*\(", re.IGNORECASE)
"""What a text has that asks for the least or greatest value."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class CompileCache:
    """Texts to queries, and queries to workloads, over the columns of one config. Shared by the threads of a process.

    Guarantees: what is remembered is what parsing and compiling would return: the columns and the table never change,
    and text and sealed partitions, the rest of what it depends on, are the key. Refusals are not remembered.
    """

    def __init__(
        self,
        domain: Domain,
        table: str,
        levels: tuple[Level, ...] = (),
        unit: Unit | None = None,
        tables: DeclaredTables | None = None,
    ) -> None:
        self._domain, self._table, self._levels, self._unit, self._tables = domain, table, levels, unit, tables
        self._open = bool(open_columns(domain))
        self._queries: OrderedDict[tuple[str, bool], Query] = OrderedDict()
        self._workloads: OrderedDict[tuple[str, bool, int | None, object], Workload] = OrderedDict()
        self._lock = threading.Lock()

    def parse(self, text: str, *, measured: bool = False) -> Query:
        """The question that a text asks; `measured` where an accuracy is asked for beside it, for MIN and MAX."""
        measured = measured and isinstance(text, str) and _EXTREME.search(text) is not None
        with self._lock:
            if (query := self._queries.get((text, measured))) is not None:
                self._queries.move_to_end((text, measured))
                return query
        column = None if self._unit is None else self._unit.column
        special: Query | None = None if column is None else parse_people(text, column)
        if special is None and self._tables is not None:
            special = parse_joined(text, self._tables, measured=measured, columns=self)
        query = parse(text, measured=measured, columns=self) if special is None else special
        with self._lock:
            _remember(self._queries, (text, measured), query)
        return query

    def _attribute(self, column: Name) -> Attribute | None:
        columns = with_levels(self._domain, self._levels).attributes
        return next((each for each in columns if column.names(each.name)), None)

    def holds_numbers(self, column: Name) -> bool:
        """Whether a column is one of numbers; so is one that is not declared, for whatever refuses it to do so."""
        attribute = self._attribute(column)
        listed = attribute.of is int if isinstance(attribute, Categories) else not isinstance(attribute, OpenText)
        return listed and not isinstance(attribute, Dates)

    def values(self, column: Name) -> Sequence[str | int] | None:
        """The values that a column can have, with `other`; None where they are not listed, or `other` is no text."""
        attribute = self._attribute(column)
        if not isinstance(attribute, Categories | IntegerRange) or attribute.declared > MOST_PIVOTED:
            return None
        if isinstance(attribute, IntegerRange):
            return None if attribute.other is not None else range(attribute.lower, attribute.upper + 1)
        if attribute.other is None:
            return attribute.values
        return (*attribute.values, "other") if holds_text(attribute) else None

    def knows_better(self, text: str) -> bool:
        """Whether a refusal of the text is not to be followed by another question: of people, and of joined tables."""
        people = self._unit is not None and self._unit.column is not None and asks_about_people(text, self._unit.column)
        return people or (self._tables is not None and self._tables.joins(text))

    def compile(
        self, query: Query, sealed: int | None = None, keys: Keys | None = None, tables: Sequence[str] = ()
    ) -> Workload:
        """The workload of a question that `parse` has returned; `keys` are those of open columns, if there are any.

        `tables` are all that can be asked about, for SHOW TABLES.
        MIN and MAX that cannot be measured, as those of days, are the declared bounds where no accuracy is in the text.
        """
        if query.described is Described.TABLES:
            return tables_workload(tables or (self._table,))
        key = (query.text, query.measured, sealed, None if keys is None else tuple(keys.items()))
        with self._lock:
            if (workload := self._workloads.get(key)) is not None:
                self._workloads.move_to_end(key)
                return workload
        try:
            workload = self._compiled(query, sealed, keys or {})
        except QueryError:
            if not query.measured:
                raise
            workload = self._compiled(self.parse(query.text), sealed, keys or {})
        workload.index.setflags(write=False)
        with self._lock:
            _remember(self._workloads, key, workload)
            while sum(each.index.size for each in self._workloads.values()) > MOST_REMEMBERED:
                self._workloads.popitem(last=False)
        return workload

    def columns(self, query: Query, keys: Keys) -> OpenColumns:
        """The columns as a question sees them: open ones with the keys that are known, and those that it names."""
        about_rows = query.inner if isinstance(query, PeopleQuery) else query
        try:
            return OpenColumns.of(self._domain, keys, keys_named(about_rows, self._domain))
        except QueryError as refusal:
            raise replace(refusal, text=query.text) from None

    def scope(self, where: str, keys: Keys) -> Predicate:
        """The rows for which a condition holds, as texts are looked for among them.

        Edge cases: QueryError for more than a condition, for one that holds nowhere, and for texts without a cell.
        """
        query = self.parse(f"SELECT COUNT(*) FROM {quoted(self._table)} WHERE {where}")
        plain = parse(f"SELECT COUNT(*) FROM {quoted(self._table)}")
        if isinstance(query, PeopleQuery) or replace(query, where=plain.where, text=plain.text) != plain:
            raise QueryError(
                "texts are looked for among the rows for which a condition holds, as in WHERE, and no more"
            )
        columns = self.columns(query, keys)
        if columns.named:
            column, text = columns.named[0]
            raise QueryError(
                f"{render_literal(text)} is not told apart in {column} yet, so rows cannot be chosen by it\n"
                f"try: bursar keys {column} {render_literal(text)}"
            )
        resolved = resolved_query(query, columns.domain, self._table, None, self._levels)
        if normal_form(resolved.where, negated=False) == TRUE:
            raise QueryError("this holds for all rows: leave it out to look among them")
        rows = predicate(resolved.where, columns.domain)
        if rows is None:
            raise QueryError("there are no rows for which this can hold")
        spread = columns.spread(rows)
        assert isinstance(spread, Predicate)
        return spread

    def _compiled(self, query: Query, sealed: int | None, keys: Keys) -> Workload:
        if not self._open:
            return compile(query, self._domain, self._table, sealed, self._levels, self._unit)
        columns = self.columns(query, keys)
        workload = compile(query, columns.domain, self._table, sealed, self._levels, self._unit)
        remarks = (*workload.remarks, *groups_remark(query, columns, self._domain))
        return replace(workload, map=columns.spread(workload.map), named=columns.named, remarks=remarks)


def _remember(cache: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    cache[key] = value
    while len(cache) > REMEMBERED:
        cache.popitem(last=False)
