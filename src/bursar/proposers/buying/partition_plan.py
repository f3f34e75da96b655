"""What to buy so that every partition of a window is known with noise of at most one scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Event, Measured, Mode, Noise, NoiseKind, Refined
from bursar.core.grant import Verbs
from bursar.core.queries import LinearMap, Product
from bursar.planner.offer import Views
from bursar.tails.grouped_rows import DrawTerm, GroupedRows, Terms
from bursar.views.measurements import products_of
from bursar.views.partition_measurements import PartitionMeasurements, placed

SAME = 1 + 1e-9
"""Scales that differ by less count as equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionPlan:
    """One fresh measurement, and refinements of earlier ones, each with the partitions that they are about."""

    strategy: Product  # of each partition
    fresh: Measured | None
    missing: Integers
    refined: tuple[Refined, ...]
    known: tuple[Integers, ...]  # the partitions of each refinement

    @property
    def events(self) -> tuple[Event, ...]:
        return (*(() if self.fresh is None else (self.fresh,)), *self.refined)

    @property
    def buys(self) -> int:
        return 0 if self.fresh is None else self.fresh.strategy.rows

    @property
    def reuses(self) -> int:
        return sum(len(event.rows) for event in self.refined)

    def planned(self, shelf: PartitionMeasurements) -> PartitionMeasurements:
        """The shelf with the noise that it will have, and without values for what is bought."""
        return self._filled(shelf, lambda event: np.zeros(event.strategy.rows, np.int64))

    def bought(self, shelf: PartitionMeasurements, verbs: Verbs) -> PartitionMeasurements:
        """The shelf after the purchase."""

        def values(event: Measured | Refined) -> Integers:
            if isinstance(event, Measured):
                return verbs.measure(event.strategy, event.noise).values
            return verbs.refine(event.block, event.rows.tolist(), event.after).values

        return self._filled(shelf, values)

    def _filled(
        self, shelf: PartitionMeasurements, values: Callable[[Measured | Refined], Integers]
    ) -> PartitionMeasurements:
        after = shelf.copy()
        if self.fresh is not None:
            after.add(self.missing, values(self.fresh), self.fresh.noise, block=0)
        for event, partitions in zip(self.refined, self.known, strict=True):
            after.add(partitions, values(event), event.after, block=event.block)
        return after


def basket_of(shelf: PartitionMeasurements, window: Integers, scale: float, views: Views) -> PartitionPlan:
    """With Laplace noise what is known too coarsely is refined; with Gaussian noise a fresh measurement adds to it."""
    coarse = window[shelf.scales[window] > SAME * scale]
    if views.mode is Mode.PURE:
        noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
        missing = coarse[~np.isfinite(shelf.scales[coarse])]
        known = _same_noise(shelf, coarse[np.isfinite(shelf.scales[coarse])])
        refined = tuple(_refinement(shelf, partitions, noise, views) for partitions in known)
        return PartitionPlan(
            strategy=shelf.strategy,
            fresh=_fresh(shelf, missing, noise, views),
            missing=missing,
            refined=refined,
            known=tuple(known),
        )
    had = float(shelf.scales[coarse].max(initial=scale * SAME))
    more = 1 / math.sqrt(1 / scale**2 - (1 / had**2 if math.isfinite(had) else 0.0))
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=more)
    return PartitionPlan(
        strategy=shelf.strategy, fresh=_fresh(shelf, coarse, noise, views), missing=coarse, refined=(), known=()
    )


def _fresh(shelf: PartitionMeasurements, partitions: Integers, noise: Noise, views: Views) -> Measured | None:
    column = views.domain.partition
    if len(partitions) == 0 or column is None:
        return None
    strategy = placed(shelf.strategy, column, partitions, views.domain[column].size)
    return Measured(strategy=strategy, noise=noise, version=views.version)


