"""The product of all columns: the cells that a row can fall into."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bursar.core.domain.attribute import Attribute
from bursar.errors import ConfigError

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
        if self.partitions > MOST_PARTITIONS:
            reason = f"the partition column {self.partition} has {self.partitions} cells"
            raise ConfigError(f"{reason}; at most {MOST_PARTITIONS} are possible")

    @cached_property
    def _places(self) -> dict[str, int]:
        return {attribute.name: place for place, attribute in enumerate(self.attributes)}

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

    def sizes(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self[name].size for name in names)

    def cells(self, names: Iterable[str]) -> int:
        """How many cells the given columns span together; an exact integer, however large."""
        return math.prod(self.sizes(names))

    def to_json(self) -> dict[str, Any]:
        return {"attributes": [a.to_json() for a in self.attributes], "partition": self.partition}

    @cached_property
    def digest(self) -> str:
        """Equal for equal domains: what a ledger is bound to."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
