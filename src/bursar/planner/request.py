"""A question as it is asked, and as it is planned: the second is all that a proposer gets to see of it.

Where rows may err by different amounts, they are planned in such multiples that one error fits all of them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bursar.answer import QuestionFacts
from bursar.arrays import Reals
from bursar.compile.partwise import PartwiseMap, pieces_of
from bursar.compile.workload import Labels, Workload
from bursar.core.queries import Distinct, LinearMap, Mask, PerPerson, Predicate, Product, Stack, Steps
from bursar.errors import GoalError
from bursar.estimation.derived import Combination, Form
from bursar.estimation.derived_goals import DerivedGoal, has_joint_goal, span_of
from bursar.goal import Goal, GoalKind, Horizon
from bursar.lazy_dataclass import dataclass
from bursar.views.measurements import products_of

if TYPE_CHECKING:
    from bursar.planner.discovery import Discovery

ONCE = "bursar-once-"
"""What a key begins with that names one request and no question: a client that may have to send the request again makes
one up. It is charged once; what was free is not stored under it, since it is free again."""

MOST_APART = 16
"""Above so many questions, or parts of one, even shares are small, and one strategy for all of them does better."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A compiled question with its goal, both as the analyst wrote them."""

    text: str
    workload: Workload
    goal: Goal  # a percentage may mean other counts tomorrow
    analyst: str
    key: str | None = None
    explain: bool = False
    wait: bool = True  # whether to stand in line until the turn comes
    ticket: int | None = None  # the place in line, from a call that would not wait
    horizon: Horizon | None = None  # how many more such questions the asker expects; None: as the config says
    synthetic: bool = False  # whether the asker wants the synthetic table's answer and no other
    strategy: str | None = None  # the strategy that the asker wants measured; None: whatever is best

    @cached_property
    def question(self) -> str:
        """Digest of what is asked and how well; the same key may only ever be used with the same one."""
        workload, goal = self.workload, self.goal
        implicit = isinstance(workload.labels, Labels)  # then the lines are the rows of the map
        index = None if implicit else workload.index.tolist()
        shape: list[object] = [workload.map.digest, workload.keys, workload.outputs, index]
        shape += [] if workload.plain else [[form.facts() for form in workload.forms]]
        shape += [] if workload.after is None else [workload.after.facts()]
        shape += [repr(workload.stages)] if workload.stages else []
        accuracy: list[object] = [goal.kind.value, goal.amount, goal.percent, goal.confidence, goal.unit, goal.most]
        accuracy += [[part.output, part.amount, part.percent] for part in goal.parts]
        accuracy += ["relative", goal.floor] if goal.relative else []
        accuracy += ["strategy", self.strategy] if self.strategy is not None else []
        accuracy += ["synthetic"] if self.synthetic else []
        labels = [] if implicit else [[str(v) for v in line] for line in workload.labels]
        text = json.dumps([shape, labels, accuracy])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanningRequest:
    """A request for the planner: rows in such multiples that one error is right for all of them."""

    asked: Request
    goal_in_counts: Goal  # what is asked for, for the outputs, with percentages as numbers of rows
    workload: Workload  # the one asked for, its rows multiplied where `workload.times` says so
    goal: Goal  # for the rows of this workload
    step: float = 1.0  # what an error of 1 in the goal in counts is in this workload
    questions: tuple[int, ...] = ()  # of a batch: how many parts of the map each question adds to those before it
    alone: tuple[PlanningRequest, ...] = ()  # of a batch with few of them, or with averages: its different questions
    searches: tuple[Discovery, ...] = ()  # texts of open columns to be looked for first
    searched: tuple[Discovery, ...] = ()  # what was looked for already, to be told in the answer

    @property
    def text(self) -> str:
        return self.asked.text

    @property
    def analyst(self) -> str:
        """Who asks."""
        return self.asked.analyst

    @property
    def synthetic(self) -> bool:
        """Whether the asker wants the synthetic table's answer and no other."""
        return self.asked.synthetic

    @property
    def strategy(self) -> str | None:
        """The strategy that the asker wants measured."""
        return self.asked.strategy

    @property
    def several(self) -> bool:
        """Whether several questions are asked at once, or several numbers."""
        return bool(self.alone) or len(self.workload.outputs) > 1

    @property
    def explain(self) -> bool:
        """Whether offers are only listed."""
        return self.asked.explain

    @property
    def facts(self) -> QuestionFacts:
        """What an answer says about the question."""
        return {
            "question": self.text,
            "goal": self.goal_in_counts.describe(),
            "confidence": self.goal.confidence,
        }


