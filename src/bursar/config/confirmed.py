"""`confirmed`: which sections of a config are guesses that the data owner has not looked at yet."""

from __future__ import annotations

from bursar.config.toml_lines import Place
from bursar.config.section import Section, shown

SECTIONS = ("source", "privacy", "budget")


def unconfirmed(top: Section) -> tuple[Place, ...]:
    """The sections that say `confirmed = false`, in the order in which a person is asked about them.

    Edge cases: a section that says nothing was written by a person, and counts as confirmed.
    """
    columns = top.section("columns")
    sections = [*(top.section(name) for name in SECTIONS), *(columns.section(name) for name in columns.entries)]
    return tuple(section.place for section in sections if not _confirmed(section))


def _confirmed(section: Section) -> bool:
    value = section.entries.get("confirmed", True)
    if not isinstance(value, bool):
        reason = f"{section.label('confirmed')} must be true or false, not {shown(value)}"
        section.refuse("confirmed", reason=reason, hint="confirmed = true, once somebody has looked at this section")
    return value


def label(place: Place) -> str:
    """What a person calls a section: `budget`, or `columns.age`."""
    return ".".join(str(part) for part in place)
