"""What to buy so that every partition of a window is known with noise of at most one scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bursar.views.partition_measurements import Integers, Shelf, placed
from bursar.core.accounting import Event, Measured, Mode, Noise, NoiseKind, Refined
from bursar.core.verbs import Verbs
from bursar.planner.offer import Views
from bursar.core.queries import Product

SAME = 1 + 1e-9
"""Scales that differ by less count as equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Basket:
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

    def planned(self, shelf: Shelf) -> Shelf:
        """The shelf with the noise that it will have, and without values for what is bought."""
        return self._filled(shelf, lambda event: np.zeros(event.strategy.rows, np.int64))

    def bought(self, shelf: Shelf, verbs: Verbs) -> Shelf:
        """The shelf after the purchase."""

        def values(event: Measured | Refined) -> Integers:
            if isinstance(event, Measured):
                return verbs.measure(event.strategy, event.noise).values
            return verbs.refine(event.block, event.rows.tolist(), event.after).values

        return self._filled(shelf, values)

    def _filled(self, shelf: Shelf, values: Callable[[Measured | Refined], Integers]) -> Shelf:
        after = shelf.copy()
        if self.fresh is not None:
            after.add(self.missing, values(self.fresh), self.fresh.noise, block=0)
        for event, partitions in zip(self.refined, self.known, strict=True):
            after.add(partitions, values(event), event.after, block=event.block)
        return after


def basket_of(shelf: Shelf, window: Integers, scale: float, views: Views) -> Basket:
    """With Laplace noise what is known too coarsely is refined; with Gaussian noise a fresh measurement adds to it."""
    coarse = window[shelf.scales[window] > SAME * scale]
    if views.mode is Mode.PURE:
        noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
        missing = coarse[~np.isfinite(shelf.scales[coarse])]
        known = _same_noise(shelf, coarse[np.isfinite(shelf.scales[coarse])])
        refined = tuple(_refinement(shelf, partitions, noise, views) for partitions in known)
        return Basket(
            strategy=shelf.strategy,
            fresh=_fresh(shelf, missing, noise, views),
            missing=missing,
            refined=refined,
            known=tuple(known),
        )
    had = float(shelf.scales[coarse].max(initial=scale * SAME))
    more = 1 / math.sqrt(1 / scale**2 - (1 / had**2 if math.isfinite(had) else 0.0))
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=more)
    return Basket(
        strategy=shelf.strategy, fresh=_fresh(shelf, coarse, noise, views), missing=coarse, refined=(), known=()
    )


def _fresh(shelf: Shelf, partitions: Integers, noise: Noise, views: Views) -> Measured | None:
    column = views.domain.partition
    if len(partitions) == 0 or column is None:
        return None
    strategy = placed(shelf.strategy, column, partitions, views.domain[column].size)
    return Measured(strategy=strategy, noise=noise, version=views.version)


def _same_noise(shelf: Shelf, partitions: Integers) -> list[Integers]:
    """Partitions that one refinement can be about: measured together, and with the same noise now."""
    kinds = np.stack([shelf.blocks[partitions], shelf.scales[partitions]])
    _, place = np.unique(kinds, axis=1, return_inverse=True)
    groups = [partitions[place.ravel() == kind] for kind in range(int(place.max(initial=-1)) + 1)]
    return [group[np.argsort(shelf.firsts[group])] for group in groups]


def _refinement(shelf: Shelf, partitions: Integers, noise: Noise, views: Views) -> Refined:
    block = int(shelf.blocks[partitions[0]])
    rows = (shelf.firsts[partitions][:, None] + np.arange(shelf.strategy.rows)).ravel()
    before = Noise(kind=NoiseKind.LAPLACE, scale=float(shelf.scales[partitions[0]]))
    measured = views.shelves.measured(block)
    return Refined(block=block, measured=measured, rows=rows, before=before, after=noise, version=views.version)
