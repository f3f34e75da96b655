"""Which sets of columns a profile's bound is tried on. Not counted as trusted: every set gives a valid bound.

What is spent is the least of some bounds, each of which holds for everybody (accounting.proof.md, section 4). A set
that is left out, or tried in vain, changes how close the least one is and how long it takes to find, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bursar.arrays import Integers
from bursar.core.domain import Domain
from bursar.core.queries import MOST_COLUMNS

if TYPE_CHECKING:
    from bursar.core.accounting.profile import Grid

Columns = tuple[str, ...]

JOINT_SETS = 16
"""How many measured column sets are tried as P besides the empty one, single columns and all columns together."""


@dataclass
class Projections:
    """The P of one profile, and a cell whose loss shows at once that none of them is better."""

    domain: Domain
    grid: Callable[[Columns], Grid]
    tried: list[Columns] | None = None  # the P of the losses as they are; None where they are to be found anew
    cell: dict[str, int] = field(default_factory=dict)  # one whose loss is looked at first; 0 in columns not named
    places: dict[Columns, int] = field(default_factory=dict)  # where the losses of this cell stand

    def copy(self) -> Projections:
        return replace(self, places=dict(self.places))

    def of(self, measured: Iterable[Columns], new: Iterable[Columns]) -> list[Columns]:
        """Which P are tried, with more column sets; found once for those that were measured."""
        more = [columns for columns in new if columns not in measured]
        if more:
            return self._with([*measured, *more])
        if self.tried is None:
            self.tried = self._with(list(measured))
        return self.tried

    def _with(self, sets: list[Columns]) -> list[Columns]:
        """Which P are tried. If all columns in use fit together exactly, only they: that bound is the exact maximum.

        A single set needs no column but the partition's: whatever is projected away, the largest loss stays.
        """
        always = () if self.domain.partition is None else (self.domain.partition,)
        if len(sets) <= 1:
            return [always]
        union = self.domain.ordered([*always, *(name for columns in sets for name in columns)])
        joint = [union] if len(union) <= MOST_COLUMNS else []
        if joint and self.grid(union).exact:
            return joint
        tried = [(), *((name,) for name in union), *joint, *sets[:JOINT_SETS]]
        return list(dict.fromkeys(self.domain.ordered([*always, *columns]) for columns in tried))

    def told(
        self,
        losses: Mapping[Columns, Integers],
        placed: Mapping[Columns, Integers],
        latest: Iterable[Columns],
        enough: int,
    ) -> int:
        """The loss that is kept for one cell after what is placed, which no P has a bound below.

        The cell is the one that was looked at last; where its loss is not `enough`, the worst by what came `latest`, if
        that has a larger one.
        """
        told = self._loss_at_cell(losses, placed)
        for columns in latest:
            if told >= enough:
                break
            before, grid = (self.cell, self.places), self.grid(columns)
            worst = np.argmax(losses.get(columns, 0) + placed.get(columns, np.int64(0)))
            blocks = zip(grid.attrs, np.unravel_index(worst, grid.shape), grid.widths, strict=True)
            self.cell, self.places = self.cell | {name: int(block) * width for name, block, width in blocks}, {}
            if (after := self._loss_at_cell(losses, placed)) <= told:
                self.cell, self.places = before
            told = max(told, after)
        return told

    def _loss_at_cell(self, losses: Mapping[Columns, Integers], placed: Mapping[Columns, Integers]) -> int:
        for columns in {**losses, **placed}.keys() - self.places:
            grid = self.grid(columns)
            blocks = [self.cell.get(name, 0) // width for name, width in zip(grid.attrs, grid.widths, strict=True)]
            self.places[columns] = int(np.ravel_multi_index(blocks, grid.shape)) if blocks else 0
        return sum(loss.item(self.places[columns]) for columns, loss in [*losses.items(), *placed.items()])
