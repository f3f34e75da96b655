"""What can happen in a scene of record-play: questions, and accidents that must tell nothing either."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A question, and what it is asked with."""

    sql: str
    wanted: dict[str, Any] = field(default_factory=dict)
    key: str | None = None


@dataclass(frozen=True)
class LoseCommit:
    """The next commit in which noise is drawn fails after its work was done."""


@dataclass(frozen=True)
class FailSource:
    """The next time that the data are counted, counting fails."""


@dataclass(frozen=True, kw_only=True)
class Squat:
    """Another process has claimed the key of a question and never comes back."""

    ask: Ask


@dataclass(frozen=True, kw_only=True)
class Declare:
    """The data owner declares the next version of the data."""

    same_rows: bool


@dataclass(frozen=True)
class Seal:
    """The data owner seals the partitions up to one."""

    through: int


@dataclass(frozen=True)
class Allot:
    """The data owner gives out shares of the budget."""

    shares: tuple[tuple[str, Fraction], ...]


@dataclass(frozen=True, kw_only=True)
class Refine:
    """Rows of a measurement get finer noise: every n-th of those that have the noise of the first of them."""

    block: int  # which measurement, counted from the last one back
    every: int = 1
    factor: float = 2.0
    parts: int = 1  # one verb, or several under a hold


Rows = tuple[tuple[str, tuple[int, ...]], ...]
"""One row of whole numbers for each of some columns."""


@dataclass(frozen=True, kw_only=True)
class Try:
    """A sparse vector is tested, a new one if none is open; and where the test is above, the answer is bought."""

    scope: Rows
    query: Rows
    estimate: int
    cut: int = 3
    scales: tuple[float, float] = (4.0, 8.0)
    anew: bool = False
    own: bool = True  # or whoever's it is
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Choose:
    """Rows of one histogram for each set of columns are selected by their distances from estimates, then measured."""

    sets: tuple[Rows, ...]  # a row of whole numbers by which each column's cells are weighted
    estimates: tuple[int, ...]  # again and again
    count: int
    scale: float
    barred: tuple[int, ...] = ()
    then_measured: float | None = None  # with noise of this scale


@dataclass(frozen=True, kw_only=True)
class Overtake:
    """Something is committed after the next verb has read the data and before it commits: somebody else's question,
    the same analyst's in another process, or a new version of the data."""

    step: Ask | Declare | Refine | Allot | Seal | Try | Choose
    analyst: str = "bob"


Step = Ask | Allot | Refine | Try | Choose | Overtake | LoseCommit | FailSource | Squat | Declare | Seal
