"""Open columns: texts that nobody has listed, of which some get a cell of their own in the course of time.

A column of capacity M has M cells for texts, `other` and NULL, for life. The log says which text has which cell; a cell
without a text is *free*, and nobody is in it. A question may tell a text apart once it has a cell, and must treat free
cells as it treats `other`: then giving a text a cell changes no answer that was ever bought. See `open_keys.proof.md`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bursar.core.accounting.kind import ROOT, Fields, FreeEvent
from bursar.core.domain import Attribute, Domain, Stray, Value
from bursar.core.queries import Distinct, LinearMap, Mask, PerPerson, Predicate, Product, Stack, Within
from bursar.errors import ConfigError, LedgerError, QueryError

if TYPE_CHECKING:
    from bursar.core.extensions.saved_state import Tree
    from bursar.core.kernel import Kernel
    from bursar.core.ledger import Record, Transaction
    from bursar.core.public import Public
    from bursar.core.queries import Quorum

LONGEST_KEY = 200
"""Most characters of a text that count."""

SPACES = " \t\n\v\f\r\u00a0"
"""What is cut off at both ends of a text."""

UNNAMED = "other"
"""The text that can have no cell of its own: it is the name of the cell of all others."""

COMPARED = 2**24
"""Most numbers that are looked at at once to see which cells rows tell apart."""


def normalised(text: str) -> str:
    """A text as keys are compared: composed characters (NFC), no blanks around it, and no more than 200 characters."""
    return unicodedata.normalize("NFC", text).strip(SPACES)[:LONGEST_KEY].rstrip(SPACES)


def is_key(text: str) -> bool:
    """Whether a text can have a cell: as it is compared, and without halves of surrogate pairs and control characters,
    which cannot be written down everywhere."""
    odd = any(unicodedata.category(character) in ("Cs", "Cc") for character in text)
    return text == normalised(text) and text != UNNAMED and not odd


@dataclass(frozen=True, kw_only=True)
class OpenText(Attribute):
    """A column of texts that nobody has listed: up to `capacity` of them get a cell each, in the course of time.

    Which text has which cell is in the log; one that has none is `other`.
    """

    open = True
    capacity: int
    outside: Stray | int = Stray.OTHER

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.outside is not Stray.OTHER or isinstance(self.null, int):
            raise ConfigError(f"column {self.name}: outside takes other, null takes cell or other")

    @property
    def declared(self) -> int:
        return self.capacity

    @property
    def ordered(self) -> bool:
        return False

    def declared_label(self, cell: int) -> Value:
        return f"key {cell + 1}"

    def facts(self) -> dict[str, object]:
        return {"kind": "open", "capacity": self.capacity}


@dataclass(frozen=True, kw_only=True)
class Keyed(FreeEvent):
    """A text of an open column has a cell of its own from now on."""

    kind = "keyed"
    column: str
    text: str
    cell: int
    table: str = ROOT

    def fields(self) -> dict[str, object]:
        table = {} if self.table == ROOT else {"table": self.table}
        return {"kind": self.kind, "column": self.column, "text": self.text, "cell": self.cell, **table}

    @staticmethod
    def read(fields: Fields) -> Keyed:
        column, text, cell = fields.take("column", str), fields.take("text", str), fields.take("cell", int)
        return Keyed(column=column, text=text, cell=cell, table=fields.named("table"))


class KeyedText(NamedTuple):
    """A text that has a cell, and whose question named it."""

    text: str
    analyst: str


Column = tuple[str, str]
"""The name of a table, as the log knows it, and of a column."""


@dataclass
class KeyLists:
    """Which texts have cells, in the order of these, advanced record by record.

    Guarantees: a text never loses its cell, and no cell gets a second text.
    """

    capacities: Mapping[Column, int]
    keys: dict[Column, list[KeyedText]] = field(default_factory=dict)

    @staticmethod
    def of(tables: Mapping[str, Domain]) -> KeyLists:
        """No text has a cell yet, in any open column of the tables."""
        columns = ((table, each) for table, domain in tables.items() for each in domain.attributes)
        capacities = {(table, each.name): each.capacity for table, each in columns if isinstance(each, OpenText)}
        return KeyLists(capacities, {column: [] for column in capacities})

    def add(self, record: Record) -> None:
        """Edge cases: a record that is not the next key of an open column raises LedgerError."""
        event = record.event
        if type(event) is Keyed:
            if self.next(event.table, event.column, event.text) != event or self.left(event) < 0:
                raise LedgerError("the log gives a text a cell that it cannot have")
            self.keys[event.table, event.column].append(KeyedText(event.text, record.analyst))

    def left(self, event: Keyed) -> int:
        """How many cells are free after an event; below 0 where there is none for it."""
        return self.capacities[event.table, event.column] - event.cell - 1

    def next(self, table: str, column: str, text: str) -> Keyed | None:
        """What gives a text the next cell, if there is one; None where it has one, or is no key."""
        listed = self.keys.get((table, column))
        texts = () if listed is None else [key.text for key in listed]
        if listed is None or text in texts or not is_key(text):
            return None
        return Keyed(column=column, text=text, cell=len(listed), table=table)

    def texts(self, table: str) -> dict[str, tuple[str, ...]]:
        """The texts of each open column of a table, in the order of their cells."""
        return {name: tuple(key.text for key in keys) for (of, name), keys in self.keys.items() if of == table}

    def copy(self) -> KeyLists:
        return KeyLists(self.capacities, {column: list(keys) for column, keys in self.keys.items()})

    def state(self) -> Tree:
        """As plain values."""
        return [[*column, [list(key) for key in keys]] for column, keys in self.keys.items()]

    def restore(self, state: Tree) -> None:
        self.keys = {(table, name): [KeyedText(*key) for key in keys] for table, name, keys in state}


def keys_with(kernel: Kernel, transaction: Transaction) -> KeyLists:
    """The keys of everything durable, and of this group's earlier members."""
    with kernel._lock:
        kernel._advance(transaction.committed(kernel._position))
        lists = kernel._keys.copy()
    for record in transaction.pending():
        lists.add(record)
    return lists


