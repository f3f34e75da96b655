"""Whose budget is used most: what was learnt about a person, by the person's value of each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bursar.arrays import Integers
from bursar.core.accounting import AddRemove, Book, Profile, ReplaceOne, from_units
from bursar.core.accounting.profile import Grid, added
from bursar.core.domain import Attribute, Domain

SHOWN = 3
"""How many values are named per column."""

MOST_JOINT = 2**17
"""Up to so many joint cells the losses are added up cell by cell, as the budget itself is."""


@dataclass(frozen=True, kw_only=True)
class Used:
    """For people with a value of one column: the most that was learnt about any of them, largest first."""

    column: str
    top: tuple[tuple[str, float], ...]
    rest: float  # the most of the values that are not named; 0 where all are
    values: int

    @property
    def alike(self) -> bool:
        """Whether the value makes no difference."""
        most = self.top[0][1]
        return all(used == most for _, used in self.top) and (self.values == len(self.top) or self.rest == most)


def used_by_people(book: Book, domain: Domain) -> tuple[Used, ...]:
    """By column in use, on the version of the data that is measured now; earlier versions have a profile of their own.

    Guarantees: each number bounds the loss of everybody with that value, and none exceeds what is spent, which bounds
    everybody's: adding up column by column is coarser than the budget is. It is a function of the events alone.
    Edge cases: nothing where losses are not kept by cell, as under sequential composition. Where people are replaced
    instead of added, the numbers are those of adding.
    """
    latest = book.profiles.get(max(book.profiles, default=0))
    profile = _by_cell(latest)
    if profile is None:
        return ()
    columns = domain.ordered(name for names in profile.losses for name in names)
    shown = [name for name in columns if Grid.over(domain, (name,)).exact]
    joint, spent = _joint(profile, domain, columns), profile.spent()
    losses = [np.minimum(_losses(profile, domain, name, columns, joint), spent) for name in shown]
    return tuple(_used(domain[name], used) for name, used in zip(shown, losses, strict=True))


def _by_cell(profile: Profile | None) -> AddRemove | None:
    if isinstance(profile, ReplaceOne):
        return profile.around
    return profile if isinstance(profile, AddRemove) else None


def _joint(profile: AddRemove, domain: Domain, columns: tuple[str, ...]) -> Integers | None:
    """The loss of every joint cell of the columns in use, where there are not too many."""
    if domain.cells(columns) > MOST_JOINT:
        return None
    return _sum(profile, domain, Grid.over(domain, columns))


def _losses(
    profile: AddRemove, domain: Domain, name: str, columns: tuple[str, ...], joint: Integers | None
) -> Integers:
    if joint is None:
        return _sum(profile, domain, Grid.over(domain, (name,)))
    others = tuple(axis for axis, column in enumerate(columns) if column != name)
    most: Integers = joint.max(axis=others)
    return most


def _sum(profile: AddRemove, domain: Domain, onto: Grid) -> Integers:
    total: Integers = np.zeros(onto.shape, np.int64)
    for names, loss in profile.losses.items():
        total = added(total, Grid.over(domain, names).project(loss, onto))
    return total


def _used(column: Attribute, losses: Integers) -> Used:
    order = np.argsort(-losses, kind="stable").tolist()
    top = tuple((_label(column, cell), from_units(int(losses[cell]))) for cell in order[:SHOWN])
    rest = from_units(int(losses[order[SHOWN]])) if len(order) > SHOWN else 0.0
    return Used(column=column.name, top=top, rest=rest, values=len(order))


def _label(column: Attribute, cell: int) -> str:
    value = column.label(cell)
    return "NULL" if value is None else str(value)
