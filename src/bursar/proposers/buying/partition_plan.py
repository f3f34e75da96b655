"""What to buy so that every partition of a window is known with noise of at most one scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Event, Measured, Mode, Noise, NoiseKind, Refined
from bursar.core.queries import LinearMap, Product
from bursar.planner.grant import Verbs
from bursar.planner.offer import Views
from bursar.tails import DrawTerm, GroupedRows, Terms
from bursar.views.histograms import Scalar
from bursar.views.measurements import products_of
from bursar.views.partition_measurements import PartitionMeasurements, placed

EQUAL_SCALES_WITHIN = 1 + 1e-9
"""Scales that differ by less count as equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionPlan:
    """One fresh measurement, and refinements of earlier ones, each with the partitions that they are about."""

    strategy: Product  # of each partition
    fresh: Measured | None
    missing: Integers
    refined: tuple[Refined, ...]
    refined_partitions: tuple[Integers, ...]  # the partitions of each refinement

    @property
    def events(self) -> tuple[Event, ...]:
        return (*(() if self.fresh is None else (self.fresh,)), *self.refined)

    @property
    def buys(self) -> int:
        """How many rows are measured anew."""
        return 0 if self.fresh is None else self.fresh.strategy.rows

    @property
    def reuses(self) -> int:
        return sum(len(event.rows) for event in self.refined)

    def planned(self, measurements: PartitionMeasurements) -> PartitionMeasurements:
        """The measurements with the noise that they will have, and without values for what is bought."""
        return self._filled(measurements, lambda event: np.zeros(event.strategy.rows, np.int64))

    def bought(self, measurements: PartitionMeasurements, verbs: Verbs) -> PartitionMeasurements:
        """The measurements after the purchase."""

        def values(event: Measured | Refined) -> Integers:
            if isinstance(event, Measured):
                return verbs.measure(event.strategy, event.noise).values
            return verbs.refine(event.block, event.rows.tolist(), event.after).values

        return self._filled(measurements, values)

    def _filled(
        self, measurements: PartitionMeasurements, values: Callable[[Measured | Refined], Integers]
    ) -> PartitionMeasurements:
        after = measurements.copy()
        if self.fresh is not None:
            after.add(self.missing, values(self.fresh), self.fresh.noise, block=0)
        for event, partitions in zip(self.refined, self.refined_partitions, strict=True):
            after.add(partitions, values(event), event.after, block=event.block)
        return after


def partition_plan(measurements: PartitionMeasurements, window: Integers, scale: float, views: Views) -> PartitionPlan:
    """With Laplace noise what is known too coarsely is refined; with Gaussian noise a fresh measurement adds to it."""
    coarse = window[measurements.scales[window] > EQUAL_SCALES_WITHIN * scale]
    if views.mode is Mode.PURE:
        noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
        missing = coarse[~np.isfinite(measurements.scales[coarse])]
        groups = _same_noise(measurements, coarse[np.isfinite(measurements.scales[coarse])])
        refined = tuple(_refinement(measurements, partitions, noise, views) for partitions in groups)
        return PartitionPlan(
            strategy=measurements.strategy,
            fresh=_fresh(measurements, missing, noise, views),
            missing=missing,
            refined=refined,
            refined_partitions=tuple(groups),
        )
    had = float(measurements.scales[coarse].max(initial=scale * EQUAL_SCALES_WITHIN))
    more = 1 / math.sqrt(1 / scale**2 - (1 / had**2 if math.isfinite(had) else 0.0))
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=more)
    return PartitionPlan(
        strategy=measurements.strategy,
        fresh=_fresh(measurements, coarse, noise, views),
        missing=coarse,
        refined=(),
        refined_partitions=(),
    )


def _fresh(measurements: PartitionMeasurements, partitions: Integers, noise: Noise, views: Views) -> Measured | None:
    column = views.domain.partition
    if len(partitions) == 0 or column is None:
        return None
    strategy = placed(measurements.strategy, column, partitions, views.domain[column].size)
    return Measured(strategy=strategy, noise=noise, version=views.version)


