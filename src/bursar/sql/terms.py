"""Terms: constants, columns and functions of them, as plain data. They are evaluated in two places.

Over the columns of the table, cell by cell, a term makes groups (`GROUP BY UPPER(region)`), conditions (`age % 2 = 0`)
and numbers to add up (`SUM(price * quantity)`); all that is public. Over the lines of answers that were bought, terms
are what SELECT, WHERE, HAVING, ORDER BY and OVER around a grouped sub-select say; that is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace

from bursar.lazy_dataclass import dataclass
from bursar.sql.names import Literal, Name


@dataclass(frozen=True, kw_only=True)
class Given:
    """A constant; None is NULL."""

    value: Literal | None
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Ref:
    """A column, by its name."""

    name: Name
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function or operator of other terms; CASE has its conditions and values in turn, and the ELSE last."""

    function: str
    parts: tuple[Term, ...]
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Fold:
    """An aggregate over lines of answers."""

    function: str
    of: Term | None = None  # None: the lines themselves are counted
    by: Term | None = None  # of ARG_MAX and ARG_MIN: what is largest, or smallest, on the line that is taken
    condition: Term | None = None
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class LineSort:
    """One item of ORDER BY over lines."""

    by: Term
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, kw_only=True)
class Window:
    """A function OVER lines: those of the same partition, or the ones around each line in an order.

    `frame` is from how many lines before (None: the first) to how many behind (None: the last), and -1 before is
    1 behind; no frame is all lines without an order, and with one, all up to this line and those that stand equal.
    """

    function: str
    parts: tuple[Term, ...] = ()
    partition: tuple[Term, ...] = ()
    order: tuple[LineSort, ...] = ()
    frame: tuple[int | None, int | None] | None = None
    position: int = field(default=-1, compare=False)


Term = Given | Ref | Call | Fold | Window

NULL = Given(value=None)


def inner_terms(term: Term) -> tuple[Term, ...]:
    """The terms that a term is made of."""
    match term:
        case Call():
            return term.parts
        case Fold():
            return tuple(part for part in (term.of, term.by, term.condition) if part is not None)
        case Window():
            return (*term.parts, *term.partition, *(sort.by for sort in term.order))
    return ()


def walk_terms(term: Term) -> Iterator[Term]:
    """A term and all that are in it."""
    yield term
    for part in inner_terms(term):
        yield from walk_terms(part)


def map_refs(term: Term, change: Callable[[Name], Name]) -> Term:
    """The term with every column in it renamed."""

    def inner(part: Term) -> Term:
        return map_refs(part, change)

    match term:
        case Ref():
            return replace(term, name=change(term.name))
        case Call():
            return replace(term, parts=tuple(map(inner, term.parts)))
        case Fold():
            return replace(
                term,
                of=None if term.of is None else inner(term.of),
                by=None if term.by is None else inner(term.by),
                condition=None if term.condition is None else inner(term.condition),
            )
        case Window():
            return replace(
                term,
                parts=tuple(map(inner, term.parts)),
                partition=tuple(map(inner, term.partition)),
                order=tuple(replace(sort, by=inner(sort.by)) for sort in term.order),
            )
    return term


def map_terms(term: Term, change: Callable[[Term], Term]) -> Term:
    """The term with every column and constant in it replaced."""
    match term:
        case Call():
            return replace(term, parts=tuple(map_terms(part, change) for part in term.parts))
        case Given() | Ref():
            return change(term)
    return term


def change_calls(term: Term, change: Callable[[Call], Term]) -> Term:
    """The term with every function in it replaced, the innermost first."""

    def inner(part: Term) -> Term:
        return change_calls(part, change)

    match term:
        case Call():
            return change(replace(term, parts=tuple(map(inner, term.parts))))
        case Fold():
            return replace(
                term,
                of=None if term.of is None else inner(term.of),
                by=None if term.by is None else inner(term.by),
                condition=None if term.condition is None else inner(term.condition),
            )
        case Window():
            order = tuple(replace(sort, by=inner(sort.by)) for sort in term.order)
            partition = tuple(map(inner, term.partition))
            return replace(term, parts=tuple(map(inner, term.parts)), partition=partition, order=order)
    return term


def refs_of(term: Term) -> tuple[Name, ...]:
    """The columns in a term, from left to right, each once."""
    names = [part.name for part in walk_terms(term) if isinstance(part, Ref)]
    return tuple({name.text.casefold(): name for name in reversed(names)}.values())[::-1]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A SELECT over lines of answers: FROM the lines before it, in the order in which SQL works its clauses off."""

    columns: tuple[tuple[str, Term], ...]  # what is selected, by name
    where: Term | None = None
    keys: tuple[Term, ...] | None = None  # of GROUP BY; None: lines stay as they are
    having: Term | None = None
    qualify: Term | None = None
    order: tuple[LineSort, ...] = ()
    limit: int | None = None
    offset: int = 0
    beside: tuple[Stage, ...] = ()  # further SELECTs over the same lines, of UNION ALL: their lines come below

    def terms(self) -> list[Term]:
        """Every term in it, without those of the SELECTs beside it."""
        clauses = [clause for clause in (self.where, self.having, self.qualify) if clause is not None]
        return [*(term for _, term in self.columns), *(self.keys or ()), *clauses, *(sort.by for sort in self.order)]

    def all_terms(self) -> list[Term]:
        """Every term in it and in the SELECTs beside it."""
        return [term for stage in (self, *self.beside) for term in stage.terms()]

    def changed(self, change: Callable[[Term], Term]) -> Stage:
        """The stage with every term in it replaced."""

        def clause(term: Term | None) -> Term | None:
            return None if term is None else change(term)

        return Stage(
            columns=tuple((name, change(term)) for name, term in self.columns),
            where=clause(self.where),
            keys=None if self.keys is None else tuple(map(change, self.keys)),
            having=clause(self.having),
            qualify=clause(self.qualify),
            order=tuple(replace(sort, by=change(sort.by)) for sort in self.order),
            limit=self.limit,
            offset=self.offset,
            beside=tuple(stage.changed(change) for stage in self.beside),
        )
