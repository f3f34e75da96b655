"""Rows that may err by different amounts, in such multiples that one error fits all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.compile.partwise import PartwiseMap, pieces_of
from bursar.core.queries import LinearMap, Mask, Predicate, Product, Stack, Steps
from bursar.estimation.derived import Combination
from bursar.goal import Goal, GoalKind
from bursar.planner.request import PlanningRequest, Request
from bursar.views.measurements import products_of

LARGEST_RATIO = 2.0**20
"""Rows that may err by more than this times what others may are planned as if they might not."""

FINEST = 64
"""Multiples are looked for up to this many for the row that may err most; then the next whole number has to do."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Balanced:
    """A map whose rows may all err by the same amount, and what its rows are multiples of."""

    map: LinearMap
    times: NDArray[np.int64] | None
    amount: float


def planning_request(request: Request, goal_in_counts: Goal | None = None) -> PlanningRequest:
    """The request as proposers see it. A goal without percentages is in counts already.

    Where a price is asked for, an error of 1 is one in the one sum or count that is asked for, or else of one person.
    """
    workload = request.workload
    stated = request.goal if goal_in_counts is None else goal_in_counts
    balanced = balance(workload.map, tolerances(request, stated))
    scaled = workload if balanced.times is None else replace(workload, map=balanced.map, times=balanced.times)
    if not workload.map.rows:
        goal, step = replace(stated, parts=()), 1.0
    elif stated.kind is GoalKind.SPEND:
        (form, *more), unscaled = workload.forms, balanced.times is None
        steps = form.steps if unscaled and not more and isinstance(form, Combination) else ()
        goal, step = stated, steps[0] if len(steps) == 1 else balanced.amount
    else:
        goal, step = replace(stated, amount=balanced.amount, parts=()), balanced.amount / stated.amount
    return PlanningRequest(asked=request, goal_in_counts=stated, workload=scaled, goal=goal, step=step)


def tolerances(request: Request, goal: Goal) -> Reals:
    """What each row of a request's workload may err by. `goal` is what was asked for, in numbers of rows."""
    workload = request.workload
    allowed = np.full(workload.map.rows, np.inf)
    for output, form in zip(workload.outputs, workload.forms, strict=True):
        amount = 1.0 if goal.kind is GoalKind.SPEND else goal.of(output).amount
        of_people = goal.kind is GoalKind.SPEND or request.goal.of(output).percent
        for column, step in zip(form.columns, form.steps, strict=True):
            rows = workload.index[:, column]
            rows = rows[rows >= 0]
            step = float(workload.largest[column]) if of_people else step
            allowed[rows] = np.minimum(allowed[rows], amount * step)
    return allowed


def balance(map: LinearMap, allowed: Reals) -> Balanced:
    """The map with its parts in such multiples that one error fits all; as it is, where that is so already.

    Within a part, which is one product of masks, the row that may err least speaks for all.
    """
    parts = pieces_of(map)
    if not map.rows or np.all(allowed == allowed[0]):
        return Balanced(map=map, times=None, amount=float(allowed[0]) if map.rows else math.inf)
    least = least_of(parts, allowed)
    most = min(float(least.max()), LARGEST_RATIO * float(least.min()))
    ratios = np.maximum(most / least, 1.0)
    grain, whole = _multiples(ratios)
    if np.all(whole == 1):
        return Balanced(map=map, times=None, amount=most)
    times = np.repeat(whole, [part.rows for part in parts])
    scaled = _scaled(map, iter(whole.tolist()), _smallest(parts))
    return Balanced(map=scaled, times=times, amount=grain * most)


def least_of(parts: Sequence[LinearMap], allowed: Reals) -> Reals:
    """What all rows of each part may err by."""
    ends = np.cumsum([0, *(part.rows for part in parts)])
    return np.array([allowed[low:high].min() for low, high in pairwise(ends)])


def _multiples(ratios: Reals) -> tuple[int, NDArray[np.int64]]:
    """The least number of times that makes all ratios whole; else FINEST, with ratios rounded up."""
    for grain in range(1, FINEST + 1):
        whole = np.rint(grain * ratios)
        if np.all(np.abs(whole - grain * ratios) <= 1e-9 * whole):
            return grain, whole.astype(np.int64)
    return FINEST, np.ceil(FINEST * ratios * (1 - 1e-12)).astype(np.int64)


def _smallest(parts: Sequence[LinearMap]) -> tuple[str, int] | None:
    """The smallest column that any part is about, for parts that are about none."""
    masks: list[Mask | Predicate] = [part for part in parts if isinstance(part, Predicate)]
    masks += [mask for part in parts if isinstance(part, Product) for mask in part.masks]
    sizes = {name: size for mask in masks for name, size in zip(mask.attrs, mask.sizes, strict=True)}
    return min(sizes.items(), key=lambda item: item[1], default=None)


def _scaled(map: LinearMap, factors: Iterator[int], column: tuple[str, int] | None) -> LinearMap:
    """The map with each of its pieces in so many multiples."""
    if not isinstance(map, PartwiseMap):
        products = tuple(_times(part, next(factors), column) for part in products_of(map))
        return products[0] if len(products) == 1 else Stack(products)
    parts: list[LinearMap] = []
    times: list[int] = []
    for part in map.parts:
        alone = isinstance(part, Predicate)  # its coefficients are 0 and 1
        times.append(next(factors) if alone else 1)
        parts.append(part if alone else _scaled(part, factors, column))
    return PartwiseMap(tuple(parts), tuple(times))


def _times(part: Product, factor: int, column: tuple[str, int] | None) -> Product:
    if factor == 1:
        return part
    if not part.masks:
        assert column is not None  # two parts that are about no column would be the same
        name, size = column
        part = Product((Mask((name,), (size,), Steps.total(size)),))
    first = part.masks[0]
    steps = Steps(first.steps.size, first.steps.starts, first.steps.at, first.steps.jump * factor)
    return Product((Mask(first.attrs, first.sizes, steps), *part.masks[1:]))
