"""What a declaration makes of values, in words: a sum over them is one of what they count as, not of what they were.

All of it follows from the config; whether the data hold such values is not looked at, and not told.
"""

from __future__ import annotations

from bursar.core.domain import Attribute, Bins, IntegerRange, Stray


def recoded(attribute: Attribute) -> str:
    """How numbers of a column are changed before they are added up; nothing where they never are."""
    told = [_outside(attribute), _null(attribute)]
    if isinstance(attribute, IntegerRange):
        told.append("decimals are rounded down")
    said = [part for part in told if part]
    return f"{attribute.name}: {'; '.join(said)}" if said else ""


def _outside(attribute: Attribute) -> str:
    match attribute:
        case IntegerRange():
            low, high = str(attribute.lower), str(attribute.upper)
            ends = f"{low} or {high}"
        case Bins():
            low, high = (f"{edge:.15g}" for edge in (attribute.edges[0], attribute.edges[-1]))
            ends = "if they were in the first or the last bin"
        case _ if isinstance(attribute.outside, int):
            return f"values that are not listed count as {_named(attribute, attribute.outside)}"
        case _:
            return ""
    if attribute.outside is Stray.OTHER:
        return ""  # kept apart: a question that would add them up is refused
    named = _named(attribute, attribute.outside) if isinstance(attribute.outside, int) else ends
    return f"values outside {low} to {high} count as {named}"


def _null(attribute: Attribute) -> str:
    if not isinstance(attribute.null, int):
        return ""
    return f"missing values count as {_named(attribute, attribute.null)}"


def _named(attribute: Attribute, cell: int) -> str:
    label = attribute.label(cell)
    return f"if they were in {label}" if isinstance(attribute, Bins) else str(label)
