"""Many questions as one: collected, priced together, and only then paid.

with db.batch(within=50) as batch:
    by_age = batch.query("SELECT age, COUNT(*) FROM people GROUP BY age")
    women = batch.query("SELECT COUNT(*) FROM people WHERE sex = 'F'")
    print(batch.price)          # for all of it; nothing is paid yet
print(women.value)              # paid once, when the block was left
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from bursar.answer import Answer
from bursar.engine import Engine
from bursar.errors import QueryError
from bursar.goal import Horizon
from bursar.pace import paced
from bursar.planner.batch import Batch, split, together
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted
from bursar.planner.request import PlanningRequest
from bursar.sql.parameters import Parameters, bind

Progress = Callable[[int, int], None]
"""Hears how much of how much is done."""

NOT_PAID = "the batch is not paid: its answers are there when the with block has been left without an error"


def without_explain(sql: str) -> str:
    """The question that a text with EXPLAIN in front is about."""
    return sql.lstrip()[len("EXPLAIN") :].lstrip()


def silent(done: int, of: int) -> None:
    """Nobody is told."""


class BatchQuestion:
    """A question of a batch; the answer, and everything that an answer has, once the batch is paid."""

    def __init__(self, question: str) -> None:
        self.question = question
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The answer; refused while the batch is not paid."""
        if self._answer is None:
            raise QueryError(NOT_PAID)
        return self._answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._answer is None:
            raise AttributeError(NOT_PAID if self._answer is None else name)
        return getattr(self._answer, name)

    def __str__(self) -> str:
        return f"{self.question}\n(not paid yet)" if self._answer is None else str(self._answer)

    def __repr__(self) -> str:
        return f"Asked({self.question!r})"


class OpenBatch(ABC):
    """Questions that are being collected. Leaving the block pays for all of them; leaving it by an error for none.

    Guarantees: once somebody has looked at the price, no more than that is paid. Where it has risen meanwhile, because
    others have asked, the batch is refused and nothing is spent.
    """

    def __init__(self) -> None:
        self._questions: list[BatchQuestion] = []
        self._seen: float | None = None  # the price that somebody has looked at
        self._cancelled = False
        self.result: Batch | None = None

    def query(self, sql: str, params: Parameters | None = None) -> BatchQuestion:
        """Add a question, with the values of its parameters; one that cannot be asked is refused here, and the batch
        stays as it was."""
        if self.result is not None or self._cancelled:
            raise QueryError("the batch is closed; begin another one")
        sql = bind(sql, params)
        self._add(sql)
        self._questions.append(BatchQuestion(sql))
        self._seen = None
        return self._questions[-1]

    @property
    def price(self) -> float:
        """What all questions together would cost now; infinite where nothing meets the goal. Costs nothing."""
        self._seen = self._price()
        return self._seen

    @property
    @abstractmethod
    def one_by_one(self) -> float:
        """What the questions would cost now, each asked by itself. Costs nothing."""

    @abstractmethod
    def explain(self) -> Explanation:
        """Every way to answer all questions together, with its price and error. Costs nothing."""

    @property
    def text(self) -> str:
        """All questions, as the log will have them."""
        return ";\n".join(question.question for question in self._questions)

    def pay(self, *, at_most: float | None = None) -> Batch:
        """Answer all questions; the block does this by itself when it is left.

        `at_most` is a price that somebody has looked at elsewhere.
        """
        if self.result is None:
            self.result = self._pay(min((cap for cap in (self._seen, at_most) if cap is not None), default=math.inf))
            for question, answer in zip(self._questions, self.result.answers, strict=True):
                question._answer = answer
        return self.result

    def cancel(self) -> None:
        """Ask nothing after all: leaving the block then costs nothing."""
        self._cancelled = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and not self._cancelled:
            self.pay()

    @abstractmethod
    def _add(self, sql: str) -> None: ...

    @abstractmethod
    def _price(self) -> float: ...

    @abstractmethod
    def _pay(self, at_most: float) -> Batch: ...


class EngineBatch(OpenBatch):
    """A batch that is asked here."""

    def __init__(
        self, engine: Engine, options: Wanted, *, key: str | None, wait: bool, ticket: int | None, progress: Progress
    ) -> None:
        super().__init__()
        self._engine, self._options, self._progress = engine, options, progress
        self._key, self._wait, self._ticket = key, wait, ticket
        self._requests: list[PlanningRequest] = []
        self._one_by_one: list[float] = []

    @property
    def answered(self) -> bool:
        """Whether the answers are there already, under the key of the batch: then they are given again, for nothing."""
        return self._engine.answered(self._joint().asked) is not None

    @property
    def one_by_one(self) -> float:
        for request in self._requests[len(self._one_by_one) :]:
            self._one_by_one.append(self._engine.planner.explain(request).price)
            self._progress(len(self._one_by_one), len(self._requests))
        return sum(self._one_by_one)

    def explain(self) -> Explanation:
        return self._engine.planner.explain(self._joint())

    def _joint(self) -> PlanningRequest:
        """All questions as one. Whoever asks them at once has said what is to come: nothing is bought for later ones,
        unless a horizon is named or the data owner expects many questions."""
        joint = together(self._requests, self._key)
        if self._options.horizon is not None or self._engine.config.horizon is not Horizon.SOME:
            return joint
        return replace(joint, asked=replace(joint.asked, horizon=Horizon.ONE_OFF))

    def _add(self, sql: str) -> None:
        engine = self._engine.tables.asked(sql, self._engine)
        if self._requests and engine is not self._engine:
            table, other = self._engine.config.table, engine.config.table
            raise QueryError(
                f"a batch asks about one private table, and this one about {table}; begin another one for {other}",
                text=sql,
            )
        self._engine = engine
        request = engine.prepare(sql, self._options, wait=self._wait, ticket=self._ticket, naming=True)
        if request.explain:
            raise QueryError(
                "the questions of a batch are asked together, and explained together: look at its price",
                text=sql,
                position=0,
                rewrite=without_explain(sql),
            )
        self._requests.append(request)

    def _price(self) -> float:
        return 0.0 if self.answered else self.explain().price

    def _pay(self, at_most: float) -> Batch:
        joint = self._joint()
        with paced(self._engine.config.pace):
            alone = self.one_by_one
            if at_most < math.inf:
                most = at_most if joint.goal.most is None else min(at_most, joint.goal.most)
                joint = replace(joint, goal=replace(joint.goal, most=most))
            answer = self._engine.ask(joint)
            assert isinstance(answer, Answer)  # no question of a batch is to be explained
            return split(answer, self._requests, alone)
