"""Open columns as questions see them: the texts that have cells so far, and `other` for all that have none.

A question is compiled over a column that lists the keys it may tell apart, and its rows are then spread over the cells
that the column has for life: every cell without a key of the question's has what `other` has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bursar.arrays import Integers
from bursar.compile.conditions import OTHER
from bursar.compile.partwise import PartwiseMap
from bursar.compile.values import ListedKeys
from bursar.core.domain import Attribute, Domain, Value
from bursar.core.extensions.discovery import Found
from bursar.core.extensions.open_keys import LONGEST_KEY, OpenText, alike, is_key
from bursar.core.queries import Distinct, LinearMap, Mask, PerPerson, Predicate, Product, Quorum, Stack, Steps, Within
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql import Compare, In, Op, Query
from bursar.sql.query import leaves
from bursar.sql.render import render_literal

SPREAD_AT_ONCE = 2**24
"""Most coefficients that are written out at once, where rows are spread over the cells of a column."""

Cell = tuple[int, str]
"""A cell of an open column, and the text that has it."""


class Rarity(NamedTuple):
    """How many people have a text, and no other without a cell, that a search finds so often."""

    even: int  # every other time
    likely: int  # 19 times of 20

    @staticmethod
    def of(event: Found) -> Rarity:
        likely = event.threshold + SURE * event.noise.scale
        return Rarity(math.ceil(event.threshold / event.weight), math.ceil(likely / event.weight))


SURE = 1.6448536269514722
"""How many standard deviations noise exceeds with a chance of 5 %."""


@dataclass(frozen=True, kw_only=True)
class KeyedColumn:
    """What is known of an open column: the cells that a question may tell apart, and all that have texts."""

    shown: tuple[Cell, ...] = ()
    taken: tuple[str, ...] = ()  # in the order of their cells, shown or not
    rarity: Rarity | None = None  # how rare texts are that searches found; None where none was made
    named: int = 0  # by the analyst's own questions
    most: int | None = None  # of these; None for as many as there are cells


Keys = Mapping[str, KeyedColumn]
"""By column."""


@dataclass(frozen=True, kw_only=True)
class LabelledText(OpenText):
    """An open column whose cells are called by their texts, where they have one that is shown."""

    cells: tuple[Cell, ...]

    def declared_label(self, cell: int) -> Value:
        return dict(self.cells).get(cell, super().declared_label(cell))


def labelled(domain: Domain, keys: Keys) -> Domain:
    """The columns with all their cells, those of open ones called by their texts."""
    shown = {name: column.shown for name, column in keys.items()}
    every = (
        LabelledText(name=each.name, capacity=each.capacity, null=each.null, cells=shown.get(each.name, ()))
        if isinstance(each, OpenText)
        else each
        for each in domain.attributes
    )
    return Domain(tuple(every), domain.partition)


@dataclass(frozen=True, kw_only=True)
class OpenColumns:
    """The columns of a question, some of them open, and the keys that it is the first to name."""

    domain: Domain  # with ListedKeys in the place of open columns
    keys: Keys
    named: tuple[tuple[str, str], ...] = ()  # column and text

    @staticmethod
    def of(domain: Domain, keys: Keys, named: Iterable[tuple[str, str]]) -> OpenColumns:
        """The columns with the keys that are shown, and those that a question names itself.

        Edge cases: QueryError where a key that is new has no cell left.
        """
        new: list[tuple[str, str]] = []
        columns = {}
        for attribute in open_columns(domain):
            keyed = keys.get(attribute.name, KeyedColumn())
            cells, taken, before = dict(keyed.shown), list(keyed.taken), len(new)
            for text in (text for column, text in named if column == attribute.name):
                if text not in taken:
                    taken.append(text)
                    new.append((attribute.name, text))
                cells[taken.index(text)] = text
            if len(taken) > attribute.capacity:
                raise full(attribute, taken[attribute.capacity])
            if keyed.most is not None and keyed.named + len(new) - before > max(keyed.most, keyed.named):
                raise too_many(attribute, keyed.most)
            columns[attribute.name] = ListedKeys(
                name=attribute.name,
                values=tuple(cells[cell] for cell in sorted(cells)),
                cells=tuple(sorted(cells)),
                capacity=attribute.capacity,
                null=attribute.null,
                nullable=attribute.nullable,
            )
        listed = tuple(columns.get(attribute.name, attribute) for attribute in domain.attributes)
        return OpenColumns(domain=Domain(listed, domain.partition), keys=keys, named=tuple(new))

    def spread(self, queries: LinearMap) -> LinearMap:
        """The rows over the cells that open columns have for life."""
        columns = {each.name: each for each in self.domain.attributes if isinstance(each, ListedKeys)}
        return _spread(queries, columns)


def open_columns(domain: Domain) -> list[OpenText]:
    """The columns of a domain that are open."""
    return [attribute for attribute in domain.attributes if isinstance(attribute, OpenText)]


def closed(domain: Domain, what: str, named: Iterable[str | Sequence[str]] | None = None) -> Domain:
    """The columns without open ones; QueryError where one of these is named, or no other is there."""
    names = {attribute.name for attribute in open_columns(domain)}
    chosen = {name for each in named or () for name in ((each,) if isinstance(each, str) else each)}
    left = tuple(attribute for attribute in domain.attributes if attribute.name not in names)
    if (open_names := sorted(names & chosen)) or not left:
        raise QueryError(
            f"{what} about columns whose values are declared, and {(open_names or sorted(names))[0]} is open"
        )
    return Domain(left, domain.partition) if names else domain


def full(attribute: OpenText, text: str) -> QueryError:
    """The refusal of a key for which there is no cell."""
    return QueryError(
        f"{attribute.name} has cells for {attribute.capacity} texts, and all of them are taken: {render_literal(text)} "
        "cannot be told from the rest, which is called other"
    )


def too_many(attribute: OpenText, most: int) -> QueryError:
    """The refusal of a key where somebody has named as many as they may."""
    return QueryError(
        f"one analyst may be the first to name {most} texts of {attribute.name}, so that cells are left for others; "
        "those that have a cell can be asked about, and the data owner can name more, with bursar keys, or raise names "
        "under [analysts]"
    )


def keys_named(query: Query, domain: Domain) -> list[tuple[str, str]]:
    """The texts that the conditions of a question compare open columns with, and the columns, each once.

    Edge cases: QueryError where a text is written otherwise than texts of the column are compared.
    """
    named: dict[tuple[str, str], None] = {}
    names = {attribute.name.casefold(): attribute.name for attribute in open_columns(domain)}
    for leaf in (leaf for condition in query.conditions() for leaf in leaves(condition)):
        if isinstance(leaf, In) or (isinstance(leaf, Compare) and leaf.op in (Op.EQ, Op.NE)):
            column = names.get(leaf.column.text.casefold())
            for text in leaf.literals if isinstance(leaf, In) else (leaf.literal,):
                if column is None or not isinstance(text, str) or text == OTHER:
                    continue
                if not is_key(text):
                    raise QueryError(
                        f"texts of {column} are compared without blanks around them, in composed characters (NFC), "
                        f"up to {LONGEST_KEY} of them, no control characters; {render_literal(text)} is no such text",
                        position=leaf.position,
                    )
                named[column, text] = None
    return list(named)


def grouped_by(query: Query, domain: Domain) -> list[str]:
    """The open columns that a question groups by."""
    names = {attribute.name.casefold(): attribute.name for attribute in open_columns(domain)}
    grouped = (name.casefold() for select in query.selects for key in select.keys for name in key.columns)
    return list(dict.fromkeys(names[name] for name in grouped if name in names))


def groups_remark(query: Query, columns: OpenColumns, domain: Domain) -> list[str]:
    """What an analyst must know who groups by an open column of the domain."""
    opened = [columns.domain[name] for name in grouped_by(query, domain)]
    return [_remark(column, columns.keys.get(column.name, KeyedColumn())) for column in opened]


def _remark(attribute: Attribute, keyed: KeyedColumn) -> str:
    assert isinstance(attribute, ListedKeys)
    told = (
        f"{attribute.name} is open: {len(attribute.values)} of its texts are told apart, all others are in other; "
        "a text that a question names is told apart from then on"
    )
    if keyed.rarity is None:
        return told
    even, likely = keyed.rarity
    return (
        f"{told}; texts were looked for, and those that few people have are missing: one that {even:,} have was found "
        f"every other time, one that {likely:,} have 19 times of 20"
    )


def _spread(part: LinearMap, columns: Mapping[str, ListedKeys]) -> LinearMap:
    if not any(name in columns for name in part.attrs):
        return part
    match part:
        case Product():
            return Product(tuple(_spread_mask(mask, columns) for mask in part.masks))
        case Stack():
            return Stack(tuple(_spread_product(each, columns) for each in part.parts))
        case PartwiseMap():
            return replace(part, parts=tuple(_spread(each, columns) for each in part.parts))
        case Predicate():
            sizes = [
                columns[name].capacity + _strays(columns[name]) if name in columns else size
                for name, size in zip(part.attrs, part.sizes, strict=True)
            ]
            return Predicate(part.attrs, tuple(sizes), _spread_condition(part.condition, columns))
        case Distinct():
            groups = _spread(part.groups, columns)
            assert isinstance(groups, Product | Predicate)
            return Distinct(groups, part.of)
        case PerPerson():
            value = None if part.value is None else _spread_product(part.value, columns)
            return replace(part, groups=_spread_product(part.groups, columns), value=value)
    raise QueryError("open columns are not for this kind of question")


def _spread_product(part: LinearMap, columns: Mapping[str, ListedKeys]) -> Product:
    spread = _spread(part, columns)
    assert isinstance(spread, Product)
    return spread


def _strays(column: Attribute) -> int:
    return column.size - column.declared


@lru_cache(maxsize=256)
def _cells(column: ListedKeys) -> Integers:
    """The cell of the listed column for each cell of the open one."""
    assert column.other is not None
    cells = np.full(column.capacity + _strays(column), column.other, np.int64)
    cells[list(column.cells)] = np.arange(len(column.cells))
    cells[column.capacity :] = np.arange(column.declared, column.size)
    return cells


def _spread_mask(mask: Mask, columns: Mapping[str, ListedKeys]) -> Mask:
    if not any(name in columns for name in mask.attrs):
        return mask
    sizes = zip(mask.attrs, mask.sizes, strict=True)
    cells = [_cells(columns[name]) if name in columns else np.arange(size) for name, size in sizes]
    grid = np.ravel_multi_index(np.ix_(*cells), mask.sizes).ravel()
    each = max(1, SPREAD_AT_ONCE // len(grid))
    portions = [np.arange(first, min(first + each, mask.rows)) for first in range(0, mask.rows, each)]
    parts = [Steps.dense(mask.steps.take(rows).at_cells(grid)) for rows in portions]
    jumps = np.concatenate([[0], *(np.diff(part.starts) for part in parts)]).astype(np.int64)
    nothing = np.zeros(0, np.int64)
    at, jump = np.concatenate([nothing, *(p.at for p in parts)]), np.concatenate([nothing, *(p.jump for p in parts)])
    return Mask(mask.attrs, tuple(map(len, cells)), Steps(len(grid), np.cumsum(jumps), at, jump))


def _spread_condition(part: Within | Quorum, columns: Mapping[str, ListedKeys]) -> Within | Quorum:
    if isinstance(part, Quorum):
        return Quorum(part.least, tuple(_spread_condition(each, columns) for each in part.parts))
    if part.column not in columns:
        return part
    column = columns[part.column]
    inside = np.concatenate([[False], part.cells(column.size)[_cells(column)], [False]])
    ends = np.flatnonzero(np.diff(inside)).tolist()
    return Within(part.column, tuple(zip(ends[::2], ends[1::2], strict=True)))


def tells_no_more(strategies: Sequence[LinearMap], queries: LinearMap, domain: Domain) -> bool:
    """Whether strategies tell no texts of open columns apart but those that the queries tell apart."""
    for attribute in open_columns(domain):
        assert attribute.other is not None
        touching = [strategy for strategy in strategies if attribute.name in strategy.attrs]
        if touching:
            first = _told_apart(queries, attribute)
            if not all(alike(strategy, attribute.name, first, attribute.other) for strategy in touching):
                return False
    return True


def _told_apart(queries: LinearMap, attribute: OpenText) -> int:
    """From which cell on, up to `other`, the queries tell no cells apart."""
    assert attribute.other is not None
    if attribute.name not in queries.attrs:
        return 0
    every = queries.parts if isinstance(queries, PartwiseMap) else (queries,)
    parts = [each for each in every if attribute.name in each.attrs]
    low, high = 0, attribute.other
    while low < high:
        middle = (low + high) // 2
        same = all(alike(each, attribute.name, middle, attribute.other) for each in parts)
        low, high = (low, middle) if same else (middle + 1, high)
    return low
