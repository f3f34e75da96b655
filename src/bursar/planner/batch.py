"""Many questions as one: planned together, paid once, answered consistently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bursar.answer import Answer
from bursar.errors import GoalError, QueryError
from bursar.inference.views import joined, products_of
from bursar.planner.request import Request
from bursar.workload.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Answers in the order of the questions. They share one charge and one confidence: all error bars hold together."""

    answers: tuple[Answer, ...]
    charge: float
    unit: str
    one_by_one: float  # what the questions would have cost, each asked by itself just before

    def __str__(self) -> str:
        shown = "\n\n".join(f"{answer.question}\n{answer.table()}" for answer in self.answers)
        first = self.answers[0]
        cost = f"{self.unit} {self.charge:.6g} for all" if self.charge else "free"
        alone = f"(one by one, each with a confidence of its own: {self.one_by_one:.6g})"
        return f"{shown}\n\n{first.footer()[0]}\ncost   {cost} {alone}; {first.money_left()}\n{first.footer()[2]}"

    def to_json(self) -> dict[str, Any]:
        answers = [answer.to_json() for answer in self.answers]
        return {"charge": self.charge, "unit": self.unit, "one_by_one": self.one_by_one, "answers": answers}


def together(requests: Sequence[Request], key: str | None) -> Request:
    """One request for all rows that the questions need, each once."""
    if not requests:
        raise QueryError("a batch needs at least one question")
    goals = {(r.goal.kind, r.goal.amount, r.goal.confidence, r.goal.most) for r in requests}
    if len(goals) > 1:
        raise GoalError(
            "the questions of a batch share one goal; leave the goals in the SQL out, and give one beside it"
        )
    needed = joined(request.workload.map for request in requests)
    rows = needed.rows
    everything = Workload(
        map=needed,
        keys=("row",),
        labels=tuple((row,) for row in range(rows)),
        outputs=("value",),
        index=np.arange(rows)[:, None],
    )
    text = ";\n".join(request.text for request in requests)
    return replace(requests[0], text=text, workload=everything, key=key)


def split(joint: Answer, requests: Sequence[Request], one_by_one: float) -> Batch:
    """The answer to each question, cut out of the answer to all of them."""
    starts: dict[str, int] = {}
    used = 0
    for product in (p for request in requests for p in products_of(request.workload.map)):
        if product.digest not in starts:
            starts[product.digest] = used
            used += product.rows
    answers = tuple(_cut(joint, request, starts) for request in requests)
    return Batch(answers=answers, charge=joint.charge, unit=joint.unit, one_by_one=one_by_one)


def _cut(joint: Answer, request: Request, starts: dict[str, int]) -> Answer:
    workload = request.workload
    places = [starts[p.digest] + np.arange(p.rows) for p in products_of(workload.map)]
    rows = np.append(np.concatenate([*places, np.zeros(0, np.int64)]), len(joint.values))[workload.index]

    def table(column: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        numbers = np.array([value for (value,) in column] + [0.0])  # the row behind the last: zero by definition
        return tuple(tuple(line) for line in numbers[rows].tolist())

    return replace(
        joint,
        question=request.text,
        keys=workload.keys,
        outputs=workload.outputs,
        labels=workload.labels,
        values=table(joint.values),
        low=table(joint.low),
        high=table(joint.high),
    )
