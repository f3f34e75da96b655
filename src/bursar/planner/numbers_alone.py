"""The numbers of a SELECT, each as a question of its own: on the same lines, of the same people, with its own error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, starmap
from typing import Any, cast

import numpy as np

from bursar.compile.partwise import some_of
from bursar.compile.workload import Workload
from bursar.estimation.derived import Combination, Form
from bursar.goal import GoalKind
from bursar.planner.request import MOST_APART, PlanningRequest, planning_request


def numbers_alone(request: PlanningRequest) -> tuple[PlanningRequest, ...]:
    """A request for each number, in their order, with the goal of all; none where there is one, or very many.

    A number that needs no row goes with the one before it, or with the first.

    Edge cases: none for relative errors, which are of counts alone.
    """
    workload, goal = request.asked.workload, replace(request.goal_in_counts, confidence=request.goal.confidence)
    several = 2 <= len(workload.outputs) <= MOST_APART and workload.map.rows > 0
    if not several or goal.kind is not GoalKind.ERROR or goal.relative:
        return ()
    parts = [_part(workload, outputs) for outputs in _by_number(workload)]
    asked = (replace(request.asked, workload=part) for part in parts if len(parts) > 1)
    return tuple(planning_request(each, goal) for each in asked)


def _by_number(workload: Workload) -> Iterator[slice]:
    """The outputs of each number that needs rows, with those behind it that need none."""
    needed = np.any(workload.index >= 0, axis=0)
    _, *starts = (place for place, form in enumerate(workload.forms) if needed[list(form.columns)].any())
    return starmap(slice, pairwise([0, *starts, len(workload.forms)]))


def _part(workload: Workload, outputs: slice) -> Workload:
    """Some outputs by themselves, with the rows and columns that they need."""
    forms = workload.forms[outputs]
    columns = sorted({column for form in forms for column in form.columns})
    needed = workload.index[:, columns]
    rows = np.unique(needed[needed >= 0])
    places = {column: place for place, column in enumerate(columns)}
    return Workload(
        map=some_of(workload.map, rows),
        keys=workload.keys,
        labels=workload.labels,
        outputs=workload.outputs[outputs],
        index=np.where(needed < 0, -1, np.searchsorted(rows, needed)),
        forms=tuple(_moved(form, places) for form in forms),
        largest=tuple(workload.largest[column] for column in columns),
    )


def _moved(form: Form, places: Mapping[int, int]) -> Form:
    """A form of the same numbers where their columns have other places."""
    anything: Any = form  # of dataclasses, whose columns are their own or those of combinations
    combinations = {name: part for name, part in vars(form).items() if isinstance(part, Combination)}
    moved = {name: _moved(part, places) for name, part in combinations.items()}
    columns = {} if moved else {"columns": tuple(places[column] for column in form.columns)}
    return cast(Form, replace(anything, **moved, **columns))