LARGEST_RATIO = 2.0**20
"""Rows that may err by more than this times what others may are planned as if they might not."""

FINEST = 64
"""Multiples are looked for up to this many for the row that may err most; then the next whole number has to do."""

LARGEST_MULTIPLE = 2**29
"""Most that a coefficient may become: sums of their squares have room in 64 bits."""


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
    allowed = tolerances(request, stated)
    balanced = balance(workload.map, allowed)
    scaled = workload if balanced.times is None else replace(workload, map=balanced.map, times=balanced.times)
    if stated.relative and workload.map.rows:
        scaled = replace(scaled, remarks=(*scaled.remarks, _relative_words(stated, allowed)))
    if not workload.map.rows:
        goal, step = replace(stated, parts=()), 1.0
    elif stated.kind is GoalKind.SPEND:
        (form, *more), unscaled = workload.forms, balanced.times is None
        steps = form.steps if unscaled and not more and isinstance(form, Combination) else ()
        goal, step = stated, steps[0] if len(steps) == 1 else balanced.amount
    else:
        goal = replace(stated, amount=balanced.amount, parts=(), relative=False, percent=False, floor=None, rows=None)
        step = balanced.amount / (float(allowed.max()) if stated.relative else stated.amount)
        if stated.kind is GoalKind.ERROR and not stated.relative:
            goal = replace(goal, derived=derived_goal(request, scaled, stated, balanced.amount))
    return PlanningRequest(asked=request, goal_in_counts=stated, workload=scaled, goal=goal, step=step)


def derived_goal(request: Request, workload: Workload, stated: Goal, amount: float) -> DerivedGoal | None:
    """What the goal comes to for averages, quantiles and the like; None where there is nothing like that."""
    jointly = [not isinstance(form, Combination) and has_joint_goal(form) for form in workload.forms]
    if not any(jointly):
        return None
    chosen = [(stated.of(output).amount, form) for output, form, joint in _outputs(workload, jointly) if joint]
    times = np.ones(workload.map.rows) if workload.times is None else workload.times
    barred = [not joint for joint in jointly]
    return DerivedGoal(
        tuple(form for _, form in chosen),
        tuple(people * span_of(form) / amount for people, form in chosen),
        tolerances(request, stated, barred) * times / amount,
        workload.index,
        np.append(times, 1.0),
    )


def _outputs(workload: Workload, which: Sequence[bool]) -> Iterator[tuple[str, Form, bool]]:
    return zip(workload.outputs, workload.forms, which, strict=True)


def tolerances(request: Request, goal: Goal, which: Sequence[bool] | None = None) -> Reals:
    """What each row of a request's workload may err by. `goal` is what was asked for, in numbers of rows.

    With `which`, for these outputs alone: infinite where none of them needs a row.
    """
    workload = request.workload
    if goal.relative:
        return relative_tolerances(workload, goal)
    allowed = np.full(workload.map.rows, np.inf)
    for output, form, counted in _outputs(workload, which or (True,) * len(workload.outputs)):
        if not counted:
            continue
        amount = 1.0 if goal.kind is GoalKind.SPEND else goal.of(output).amount
        of_people = goal.kind is GoalKind.SPEND or request.goal.of(output).percent
        for column, step in zip(form.columns, form.steps, strict=True):
            rows = workload.index[:, column]
            rows = rows[rows >= 0]
            step = float(workload.largest[column]) if of_people else step
            allowed[rows] = np.minimum(allowed[rows], amount * step)
    return allowed


