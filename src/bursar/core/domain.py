"""TRUSTED. The public facts: which columns there are, which finite domain each has, who a privacy unit is.

Everything here is declared by the data owner and known to everyone; nothing is ever learnt from the rows.
Cells of a column are numbered: the declared ones first, then `other` if there is one, then NULL if it has a
cell of its own. The rule uses the value alone, so one row never moves another row's cell.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from bursar.errors import ConfigError

Value = str | int | float | bool | date | None

LARGEST_COLUMN = 2**24


class Stray(Enum):
    """Where a value goes that is not one of the declared ones."""

    CLIP = "clip"  # the nearest declared value; ordered columns only
    OTHER = "other"  # one shared cell called "other"
    CELL = "cell"  # NULL only: a cell of its own


class Period(Enum):
    """The grain of a date column."""

    DAY = "day"
    WEEK = "week"  # weeks begin on Monday, as date_trunc('week') has it
    MONTH = "month"


@dataclass(frozen=True, kw_only=True)
class Attribute(ABC):
    """One column. `outside` and `null` may also name a declared cell by its number.

    `nullable`: whether NULL is listed among groups. No row's cell depends on it, and no ledger is bound to it.
    """

    name: str
    outside: Stray | int
    null: Stray | int = Stray.CELL
    nullable: bool = field(default=True, compare=False)

    open: ClassVar[bool] = False
    """Whether its texts are not declared, but get their cells in the course of time."""

    def __post_init__(self) -> None:
        if self.declared < 1:
            raise ConfigError(f"column {self.name} declares no value")
        if self.size > LARGEST_COLUMN:
            raise ConfigError(f"column {self.name} has {self.size} cells; at most {LARGEST_COLUMN} are possible")
        if self.outside is Stray.CELL or self.null is Stray.CLIP:
            raise ConfigError(f"column {self.name}: outside takes clip or other, null takes cell or other")
        if self.outside is Stray.CLIP and not self.ordered:
            raise ConfigError(f'column {self.name} has no order to clip along; use outside = "other"')
        for cell in (self.outside, self.null):
            if isinstance(cell, int) and not 0 <= cell < self.declared:
                raise ConfigError(f"column {self.name}: stray values are sent to a value that is not declared")

    @property
    @abstractmethod
    def declared(self) -> int:
        """How many cells stand for declared values."""

    @property
    def ordered(self) -> bool:
        """Whether <, <= and BETWEEN make sense on the declared values."""
        return True

    @abstractmethod
    def declared_label(self, cell: int) -> Value:
        """The value, or the name of the bin, that a declared cell stands for."""

    @abstractmethod
    def facts(self) -> dict[str, object]:
        """What identifies the column, as plain JSON values."""

    @property
    def other(self) -> int | None:
        """The cell of values outside the domain, if there is one."""
        return self.declared if Stray.OTHER in (self.outside, self.null) else None

    @property
    def null_cell(self) -> int:
        """The cell that NULL falls into."""
        if isinstance(self.null, int):
            return self.null
        return self.declared + (1 if Stray.OTHER in (self.outside, self.null) and self.null is Stray.CELL else 0)

    @property
    def has_null(self) -> bool:
        """Whether NULL has a cell of its own, so that IS NULL can be answered."""
        return self.null is Stray.CELL

    @property
    def size(self) -> int:
        return self.declared + (self.other is not None) + self.has_null

    def label(self, cell: int) -> Value:
        """What a person sees for a cell: the value, the bin, "other", or None for NULL."""
        if cell < self.declared:
            return self.declared_label(cell)
        return "other" if cell == self.other else None

    def to_json(self) -> dict[str, object]:
        """The column as plain JSON values; equal columns give equal values."""
        strays = {"outside": self.outside, "null": self.null}
        plain = {key: v.value if isinstance(v, Stray) else v for key, v in strays.items()}
        return {"name": self.name, **self.facts(), **plain}


@dataclass(frozen=True, kw_only=True)
class Categories(Attribute):
    """A column of listed values, all of one type."""

    values: tuple[str | int | bool, ...]
    outside: Stray | int = Stray.OTHER

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({type(v) for v in self.values}) != 1 or len(set(self.values)) != len(self.values):
            raise ConfigError(f"column {self.name}: values must be distinct and of one type")

    @property
    def of(self) -> type:
        """The type of all its values."""
        return type(self.values[0])

    @property
    def declared(self) -> int:
        return len(self.values)

    @property
    def ordered(self) -> bool:
        return False

    def declared_label(self, cell: int) -> Value:
        return self.values[cell]

    def facts(self) -> dict[str, object]:
        return {"kind": "values", "values": list(self.values)}


@dataclass(frozen=True, kw_only=True)
class IntegerRange(Attribute):
    """Every whole number from lower to upper, both included."""

    lower: int
    upper: int
    outside: Stray | int = Stray.CLIP

    @property
    def declared(self) -> int:
        return self.upper - self.lower + 1

    def declared_label(self, cell: int) -> Value:
        return self.lower + cell

    def facts(self) -> dict[str, object]:
        return {"kind": "integer", "lower": self.lower, "upper": self.upper}


@dataclass(frozen=True, kw_only=True)
class Bins(Attribute):
    """Numbers in bins [e0, e1), [e1, e2), ..., the last one closed on both sides."""

    edges: tuple[float, ...]
    outside: Stray | int = Stray.CLIP

    def __post_init__(self) -> None:
        if any(not math.isfinite(edge) for edge in self.edges):
            raise ConfigError(f"column {self.name}: edges must be finite numbers; values beyond them are strays")
        if any(not low < high for low, high in pairwise(self.edges)):
            raise ConfigError(f"column {self.name}: edges must increase")
        super().__post_init__()

    @property
    def declared(self) -> int:
        return len(self.edges) - 1

    def declared_label(self, cell: int) -> Value:
        close = "]" if cell == self.declared - 1 else ")"
        return f"[{self.edges[cell]:.15g}, {self.edges[cell + 1]:.15g}{close}"

    def facts(self) -> dict[str, object]:
        return {"kind": "number", "edges": [float(edge) + 0.0 for edge in self.edges]}  # -0.0 is 0.0


@dataclass(frozen=True, kw_only=True)
class Dates(Attribute):
    """Days, weeks or months from the one that holds `first` to the one that holds `last`."""

    first: date
    last: date
    by: Period
    outside: Stray | int = Stray.CLIP

    @property
    def declared(self) -> int:
        return self.ordinal(self.last) - self.ordinal(self.first) + 1

    def ordinal(self, day: date) -> int:
        """A running number of the period that holds the day."""
        if self.by is Period.DAY:
            return day.toordinal()
        if self.by is Period.WEEK:
            return (day.toordinal() - 1) // 7
        return day.year * 12 + day.month - 1

    def start(self, cell: int) -> date:
        """The first day of a declared cell, or of the period after the last."""
        number = self.ordinal(self.first) + cell
        if self.by is Period.DAY:
            return date.fromordinal(number)
        if self.by is Period.WEEK:
            return date(1, 1, 1) + timedelta(days=7 * number)
        return date(number // 12, number % 12 + 1, 1)

    def declared_label(self, cell: int) -> Value:
        return self.start(cell)

    def facts(self) -> dict[str, object]:
        ends = {"first": self.start(0).isoformat(), "last": self.start(self.declared - 1).isoformat()}
        return {"kind": "date", "by": self.by.value, **ends}


MOST_PARTITIONS = 2**14


@dataclass(frozen=True)
class Domain:
    """Columns in their declared order; `partition` names the column that splits the data, if there is one."""

    attributes: tuple[Attribute, ...]
    partition: str | None = None

    def __post_init__(self) -> None:
        names = [a.name for a in self.attributes]
        if len(set(names)) != len(names):
            raise ConfigError("two columns have the same name")
        if self.partition is not None and self.partition not in names:
            raise ConfigError(f"the partition column {self.partition} is not declared")
        if self.partition is not None and self[self.partition].open:
            raise ConfigError(f"the partition column {self.partition} is open; partitions are declared")
        if self.partitions > MOST_PARTITIONS:
            reason = f"the partition column {self.partition} has {self.partitions} cells"
            raise ConfigError(f"{reason}; at most {MOST_PARTITIONS} are possible")

    @cached_property
    def _places(self) -> dict[str, int]:
        return {attribute.name: place for place, attribute in enumerate(self.attributes)}

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {attribute.name: attribute.size for attribute in self.attributes}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._places)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self._places[name]]

    def place(self, name: str) -> int:
        return self._places[name]

    @property
    def partitions(self) -> int:
        """How many partitions the data have: one for each cell of the partition column, in their order; else 1."""
        return 1 if self.partition is None else self[self.partition].size

    def ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        """The given columns, each once, in the order of the domain."""
        return tuple(sorted(set(names), key=self.place))

    def has(self, names: Iterable[str], sizes: tuple[int, ...]) -> bool:
        """Whether these are columns of the domain, with these numbers of cells."""
        return tuple(map(self._sizes.get, names)) == sizes

    def sizes(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self._sizes[name] for name in names)

    def cells(self, names: Iterable[str]) -> int:
        """How many cells the given columns span together; an exact integer, however large."""
        return math.prod(self.sizes(names))

    def to_json(self) -> dict[str, object]:
        return {"attributes": [a.to_json() for a in self.attributes], "partition": self.partition}

    @cached_property
    def digest(self) -> str:
        """Equal for equal domains: what a ledger is bound to."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Neighbours(Enum):
    """The two notions of neighbouring tables."""

    ADD_REMOVE = "add-remove"  # one unit is there or not; the number of rows is private
    REPLACE_ONE = "replace-one"  # one unit has other values; the number of rows is public


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A privacy unit: one row, or all rows that share a value of `column`, at most `max_contributions` of them."""

    column: str | None = None
    max_contributions: int = 1
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        if type(self.max_contributions) is not int or self.max_contributions < 1:
            raise ConfigError("max_contributions must be a whole number of at least 1")
        if self.column is None and self.max_contributions != 1:
            raise ConfigError("max_contributions needs a unit column: without one, each row is a unit of its own")
