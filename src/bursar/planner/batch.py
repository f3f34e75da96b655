"""Many questions as one: planned together, paid once, answered consistently."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bursar.answer import Answer, lines_of
from bursar.arrays import Integers, Reals
from bursar.compile.partwise import pieces_of, put_together
from bursar.compile.workload import Workload
from bursar.core.queries import LinearMap
from bursar.errors import GoalError, QueryError
from bursar.estimation.batch_goals import BatchGoal
from bursar.estimation.derived import Derived
from bursar.estimation.estimate import ErrorLaw, LawOfQuestions, derived_by_itself
from bursar.goal import GoalKind
from bursar.lazy_dataclass import dataclass
from bursar.planner.request import MOST_APART, PlanningRequest, balance, derived_goal, least_of, tolerances


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


@dataclass(frozen=True, eq=False)
class BatchWorkload(Workload):
    """The rows that the questions of a batch need, answered by all numbers of these questions, one after the other.

    The ends of averages and the like follow from the joint law of rows, which an answer does not have: they are worked
    out with it.
    """

    questions: tuple[Workload, ...] = ()  # their rows in multiples that are right for the batch
    goal: BatchGoal | None = None
    amount: float = 0.0  # what rows may err by

    def derive(
        self, values: Reals, low: Reals, high: Reals, law: ErrorLaw | None = None, beta: float = 0.0
    ) -> list[Derived]:
        assert self.goal is not None
        assert law is not None
        if isinstance(law, LawOfQuestions):
            return [_one_after_the_other(law.derive(values))]
        parts = self.goal.by_question(values, law, self.amount, beta)
        if parts is None:  # all rows are exact enough together, and so is what follows from their bars
            numbers = [
                question.derive(values[rows], low[rows], high[rows])
                for question, rows in zip(self.questions, self.goal.places, strict=True)
            ]
        else:
            numbers = [derived_by_itself(question, *each) for question, each in zip(self.questions, parts, strict=True)]
        return [_one_after_the_other([number for each in numbers for number in each])]


def _one_after_the_other(numbers: Sequence[Derived]) -> Derived:
    """All numbers of several outputs as those of one."""
    sure = [np.ones(len(n.value), np.bool_) if n.sure is None else n.sure for n in numbers]
    value, low, high = (np.concatenate(part) for part in zip(*((n.value, n.low, n.high) for n in numbers), strict=True))
    finer = [np.zeros(len(n.value)) if n.finer is None else n.finer for n in numbers]
    return Derived(value, low, high, np.concatenate(sure), np.concatenate(finer))


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
    joint = PlanningRequest(
        asked=replace(first.asked, text=text, workload=everything, key=key),
        goal_in_counts=first.goal_in_counts,
        workload=replace(everything, map=balanced.map, times=balanced.times),
        goal=goal,
        step=step if rows else 1.0,
        questions=_added(requests),
    )
    different = list(_different(requests).values())
    derived = any(request.goal.derived is not None for request in different)
    few = goal.kind is GoalKind.ERROR and 2 <= len(different) <= MOST_APART
    return _by_question(joint, different) if derived or few else joint


def _by_question(joint: PlanningRequest, requests: Sequence[PlanningRequest]) -> PlanningRequest:
    """The same where each question has a share of the goal, and can be answered by rows of its own."""
    times, amount = joint.workload.times, joint.goal.amount
    starts = _starts(joint.asked.workload.map)
    places = tuple(_places(request, starts) for request in requests)
    questions = tuple(
        replace(request.asked.workload, times=None if times is None else times[rows])
        for request, rows in zip(requests, places, strict=True)
    )
    derived = tuple(
        derived_goal(request.asked, question, request.goal_in_counts, amount)
        for request, question in zip(requests, questions, strict=True)
    )
    goal = BatchGoal(joint.workload.map.rows, places, derived)
    workload = BatchWorkload(
        map=joint.workload.map,
        keys=("question", "output", "line"),
        labels=tuple(
            (place, output, line)
            for place, question in enumerate(questions)
            for output in question.outputs
            for line in range(len(question.index))
        ),
        outputs=("value",),
        index=joint.workload.index,
        times=times,
        questions=questions,
        goal=goal,
        amount=amount,
    )
    return replace(joint, workload=workload, goal=replace(joint.goal, derived=goal), alone=tuple(requests))


def split(joint: Answer, requests: Sequence[PlanningRequest], one_by_one: float) -> Batch:
    """The answer to each question, cut out of the answer to all of them."""
    if joint.keys == ("row",):
        starts = _starts(_needed(requests))
        answers = tuple(_cut(joint, request, starts) for request in requests)
    else:
        answers = _parted(joint, requests)
    return Batch(answers=answers, charge=joint.charge, unit=joint.unit, one_by_one=one_by_one)


def _starts(needed: LinearMap) -> dict[str, int]:
    """Where the rows of each piece begin, by its digest."""
    pieces = pieces_of(needed)
    ends = np.cumsum([0, *(piece.rows for piece in pieces)]).tolist()
    return {piece.digest: start for piece, start in zip(pieces, ends, strict=False)}


def _places(request: PlanningRequest, starts: dict[str, int]) -> Integers:
    """Where the rows of a question are among those of the batch."""
    places = [starts[piece.digest] + np.arange(piece.rows) for piece in pieces_of(request.asked.workload.map)]
    return np.concatenate([*places, np.zeros(0, np.int64)])


def _identity(request: PlanningRequest) -> tuple[object, ...]:
    """What makes a question, whatever its outputs are called and its lines: rows, what they are for, and numbers."""
    workload = request.workload
    return workload.map.digest, request.goal, workload.index.tobytes(), str([form.facts() for form in workload.forms])


def _different(requests: Sequence[PlanningRequest]) -> dict[tuple[object, ...], PlanningRequest]:
    """The questions that need any rows, each once."""
    distinct: dict[tuple[object, ...], PlanningRequest] = {}
    for request in requests:
        if request.workload.map.rows:
            distinct.setdefault(_identity(request), request)
    return distinct


def _parted(joint: Answer, requests: Sequence[PlanningRequest]) -> tuple[Answer, ...]:
    """The same where the joint answer has the numbers of the different questions, one after the other."""
    tables = (joint.values, joint.low, joint.high)
    value, low, high = (np.array([np.nan if cell is None else cell for (cell,) in table]) for table in tables)
    sure = np.ones(len(joint.values), np.bool_)
    sure[[line for line, _ in joint.unsure]] = False
    numbers: dict[tuple[object, ...], list[Derived]] = {}
    start = 0
    for identity, request in _different(requests).items():
        size, outputs = len(request.workload.index), len(request.workload.outputs)
        lines = [slice(start + size * output, start + size * (output + 1)) for output in range(outputs)]
        numbers[identity] = [Derived(value[some], low[some], high[some], sure[some]) for some in lines]
        start += size * outputs
    nothing = np.zeros(0)
    answers: list[Answer] = []
    for request in requests:
        workload = request.asked.workload
        derived = numbers.get(_identity(request)) or workload.derive(nothing, nothing, nothing)
        answers.append(replace(joint, question=request.text, **lines_of(workload, derived, joint.confidence)))
    return tuple(answers)


def _needed(requests: Sequence[PlanningRequest]) -> LinearMap:
    return put_together(piece for request in requests for piece in pieces_of(request.asked.workload.map))


def _added(requests: Sequence[PlanningRequest]) -> tuple[int, ...]:
    """How many pieces each question needs that no question before it does; none for those that need no other."""
    measured: set[str] = set()
    added: list[int] = []
    for request in requests:
        new = {piece.digest for piece in pieces_of(request.asked.workload.map)} - measured
        measured |= new
        added += [len(new)] if new else []
    return tuple(added)


def _cut(joint: Answer, request: PlanningRequest, starts: dict[str, int]) -> Answer:
    workload = request.asked.workload
    rows = _places(request, starts)
    value, low, high = (np.array([cell for (cell,) in table])[rows] for table in (joint.values, joint.low, joint.high))
    lines = lines_of(workload, workload.derive(value, low, high), joint.confidence)
    return replace(joint, question=request.text, **lines)