def relative_tolerances(workload: Workload, goal: Goal) -> Reals:
    """What each count may err by: a percentage of its floor, which is public, so that it holds for all larger counts.

    The floor is the one that was named, or the count if all rows lay evenly in the cells (Eigen-Design, section 3.4).
    Edge cases: only counts have a relative error; one of no cell at all, which is 0, may err by nothing less than one.
    """
    if workload.mixed:
        raise GoalError(
            "a relative error is for counts alone\n"
            "try: WITH ERROR for the others, one error each: WITH ERROR 50 ON n, 1000 ON total"
        )
    if goal.floor is not None:
        return np.full(workload.map.rows, goal.amount / 100 * goal.floor)
    shares = np.concatenate([_cell_shares(part) for part in pieces_of(workload.map)] or [np.zeros(0)])
    assert goal.rows is not None
    return goal.amount / 100 * np.maximum(shares * goal.rows, 1.0)


def _cell_shares(part: LinearMap) -> Reals:
    """The share of the joint cells that each row counts."""
    if not isinstance(part, Product):
        raise GoalError(
            "it takes a floor to say what a relative error means for conditions over many columns\n"
            "try: WITH RELATIVE ERROR 5% FLOOR 200"
        )
    shares = np.ones(1)
    for mask in part.masks:
        cells = mask.steps.at_cells(np.arange(mask.steps.size)).sum(axis=1)
        shares = np.multiply.outer(shares, cells / mask.steps.size).ravel()
    return shares


def _relative_words(goal: Goal, allowed: Reals) -> str:
    """What a relative error means for an answer."""
    within = f"each number is within {goal.amount:g}% of the true count"
    if goal.floor is not None:
        return f"{within}, or within {goal.amount / 100 * goal.floor:.6g} where that is below {goal.floor:g}"
    low, high = (f"{bound * 100 / goal.amount:,.0f}" for bound in (allowed.min(), allowed.max()))
    floors = low if low == high else f"{low} to {high}"
    return f"{within}, or of an even share of all rows where that is more ({floors} rows)"


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
    largest = max(part.largest() * ratio for part, ratio in zip(parts, ratios.tolist(), strict=True))
    grain, whole = _multiples(ratios, max(1, min(FINEST, int(LARGEST_MULTIPLE / largest))))
    if np.all(whole == 1):
        return Balanced(map=map, times=None, amount=most)
    times = np.repeat(whole, [part.rows for part in parts])
    scaled = _scaled(map, iter(whole.tolist()), _smallest(parts))
    return Balanced(map=scaled, times=times, amount=grain * most)


def least_of(parts: Sequence[LinearMap], allowed: Reals) -> Reals:
    """What all rows of each part may err by."""
    ends = np.cumsum([0, *(part.rows for part in parts)])
    return np.array([allowed[low:high].min() for low, high in pairwise(ends)])


def _multiples(ratios: Reals, finest: int) -> tuple[int, NDArray[np.int64]]:
    """The least number of times that makes all ratios whole; else the finest, with ratios rounded up."""
    for grain in range(1, finest + 1):
        whole = np.rint(grain * ratios)
        if np.all(np.abs(whole - grain * ratios) <= 1e-9 * whole):
            return grain, whole.astype(np.int64)
    return finest, np.ceil(finest * ratios * (1 - 1e-12)).astype(np.int64)


def _smallest(parts: Sequence[LinearMap]) -> tuple[str, int] | None:
    """The smallest column that any part is about, for parts that are about none."""
    masks: list[Mask | Predicate] = [part for part in parts if isinstance(part, Predicate)]
    masks += [mask for part in parts if isinstance(part, Product) for mask in part.masks]
    sizes = {name: size for mask in masks for name, size in zip(mask.attrs, mask.sizes, strict=True)}
    return min(sizes.items(), key=lambda item: item[1], default=None)


def _scaled(map: LinearMap, factors: Iterator[int], column: tuple[str, int] | None) -> LinearMap:
    """The map with each of its pieces multiplied by its factor."""
    if not isinstance(map, PartwiseMap):
        products = tuple(_times(part, next(factors), column) for part in products_of(map))
        return products[0] if len(products) == 1 else Stack(products)
    parts: list[LinearMap] = []
    times: list[int] = []
    for part in map.parts:
        alone = isinstance(part, Predicate | Distinct | PerPerson)  # measured as it is
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
