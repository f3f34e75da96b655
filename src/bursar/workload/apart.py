"""Maps that one question needs and that are measured one by one: counts that tie many columns together, and others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.errors import GoalError, QueryError
from bursar.goal import Goal
from bursar.queries import Counts, LinearMap, Norm, Predicate
from bursar.queries.linear_map import Integers

MOST_GROUPS = 64
"""Most counts of one question that tie too many columns together for a mask: groups times counts.

Each is counted by the source, and committed, by itself.
"""


@dataclass(frozen=True, eq=False)
class Apart:
    """The rows of all parts in order. No verb takes it: what is measured are its parts.

    Guarantees: no accountant has a price for it, so that the kernel refuses it as a whole.
    """

    parts: tuple[LinearMap, ...]

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.attrs))

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @cached_property
    def digest(self) -> str:
        known = "apart " + " ".join(part.digest for part in self.parts)
        return hashlib.blake2b(known.encode(), digest_size=16).hexdigest()

    def apply(self, counts: Counts) -> Integers:
        return np.concatenate([part.apply(counts) for part in self.parts])

    def norms(self, power: int) -> tuple[Norm, ...]:
        return tuple(norm for part in self.parts for norm in part.norms(power))

    def largest(self) -> int:
        return max(part.largest() for part in self.parts)

    def take(self, rows: Sequence[int]) -> LinearMap:
        ends = np.cumsum([part.rows for part in self.parts])
        picked: list[LinearMap] = []
        for row in rows:
            place = min(int(np.searchsorted(ends, row, side="right")), len(self.parts) - 1)
            part = self.parts[place]
            picked.append(part.take([row - int(ends[place]) + part.rows]))
        return picked[0] if len(picked) == 1 else Apart(tuple(picked))


def check_goal(asked: LinearMap, goal: Goal, *, simultaneous: bool) -> None:
    """Refuse what counts that are measured one by one cannot promise; nothing was spent."""
    if not isinstance(asked, Apart):
        return
    tied = " and ".join(asked.attrs)
    if simultaneous:
        raise QueryError(
            f"the declared family has no counts that tie {tied} together; it may have conditions on single columns, "
            "joined by AND"
        )
    if goal.parts:
        raise GoalError(
            f"counts that tie {tied} together share one error with all that is asked beside them: leave out ON, or "
            "ask for each by itself"
        )


def check_batch(asked: LinearMap) -> None:
    """Refuse in a batch what has to be asked by itself."""
    if isinstance(asked, Apart | Predicate):
        tied = " and ".join(asked.attrs)
        raise QueryError(f"a count that ties {tied} together is asked by itself, not in a batch")
