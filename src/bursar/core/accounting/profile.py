"""The loss profile under add-or-remove: how much has been learnt about a unit in each cell.

For each set S of columns that was ever measured, L_S(v) is the loss of a unit in cell v of dom(S). For any set P of
columns, max_p sum_S (max over S \\ P, broadcast on P) L_S bounds the loss of every unit; what is spent is the least
of these bounds over a few P. Where there are partitions, every P has their column, and the least bound is taken for the
units of each partition by themselves.

A grid says how finely the loss over some columns' joint cells is kept. Up to 2^17 joint cells every cell is kept; above
that neighbouring values share a block, which carries the largest loss of its cells. Block widths are powers of two, so
blocks of two grids are nested along every column. Different partitions share a block only where every other column is
one block already.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Protocol

import numpy as np

from bursar.arrays import Integers
from bursar.core.accounting.projections import Columns, Projections
from bursar.core.domain import Domain
from bursar.core.extensions.saved_state import Tree, losses_state, restore_losses
from bursar.core.noise.law import UNIT_BITS
from bursar.core.queries import Norm
from bursar.errors import BudgetError, QueryError

MOST_BLOCKS = 2**17
"""Most blocks of one grid."""

LARGEST_SUM = 2**61
"""In units of 2^-50: sums of losses stop here, above every budget, so that they cannot wrap around."""


@dataclass(frozen=True)
class Grid:
    """Blocks over the joint cells of `attrs` (in domain order); a block spans `widths[i]` values of column i."""

    attrs: tuple[str, ...]
    sizes: tuple[int, ...]
    widths: tuple[int, ...]

    @staticmethod
    def over(domain: Domain, attrs: tuple[str, ...]) -> Grid:
        """The finest grid that is affordable; depends on the public sizes only."""
        names = domain.ordered(attrs)
        sizes = domain.sizes(names)
        widths = [1] * len(sizes)
        while math.prod(blocks := [_blocks(n, w) for n, w in zip(sizes, widths, strict=True)]) > MOST_BLOCKS:
            inner = [i for i, name in enumerate(names) if blocks[i] > 1 and name != domain.partition]
            longest = max(inner or range(len(sizes)), key=lambda i: blocks[i])
            widths[longest] *= 2
        return Grid(names, sizes, tuple(widths))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(_blocks(n, w) for n, w in zip(self.sizes, self.widths, strict=True))

    @property
    def exact(self) -> bool:
        """Whether every block is a single cell."""
        return all(w == 1 for w in self.widths)

    def place(self, norm: Norm, units: int) -> Integers:
        """The loss of a footprint on this grid: per block the largest norm of a cell in it, times `units`.

        The columns of the norm must be exactly those of the grid. The largest product over a block of a product
        grid is the product of the largest factors, so nothing is lost by reducing each part by itself.
        """
        width = dict(zip(self.attrs, self.widths, strict=True))
        result = np.array(units, np.int64)
        order: list[str] = []
        for names, sizes, vector in zip(norm.attrs, norm.sizes, norm.vectors, strict=True):
            part = vector.reshape(sizes)
            for axis, name in enumerate(names):
                part = _coarser(part, axis, width[name])
            result = np.multiply.outer(result, part)
            order += names
        return np.transpose(result, [order.index(name) for name in self.attrs])

    def project(self, loss: Integers, onto: Grid) -> Integers:
        """The largest loss over the columns that `onto` lacks, shaped to be added to an array on `onto`."""
        gone = tuple(i for i, name in enumerate(self.attrs) if name not in onto.attrs)
        shared = [i for i in range(len(self.attrs)) if i not in gone]
        result = loss.max(axis=gone) if gone else loss
        shape = [1] * len(onto.attrs)
        for axis, i in enumerate(shared):
            place = onto.attrs.index(self.attrs[i])
            mine, theirs = self.widths[i], onto.widths[place]
            if theirs > mine:
                result = _coarser(result, axis, theirs // mine)
            elif mine > theirs:
                result = np.repeat(result, mine // theirs, axis=axis)
                result = result[(slice(None),) * axis + (slice(onto.shape[place]),)]
            shape[place] = result.shape[axis]
        return result.reshape(shape)


def added(loss: Integers, more: Integers) -> Integers:
    """The sum of two losses of at most 2^61 each; what would exceed 2^61 is 2^61, whatever is added in any order."""
    total = np.asarray(loss + more)
    return np.minimum(total, LARGEST_SUM, out=total)


def _blocks(size: int, width: int) -> int:
    return -(-size // width)


def _coarser(array: Integers, axis: int, width: int) -> Integers:
    if width == 1:
        return array
    return np.maximum.reduceat(array, np.arange(0, array.shape[axis], width), axis=axis)


LARGEST_LOSS = 2**60
"""In units of 2^-50: an event dearer than 1024, which is more than any budget, is refused before it is added up."""

FEWEST_UNITS = 2**20
"""Losses of one row below so many units are counted in finer ones."""

FINER_BITS = 8
"""Bits by which units are made finer at a time: 2^28 and what rounding adds, below 2^20, stays below 2^30."""

LOW_BITS = 30
"""Bits of the lower part of a norm, where norm and units are multiplied in two steps."""

FEW_BOUNDS = 4
"""More P than these are added up only where the loss of one cell does not show at once that none of them is better."""

KEPT_BOUNDS, KEPT_ADDITIONS = 256, 64
"""Most accumulators that are kept, and for how many additions unused; one that is missing is added up again."""


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """The loss that one event would add: `units` times the norm of a cell, on one version of the data.

    `units` are of 2^-(50 + finer); where `finer` is positive they are below 2^30. `block` is the same for footprints
    of one measurement and of what was refined of it.
    """

    norm: Norm
    units: int
    version: int
    finer: int = 0
    block: Hashable = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.finer < 0 or (self.finer > 0 and self.units >= 2**LOW_BITS):
            raise QueryError("a loss in finer units has units below 2^30")
        loss = max(self.units >> self.finer, self.largest())
        if loss > LARGEST_LOSS:
            raise BudgetError(asked=loss / 2**UNIT_BITS, left=LARGEST_LOSS / 2**UNIT_BITS, unit="loss")

    def largest(self) -> int:
        """The largest loss of a cell, in units of 2^-50, rounded up."""
        return self.of(self.norm.largest())

    def of(self, norm: int) -> int:
        """The loss of a cell, or a pair, of this norm in units of 2^-50, rounded up."""
        return -(-norm * self.units >> self.finer)

    def loss(self, norms: Integers) -> Integers:
        """`of` for an array of norms below 2^62 and losses below 2^62, at most one unit more.

        Products of a finer footprint would need more than 64 bits, so the norm is taken in two parts of which the lower
        has `LOW_BITS` bits; each part's loss is rounded up.
        """
        if self.finer == 0:
            return np.asarray(norms * self.units)
        high, low = (norms >> LOW_BITS) * self.units, (norms & (2**LOW_BITS - 1)) * self.units
        upper = -(-high >> self.finer - LOW_BITS) if self.finer > LOW_BITS else high << LOW_BITS - self.finer
        return np.asarray(upper - (-low >> self.finer))


@lru_cache(maxsize=64)
def norms_on(grid: Grid, norm: Norm) -> Integers:
    """Per block the largest norm of a cell in it; many records, and many plans, have the same rows."""
    return grid.place(norm, 1)


def fine_units(units_of: Callable[[int], int]) -> tuple[int, int]:
    """The units, and how many bits finer than 2^-50 they are: so fine that rounding up costs one part in 2^20.

    Large coefficients call for large noise; a row that changes by one then loses less than 2^-50.
    """
    units, finer = units_of(0), 0
    while units < FEWEST_UNITS:
        finer += FINER_BITS
        units = units_of(finer)
    return units, finer


class Profile(Protocol):
    """Guarantees: `spent(plus)` bounds the loss of every unit of the public domain after everything added so far
    and `plus`; it equals `spent()` after `add(plus)`. It looks at no data."""

    def add(self, footprints: Iterable[Footprint]) -> None: ...

    def spent(self, plus: Iterable[Footprint] = ()) -> int: ...

    def spent_by_partition(self, plus: Iterable[Footprint] = ()) -> list[int]:
        """What `spent(plus)` is the largest of: a bound for the units of each partition; one for all without any."""

    def copy(self) -> Profile:
        """A profile of its own with the same losses; cheap, since arrays are shared and none is ever written to."""

    def state(self) -> Tree:
        """Everything that was added up, as plain values, for a checkpoint."""

    def restore(self, state: Tree) -> None:
        """Make an empty profile into the one whose state it is."""


@dataclass
class Accumulator:
    """The sums of losses over some columns, and which losses are in them, by column set."""

    total: Integers
    losses: dict[Columns, Integers] = field(default_factory=dict)
    largest: int = 0
    added: int = -1  # how often something had been added to the losses; below 0: none are in it yet


@dataclass
class AddRemove:
    """The profile of one version of the data, where neighbours differ by the presence of one unit."""

    domain: Domain
    losses: dict[Columns, Integers] = field(default_factory=dict)
    grids: dict[Columns, Grid] = field(default_factory=dict)
    bounds: dict[Columns, Accumulator] = field(default_factory=dict)
    added: int = 0  # how often something was added
    changed: dict[Columns, int] = field(default_factory=dict)  # by which addition losses changed last, the latest last

    def __post_init__(self) -> None:
        self.projections = Projections(self.domain, self._grid)

    def add(self, footprints: Iterable[Footprint]) -> None:
        self.added += 1
        for columns, more in self._placed(footprints).items():
            before = self.losses.get(columns)
            self.losses[columns] = more if before is None else added(before, more)
            if before is None:
                self.projections.tried = None
            self.changed.pop(columns, None)
            self.changed[columns] = self.added
        if self.added % KEPT_ADDITIONS == 0:  # what is left out has losses of long ago
            self.bounds = {P: bound for P, bound in self.bounds.items() if self.added - bound.added <= KEPT_ADDITIONS}

    def copy(self) -> AddRemove:
        bounds = {onto: replace(bound, losses=dict(bound.losses)) for onto, bound in self.bounds.items()}
        copied = AddRemove(self.domain, dict(self.losses), self.grids, bounds, self.added, dict(self.changed))
        copied.projections = self.projections.copy()
        return copied

    state, restore = losses_state, restore_losses
    """For checkpoints."""

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        if self.domain.partition is not None:
            return max(self.spent_by_partition(plus))
        placed = self._placed(plus)
        if not self.losses and not placed:
            return 0
        rises = {columns: int(self._rise(columns, more, onto=())) for columns, more in placed.items()}
        tried = sorted(self.projections.of(self.losses, placed), key=self._at_least)
        least = self._largest(tried[0], placed, rises)
        better = [onto for onto in tried[1:] if self._at_least(onto) < least]
        told = 0
        if len(better) > FEW_BOUNDS:
            told = self.projections.told(self.losses, placed, placed or [*self.changed][-1:], least)
        for onto in better:
            if max(told, self._at_least(onto)) >= least:
                break  # it is no better, nor are those after it
            least = min(least, self._largest(onto, placed, rises))
        return least

    def _at_least(self, onto: Columns) -> int:
        """What the largest sum of a P was when it was added up last: losses only grow, so it is no less by now."""
        return self.bounds[onto].largest if onto in self.bounds else 0

    def spent_by_partition(self, plus: Iterable[Footprint] = ()) -> list[int]:
        if self.domain.partition is None:
            return [self.spent(plus)]
        placed = self._placed(plus)
        partitions = Grid((self.domain.partition,), (self.domain.partitions,), (1,))
        least = np.full(self.domain.partitions, LARGEST_SUM if self.losses or placed else 0)
        for onto in self.projections.of(self.losses, placed):
            least = np.minimum(least, self._grid(onto).project(self._total(onto, placed), partitions))
        return [int(each) for each in least]

    def _largest(self, onto: Columns, placed: dict[Columns, Integers], rises: dict[Columns, int]) -> int:
        """The largest of the sums of a P. What is placed on none of its columns raises all of them alike."""
        apart = [columns for columns in placed if not set(columns) & set(onto)]
        if len(apart) == len(placed):
            largest = self._accumulated(onto).largest
        else:
            largest = int(self._total(onto, {each: more for each, more in placed.items() if each not in apart}).max())
        return min(largest + sum(rises[columns] for columns in apart), LARGEST_SUM)

    def _rise(self, columns: Columns, more: Integers, onto: Columns) -> Integers:
        """By how much a P's part of the losses on some columns rises."""
        before = self.losses.get(columns)
        return self._change(self._grid(columns), before, more if before is None else added(before, more), onto)

    def _total(self, onto: Columns, placed: dict[Columns, Integers]) -> Integers:
        """The sums of a P after what is placed."""
        total = self._accumulated(onto).total
        for columns, more in placed.items():
            total = added(total, self._rise(columns, more, onto))
        return total

    def _change(self, grid: Grid, before: Integers | None, after: Integers, onto: Columns) -> Integers:
        if not set(grid.attrs) & set(onto):  # one number: what the largest loss rises by
            return np.asarray(after.max() - (0 if before is None else before.max()))
        target = self._grid(onto)
        change = grid.project(after, target)
        return change if before is None else change - grid.project(before, target)

    def _accumulated(self, onto: Columns) -> Accumulator:
        """The sums of the losses on some columns, with what came since they were added up last."""
        if onto not in self.bounds:
            if len(self.bounds) >= KEPT_BOUNDS:
                self.bounds.clear()
            self.bounds[onto] = Accumulator(np.zeros(self._grid(onto).shape, np.int64))
        accumulator = self.bounds[onto]
        if accumulator.added != self.added:
            for columns in takewhile(lambda each: self.changed[each] > accumulator.added, reversed(self.changed)):
                before, loss = accumulator.losses.get(columns), self.losses[columns]
                accumulator.total = added(accumulator.total, self._change(self._grid(columns), before, loss, onto))
                accumulator.losses[columns] = loss
            accumulator.largest, accumulator.added = int(accumulator.total.max()), self.added
        return accumulator

    def _grid(self, columns: Columns) -> Grid:
        if columns not in self.grids:
            self.grids[columns] = Grid.over(self.domain, columns)
        return self.grids[columns]

    def _placed(self, footprints: Iterable[Footprint]) -> dict[Columns, Integers]:
        placed: dict[Columns, Integers] = {}
        for footprint in footprints:
            columns = columns_of(footprint.norm, self.domain)
            loss = footprint.loss(norms_on(self._grid(columns), footprint.norm))
            placed[columns] = added(placed[columns], loss) if columns in placed else loss
        return placed


def columns_of(norm: Norm, domain: Domain) -> Columns:
    """The columns of a norm in the order of the domain; refused where they are not as the domain has them."""
    for names, sizes in zip(norm.attrs, norm.sizes, strict=True):
        if not domain.has(names, sizes):
            raise QueryError("a strategy does not fit the columns of the data")
    return domain.ordered(norm.columns)
