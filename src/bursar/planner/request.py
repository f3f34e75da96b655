"""A question, compiled, with its goal in counts: all that a proposer gets to see of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bursar.answer import QuestionFacts
from bursar.compile.partwise import PartwiseMap, pieces_of
from bursar.compile.workload import Labels, Workload
from bursar.core.queries import LinearMap, Mask, Predicate, Product, Stack, Steps
from bursar.estimation.derived import Combination
from bursar.goal import Goal, GoalKind
from bursar.views.measurements import products_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    text: str
    workload: Workload  # as proposers see it: one error is right for all rows
    asked: Goal  # as the analyst wrote it: a percentage may mean other counts tomorrow
    goal: Goal  # for the rows of the workload
    analyst: str
    key: str | None = None
    explain: bool = False
    wait: bool = True  # whether to stand in line until the turn comes
    ticket: int | None = None  # the place in line, from a call that would not wait
    synthetic: bool = False  # whether the asker wants the synthetic table's answer and no other
    written: Workload | None = None  # as it was compiled, where that is something else
    stated: Goal | None = None  # in counts, for the outputs, where that is something else
    step: float = 1.0  # what an error of 1 in the stated goal is in the workload

    @staticmethod
    def of(
        *,
        text: str,
        workload: Workload,
        asked: Goal,
        goal: Goal,
        analyst: str,
        key: str | None = None,
        explain: bool = False,
        wait: bool = True,
        ticket: int | None = None,
        synthetic: bool = False,
    ) -> Request:
        """The request for a compiled question with its goal in counts."""
        scaled, planned, step = balanced(workload, asked, goal)
        return Request(
            text=text,
            workload=scaled,
            asked=asked,
            goal=planned,
            analyst=analyst,
            key=key,
            explain=explain,
            wait=wait,
            ticket=ticket,
            synthetic=synthetic,
            written=workload,
            stated=goal,
            step=step,
        )

    @property
    def compiled(self) -> Workload:
        """The workload with its rows as the question has them."""
        return self.workload if self.written is None else self.written

    @property
    def promised(self) -> Goal:
        """The goal in counts, for the outputs."""
        return self.goal if self.stated is None else self.stated

    @property
    def facts(self) -> QuestionFacts:
        """What an answer says about the question."""
        return {"question": self.text, "goal": self.promised.describe(), "confidence": self.goal.confidence}

    @cached_property
    def question(self) -> str:
        """Digest of what is asked and how well; the same key may only ever be used with the same one."""
        workload, asked = self.compiled, self.asked
        implicit = isinstance(workload.labels, Labels)  # then the lines are the rows of the map
        index = None if implicit else workload.index.tolist()
        shape: list[object] = [workload.map.digest, workload.keys, workload.outputs, index]
        shape += [] if workload.plain else [[form.facts() for form in workload.forms]]
        shape += [] if workload.after is None else [workload.after.facts()]
        goal: list[object] = [asked.kind.value, asked.amount, asked.percent, asked.confidence, asked.unit, asked.most]
        goal += [[part.output, part.amount, part.percent] for part in asked.parts]
        goal += ["synthetic"] if self.synthetic else []
        labels = [] if implicit else [[str(v) for v in line] for line in workload.labels]
        text = json.dumps([shape, labels, goal])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


LARGEST_RATIO = 2.0**20
"""Rows that may err by more than this times what others may are planned as if they might not."""

FINEST = 64
"""Multiples are looked for up to this many for the row that may err most; then the next whole number has to do."""

Tolerances = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Balanced:
    """A map whose rows may all err by the same amount, and what its rows are multiples of."""

    map: LinearMap
    times: NDArray[np.int64] | None
    amount: float


def tolerances(workload: Workload, asked: Goal, goal: Goal) -> Tolerances:
    """What each row of a workload may err by. `goal` is what was asked for, in numbers of rows."""
    allowed = np.full(workload.map.rows, np.inf)
    for output, form in zip(workload.outputs, workload.forms, strict=True):
        amount = 1.0 if goal.kind is GoalKind.SPEND else goal.of(output).amount
        of_people = goal.kind is GoalKind.SPEND or asked.of(output).percent
        for column, step in zip(form.columns, form.steps, strict=True):
            rows = workload.index[:, column]
            rows = rows[rows >= 0]
            step = float(workload.largest[column]) if of_people else step
            allowed[rows] = np.minimum(allowed[rows], amount * step)
    return allowed


def balance(map: LinearMap, allowed: Tolerances) -> Balanced:
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
    made = _scaled(map, iter(whole.tolist()), _smallest(parts))
    return Balanced(map=made, times=times, amount=grain * most)


def least_of(parts: Sequence[LinearMap], allowed: Tolerances) -> Tolerances:
    """What all rows of each part may err by."""
    ends = np.cumsum([0, *(part.rows for part in parts)])
    return np.array([allowed[low:high].min() for low, high in pairwise(ends)])


def balanced(workload: Workload, asked: Goal, goal: Goal) -> tuple[Workload, Goal, float]:
    """The workload and the goal as proposers see them, and what an error of 1 that was asked for is there.

    Where a price is asked for, that is an error of 1 in the one sum or count that is asked for, or else of one person.
    """
    found = balance(workload.map, tolerances(workload, asked, goal))
    if not workload.map.rows:
        return workload, replace(goal, parts=()), 1.0
    scaled = workload if found.times is None else replace(workload, map=found.map, times=found.times)
    if goal.kind is GoalKind.SPEND:
        (form, *more), own = workload.forms, found.times is None
        steps = form.steps if own and not more and isinstance(form, Combination) else (found.amount,)
        return scaled, goal, steps[0] if len(steps) == 1 else found.amount
    return scaled, replace(goal, amount=found.amount, parts=()), found.amount / goal.amount


def _multiples(ratios: NDArray[np.float64]) -> tuple[int, NDArray[np.int64]]:
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
        made = tuple(_times(part, next(factors), column) for part in products_of(map))
        return made[0] if len(made) == 1 else Stack(made)
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
