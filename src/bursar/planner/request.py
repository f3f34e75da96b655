"""A question, compiled, with its goal in counts: all that a proposer gets to see of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bursar.goal import Goal
from bursar.planner.tolerances import balanced
from bursar.compile.lazy_rows import Labels
from bursar.compile.workload import Workload


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
    def of(*, workload: Workload, asked: Goal, goal: Goal, **rest: Any) -> Request:
        """The request for a compiled question with its goal in counts."""
        scaled, planned, step = balanced(workload, asked, goal)
        return Request(workload=scaled, goal=planned, step=step, asked=asked, written=workload, stated=goal, **rest)

    @property
    def compiled(self) -> Workload:
        """The workload with its rows as the question has them."""
        return self.workload if self.written is None else self.written

    @property
    def promised(self) -> Goal:
        """The goal in counts, for the outputs."""
        return self.goal if self.stated is None else self.stated

    @property
    def facts(self) -> dict[str, str | float]:
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
