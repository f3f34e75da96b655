"""A question, compiled, with its goal in counts: all that a proposer gets to see of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from bursar.goal import Goal
from bursar.workload.workload import Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    text: str
    workload: Workload
    asked: Goal  # as the analyst wrote it: a percentage may mean other counts tomorrow
    goal: Goal  # in counts
    analyst: str
    key: str | None = None
    explain: bool = False
    wait: bool = True  # whether to stand in line until the turn comes
    ticket: int | None = None  # the place in line, from a call that would not wait

    @property
    def facts(self) -> dict[str, str | float]:
        """What an answer says about the question."""
        return {"question": self.text, "goal": self.goal.describe(), "confidence": self.goal.confidence}

    @cached_property
    def question(self) -> str:
        """Digest of what is asked and how well; the same key may only ever be used with the same one."""
        shape = [self.workload.map.digest, self.workload.keys, self.workload.outputs, self.workload.index.tolist()]
        asked = self.asked
        goal = [asked.kind.value, asked.amount, asked.percent, asked.confidence, asked.unit, asked.most]
        text = json.dumps([shape, [[str(v) for v in line] for line in self.workload.labels], goal])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
