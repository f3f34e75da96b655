"""Many questions as one: planned together, paid once, answered consistently."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bursar.answer import Answer, lines_of
from bursar.compile.partwise import pieces_of, put_together
from bursar.compile.workload import Workload
from bursar.core.queries import LinearMap
from bursar.errors import GoalError, QueryError
from bursar.goal import GoalKind
from bursar.lazy_dataclass import dataclass
from bursar.planner.balance import balance, least_of, tolerances
from bursar.planner.request import PlanningRequest


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
        error = first.footer()[0]
        if any(answer.mixed for answer in self.answers):
            sure = f"{100 * first.confidence:g}%"
            error = (
                f"error  as shown, on every number of all answers together, with {sure} confidence ({first.contract})"
            )
        return f"{shown}\n\n{error}\ncost   {cost} {alone}; {first.money_left()}\n{first.footer()[2]}"

    def to_json(self) -> dict[str, object]:
        answers = [answer.to_json() for answer in self.answers]
        return {"charge": self.charge, "unit": self.unit, "one_by_one": self.one_by_one, "answers": answers}

    def to_bytes(self) -> bytes:
        """The stored form; `from_bytes` gives an equal batch."""
        answers = [json.loads(answer.to_bytes()) for answer in self.answers]
        facts = {"charge": self.charge, "unit": self.unit, "one_by_one": self.one_by_one}
        return json.dumps({**facts, "answers": answers}).encode()

    @staticmethod
    def from_bytes(body: bytes) -> Batch:
        """The batch that `to_bytes` has stored."""
        plain = json.loads(body)
        answers = tuple(Answer.from_bytes(json.dumps(answer).encode()) for answer in plain.pop("answers"))
        return Batch(answers=answers, **plain)


def together(requests: Sequence[PlanningRequest], key: str | None) -> PlanningRequest:
    """One request for all rows that the questions need, each once."""
    if not requests:
        raise QueryError("a batch needs at least one question")
    stated = [(request.goal_in_counts, request.goal.most) for request in requests]
    goals = {
        (goal.kind, goal.amount, goal.confidence, most, goal.parts, goal.relative, goal.floor) for goal, most in stated
    }
    if len(goals) > 1:
        raise GoalError(
            "the questions of a batch share one goal; leave the goals in the SQL out, and give one beside it"
        )
    least: dict[str, float] = {}  # what the rows of a piece may err by
    for request in requests:
        allowed = tolerances(request.asked, request.goal_in_counts)
        pieces = pieces_of(request.asked.workload.map)
        for piece, most in zip(pieces, least_of(pieces, allowed), strict=True):
            least[piece.digest] = min(float(most), least.get(piece.digest, math.inf))
    needed = _needed(requests)
    rows = needed.rows
    everything = Workload(
        map=needed,
        keys=("row",),
        labels=tuple((row,) for row in range(rows)),
        outputs=("value",),
        index=np.arange(rows)[:, None],
    )
    pieces = pieces_of(needed)
    errors = np.repeat([least[piece.digest] for piece in pieces], [piece.rows for piece in pieces])
    balanced = balance(needed, errors)
    first = requests[0]
    goal, step = replace(first.goal, derived=None), balanced.amount
    if rows and goal.kind is not GoalKind.SPEND:
        widest = float(errors.max()) if first.goal_in_counts.relative else first.goal_in_counts.amount
        goal, step = replace(goal, amount=balanced.amount), balanced.amount / widest
    text = ";\n".join(request.text for request in requests)
    return PlanningRequest(
        asked=replace(first.asked, text=text, workload=everything, key=key),
        goal_in_counts=first.goal_in_counts,
        workload=replace(everything, map=balanced.map, times=balanced.times),
        goal=goal,
        step=step if rows else 1.0,
        questions=_added(requests),
    )


def split(joint: Answer, requests: Sequence[PlanningRequest], one_by_one: float) -> Batch:
    """The answer to each question, cut out of the answer to all of them."""
    pieces = pieces_of(_needed(requests))
    ends = np.cumsum([0, *(piece.rows for piece in pieces)]).tolist()
    starts = {piece.digest: start for piece, start in zip(pieces, ends, strict=False)}
    answers = tuple(_cut(joint, request, starts) for request in requests)
    return Batch(answers=answers, charge=joint.charge, unit=joint.unit, one_by_one=one_by_one)


def _needed(requests: Sequence[PlanningRequest]) -> LinearMap:
    return put_together(piece for request in requests for piece in pieces_of(request.asked.workload.map))


def _added(requests: Sequence[PlanningRequest]) -> tuple[int, ...]:
    """How many pieces each question needs that no question before it does; none for those that need no other."""
    known: set[str] = set()
    added: list[int] = []
    for request in requests:
        new = {piece.digest for piece in pieces_of(request.asked.workload.map)} - known
        known |= new
        added += [len(new)] if new else []
    return tuple(added)


def _cut(joint: Answer, request: PlanningRequest, starts: dict[str, int]) -> Answer:
    workload = request.asked.workload
    places = [starts[piece.digest] + np.arange(piece.rows) for piece in pieces_of(workload.map)]
    rows = np.concatenate([*places, np.zeros(0, np.int64)])
    numbers = [np.array([value for (value,) in table]) for table in (joint.values, joint.low, joint.high)]
    lines = lines_of(workload, workload.derive(*(column[rows] for column in numbers)), joint.confidence)
    return replace(joint, question=request.text, **lines)
