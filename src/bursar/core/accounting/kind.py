"""What every kind of event says of itself: price, fields, what is stored with it; and the core's own two kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from bursar.core.accounting.profile import Footprint, fine_units
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.queries import Distinct, LinearMap, PerPerson
from bursar.errors import LedgerError

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Accountant

T = TypeVar("T")
ROOT = ""
"""The name, in the log, of the table that the charter describes; further tables have names of their own."""

Strategies = Callable[[str], LinearMap]
"""Gives the strategy of a digest."""


class Fields:
    """The fields of a stored event, each taken once and of exactly the type that is asked for."""

    def __init__(self, fields: Mapping[str, object], strategies: Strategies) -> None:
        self._left, self._strategies = dict(fields), strategies
        self.kind = self.take("kind", str)

    def has(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, kind: type[T]) -> T:
        return typed(self._left.pop(name), kind)

    def named(self, name: str) -> str:
        """A text that is left out where it is empty, and stands there otherwise."""
        if not self.has(name):
            return ROOT
        if not (text := self.take(name, str)):
            raise LedgerError("an empty name is not written down")
        return text

    def scale(self, name: str) -> float:
        return float.fromhex(self.take(name, str))

    def laplace(self, name: str) -> Noise:
        return Noise(kind=NoiseKind.LAPLACE, scale=self.scale(name))

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Whole numbers, or nothing."""
        numbers = self._left.pop(name)
        return None if numbers is None else tuple(typed(number, int) for number in typed(numbers, list))

    def strategy(self) -> LinearMap:
        return self._strategies(self.take("strategy", str))

    def end(self) -> None:
        if self._left:
            raise LedgerError("an event has fields that are not known")


def typed(value: object, kind: type[T]) -> T:
    """The value; LedgerError unless its type is exactly this one, so that True is no number."""
    if type(value) is not kind:
        raise LedgerError(f"a value is not of type {kind.__name__}")
    return value


class EventKind(ABC):
    """One kind of event. Which kinds there are is a closed list in `events.py`."""

    kind: ClassVar[str]

    @property
    def stored(self) -> LinearMap | None:
        """The strategy that must be stored along with the event, if it has one."""
        return None

    @property
    def answers(self) -> int:
        """How many values a record of this event carries."""
        return 0

    @abstractmethod
    def fields(self) -> dict[str, object]:
        """The event as plain JSON values. `read` makes an equal event of them, and of no others."""

    @staticmethod
    @abstractmethod
    def read(fields: Fields) -> EventKind: ...


class PaidEvent(EventKind):
    """What costs something."""

    version: int

    @property
    @abstractmethod
    def looks_at(self) -> LinearMap:
        """A map that is not zero wherever the event looks."""

    @property
    @abstractmethod
    def purchase(self) -> Hashable:
        """Equal for events that ask for the same rows with the same noise, of the same version."""

    @abstractmethod
    def footprints(self, accountant: Accountant, filed: Hashable) -> tuple[Footprint, ...]:
        """What the event adds to the profile, filed under `filed` unless it belongs to an earlier event."""

    @property
    def stored(self) -> LinearMap:
        return self.looks_at


class FreeEvent(EventKind):
    """What costs nothing; the argument of each kind says why."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured(PaidEvent):
    """All rows of a strategy were answered on one version of the data, each with independent noise of one law."""

    kind = "measured"
    strategy: LinearMap
    noise: Noise
    version: int

    @property
    def looks_at(self) -> LinearMap:
        return self.strategy

    @property
    def answers(self) -> int:
        return self.strategy.rows

    @property
    def purchase(self) -> Hashable:
        return self.kind, self.strategy.digest, self.noise, self.version

    def footprints(self, accountant: Accountant, filed: Hashable) -> tuple[Footprint, ...]:
        people = self.strategy
        if isinstance(people, PerPerson) or (isinstance(people, Distinct) and people.of is None):
            reach = people.reach(accountant.unit, accountant.power)
            return accountant.over_units(reach, self.noise, version=self.version, block=filed)
        units, finer = fine_units(partial(accountant.units, self.noise))
        return accountant.over_rows(self.strategy, units=units, finer=finer, version=self.version, block=filed)

    def fields(self) -> dict[str, object]:
        law = {"noise": self.noise.kind.value, "scale": self.noise.scale.hex()}
        return {"kind": self.kind, "strategy": self.strategy.digest, "version": self.version, **law}

    @staticmethod
    def read(fields: Fields) -> Measured:
        noise = Noise(kind=NoiseKind(fields.take("noise", str)), scale=fields.scale("scale"))
        return Measured(strategy=fields.strategy(), noise=noise, version=fields.take("version", int))


@dataclass(frozen=True, kw_only=True)
class Versioned(FreeEvent):
    """The data owner declared a version of a table. Versions are numbered through all tables, so that the version which
    an event names also says the one table that it looks at.

    `same_rows` says that rows were only added since the version before: no row changed its cell or went away,
    so the losses of both versions fall on the same people and count once.
    """

    kind = "versioned"
    version: int
    same_rows: bool = False
    table: str = ROOT

    def fields(self) -> dict[str, object]:
        table = {} if self.table == ROOT else {"table": self.table}
        return {"kind": self.kind, "version": self.version, "same_rows": self.same_rows, **table}

    @staticmethod
    def read(fields: Fields) -> Versioned:
        version, same_rows = fields.take("version", int), fields.take("same_rows", bool)
        return Versioned(version=version, same_rows=same_rows, table=fields.named("table"))
