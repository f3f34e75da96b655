"""Which partitions a question means: the sealed ones.

A question that does not name the partition column is about all sealed partitions, and so is the open end of a range.
One that names a partition which is not sealed yet is refused; a rewrite ends with the last sealed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bursar.compile.boundaries import before, from_on
from bursar.compile.resolve_names import change_leaves
from bursar.compile.three_valued import YES, ValueLine, leaf_truth
from bursar.core.domain import Attribute, Categories, Domain
from bursar.errors import QueryError
from bursar.sql import And, AtLeast, Compare, Condition, Constant, In, IsNull, IsTrue, Name, Not, Op, Or, Query
from bursar.sql.query import Leaf, all_of
from bursar.sql.tokens import needs_quotes


def within_sealed(query: Query, domain: Domain, sealed: int | None) -> Query:
    """The question with its WHERE narrowed to sealed partitions; the names in it are the declared ones.

    `sealed` is how many there are, from the first one on; None where the data have no partitions.
    """
    if domain.partition is None or sealed is None or sealed >= domain.partitions:
        return query
    column = domain[domain.partition]
    if sealed == 0:
        raise QueryError(f"no partition of {column.name} is sealed yet, so there is nothing to ask about")
    for condition in query.conditions():
        for leaf, negated in _signed(condition, negated=False):
            if leaf.column.text == column.name:
                _check(column, sealed, leaf, negated)
    name = Name(text=column.name, quoted=needs_quotes(column.name))
    return replace(query, where=all_of(query.where, _sealed(column, name, sealed)))


def ended(query: Query, domain: Domain, sealed: int | None) -> Query:
    """The question with every condition that names partitions which are not sealed ended with the last sealed one."""
    if domain.partition is None or not sealed:
        return query
    column = domain[domain.partition]

    def change(leaf: Leaf) -> Condition:
        return _ended(column, sealed, leaf) if leaf.column.names(column.name) else leaf

    return change_leaves(query, change)


def _check(column: Attribute, sealed: int, leaf: Leaf, negated: bool) -> None:
    if _beyond(_cells(column, leaf, negated), sealed, open_ended=_open_ended(leaf, negated)):
        raise QueryError(
            f"this names partitions of {column.name} that are not sealed yet; the last sealed one is "
            f"{column.label(min(sealed, column.declared) - 1)}",
            position=leaf.position,
        )


def _beyond(cells: NDArray[np.bool_], sealed: int, *, open_ended: bool) -> bool:
    """Whether a comparison that holds in these cells names one that is not sealed, or leaves none that is."""
    left = not cells[:sealed].any() if open_ended else cells[sealed:].any()
    return bool(cells.any() and left)


def _open_ended(leaf: Leaf, negated: bool) -> bool:
    """Whether a comparison means "and whatever comes": it names no partition as its last."""
    return negated is not (isinstance(leaf, Compare) and leaf.op in (Op.GT, Op.GE, Op.NE))


def _cells(column: Attribute, leaf: Leaf, negated: bool) -> NDArray[np.bool_]:
    """The cells of the column where a comparison holds for some value behind them.

    An order says nothing about `other`, which holds values at both ends; what is asked about it is for the whole
    condition to decide.
    """
    line = ValueLine(column)
    truth = leaf_truth(line, leaf)
    holds = (2 - truth if negated else truth) == YES
    cells = np.zeros(column.size, np.bool_)
    cells[: column.declared] = holds[: column.declared]
    named = () if column.ordered and not isinstance(leaf, IsNull) else line.strays
    for place, (_, cell) in enumerate(named, column.declared):
        cells[cell] |= holds[place]
    return cells


def _signed(condition: Condition, *, negated: bool) -> Iterator[tuple[Leaf, bool]]:
    """Every comparison, and whether an odd number of NOTs stands around it."""
    match condition:
        case And() | Or() | AtLeast():
            for part in condition.parts:
                yield from _signed(part, negated=negated)
        case Not():
            yield from _signed(condition.part, negated=not negated)
        case IsTrue():
            yield from _signed(condition.part, negated=negated)
        case Constant():
            return
        case _:
            yield condition, negated


def _sealed(column: Attribute, name: Name, sealed: int) -> Condition:
    """The condition that holds in the sealed partitions and nowhere else; `other` and NULL are never among them."""
    if isinstance(column, Categories):
        return In(column=name, literals=column.values[:sealed])
    return all_of(from_on(column, name, 0), before(column, name, min(sealed, column.declared)))


def _ended(column: Attribute, sealed: int, leaf: Leaf) -> Condition:
    """Edge cases: what cannot be mended by ending it earlier stays as it is."""
    try:
        cells = _cells(column, leaf, negated=False)
    except QueryError:  # something else is wrong with it
        return leaf
    if isinstance(leaf, IsNull) or not _beyond(cells, sealed, open_ended=_open_ended(leaf, False)):
        return leaf
    last = min(sealed, column.declared) - 1
    if isinstance(column, Categories):
        kept = tuple(value for value, holds in zip(column.values[:sealed], cells, strict=False) if holds)
        return In(column=leaf.column, literals=kept or column.values[last : last + 1], position=leaf.position)
    first = int(np.argmax(cells)) if cells[:sealed].any() else last
    low, high = from_on(column, leaf.column, first), before(column, leaf.column, last + 1)
    if isinstance(leaf, In):
        single = [replace(leaf, literals=(literal,)) for literal in leaf.literals]
        inside = [one for one in single if _cells(column, one, negated=False)[:sealed].any()]
        return replace(leaf, literals=tuple(one.literals[0] for one in inside)) if inside else all_of(low, high)
    return high if isinstance(leaf, Compare) and leaf.op in (Op.LT, Op.LE) else all_of(low, high)
