"""[partition]: the column along which the data grow, and when its values are sealed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum

from bursar.analysts.shares import AnalystSettings
from bursar.config.section import HOMES, KEYS, Section, nearest, shown
from bursar.core.domain import Attribute, Dates, IntegerRange
from bursar.errors import QueryError
from bursar.estimation.simultaneous import Family

EXAMPLE = '[partition]\ncolumn = "joined"\nseal = "calendar"'
LONGEST_GRACE = 3650


class Seal(Enum):
    """What decides that a partition is complete; never a row that appeared."""

    ALL = "all"  # everything is, when the ledger is created
    COMMAND = "command"  # the data owner says so
    CALENDAR = "calendar"  # its last day, and some days of grace, are over


@dataclass(frozen=True, kw_only=True)
class Sealing:
    """When partitions are sealed."""

    seal: Seal = Seal.ALL
    grace_days: int = 0

    @property
    def growing(self) -> bool:
        """Whether rows can still come in."""
        return self.seal is not Seal.ALL

    def due(self, column: Attribute, today: date) -> int:
        """How many partitions, from the first one on, are sealed by the calendar on a day; 0 without a calendar."""
        if self.seal is not Seal.CALENDAR or not isinstance(column, Dates):
            return 0
        over = today - timedelta(days=self.grace_days)
        return min(max(column.ordinal(over) - column.ordinal(column.first), 0), column.declared)


def partition(top: Section) -> tuple[str | None, Sealing]:
    """The name of the column, which may not be declared, and when its values are sealed."""
    if "partition" not in top:
        return None, Sealing()
    section = top.section("partition", EXAMPLE)
    section.only(KEYS["partition"], HOMES)
    name = section.text("column", 'column = "joined"')
    seal = Seal(section.word("seal", (kind.value for kind in Seal), Seal.ALL.value))
    grace = 0
    if "grace_days" in section:
        hint = 'grace_days = 2, with seal = "calendar"'
        grace = section.integer("grace_days", hint, least=0, most=LONGEST_GRACE)
        if seal is not Seal.CALENDAR:
            section.refuse("grace_days", reason="partition.grace_days needs a calendar to wait for", hint=hint)
    return name, Sealing(seal=seal, grace_days=grace)


def check_partition(top: Section, columns: dict[str, Attribute]) -> None:
    """Refuse a column that is not declared, or has no calendar where one is needed."""
    name, sealing = partition(top)
    if name is None:
        return
    section = top.section("partition")
    if name not in columns:
        near = nearest(name, columns)
        hint = f'did you mean "{near}"?' if near else "name one of the [columns.*]"
        section.refuse("column", reason=f"partition.column is not declared: {shown(name)}", hint=hint)
    if sealing.seal is Seal.CALENDAR and not isinstance(columns[name], Dates):
        reason = f'seal = "calendar" needs a column of dates, and {shown(name)} is none'
        section.refuse("seal", reason=reason, hint='seal = "command"')


def cell_named(column: Attribute, text: str) -> int:
    """The number of the partition that a value names: a listed value, a number, or any day of it."""
    found: int | None = None
    try:
        if isinstance(column, Dates):
            found = column.ordinal(date.fromisoformat(text)) - column.ordinal(column.first)
        elif isinstance(column, IntegerRange):
            found = int(text) - column.lower
        else:
            found = [str(column.label(cell)) for cell in range(column.declared)].index(text)
    except ValueError:
        pass
    if found is None or not 0 <= found < column.declared:
        first, last = column.label(0), column.label(column.declared - 1)
        raise QueryError(f"{text!r} is no partition of {column.name}; they run from {first} to {last}")
    return found


def check_together(top: Section, sealing: Sealing, family: Family | None, sharing: AnalystSettings) -> None:
    """Refuse what data that grow do not go together with: what is measured for all of them at once."""
    if not sealing.growing:
        return
    if family is not None:
        reason = (
            'goal.contract = "simultaneous" covers data that are all there at the start, and [partition] lets them grow'
        )
        top.section("goal").refuse("contract", reason=reason, hint='contract = "per-query"')
    if sharing.seed is not None:
        reason = "a seed is measured once for all data, and with [partition] there is more to come"
        top.section("analysts").refuse("policy", reason=reason, hint='policy = "shared" or "independent"')
