"""Rows, cells and queries once more, written as plainly as possible and without any code of the engine's rooms.

What the engine counts is compared with what is counted here, so nothing here may call `apply`, `norms` or a source.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Attribute, Bins, Categories, Domain, IntegerRange, Stray
from bursar.core.queries import LinearMap, Mask, Predicate, Quorum, Stack, Within

Numbers = NDArray[np.int64]
Raw = tuple[str | None, ...]
"""One row as a file holds it: text, or None for NULL, one value per column of the domain."""

Cell = tuple[int, ...]
"""The cell of a row: one number per column of the domain."""


def cell_of(domain: Domain, row: Raw) -> Cell:
    """The row -> cell rule of `core/domain.py`, value by value."""
    return tuple(_place(attribute, value) for attribute, value in zip(domain.attributes, row, strict=True))


def table_of(domain: Domain, cells: Iterable[Cell]) -> Numbers:
    """How many rows fall into each joint cell of all columns."""
    table = np.zeros(domain.sizes(domain.names), np.int64)
    for cell, rows in Counter(cells).items():
        table[cell] = rows
    return table


def coefficients(strategy: LinearMap, domain: Domain) -> Numbers:
    """q_j(v) for every row j and every joint cell v of all columns, spelt out."""
    if isinstance(strategy, Predicate):
        grid = itertools.product(*(range(domain[name].size) for name in domain.names))
        named = (dict(zip(domain.names, cell, strict=True)) for cell in grid)
        return np.array([[int(_holds(strategy.condition, row)) for row in named]], np.int64)
    parts = strategy.parts if isinstance(strategy, Stack) else (strategy,)
    shape = domain.sizes(domain.names)
    rows: list[Numbers] = []
    for part in parts:
        spelt = [[_over(domain, mask, values) for values in _rows(mask)] for mask in part.masks]
        for factors in itertools.product(*spelt):
            rows.append(math.prod(factors, start=np.ones(shape, np.int64)))
    return np.array([row.ravel() for row in rows], np.int64).reshape(len(rows), math.prod(shape))


def _place(attribute: Attribute, value: str | None) -> int:
    if value is None:
        return attribute.null_cell
    match attribute:
        case Categories():
            texts = [str(v) for v in attribute.values]
            return texts.index(value) if value in texts else _outside(attribute, side=0)
        case IntegerRange():
            number = _number(value)
            if number is None:
                return _outside(attribute, side=None)
            if number < attribute.lower:
                return _outside(attribute, side=0)
            if number >= attribute.upper + 1:
                return _outside(attribute, side=attribute.declared - 1)
            return math.floor(number) - attribute.lower
        case Bins():
            number = _number(value)
            if number is None:
                return _outside(attribute, side=None)
            if number < attribute.edges[0]:
                return _outside(attribute, side=0)
            if number > attribute.edges[-1]:
                return _outside(attribute, side=attribute.declared - 1)
            below = sum(edge <= number for edge in attribute.edges)
            return min(below, attribute.declared) - 1
    raise AssertionError(f"no rule here for {type(attribute).__name__}")


def _outside(attribute: Attribute, *, side: int | None) -> int:
    """Where a value outside goes; clipped, to the end on its side, or with NULL where it has no side."""
    if attribute.outside is Stray.CLIP:
        return attribute.null_cell if side is None else side
    cell = attribute.outside if isinstance(attribute.outside, int) else attribute.other
    assert cell is not None
    return cell


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _holds(part: Within | Quorum, row: dict[str, int]) -> bool:
    if isinstance(part, Within):
        return any(low <= row[part.column] < high for low, high in part.ranges)
    return sum(_holds(each, row) for each in part.parts) >= part.least


def _rows(mask: Mask) -> list[Numbers]:
    """Every row of a mask over its own cells: the running sum of its jumps."""
    steps = mask.steps
    rows = []
    for j in range(len(steps.starts) - 1):
        values = [0] * steps.size
        own = slice(steps.starts[j], steps.starts[j + 1])
        for at, jump in zip(steps.at[own], steps.jump[own], strict=True):
            for cell in range(int(at), steps.size):
                values[cell] += int(jump)
        rows.append(np.array(values, np.int64).reshape(mask.sizes))
    return rows


def _over(domain: Domain, mask: Mask, values: Numbers) -> Numbers:
    """Values over a mask's own columns as an array that can be multiplied over all columns."""
    order = sorted(range(len(mask.attrs)), key=lambda axis: domain.place(mask.attrs[axis]))
    shape = [domain[name].size if name in mask.attrs else 1 for name in domain.names]
    return values.transpose(order).reshape(shape)