def _same_noise(shelf: PartitionMeasurements, partitions: Integers) -> list[Integers]:
    """Partitions that one refinement can be about: measured together, and with the same noise now."""
    kinds = np.stack([shelf.blocks[partitions], shelf.scales[partitions]])
    _, place = np.unique(kinds, axis=1, return_inverse=True)
    groups = [partitions[place.ravel() == kind] for kind in range(int(place.max(initial=-1)) + 1)]
    return [group[np.argsort(shelf.firsts[group])] for group in groups]


def _refinement(shelf: PartitionMeasurements, partitions: Integers, noise: Noise, views: Views) -> Refined:
    block = int(shelf.blocks[partitions[0]])
    rows = (shelf.firsts[partitions][:, None] + np.arange(shelf.strategy.rows)).ravel()
    before = Noise(kind=NoiseKind.LAPLACE, scale=float(shelf.scales[partitions[0]]))
    measured = views.shelves.measured(block)
    return Refined(block=block, measured=measured, rows=rows, before=before, after=noise, version=views.version)


MOST_ROWS = 2048
"""Most answers of a question that is put together partition by partition."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionPiece:
    """Rows of a question: windows of partitions, each with every row of a product over the other columns."""

    windows: Integers  # (windows, partitions)
    rest: Product
    shape: tuple[int, ...]  # rows of each mask of the question's product
    place: int  # of the windows among them

    def arranged(self, grid: NDArray[Any]) -> NDArray[Any]:
        """An array of (windows, rows of the rest) in the order of the workload's rows."""
        rest = [rows for place, rows in enumerate(self.shape) if place != self.place]
        return np.moveaxis(grid.reshape(len(self.windows), *rest), 0, self.place).reshape(-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPiece:
    """A piece with the weights of its rows on a strategy."""

    piece: PartitionPiece
    weights: Reals
    sizes: tuple[tuple[tuple[float, int], ...], ...]  # per row of the rest: the different |weights|, and how many


def pieces_of(wanted: LinearMap, column: str | None) -> list[PartitionPiece] | None:
    """The question by products; None where it is not windows of partitions times other columns."""
    products = products_of(wanted)
    if column is None or not 1 <= wanted.rows <= MOST_ROWS or sum(part.rows for part in products) < wanted.rows:
        return None
    pieces = []
    for part in products:
        own = [mask for mask in part.masks if column in mask.attrs]
        if len(own) != 1 or own[0].attrs != (column,):
            return None
        (mask,) = own
        rest = Product(tuple(other for other in part.masks if other is not mask))
        windows = mask.steps.at_cells(np.arange(mask.sizes[0]))
        shape = tuple(each.rows for each in part.masks)
        pieces.append(PartitionPiece(windows=windows, rest=rest, shape=shape, place=part.masks.index(mask)))
    return pieces


def law_of(asked: Sequence[WeightedPiece], shelf: PartitionMeasurements, mode: Mode) -> GroupedRows:
    """How far off the answers are that a shelf gives; every partition that is asked about must be there."""
    kind = NoiseKind.LAPLACE if mode is Mode.PURE else NoiseKind.GAUSSIAN
    rows: list[Terms] = []
    for part in asked:
        grid = np.empty((len(part.piece.windows), len(part.sizes)), object)
        for place, window in enumerate(part.piece.windows):
            used = np.flatnonzero(window)
            found, counts = np.unique(
                np.stack([np.abs(window[used]), shelf.scales[used], shelf.merged[used]]), axis=1, return_counts=True
            )
            for row, sizes in enumerate(part.sizes):
                grid[place, row] = tuple(
                    DrawTerm(times * size, Noise(kind=kind, scale=scale), count * number, bool(merged))
                    for (times, scale, merged), count in zip(found.T.tolist(), counts.tolist(), strict=True)
                    for size, number in sizes
                )
        rows += part.piece.arranged(grid).tolist()
    return GroupedRows(rows=tuple(rows))


def values_of(asked: Sequence[WeightedPiece], shelf: PartitionMeasurements) -> Reals:
    """The answers that a shelf gives."""
    made = [part.piece.arranged((part.piece.windows @ shelf.values) @ part.weights.T) for part in asked]
    return np.concatenate(made)
