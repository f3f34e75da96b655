"""[columns.NAME.levels]: columns that put the listed values of another column into groups."""

from __future__ import annotations

from bursar.config.section import Section, check_name, nearest, shown
from bursar.core.domain import Categories, Domain
from bursar.compile import Level

EXAMPLE = 'country = { "Europe" = ["FR", "DE"], "Asia" = ["JP"] }'


def levels(top: Section, domain: Domain) -> tuple[Level, ...]:
    """All declared levels, in the order of the file."""
    columns = top.section("columns")
    taken = {name.casefold(): columns.label(name) for name in domain.names}
    found: list[Level] = []
    for attribute in domain.attributes:
        section = columns.section(attribute.name)
        if "levels" not in section:
            continue
        inner = section.section("levels", f"[{section.label('levels')}]\n{EXAMPLE}")
        if not isinstance(attribute, Categories):
            reason = f"{inner.label()}: only listed values have levels"
            inner.refuse(reason=reason, hint="GROUP BY takes FLOOR(x / 10), DATE_TRUNC and CASE of other columns")
        for name in inner.entries:
            with inner.located(name):
                check_name(name, "the name of a level")
            if (twin := taken.setdefault(name.casefold(), inner.label(name))) != inner.label(name):
                reason = f"{inner.label(name)} has the name of {twin}: a level is asked for like a column"
                inner.refuse(name, reason=reason, hint="give it a name of its own")
            found.append(_level(inner.section(name, EXAMPLE), attribute))
    return tuple(found)


def _level(section: Section, column: Categories) -> Level:
    """The groups of one level, which must hold every declared value once."""
    if not section.entries:
        section.refuse(reason=f"{section.label()} has no group", hint=EXAMPLE)
    known = {(type(value), value) for value in column.values}  # 1 == true in Python, not in TOML
    homes: dict[object, str] = {}
    for group in section.entries:
        with section.located(group):
            check_name(group, "the name of a group")
        if group == "other" and column.other is not None:
            reason = f'{section.label(group)}: "other" is what values of {column.name} are called that are not listed'
            section.refuse(group, reason=reason, hint="give the group another name")
        values = section.items(group, EXAMPLE)
        if not values:
            section.refuse(group, reason=f"{section.label(group)} is empty", hint="list its values, or leave it out")
        for place, value in enumerate(values):
            label = section.label(group, place)
            if isinstance(value, list | dict) or (type(value), value) not in known:
                near = nearest(str(value), map(str, column.values))
                hint = f'did you mean "{near}"?' if near else f"a group lists declared values of {column.name}"
                reason = f"{label} is {shown(value)}, which is not among the values of {column.name}"
                section.refuse(group, place, reason=reason, hint=hint)
            if value in homes:
                reason = f"{label} repeats {shown(value)}, which is in {shown(homes[value])}"
                section.refuse(group, place, reason=reason, hint="every value belongs to exactly one group")
            homes[value] = group
    missing = [value for value in column.values if value not in homes]
    if missing:
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        reason = f"{section.label()} has no group for {shown(missing[0])}{more}"
        section.refuse(reason=reason, hint="put every value of the column into one group")
    groups = tuple((group, tuple(values)) for group, values in section.entries.items())
    return Level(name=str(section.place[-1]), column=column, groups=groups)
