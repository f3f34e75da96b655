"""Numbers as bars and sparklines of characters, with marks for how far off they may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bursar.report.answer_columns import Tabular

NARROWEST, WIDEST = 10, 60


@dataclass(frozen=True, kw_only=True)
class Ink:
    """The characters to draw with."""

    fill: str
    low: str
    span: str
    value: str
    high: str
    zero: str
    steps: str  # of a sparkline, rising
    unsure: str  # in a sparkline: a number that may just as well be zero


BLOCKS = Ink(fill="█", low="├", span="─", value="┼", high="┤", zero="│", steps="▁▂▃▄▅▆▇█", unsure="·")
PLAIN = Ink(fill="#", low="[", span="-", value="+", high="]", zero="|", steps="_.-:=+*#", unsure="~")


def ink_for(encoding: str | None) -> Ink:
    """Blocks where the terminal has them, else plain characters."""
    try:
        "".join(vars(BLOCKS).values()).encode(encoding or "ascii")
    except (UnicodeError, LookupError):
        return PLAIN
    return BLOCKS


def bars(
    values: Sequence[float | None], low: Sequence[float], high: Sequence[float], *, width: int, ink: Ink
) -> list[str]:
    """One bar per number, from zero to the number, and over it a mark from its low to its high.

    Edge cases: an interval without end is cut off at the edge; where all numbers are zero there is nothing to draw, nor
    is there for what is NULL.
    """
    drawn = [three for three in zip(values, low, high, strict=True) if three[0] is not None]
    finite = [number for three in drawn for number in three if number is not None and math.isfinite(number)]
    start, end = min([0.0, *finite]), max([0.0, *finite])
    if start == end:
        return ["" if value is None else ink.zero for value in values]
    size = max(-start, end)  # without it the difference of two large numbers would overflow

    def place(number: float) -> int:
        bounded = start if math.isnan(number) else min(max(number, start), end)
        return round((bounded / size - start / size) / (end / size - start / size) * (width - 1))

    zero = place(0.0)
    return [
        "" if v is None else _bar(zero, place(v), place(lo), place(hi), ink)
        for v, lo, hi in zip(values, low, high, strict=True)
    ]


def _bar(zero: int, value: int, low: int, high: int, ink: Ink) -> str:
    line = [" "] * (max(zero, high, value) + 1)
    for column in range(min(zero, value), max(zero, value)):
        line[column] = ink.fill
    line[zero] = ink.zero if value <= zero else line[zero]
    if high - low > 1:
        line[low : high + 1] = [ink.low, *ink.span * (high - low - 1), ink.high]
    line[value] = ink.value
    return "".join(line)


def sparkline(values: Sequence[float | None], low: Sequence[float], high: Sequence[float], *, ink: Ink) -> str:
    """One character per number; one that may be zero for all that is known is marked as unsure, NULL is a blank."""
    top = max((value for value in values if value is not None and math.isfinite(value)), default=0.0)
    last = len(ink.steps) - 1
    return "".join(
        " "
        if value is None
        else ink.unsure
        if not (lo > 0 or hi < 0) or not math.isfinite(value)
        else ink.steps[round(last * min(max(value / top, 0.0), 1.0))]
        if top > 0
        else ink.steps[0]
        for value, lo, hi in zip(values, low, high, strict=True)
    )


def with_bars(answer: Tabular, table: str, *, width: int, ink: Ink) -> str:
    """The table of an answer with a bar behind each line; with a sparkline per aggregate below where there are several.

    Guarantees: no line that fitted into the width is made longer than it; where there is no room the table stays as it
    is.
    """
    lines = table.splitlines()
    if len(answer.values) < 2:
        return table
    if len(answer.outputs) == 1:
        room = min(width - max(map(len, lines)) - 3, WIDEST)
        if room < NARROWEST:
            return table
        ends = _column(answer.low, 0), _column(answer.high, 0)
        drawn = ["", "", *bars([line[0] for line in answer.values], *ends, width=room, ink=ink)]
        return "\n".join(f"{line}   {bar}".rstrip() for line, bar in zip(lines, drawn, strict=True))
    wide = max(map(len, answer.outputs))
    if wide + 2 + len(answer.values) > width:
        return table
    drawn = []
    for place, name in enumerate(answer.outputs):
        ends = _column(answer.low, place), _column(answer.high, place)
        line = sparkline([line[place] for line in answer.values], *ends, ink=ink)
        drawn.append(f"{name:<{wide}}  {line}".rstrip())
    return "\n".join([*lines, "", *drawn])


def _column(table: Sequence[Sequence[float]], place: int) -> list[float]:
    return [line[place] for line in table]
