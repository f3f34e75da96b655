"""Accountants: what an event costs. Events come from the log, prices from the noise that was really drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from bursar.core.accounting.events import KINDS, Event
from bursar.core.accounting.kind import ROOT, PaidEvent, Versioned
from bursar.core.accounting.profile import Footprint, Profile
from bursar.core.domain import Unit
from bursar.core.extensions.carried import Carried
from bursar.core.extensions.distinct import over_units
from bursar.core.extensions.partitions import losses_by_partition
from bursar.core.extensions.refine import difference
from bursar.core.extensions.relations import TableTerms, Versions, check_known, losses_by_table
from bursar.core.extensions.renyi import LARGEST_ORDER, SMALLEST_ORDER
from bursar.core.extensions.saved_state import book_state, restore_book
from bursar.core.extensions.select import selected_units
from bursar.core.extensions.sparse_vector import opened_units
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.queries import Distinct, LinearMap, Predicate, Product, Stack, Thresholds, Transform
from bursar.errors import ConfigError, LedgerError, Unsupported


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

    def units(self, noise: Noise, finer: int = 0, *, change: int | None = None) -> int:
        """The loss of one row for a unit that changes it by `change`, in units of 2^-(50 + finer).

        Without `change`, each row of the unit changes it by one, so k rows by k.
        """
        change = self.unit.max_contributions if change is None else change
        if self.mode is Mode.PURE:
            if noise.kind is not NoiseKind.LAPLACE:
                raise Unsupported(
                    "a budget in epsilon alone cannot pay for Gaussian noise; declare epsilon and delta, or rho"
                )
            return noise.pure_units(change=change, finer=finer)
        if self.order is not None:
            return noise.renyi_units(order=self.order, change=change, finer=finer)
        return noise.concentrated_units(change=change, finer=finer)

    difference, opened_units, selected_units, over_units = difference, opened_units, selected_units, over_units
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
        """The footprints of a strategy; `units` is the loss of each row that changes by one."""
        if not isinstance(strategy, Product | Stack | Transform | Predicate | Thresholds | Distinct):
            raise Unsupported(f"no accountant knows strategies of kind {type(strategy).__name__}")
        norms = strategy.norms(self.power)
        return tuple(Footprint(norm=norm, units=units, version=version, finer=finer, block=block) for norm in norms)


@dataclass
class Book:
    """One profile per generation of rows; versions that only added rows share the profile of the one before.

    Where there are further private tables, each event is priced by the terms of the one table that it looks at, which
    its version says, and the generations of every table have profiles of their own.

    Guarantees: spent = the sum over generations of all tables of each one's largest loss, since after a change of rows
    the same person may sit in another cell, and a person has rows in every table; and what is carried over, which is
    everybody's loss.
    Edge cases: where units have a column, every version is a generation of its own. A new row of a unit that has too
    many may take the place of one that was counted before, and then a counted row did go away.
    """

    accountant: Accountant
    new_profile: Callable[[], Profile]
    profiles: dict[int, Profile] = field(default_factory=dict)
    generations: dict[int, int] = field(default_factory=dict)  # version -> the version whose profile it shares
    entries: int = 0  # the position of the last event; how many there were, where none was given
    last_spent: int | None = None  # what is spent, where nothing was added since it was worked out
    further: Mapping[str, TableTerms] = field(default_factory=dict)  # of private tables beside the first, by name
    versions: Versions = field(default_factory=Versions)  # of all tables
    carried: int = 0  # what another ledger about the same people has spent, or may; in units of 2^-50

    def add(self, event: Event, position: int | None = None) -> None:
        """Add an event, and say where it stands in the log if others before it were left out."""
        self.entries, self.last_spent = self.entries + 1 if position is None else position, None
        check_known(self, event)
        self.versions.add(event)
        if type(event) is Carried:
            self.carried += event.units
        if type(event) is Versioned:
            row_is_unit = self.accountant.unit.column is None
            shares = event.same_rows and row_is_unit and event.version - 1 in self.generations
            self.generations[event.version] = self.generations[event.version - 1] if shares else event.version
        for generation, footprints in self._by_generation(self.footprints(event, self.entries)).items():
            self._profile(generation).add(footprints)

    def footprints(self, event: Event, block: Hashable = None) -> tuple[Footprint, ...]:
        """What an event adds to the profiles, by the terms of the table that it looks at."""
        terms = self._terms(event.version) if isinstance(event, PaidEvent) else None
        return (self.accountant if terms is None else terms.accountant).footprints(event, block)

    def all_footprints(self, events: Iterable[Event]) -> list[Footprint]:
        return [footprint for event in events for footprint in self.footprints(event)]

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        """Units of 2^-50 after everything added so far and `plus`."""
        more = self._by_generation(plus)
        if not more and self.last_spent is not None:
            return self.last_spent
        profiles = ((g, self.profiles.get(g) or self._empty(g)) for g in sorted({*self.profiles, *more}))
        spent = self.carried + sum(profile.spent(more.get(g, ())) for g, profile in profiles)
        self.last_spent = self.last_spent if more else spent
        return spent

    spent_by_table, spent_by_partition = losses_by_table, losses_by_partition
    """What is spent on parts of the data: a closed list."""

    def copy(self) -> Book:
        """A book with the same entries; what is added to one does not show in the other."""
        profiles = {generation: profile.copy() for generation, profile in self.profiles.items()}
        entered = (profiles, dict(self.generations), self.entries, None)
        return Book(self.accountant, self.new_profile, *entered, self.further, self.versions.copy(), self.carried)

    state, restore = book_state, restore_book
    """For checkpoints."""

    def price(self, events: Iterable[Event]) -> int:
        """By how much the events would raise what is spent.

        Edge cases: 0 where they lower it, as columns can that make a closer bound worth trying.
        """
        return max(self.spent(self.all_footprints(events)) - self.spent(), 0)

    def _profile(self, generation: int) -> Profile:
        if generation not in self.profiles:
            self.profiles[generation] = self._empty(generation)
        return self.profiles[generation]

    def _empty(self, generation: int) -> Profile:
        terms = self._terms(generation)
        return self.new_profile() if terms is None else terms.new_profile()

    def _terms(self, version: int) -> TableTerms | None:
        """Those of the further table that a version is of; None for the first one.

        Edge cases: where there are several tables, a version that was not declared is of none, and refused.
        """
        table = self.versions.tables.get(version)
        if table is None and self.further:
            raise LedgerError("an event looks at a version of the data that was not declared")
        return None if table is None or table == ROOT else self.further[table]

    def _by_generation(self, footprints: Iterable[Footprint]) -> dict[int, list[Footprint]]:
        grouped: dict[int, list[Footprint]] = defaultdict(list)
        for footprint in footprints:
            grouped[self.generations.get(footprint.version, footprint.version)].append(footprint)
        return grouped
