"""The loss profile under replace-one: how well two cells of the domain can be told apart.

Sizes are public there, so a question on which two cells agree costs nothing between them: the count of all rows is
free, and a histogram costs twice what it costs under add-or-remove. The sizes of partitions are public too: a row is
replaced by one of its own partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from bursar.core.domain import Domain
from bursar.core.extensions.pairs import Change, Pairs
from bursar.core.accounting.profile import AddRemove, Footprint

KEPT_PAIRS = 2**25
"""Most numbers that the pairs of all column sets and partitions take up; what comes later keeps only its largest."""


@dataclass
class ReplaceOne:
    """loss(v, v') = sum_j |q_j(v) - q_j(v')|^power times the units of row j's noise; spent is the largest.

    The pairs of each partition are taken by themselves, over the other columns; partitions that were asked the same
    questions share them. Up to 2,048 joint cells of the columns in use every pair is kept. Above that, the least of two
    bounds:
    - a multiple of the add-or-remove profile: |x - y| <= |x| + |y| gives twice it in pure mode; in concentrated mode
      (x - y)^2 <= 2x^2 + 2y^2 gives four times it, and (x - y)^2 <= x^2 + y^2 twice it where rows have one sign;
    - the sum over column sets of each set's own largest pair loss.

    A unit of several rows keeps their number when it is replaced: the number of all rows is public.
    """

    domain: Domain
    around: AddRemove
    parts: dict[int, Pairs] = field(default_factory=dict)  # by partition; 0 for all data where there are none
    factor: int = 2

    def add(self, footprints: Iterable[Footprint]) -> None:
        listed = list(footprints)
        self.around.add(listed)
        self.parts, self.factor = self._with(listed), self._factor(listed)

    def copy(self) -> ReplaceOne:
        return replace(self, around=self.around.copy(), parts=dict(self.parts))

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        return max(self.spent_by_partition(plus))

    def spent_by_partition(self, plus: Iterable[Footprint] = ()) -> list[int]:
        listed = list(plus)
        parts, factor = self._with(listed), self._factor(listed)
        spent = [0] * self.domain.partitions
        wide = any(pairs.joint is None for pairs in parts.values())
        around = self.around.spent_by_partition(listed) if wide else spent
        for place, pairs in parts.items():
            bound = min(factor * around[place], pairs.by_set)
            spent[place] = bound if pairs.joint is None else pairs.joint
        return spent

    def _factor(self, footprints: list[Footprint]) -> int:
        return max([self.factor, *(footprint.norm.pair_factor for footprint in footprints)])

    def _with(self, footprints: list[Footprint]) -> dict[int, Pairs]:
        changes: dict[int, list[Change]] = defaultdict(list)
        for footprint in footprints:
            for change, places in self._changes(footprint, self.domain):
                for place in places:
                    changes[place].append(change)
        parts = dict(self.parts)
        made: dict[tuple[int, ...], Pairs] = {}  # equal changes to equal pairs are equal pairs: one object
        for place, own_changes in changes.items():
            before = parts.get(place, self._nothing)
            alike = (id(before), *map(id, own_changes))
            if alike not in made:
                made[alike] = before.plus(own_changes)
            parts[place] = made[alike]
        return parts

    @staticmethod
    @lru_cache(maxsize=4)
    def _changes(footprint: Footprint, domain: Domain) -> list[tuple[Change, list[int]]]:
        """The changes to pairs, each with the partitions that have it.

        A purchase is priced in the plan, at its admission and when it is booked: the last ones are remembered.
        """
        if domain.partition is None:
            return [(Change.of(footprint, domain), [0])]
        slices = footprint.norm.slices(domain.partition, domain.partitions)
        return [(Change.of(replace(footprint, norm=norm), domain), cells.tolist()) for norm, cells in slices]

    @cached_property
    def _nothing(self) -> Pairs:
        return Pairs(self.domain, KEPT_PAIRS // self.domain.partitions)
