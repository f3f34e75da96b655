"""A question as it is asked, and as it is planned: the second is all that a proposer gets to see of it."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import TYPE_CHECKING

from bursar.answer import QuestionFacts
from bursar.compile.workload import Labels, Workload
from bursar.goal import Goal, Horizon
from bursar.lazy_dataclass import dataclass

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
