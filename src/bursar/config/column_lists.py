"""Lists of columns in a config: each item of a key is a column, or a list of them."""

from __future__ import annotations

from bursar.config.section import Section, nearest, shown
from bursar.core.domain import Domain


def columns_of(section: Section, domain: Domain, key: str, place: int, example: str) -> tuple[str, ...]:
    """The columns that one item of a list names, in the order of the domain; refused where one of them is no column."""
    item = section.entries[key][place]
    names = item if isinstance(item, list) else [item]
    label = section.label(key, place)
    if not names:
        section.refuse(key, place, reason=f"{label} names no column", hint=example)
    for inner, name in enumerate(names):
        at = (key, place, inner) if isinstance(item, list) else (key, place)
        if not isinstance(name, str):
            reason = f"{section.label(*at)} must be the name of a column, not {shown(name)}"
            section.refuse(*at, reason=reason, hint=example)
        if name not in domain:
            near = nearest(name, domain.names)
            hint = f'did you mean "{near}"?' if near else "name one of the [columns.*]"
            if "," in name:
                hint = 'a list of columns for questions about several together: ["age", "sex"]'
            section.refuse(*at, reason=f"{section.label(*at)} is no declared column: {shown(name)}", hint=hint)
    columns = domain.ordered(names)
    if len(columns) < len(names):
        section.refuse(key, place, reason=f"{label} names a column twice", hint=example)
    return columns
