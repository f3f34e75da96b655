"""Which rows the branches of a CASE take: those for which a branch's condition holds, and none before it does.

The conditions of all branches before one are a part of what it takes, so a CASE written out branch by branch is as long
as the square of its text. What earlier conditions leave over is kept here instead, by the columns that they tie
together, so that each condition is looked at for its own branch, and once more for all that come after it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bursar.compile.conditions import YES, Region, ValueLine, factors_where, names_in, normal_form, tied_parts, truth_on
from bursar.core.domain import Domain
from bursar.sql import FALSE, TRUE, And, Condition, Constant, IsTrue, Not, Or
from bursar.sql.query import all_of

Cells = NDArray[np.bool_]


def none_of(tests: Sequence[Condition]) -> Condition:
    """That no condition is true."""
    return all_of(*(Not(part=IsTrue(part=test), position=test.position) for test in tests))


def held_by_first(shares: Sequence[tuple[Condition, Condition]], position: int) -> Condition:
    """That the second condition of a pair holds, of the first pair of which the first one is true: where none is true,
    it is unknown as soon as one of them is.

    It has n log n parts: one of the first half is true and decides, or none is and the second half does.
    """
    tests = [test for test, _ in shares]
    if all(share == shares[0][1] for _, share in shares[1:]):
        parts = tuple(all_of(test, share) for test, share in shares)
        return parts[0] if len(parts) == 1 else Or(parts=parts, position=position)
    half = len(shares) // 2
    first, second = held_by_first(shares[:half], position), held_by_first(shares[half:], position)
    return Or(parts=(first, all_of(none_of(tests[:half]), second)), position=position)


def disjoint_regions(
    common: Condition, tests: Sequence[Condition], asked: Sequence[bool], domain: Domain
) -> list[tuple[Region, ...] | None]:
    """For each branch that is asked for, what `regions` gives for its condition, the common one, and none before it.

    The others only take rows away from those behind them.
    """
    shared, left = normal_form(common, negated=False), _LeftOver(domain)
    taken: list[tuple[Region, ...] | None] = []
    for test, wanted in zip(tests, asked, strict=True):
        own = normal_form(test, negated=False)
        if wanted:
            taken.append(None if FALSE in (shared, own) else left.regions(all_of(shared, own)))
        left.take(own)
    return taken


class _LeftOver:
    """What conditions leave over, in groups of columns that they tie together."""

    def __init__(self, domain: Domain) -> None:
        self._domain, self._nothing = domain, False
        self._groups: list[_Untaken] = []  # in the order of the last condition of each

    def take(self, test: Condition) -> None:
        """Leave out the rows for which a condition is true."""
        untrue = normal_form(Not(part=IsTrue(part=test), position=test.position), negated=False)
        if isinstance(untrue, Constant):
            self._nothing |= not untrue.value
            return
        names = set(names_in(untrue))
        joined = [group for group in self._groups if group.names & names]
        self._groups = [group for group in self._groups if not group.names & names]
        self._groups.append(_Untaken(untrue, joined, self._domain))

    def regions(self, condition: Condition) -> tuple[Region, ...] | None:
        """What `regions` gives for a normal form, without the rows that are left out."""
        if self._nothing:
            return None
        own = [] if condition == TRUE else tied_parts(condition)
        groups = [({name for part in group for name in names_in(part)}, group, list[_Untaken]()) for group in own]
        for untaken in self._groups:
            joined = [group for group in groups if group[0] & untaken.names]
            groups = [group for group in groups if not group[0] & untaken.names]
            names = untaken.names.union(*(names for names, _, _ in joined))
            parts = [part for _, parts, _ in joined for part in parts]
            groups.append((names, parts, [*(each for _, _, before in joined for each in before), untaken]))
        factors: list[Region] = []
        for names, parts, before in groups:
            found = self._factors(self._domain.ordered(names), parts, before) if parts else before[0].factors()
            if found is None:
                return None
            factors += found
        return tuple(sorted(factors, key=lambda region: self._domain.place(region.attrs[0])))

    def _factors(
        self, attrs: tuple[str, ...], parts: Sequence[Condition], before: Sequence[_Untaken]
    ) -> list[Region] | None:
        def true(lines: list[ValueLine]) -> Cells:
            own = (truth_on(part, attrs, lines) == YES for part in parts)
            left = (untaken.spread(attrs) for untaken in before)
            return functools.reduce(np.logical_and, (*own, *left))

        untrue = (part for untaken in before for part in untaken.untrue)
        return factors_where(And(parts=(*parts, *untrue)), attrs, self._domain, true)


class _Untaken:
    """The cells of columns that conditions tie together where none of them is true: of one more than others have."""

    def __init__(self, untrue: Condition, before: Sequence[_Untaken], domain: Domain) -> None:
        self.names: set[str] = set(names_in(untrue)).union(*(group.names for group in before))
        self.untrue: list[Condition] = [*(part for group in before for part in group.untrue), untrue]
        self._before, self._domain, self._attrs = before, domain, domain.ordered(self.names)
        self._cells: Cells | None = None  # an axis per column, of length 1 where they do not depend on it
        self._factors: list[list[Region] | None] = []  # of the cells by themselves, once these were asked for

    def spread(self, attrs: tuple[str, ...]) -> Cells:
        """The cells on the grid of these columns and others."""
        if self._cells is None:
            lines = [ValueLine(self._domain[name]) for name in self._attrs]
            last = truth_on(self.untrue[-1], self._attrs, lines) == YES
            self._cells = functools.reduce(np.logical_and, (group.spread(self._attrs) for group in self._before), last)
            self._before = ()
        sizes = iter(self._cells.shape)
        return self._cells.reshape([next(sizes) if name in self.names else 1 for name in attrs])

    def factors(self) -> list[Region] | None:
        """The factors of the cells by themselves; None if there are none."""
        if not self._factors:
            every = And(parts=tuple(self.untrue))
            self._factors.append(factors_where(every, self._attrs, self._domain, lambda _: self.spread(self._attrs)))
        return self._factors[0]
