"""What the log would know after one more row: tried out on a copy, before anything is bought.

Nothing here depends on values, so everything is known beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise
from bursar.core.queries import Mask, Product, Steps
from bursar.estimation.least_squares import Block, Reconstruction
from bursar.estimation.merged_cells import Classes, count, first_cells, told_apart

OPEN = 1e8
"""What is not known at all gets so many times the largest variance, where knowledge is summed up over groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MergedGroups:
    """Merged cells in groups, one number each: what a new row would be made of."""

    classes: Classes  # per column: class of each of its cells; groups are the products of classes
    member: Integers  # the group of each merged cell
    query: Reals
    information: Reals
    losses: Reals  # twice the largest loss of a cell in the group

    def product(self, row: Integers) -> Product:
        """A row over groups as a question about the joint cells."""
        names = tuple(self.classes)
        place: Integers = np.zeros((), np.int64)
        for labels in self.classes.values():
            place = np.add.outer(place * count(labels), labels)
        sizes = tuple(len(labels) for labels in self.classes.values())
        return Product((Mask(names, sizes, Steps.dense(row[place.ravel()])),))


class Rehearsal:
    """A copy of a reconstruction that takes rows in without values."""

    def __init__(self, known: Reconstruction) -> None:
        self.known = known.copy()

    def take(self, product: Product, noise: Noise) -> bool:
        return self.known.add(Block(product, np.zeros(product.rows, np.int64), noise))

    def variance(self, query: Product) -> float:
        """The variance of a query of one row; infinite where the rows do not determine it."""
        w = self.known.coordinates(query)[0]
        state = self.known.state
        return float(w @ state.covariance @ w) if state.spans(w[None]) else math.inf

    def scale(self, query: Product, row: Reals, variance: float) -> float | None:
        """The largest standard deviation of noise on a row (over merged cells) at which the query has the variance.

        With S the covariance, w^T S w - (w^T S r)^2 / (s^2 + r^T S r) where the query is determined already; otherwise
        the query is a multiple m of the row plus something known, and the variance m^2 s^2 + that of the rest.
        """
        state = self.known.state
        w, r = self.known.coordinates(query)[0], row * np.sqrt(state.cells)
        if state.spans(w[None]):
            gain = state.covariance @ r
            spare = float(w @ gain) ** 2 / max(float(w @ state.covariance @ w) - variance, 1e-300) - float(r @ gain)
        else:
            outside = r - state.span @ r
            factor = float(outside @ w) / max(float(outside @ r), 1e-300)
            rest = w - factor * r
            if not state.spans(rest[None]):
                return None
            spare = (variance - float(rest @ state.covariance @ rest)) / max(factor**2, 1e-300)
        return math.sqrt(spare) if spare > 0 else None

    def losses(self) -> Reals:
        """Twice the loss of each merged cell, per row of a unit: the sum of q^2 / scale^2 over all rows."""
        weights = np.array([1 / noise.scale**2 for noise in self.known.noises])
        result: Reals = weights @ np.square(self.known.rows) / self.known.state.cells
        return result

    def groups(self, query: Product, most: int) -> MergedGroups | None:
        """The cells that questions with few rows have told apart, this one included; only this one if they are many."""
        for before in (self.known.asked, {name: np.zeros_like(c) for name, c in self.known.asked.items()}):
            classes = told_apart(before, query)
            if classes is not None and math.prod(count(labels) for labels in classes.values()) <= most:
                return self._grouped(query, classes)
        return None

    def _grouped(self, query: Product, classes: Classes) -> MergedGroups:
        grid: Integers = np.zeros((), np.int64)
        for name, labels in classes.items():
            grid = np.add.outer(grid * count(labels), labels[first_cells(self.known.classes[name])])
        member = grid.ravel()
        size = math.prod(count(labels) for labels in classes.values())
        w = self.known.coordinates(query)[0] / np.sqrt(self.known.state.cells)
        values, losses = np.zeros(size), np.zeros(size)
        values[member] = w
        np.maximum.at(losses, member, self.losses())
        information = self._information(member, size)
        return MergedGroups(classes=classes, member=member, query=values, information=information, losses=losses)

    def _information(self, member: Integers, size: int) -> Reals:
        """About the sums over groups."""
        state = self.known.state
        root = np.sqrt(state.cells)
        if size == len(member):
            order = np.argsort(member)
            own: Reals = (state.information / np.outer(root, root))[np.ix_(order, order)]
            return own
        known = state.covariance
        if not np.any(known):
            return np.zeros((size, size))  # rows of zeros tell nothing
        if not state.complete:
            known = known + OPEN * known.diagonal().max() * (np.eye(len(root)) - state.span)
        sums = _summed(_summed(known * np.outer(root, root), member, size).T, member, size)
        inverse = np.linalg.inv(sums)
        result: Reals = (inverse + inverse.T) / 2
        return result


def _summed(matrix: Reals, member: Integers, size: int) -> Reals:
    """Rows added up by group."""
    result = np.zeros((size, matrix.shape[1]))
    np.add.at(result, member, matrix)
    return result
