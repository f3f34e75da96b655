"""The loss profile under replace-one: how well two cells of the domain can be told apart.

Sizes are public there, so a question on which two cells agree costs nothing between them: the count of all rows is
free, and a histogram costs twice what it costs under add-or-remove. The sizes of partitions are public too: a row is
replaced by one of its own partition.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from bursar.arrays import Integers
from bursar.core.accounting.profile import LARGEST_SUM, AddRemove, Footprint, added, columns_of
from bursar.core.accounting.projections import Columns
from bursar.core.domain import Domain
from bursar.core.extensions.pairs import PAIR_CELLS
from bursar.core.extensions.saved_state import Tree, int_bytes, ints_of
from bursar.core.queries import MOST_COLUMNS, Norm

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
        self.around.add(filter(self._tells, listed))
        self.parts, self.factor = self._with(listed), self._factor(listed)

    def copy(self) -> ReplaceOne:
        return replace(self, around=self.around.copy(), parts=dict(self.parts))

    def state(self) -> Tree:
        different = {id(pairs): pairs for pairs in self.parts.values()}
        numbers = dict(zip(different, range(len(different)), strict=True))
        places = [[place, numbers[id(pairs)]] for place, pairs in self.parts.items()]
        return [self.around.state(), self.factor, [pairs.state() for pairs in different.values()], places]

    def restore(self, state: Tree) -> None:
        around, self.factor, different, places = state
        self.around.restore(around)
        pairs = [self._nothing.restored(each) for each in different]
        self.parts = {place: pairs[number] for place, number in places}

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        return max(self.spent_by_partition(plus))

    def spent_by_partition(self, plus: Iterable[Footprint] = ()) -> list[int]:
        listed = list(plus)
        parts, factor = self._with(listed), self._factor(listed)
        spent = [0] * self.domain.partitions
        wide = any(pairs.joint is None for pairs in parts.values())
        around = self.around.spent_by_partition(filter(self._tells, listed)) if wide else spent
        for place, pairs in parts.items():
            bound = min(factor * around[place], pairs.by_set)
            spent[place] = bound if pairs.joint is None else pairs.joint
        return spent

    def _tells(self, footprint: Footprint) -> bool:
        """Whether two cells can be told apart at all: not by the count of all rows, which adds to no bound."""
        return any(footprint.norm.columns) or any(each.largest for each, _ in self._changes(footprint, self.domain))

    def _factor(self, footprints: list[Footprint]) -> int:
        return max([self.factor, *(footprint.norm.pair_factor for footprint in footprints)])

    def _with(self, footprints: list[Footprint]) -> dict[int, Pairs]:
        changes: dict[int, list[Change]] = defaultdict(list)
        for footprint in footprints:
            for change, places in self._changes(footprint, self.domain):
                for place in places:
                    changes[place].append(change)
        parts = dict(self.parts)
        changed: dict[tuple[int, ...], Pairs] = {}  # equal changes to equal pairs are equal pairs: one object
        for place, own_changes in changes.items():
            before = parts.get(place, self._nothing)
            alike = (id(before), *map(id, own_changes))
            if alike not in changed:
                changed[alike] = before.plus(own_changes)
            parts[place] = changed[alike]
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


class Change(NamedTuple):
    """What a footprint adds on its columns: the loss of every pair of cells, if they are few, and of the worst one."""

    columns: Columns
    loss: Integers | None
    largest: int

    @staticmethod
    def of(footprint: Footprint, domain: Domain) -> Change:
        """The pair losses of a footprint, with cells numbered in the order of the domain."""
        norm = footprint.norm
        columns, matrix = columns_of(norm, domain), norm.pairs()
        if matrix is None:
            return Change(columns, None, footprint.of(_largest_pair(norm)))
        numbers = np.arange(len(matrix)).reshape(domain.sizes(norm.columns))
        place = numbers.transpose([norm.columns.index(name) for name in columns]).ravel()
        ordered = matrix if columns == norm.columns else matrix[np.ix_(place, place)]
        # A footprint loses at most 2^60 in a cell, hence at most 2^62 in a pair: the product cannot wrap around.
        loss: Integers = np.minimum(footprint.loss(ordered), LARGEST_SUM)
        return Change(columns, loss, footprint.of(int(matrix.max(initial=0))))


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pair losses of one partition, or of all data where there are none; never changed, only built upon.

    `room` is how many numbers may be kept; column sets that come later keep only their largest loss. `joint` is the
    largest loss of a pair of joint cells of all columns; None where there are too many to compare.
    """

    domain: Domain
    room: int
    complete: Mapping[Columns, Integers] = field(default_factory=dict)  # column sets whose pairs are all kept
    most: Mapping[Columns, int] = field(default_factory=dict)  # the largest loss of each of `complete`
    large: Mapping[Columns, int] = field(default_factory=dict)  # what is not in `complete`: bounds on the largest loss
    columns: Columns = ()
    total: Integers | None = None  # the sum of `complete` over the pairs of joint cells, where there is room for it
    joint: int | None = 0

    def plus(self, changes: Iterable[Change]) -> Pairs:
        matrices, most, large = dict(self.complete), dict(self.most), dict(self.large)
        new: list[tuple[Columns, Integers]] = []
        for columns, loss, largest in changes:
            if loss is not None and columns in matrices:
                matrices[columns] = added(matrices[columns], loss)
                new.append((columns, loss))
            elif loss is not None and loss.size + sum(matrix.size for matrix in matrices.values()) <= self.room:
                matrices[columns] = loss
                new.append((columns, loss))
            else:
                large[columns] = large.get(columns, 0) + largest
        most |= {columns: int(matrices[columns].max(initial=0)) for columns, _ in new}
        names = self.domain.ordered(name for columns in [*matrices, *large] for name in columns)
        if large or len(names) > MOST_COLUMNS or self.domain.cells(names) > PAIR_CELLS:
            return replace(self, complete=matrices, most=most, large=large, columns=names, total=None, joint=None)
        if self.total is None or names != self.columns:
            total = _summed(self.domain, names, matrices.items(), np.zeros((self.domain.cells(names),) * 2, np.int64))
        else:
            total = _summed(self.domain, names, new, self.total)
        joint, fits = int(total.max(initial=0)), total.size <= self.room
        return replace(self, complete=matrices, most=most, columns=names, total=total if fits else None, joint=joint)

    def state(self) -> Tree:
        """Everything but `most`, which `complete` tells, and `total`, which is added up anew with the next change."""
        matrices = [[list(columns), int_bytes(matrix)] for columns, matrix in self.complete.items()]
        return [
            matrices,
            [[list(columns), most] for columns, most in self.large.items()],
            list(self.columns),
            self.joint,
        ]

    def restored(self, state: Tree) -> Pairs:
        matrices, large, names, joint = state
        pairs = {tuple(columns): _square(ints_of(matrix)) for columns, matrix in matrices}
        bounds = {tuple(columns): largest for columns, largest in large}
        most = {columns: int(matrix.max(initial=0)) for columns, matrix in pairs.items()}
        return replace(self, complete=pairs, most=most, large=bounds, columns=tuple(names), joint=joint)

    @property
    def by_set(self) -> int:
        """The sum over column sets of each one's largest pair loss."""
        return sum(self.most.values()) + sum(self.large.values())


def _square(numbers: Integers) -> Integers:
    return numbers.reshape(math.isqrt(len(numbers)), -1)


def _largest_pair(norm: Norm) -> int:
    """Upper bound on the loss of a pair of cells. One row of one sign differs by no more than its largest value.

    Other kinds of norm have masks that are not their rows, and know themselves.
    """
    single = type(norm) is Norm and norm.one_sign and all(mask.rows == 1 for mask in norm.masks)
    return norm.largest() if single else norm.largest_pair()


def _summed(domain: Domain, columns: Columns, losses: Iterable[tuple[Columns, Integers]], total: Integers) -> Integers:
    """The total with losses on fewer columns added to it, at every pair of joint cells."""
    numbers = np.arange(domain.cells(columns)).reshape(domain.sizes(columns))
    for names, matrix in losses:
        cells = np.unravel_index(numbers.ravel(), numbers.shape or (1,))
        coordinates = [cells[columns.index(name)] for name in names]
        place = np.ravel_multi_index(coordinates, domain.sizes(names)) if names else np.zeros(len(total), np.int64)
        total = added(total, matrix[np.ix_(place, place)])
    return total