def _same_noise(measurements: PartitionMeasurements, partitions: Integers) -> list[Integers]:
    """Partitions that one refinement can be about: measured together, and with the same noise now."""
    kinds = np.stack([measurements.blocks[partitions], measurements.scales[partitions]])
    _, place = np.unique(kinds, axis=1, return_inverse=True)
    groups = [partitions[place.ravel() == kind] for kind in range(int(place.max(initial=-1)) + 1)]
    return [group[np.argsort(measurements.firsts[group])] for group in groups]


def _refinement(measurements: PartitionMeasurements, partitions: Integers, noise: Noise, views: Views) -> Refined:
    block = int(measurements.blocks[partitions[0]])
    rows = (measurements.firsts[partitions][:, None] + np.arange(measurements.strategy.rows)).ravel()
    before = Noise(kind=NoiseKind.LAPLACE, scale=float(measurements.scales[partitions[0]]))
    measured = views.partition_measurements.measured(block)
    return Refined(block=block, measured=measured, rows=rows, before=before, after=noise, version=views.version)


MOST_ROWS = 2048
"""Most answers of a question that is put together partition by partition."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionPiece:
    """Rows of a question: windows of partitions, each with every row of a product over the other columns."""

    windows: Integers  # (windows, partitions)
    condition: Product  # on the other columns
    shape: tuple[int, ...]  # rows of each mask of the question's product
    place: int  # of the windows among them

    def arranged(self, grid: NDArray[Scalar]) -> NDArray[Scalar]:
        """An array of (windows, rows of the rest) in the order of the workload's rows."""
        other_rows = [rows for place, rows in enumerate(self.shape) if place != self.place]
        return np.moveaxis(grid.reshape(len(self.windows), *other_rows), 0, self.place).reshape(-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedPiece:
    """A piece with the weights of its rows on a strategy."""

    piece: PartitionPiece
    weights: Reals
    sizes: tuple[tuple[tuple[float, int], ...], ...]  # per row of the rest: the different |weights|, and how many


def pieces_of(workload: LinearMap, column: str | None) -> list[PartitionPiece] | None:
    """The question by products; None where it is not windows of partitions times other columns."""
    products = products_of(workload)
    if column is None or not 1 <= workload.rows <= MOST_ROWS or sum(part.rows for part in products) < workload.rows:
        return None
    pieces = []
    for part in products:
        masks = [mask for mask in part.masks if column in mask.attrs]
        if len(masks) != 1 or masks[0].attrs != (column,):
            return None
        (mask,) = masks
        condition = Product(tuple(other for other in part.masks if other is not mask))
        windows = mask.steps.at_cells(np.arange(mask.sizes[0]))
        shape = tuple(each.rows for each in part.masks)
        pieces.append(PartitionPiece(windows=windows, condition=condition, shape=shape, place=part.masks.index(mask)))
    return pieces


def law_of(pieces: Sequence[WeightedPiece], measurements: PartitionMeasurements, mode: Mode) -> GroupedRows:
    """The law of answers from partition measurements; every partition that is asked about must be there."""
    kind = NoiseKind.LAPLACE if mode is Mode.PURE else NoiseKind.GAUSSIAN
    rows: list[Terms] = []
    for part in pieces:
        grid = np.empty((len(part.piece.windows), len(part.sizes)), object)
        for place, window in enumerate(part.piece.windows):
            used = np.flatnonzero(window)
            kinds, counts = np.unique(
                np.stack([np.abs(window[used]), measurements.scales[used], measurements.merged[used]]),
                axis=1,
                return_counts=True,
            )
            for row, sizes in enumerate(part.sizes):
                grid[place, row] = tuple(
                    DrawTerm(times * size, Noise(kind=kind, scale=scale), count * number, bool(merged))
                    for (times, scale, merged), count in zip(kinds.T.tolist(), counts.tolist(), strict=True)
                    for size, number in sizes
                )
        rows += part.piece.arranged(grid).tolist()
    return GroupedRows(rows=tuple(rows))


def values_of(pieces: Sequence[WeightedPiece], measurements: PartitionMeasurements) -> Reals:
    """The answers from partition measurements."""
    values = [part.piece.arranged((part.piece.windows @ measurements.values) @ part.weights.T) for part in pieces]
    return np.concatenate(values)
