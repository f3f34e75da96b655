"""Thresholds: how many rows have at least r of k values, for all values of all sets of k columns.

answer = db.thresholds(k=3, r=2, features=["sex", "region", "work", "age"], within=200)
print(answer.labels[17], answer.values[17])     # a line is made when it is looked at
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, overload

from bursar.answer import Answer
from bursar.compile.threshold_rows import Features, thresholds, written
from bursar.compile.workload import Workload
from bursar.goal import Goal
from bursar.pace import paced
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted
from bursar.planner.request import Request
from bursar.session import BatchDoor


class ThresholdDoor(BatchDoor):
    """The part of `Bursar` that asks for thresholds."""

    @abstractmethod
    def requested(
        self, text: str, workload: Workload, wanted: Wanted, clause: Goal | None, key: str | None, **place: Any
    ) -> Request: ...

    @overload
    def thresholds(
        self, k: int = 3, r: int = 2, features: Features | None = None, *, explain: Literal[True], **wanted: Any
    ) -> Explanation: ...

    @overload
    def thresholds(
        self,
        k: int = 3,
        r: int = 2,
        features: Features | None = None,
        *,
        explain: Literal[False] = False,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        **wanted: Any,
    ) -> Answer: ...

    def thresholds(
        self,
        k: int = 3,
        r: int = 2,
        features: Features | None = None,
        *,
        explain: bool = False,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        **wanted: Any,
    ) -> Answer | Explanation:
        """How many rows have at least r of k values, for every choice of values of every set of k columns.

        `features` are the columns to choose from, all where none are given, or the sets of k columns themselves. r = k
        gives marginals. With `explain`, every way to answer, with its price and error, free; else an Answer whose lines
        are made when they are looked at. The goal is given as for `query`: within=50, epsilon=.1 (more in `Wanted`).
        """
        with paced(self.config.pace):
            workload = thresholds(self.config.domain, k=k, r=r, features=features, sealed=self.kernel.sealed())
            place = {"wait": wait, "ticket": ticket, "explain": explain}
            request = self.requested(written(k, r, features), workload, Wanted(**wanted), None, key, **place)
            return self.planner.explain(request) if explain else self.ask(request)
