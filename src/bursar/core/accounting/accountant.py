"""Accountants: what an event costs. Events come from the log, prices from the noise that was really drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from bursar.core.accounting.events import KINDS, Event
from bursar.core.accounting.kind import PaidEvent, Versioned
from bursar.core.accounting.profile import Footprint, Profile
from bursar.core.domain import Unit
from bursar.core.extensions.refine import difference
from bursar.core.extensions.renyi import LARGEST_ORDER, SMALLEST_ORDER
from bursar.core.extensions.select import selected_units
from bursar.core.extensions.sparse_vector import opened_units
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.queries import LinearMap, Predicate, Product, Stack, Thresholds, Transform
from bursar.errors import ConfigError, Unsupported


class Mode(Enum):
    """The ways of adding up privacy loss.

    PURE adds up log ratios; CONCENTRATED what bounds the divergences of every order a, each over a; RENYI the
    divergences of one order a, over a: what Gaussian noise costs is then the same number as in CONCENTRATED.
    """

    PURE = "epsilon"
    CONCENTRATED = "rho"
    RENYI = "rdp"

    @property
    def unit(self) -> str:
        """The name of the number, for people."""
        return "epsilon" if self is Mode.PURE else "rho"


@dataclass(frozen=True, kw_only=True)
class Accountant:
    """Prices events for a unit of up to k rows: k times the pure loss, k^2 times the concentrated one; in RENYI mode
    the divergence, of the order that is fixed here, for a change by k.

    Guarantees: an event it does not know, or a strategy of a kind it does not know, is refused, never free; every
    figure is rounded up.
    """

    mode: Mode
    unit: Unit
    order: int | None = None  # in RENYI mode, and in no other

    def __post_init__(self) -> None:
        if self.mode is not Mode.RENYI and self.order is not None:
            raise ConfigError("an order belongs to Renyi accounting, and to no other")
        if self.mode is Mode.RENYI and self.order not in range(SMALLEST_ORDER, LARGEST_ORDER + 1):
            raise ConfigError(f"Renyi accounting needs an order between {SMALLEST_ORDER} and {LARGEST_ORDER}")

    @property
    def power(self) -> int:
        """L(v) = sum |q_j(v)| / b_j adds first powers, R(v) = sum q_j(v)^2 / (2 sigma_j^2) adds squares."""
        return 1 if self.mode is Mode.PURE else 2

    def units(self, noise: Noise, finer: int = 0) -> int:
        """The loss of one row that each row of a unit changes by one, so k rows by k, in units of 2^-(50 + finer)."""
        if self.mode is Mode.PURE:
            if noise.kind is not NoiseKind.LAPLACE:
                raise Unsupported(
                    "a budget in epsilon alone cannot pay for Gaussian noise; declare epsilon and delta, or rho"
                )
            return noise.pure_units(change=self.unit.max_contributions, finer=finer)
        if self.order is not None:
            return noise.renyi_units(order=self.order, change=self.unit.max_contributions, finer=finer)
        return noise.concentrated_units(change=self.unit.max_contributions, finer=finer)

    difference, opened_units, selected_units = difference, opened_units, selected_units
    """The prices of extensions: a closed list."""

    def footprints(self, event: Event, block: Hashable = None) -> tuple[Footprint, ...]:
        """What an event adds to the profile; a refinement adds what its rows did not lose yet.

        `block` is what the footprints of a measurement, a sparse vector or a selection are filed under, the event
        itself where nothing is given; those of a refinement are filed under the block that it refines.
        """
        if type(event) not in KINDS.values():
            raise Unsupported(f"no accountant knows events of kind {type(event).__name__}")
        return event.footprints(self, event if block is None else block) if isinstance(event, PaidEvent) else ()

    def over_rows(
        self, strategy: LinearMap, *, units: int, finer: int, version: int, block: Hashable
    ) -> tuple[Footprint, ...]:
        """The footprints of a strategy of which each row that changes by one loses so many units."""
        if not isinstance(strategy, Product | Stack | Transform | Predicate | Thresholds):
            raise Unsupported(f"no accountant knows strategies of kind {type(strategy).__name__}")
        norms = strategy.norms(self.power)
        return tuple(Footprint(norm=norm, units=units, version=version, finer=finer, block=block) for norm in norms)

    def all_footprints(self, events: Iterable[Event]) -> list[Footprint]:
        return [footprint for event in events for footprint in self.footprints(event)]


@dataclass
class Book:
    """One profile per generation of rows; versions that only added rows share the profile of the one before.

    Guarantees: spent = the sum over generations of each one's largest loss, since after a change of rows the same
    person may sit in another cell.
    Edge cases: where units have a column, every version is a generation of its own. A new row of a unit that has too
    many may take the place of one that was counted before, and then a counted row did go away.
    """

    accountant: Accountant
    new_profile: Callable[[], Profile]
    profiles: dict[int, Profile] = field(default_factory=dict)
    generations: dict[int, int] = field(default_factory=dict)  # version -> the version whose profile it shares
    entries: int = 0  # the position of the last event; how many there were, where none was given
    known: int | None = None  # what is spent, where nothing was added since it was worked out

    def add(self, event: Event, position: int | None = None) -> None:
        """Add an event, and say where it stands in the log if others before it were left out."""
        self.entries, self.known = self.entries + 1 if position is None else position, None
        if isinstance(event, Versioned):
            row_is_unit = self.accountant.unit.column is None
            shares = event.same_rows and row_is_unit and event.version - 1 in self.generations
            self.generations[event.version] = self.generations[event.version - 1] if shares else event.version
        for generation, footprints in self._by_generation(self.accountant.footprints(event, self.entries)).items():
            self._profile(generation).add(footprints)

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        """Units of 2^-50 after everything added so far and `plus`."""
        more = self._by_generation(plus)
        if not more and self.known is not None:
            return self.known
        spent = sum(self._profile(g).spent(more.get(g, ())) for g in sorted({*self.profiles, *more}))
        self.known = self.known if more else spent
        return spent

    def spent_by_partition(self) -> list[int]:
        """What is spent on rows of each partition that stay there in all versions; in units of 2^-50.

        The largest of these is what is spent, where there is one generation of rows.
        """
        spent = (profile.spent_by_partition() for profile in self.profiles.values())
        return [sum(each) for each in zip(self.new_profile().spent_by_partition(), *spent, strict=True)]

    def copy(self) -> Book:
        """A book with the same entries; what is added to one does not show in the other."""
        profiles = {generation: profile.copy() for generation, profile in self.profiles.items()}
        return Book(self.accountant, self.new_profile, profiles, dict(self.generations), self.entries)

    def price(self, events: Iterable[Event], besides: Iterable[Footprint] = ()) -> int:
        """By how much the events would raise what is spent, `besides` what is set aside already.

        Edge cases: 0 where they lower it, as columns can that make a closer bound worth trying.
        """
        others = list(besides)
        return max(self.spent([*others, *self.accountant.all_footprints(events)]) - self.spent(others), 0)

    def _profile(self, generation: int) -> Profile:
        if generation not in self.profiles:
            self.profiles[generation] = self.new_profile()
        return self.profiles[generation]

    def _by_generation(self, footprints: Iterable[Footprint]) -> dict[int, list[Footprint]]:
        grouped: dict[int, list[Footprint]] = defaultdict(list)
        for footprint in footprints:
            grouped[self.generations.get(footprint.version, footprint.version)].append(footprint)
        return grouped