def name_keys(kernel: Kernel, keys: Sequence[tuple[str, str]], *, analyst: str) -> None:
    """Give texts of columns cells of their own, those that have none yet, one commit. Nothing is counted or drawn.

    Edge cases: QueryError, and none of them has one, where a column has no free cell left.
    """
    from bursar.core.ledger import Purpose  # the ledger knows every kind of event

    def work(transaction: Transaction) -> None:
        lists, events = keys_with(kernel, transaction), []
        for column, text in keys:
            if (event := lists.next(kernel.table, column, text)) is not None:
                if lists.left(event) < 0:
                    raise QueryError(f"{column} has cells for {event.cell} texts, and all of them are taken")
                lists.keys[kernel.table, column].append(KeyedText(text, analyst))
                events.append(event)
        for event in events:
            purpose = Purpose("named a key", "keys")
            transaction.append(analyst=analyst, purpose=purpose, event=event, values=np.zeros(0, np.int64))

    kernel.ledger.commit(work)


def check_keys(strategy: LinearMap, domain: Domain, texts: Mapping[str, Sequence[str]]) -> None:
    """Refuse, from public facts alone, a strategy that tells free cells from each other or from `other`."""
    for name, listed in texts.items():
        attribute = domain[name]
        assert attribute.other is not None
        if name in strategy.attrs and not alike(strategy, name, len(listed), attribute.other):
            raise QueryError(f"this tells texts of {name} apart that have no cell of their own")


def alike(part: LinearMap, name: str, first: int, last: int) -> bool:
    """Whether every row has one and the same coefficient on the cells first .. last of a column, whatever the others.

    Edge cases: what is not known here is not.
    """
    match part:
        case Product():
            return all(_constant(mask, name, first, last) for mask in part.masks if name in mask.attrs)
        case Stack():
            return all(alike(each, name, first, last) for each in part.parts if name in each.attrs)
        case Predicate():
            return _never_cut(part.condition, name, first, last)
        case Distinct():
            return name not in part.groups.attrs or alike(part.groups, name, first, last)
        case PerPerson():
            parts = [each for each in (part.groups, part.value) if each is not None and name in each.attrs]
            return all(alike(each, name, first, last) for each in parts)
    return False


def _constant(mask: Mask, name: str, first: int, last: int) -> bool:
    if len(mask.attrs) == 1:
        return not np.any((mask.steps.at > first) & (mask.steps.at <= last))
    axis = mask.attrs.index(name)
    step = max(1, COMPARED // mask.steps.size)
    for start in range(0, mask.rows, step):
        rows = mask.steps.take(np.arange(start, min(start + step, mask.rows)))
        values = rows.at_cells(np.arange(rows.size)).reshape(-1, *mask.sizes)
        inside = np.moveaxis(values, 1 + axis, 0)[first : last + 1]
        if np.any(inside != inside[0]):
            return False
    return True


def _never_cut(part: Within | Quorum, name: str, first: int, last: int) -> bool:
    """Whether every set of cells of the column has all of first .. last, or none."""
    if isinstance(part, Within):
        return part.column != name or not any(first < end <= last for ends in part.ranges for end in ends)
    return all(_never_cut(each, name, first, last) for each in part.parts)


def known_keys(public: Public) -> dict[str, tuple[KeyedText, ...]]:
    """The texts of each open column that have cells, in the order of these."""
    with public._lock:
        public._advanced()
        return {name: tuple(keys) for (table, name), keys in public._keys.keys.items() if table == public.table}
