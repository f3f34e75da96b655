"""The book: everything spent on one data set, over all versions of its data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bursar.core.accounting.accountant import Accountant
from bursar.core.accounting.events import Event, Versioned
from bursar.core.accounting.profile import Footprint, Profile


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
