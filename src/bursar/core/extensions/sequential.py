"""Sequential composition: one number per partition, the sum of what each measurement could reveal about anybody in it.

This is how the published systems charge. It never counts less than the profile, and forgets that two questions may
be about different people of one partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from bursar.core.accounting.profile import Footprint, Profile
from bursar.core.extensions.saved_state import Tree
from bursar.errors import Unsupported


@dataclass
class Sequential:
    """spent = the sum over measurements of the largest loss of a unit by that measurement, at its present noise; where
    there are partitions, of the units of one partition, and the largest of these sums.

    Guarantees: a measurement that was refined counts once, with every row at its finest noise; refined as a whole from
    b1 to b2 it costs |A| (1/b2 - 1/b1) more, with |A| the largest column norm of its strategy.
    """

    new_profile: Callable[[], Profile]  # of one measurement by itself
    bought: dict[Hashable, list[Footprint]] = field(default_factory=dict)  # measurements as they were bought
    refined: dict[Hashable, Profile] = field(default_factory=dict)  # those of them that were refined since
    largest: dict[Hashable, list[int]] = field(default_factory=dict)  # by partition
    total: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.total = self.total or self.new_profile().spent_by_partition()

    def add(self, footprints: Iterable[Footprint]) -> None:
        for block, bought in _by_block(footprints).items():
            if block in self.largest:
                profile = self._profile(block).copy()
                profile.add(bought)
                self.refined[block] = profile
                spent = profile.spent_by_partition()
            else:
                self.bought[block] = bought
                spent = self.new_profile().spent_by_partition(bought)
            self.total = self._raised(self.total, block, spent)
            self.largest[block] = spent

    def copy(self) -> Sequential:
        parts = (dict(self.bought), dict(self.refined), dict(self.largest))
        return Sequential(self.new_profile, *parts, self.total)

    def state(self) -> Tree:
        raise Unsupported("where every measurement is charged its largest loss, there are no checkpoints")

    def restore(self, state: Tree) -> None:
        raise Unsupported("where every measurement is charged its largest loss, there are no checkpoints")

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        return max(self.spent_by_partition(plus))

    def spent_by_partition(self, plus: Iterable[Footprint] = ()) -> list[int]:
        total = self.total
        for block, more in _by_block(plus).items():
            total = self._raised(total, block, self._profile(block).spent_by_partition(more))
        return list(total)

    def _raised(self, total: list[int], block: Hashable, spent: list[int]) -> list[int]:
        """The sums with what a measurement costs now instead of what it cost before."""
        before = self.largest.get(block, [0] * len(total))
        return [bound + now - then for bound, now, then in zip(total, spent, before, strict=True)]

    def _profile(self, block: Hashable) -> Profile:
        """The profile of one measurement, which is laid out where it is refined, and forgotten where it is not."""
        if block in self.refined:
            return self.refined[block]
        profile = self.new_profile()
        profile.add(self.bought.get(block, ()))
        return profile


def _by_block(footprints: Iterable[Footprint]) -> dict[Hashable, list[Footprint]]:
    grouped: dict[Hashable, list[Footprint]] = defaultdict(list)
    for footprint in footprints:
        grouped[footprint.block].append(footprint)
    return grouped
