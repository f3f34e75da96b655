"""How many stored values each declaration changes, and by how much in sum: exact, for the data owner's eyes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bursar.compile.values import Represented
from bursar.config.load import Config
from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Stray
from bursar.curate.effects import Effect, effects

SAME = 1e-9
"""Sums that differ by no more than this share of themselves differ by the rounding of floats."""


@dataclass(frozen=True, kw_only=True)
class ColumnChange:
    """One column: how many values there are, how many count as something else, and what a sum over them would be."""

    name: str
    filled: int
    unread: int
    outside: int
    rounded: int
    stored_sum: float | None  # None: the column has no numbers to add up
    declared_sum: float | None
    text: str  # all this in words; "" where nothing is changed


def changes(config: Config, data: object, names: Sequence[str] | None = None) -> tuple[ColumnChange, ...]:
    """What the declarations of these columns, or of all, do to the rows of the config's file, or of a data frame."""
    wanted = [one for one in config.domain.attributes if names is None or one.name in names]
    found = effects(data, config.table, config.view, wanted)
    return tuple(_change(attribute, effect) for attribute, effect in zip(wanted, found, strict=True))


def _change(attribute: Attribute, effect: Effect) -> ColumnChange:
    declared = None if effect.total is None else _declared_sum(attribute, effect)
    return ColumnChange(
        name=effect.name,
        filled=effect.filled,
        unread=effect.unread,
        outside=effect.outside,
        rounded=effect.rounded,
        stored_sum=effect.total,
        declared_sum=declared,
        text=_text(attribute, effect, declared),
    )


def _declared_sum(attribute: Attribute, effect: Effect) -> float:
    """The sum over the declared values that the numbers count as; those that count as other or NULL have none."""
    return sum(rows * _number(attribute, cell) for cell, rows in effect.cells.items() if cell < attribute.declared)


def _number(attribute: Attribute, cell: int) -> float:
    match attribute:
        case Represented(representatives=numbers):
            return numbers[cell]
        case Bins(edges=edges):
            return (edges[cell] + edges[cell + 1]) / 2
        case IntegerRange(lower=lower):
            return lower + cell
    raise AssertionError(attribute)


def _text(attribute: Attribute, effect: Effect, declared: float | None) -> str:
    kind = {Dates: "days", Categories: "true or false"}.get(type(attribute), "numbers")
    lost = "NULL" if attribute.outside is Stray.CLIP else _as(attribute)
    ends = "beyond the ends" if attribute.ordered else "not listed"
    counted = [
        (effect.rounded, "rounded down to whole numbers"),
        (effect.outside, f"{ends}, counted as {_as(attribute)}"),
        (effect.unread, f"not readable as {kind}, counted as {lost}"),
    ]
    told = [f"{rows:,} {what}" for rows, what in counted if rows]
    text = f"of {effect.filled:,} values: {'; '.join(told)}" if told else ""
    before = effect.total
    if before is None or declared is None or abs(declared - before) <= SAME * max(abs(before), abs(declared)):
        return text
    share = f" ({100 * (declared - before) / abs(before):+.2g} %)" if before else ""
    return f"{f'{text}; ' if text else ''}the sum is {before:,.10g}, and {declared:,.10g} as declared{share}"


def _as(attribute: Attribute) -> str:
    match attribute.outside:
        case Stray.CLIP:
            return "the nearest end"
        case Stray():
            return "other"
        case cell:
            return str(attribute.label(cell))
