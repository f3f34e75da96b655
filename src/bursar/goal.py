"""What an analyst asks for: an error with a confidence, a root mean square, or a price."""

from __future__ import annotations

import math
from dataclasses import field, replace
from enum import Enum
from typing import Any, Protocol

from bursar.errors import GoalError
from bursar.lazy_dataclass import dataclass

DEFAULT_CONFIDENCE = 0.95

LARGEST_AMOUNT = 2.0**100
"""Amounts beyond this, or below its inverse, mean nothing to anybody, and their squares would soon overflow."""

BETA_LESS_ROUNDING = 1 - 1e-12
"""A hair below a failure probability, so that rounding cannot lift the whole above it."""

FEW_QUESTIONS, MANY_QUESTIONS = 3, 100
"""Up to which number of questions rows for later ones do not pay off, and from which on they surely do."""


class GoalKind(Enum):
    """What the amount of a goal measures."""

    ERROR = "error"  # Pr[max_i |error_i| > amount] <= 1 - confidence
    RMSE = "rmse"  # root of the mean expected squared error over the queries <= amount
    SPEND = "spend"  # the best answer for at most this price


class Horizon(Enum):
    """How many more questions like this one are expected: what may be bought for later ones depends on it."""

    ONE_OFF = "one-off"  # nothing is bought for later questions
    SOME = "some"  # as much as the cap of `views/baseline.py` allows
    MANY = "many"  # whatever is expected to pay off

    @staticmethod
    def of(given: str | int) -> Horizon:
        """From one of the words, or a number of questions."""
        if isinstance(given, bool) or (isinstance(given, int) and given < 1):
            raise GoalError("a horizon in questions is a whole number from 1 on")
        if isinstance(given, int):
            return (
                Horizon.ONE_OFF if given <= FEW_QUESTIONS else Horizon.SOME if given < MANY_QUESTIONS else Horizon.MANY
            )
        words = {horizon.value: horizon for horizon in Horizon}
        if given not in words:
            raise GoalError(f"a horizon is one of {', '.join(map(repr, words))}, or a number of questions")
        return words[given]


@dataclass(frozen=True, kw_only=True)
class TextSearch:
    """Texts of open columns are looked for before a question is answered: `WITH DISCOVERY`, or `DISCOVERY 0.05`."""

    spend: float | None = None  # on each column, in rho; None: a fixed part of the budget
    position: int = field(default=-1, compare=False)


class Contract(Enum):
    """What the confidence of an answer covers; shown on every answer."""

    PER_QUERY = "per-query"  # each answer by itself, if its question does not depend on the noise of the rows it uses
    SIMULTANEOUS = "simultaneous"  # all answers together, for a family of questions declared beforehand


class DerivedOutputs(Protocol):
    """Averages, quantiles and the like that rows are measured for: rows may be off by more, where these are exact
    enough."""

    @property
    def apart(self) -> bool:
        """Whether rows that are exact enough by themselves are not enough: their errors add up."""

    def kept_by(self, law: Any, amount: float, beta: float, *, searching: bool = False) -> bool:
        """Whether they are, by an error law of the rows, where the amount is what rows may be off by; about that, for
        whoever is searching."""

    def reach(self, law: Any, beta: float) -> float:
        """About the least amount at which they are."""

    def widths(self, law: Any, amount: float, beta: float) -> Any:
        """Half-widths of all rows that go with them; None where those of the law itself do."""


@dataclass(frozen=True, kw_only=True)
class OutputGoal:
    """The error asked for one output of a question, or for all that are not named."""

    amount: float
    percent: bool = False
    output: str | None = None
    position: int = field(default=-1, compare=False)  # in the text, for messages


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The accuracy asked for. `confidence` also sets the error bars of the two other kinds.

    With `parts`, outputs have errors of their own, and `amount` is that of the first part.
    """

    kind: GoalKind
    amount: float
    confidence: float = DEFAULT_CONFIDENCE
    percent: bool = False  # the amount is a percentage of the public size; see `in_counts`
    unit: str = ""  # "epsilon" or "rho" where the kind is SPEND and the analyst named it
    most: float | None = None  # refuse if the price would exceed this, whatever the kind
    parts: tuple[OutputGoal, ...] = ()
    relative: bool = False  # the amount is a percentage of each true count, or of its floor where that is larger
    floor: float | None = None  # with `relative`: a public number; None: an even share of all rows
    rows: float | None = None  # with `relative` and without a floor: how many rows there are; see `in_counts`
    derived: DerivedOutputs | None = None  # what rows are for, where these are enough and bars of all rows not needed

    def __post_init__(self) -> None:
        for amount in (self.amount, *(part.amount for part in self.parts)):
            if not 1 / LARGEST_AMOUNT <= amount <= LARGEST_AMOUNT:
                raise GoalError(f"the {self.kind.value} of a goal must be a positive number, not {amount!r}")
        if not (self.confidence > 0 and 0 < self.beta < 1):  # 1 - 1e-300 is 1
            raise GoalError(f"a confidence lies strictly between 0 and 1 (or 0% and 100%), not {self.confidence!r}")
        if self.relative and (self.kind is not GoalKind.ERROR or self.parts or self.amount >= 100):
            raise GoalError("a relative error is one percentage below 100%, for all numbers of the answer")
        if self.floor is not None and not (self.relative and 0 < self.floor <= LARGEST_AMOUNT):
            raise GoalError("a floor is a positive number of rows, beside a relative error")
        if self.most is not None and not (math.isfinite(self.most) and self.most >= 0):
            raise GoalError(f"a largest cost must be a number of at least 0, not {self.most!r}")

    @property
    def beta(self) -> float:
        """The probability of missing the goal that is tolerated."""
        return 1.0 - self.confidence

    def shared(self, among: int) -> Goal | None:
        """The goal with an even share of its chance to fail, rounded downwards; None where that is too small."""
        most = BETA_LESS_ROUNDING * self.beta / among
        nearest = 1 - most
        confidence = nearest if 1 - nearest <= most else math.nextafter(nearest, 1.0)
        return None if confidence == 1 else replace(self, confidence=confidence)

    def of(self, output: str) -> OutputGoal:
        """What is asked for one output: its own part, or that of all others."""
        parts = self.parts or (OutputGoal(amount=self.amount, percent=self.percent),)
        matching = [part for part in parts if part.output == output] or [part for part in parts if part.output is None]
        if not matching:
            raise GoalError(f"no error is given for {output}: write WITH ERROR {self.amount:g} ON {output}")
        return matching[0]

    def times(self, factor: float) -> Goal:
        """The same goal with every amount multiplied."""
        parts = tuple(replace(part, amount=factor * part.amount) for part in self.parts)
        return replace(self, amount=factor * self.amount, parts=parts)

    def describe(self) -> str:
        """The goal in the words of the SQL clause."""
        name = (self.unit or "epsilon").upper() if self.kind is GoalKind.SPEND else self.kind.name
        if self.relative:
            floor = "" if self.floor is None else f" FLOOR {self.floor:g}"
            return f"WITH RELATIVE ERROR {self.amount:g}%{floor} CONFIDENCE {100 * self.confidence:g}%"
        parts = self.parts or (OutputGoal(amount=self.amount, percent=self.percent),)
        amounts = [
            f"{part.amount:g}{'%' * part.percent}{'' if part.output is None else f' ON {part.output}'}"
            for part in parts
        ]
        return f"WITH {name} {', '.join(amounts)} CONFIDENCE {100 * self.confidence:g}%"
