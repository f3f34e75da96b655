"""Answers as pictures: bars or lines with error bars, drawn by matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from bursar.arrays import Reals
from bursar.compile.compiler import ALL
from bursar.core.domain import Value
from bursar.errors import QueryError
from bursar.report.answer_columns import ColumnKind, Tabular, library, typed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SERIES = 8
"""More groups than this side by side, and each line of the answer is a place of its own."""

MOST_BARS = 40
"""More places than this are points instead of bars."""

MOST_TICKS = 20

FLATTENED = 1.5
"""Groups beside the point may reach so many times as far as the others before their bars are cut."""

MARGIN = 0.08
"""Of the height, kept free above and below where bars are cut."""

BEYOND = "▲▼"

STRAYS = (None, "other", ALL)
"""Groups that stand beside the others and not after the last of them: no line leads there."""

Series = dict[str, dict[str, int]]
"""What the legend says -> what stands below -> the line of the answer."""


def picture_of(answer: Tabular, *, output: str | None = None) -> Figure:
    """A figure of its own, for a file."""
    library("matplotlib", extra="plot", what="a picture")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    draw(answer, figure.subplots(), output=output)
    return figure


def plot(answer: Tabular, axes: Axes | None = None, *, output: str | None = None) -> Axes:
    """On the given axes, or on new ones that a notebook or `pyplot.show()` shows."""
    pyplot = library("matplotlib.pyplot", extra="plot", what="a picture")
    drawn: Axes = pyplot.subplots(layout="constrained")[1] if axes is None else axes
    draw(answer, drawn, output=output)
    return drawn


def draw(answer: Tabular, axes: Axes, *, output: str | None = None) -> None:
    """One place per group, one colour per series, an error bar on each number."""
    if output is not None and output not in answer.outputs:
        raise QueryError(f"the answer has no {output!r}; it has {', '.join(answer.outputs)}")
    outputs = [place for place, name in enumerate(answer.outputs) if output in (None, name)]
    series = _series(answer)
    places = list(dict.fromkeys(place for line in series.values() for place in line))
    at = {place: number for number, place in enumerate(places)}
    frame = frame_of(answer, outputs)
    drawn = [(name, line, place) for name, line in series.items() for place in outputs]
    for number, (name, line, place) in enumerate(drawn):
        legend = ", ".join(part for part in (name, answer.outputs[place] if len(outputs) > 1 else "") if part)
        x = np.array([at[each] for each in line], dtype=float)
        among = number, len(drawn), len(places)
        _draw_series(answer, axes, x, list(line.values()), place, plain(legend), among, frame)
    _ticks(axes, places, {at[label] for label in map(_text_of_stray, STRAYS) if label in at})
    axes.set_ylabel(plain(answer.outputs[outputs[0]]) if len(outputs) == 1 else "")
    axes.set_title("\n".join(textwrap.wrap(answer.question, 80)[:3]), fontsize=9, parse_math=False)
    cut = f"\n{BEYOND} goes on beyond the picture: the table has its ends" if frame is not None else ""
    below = f"error bars: {100 * answer.confidence:g}% for all together ({answer.contract}){cut}"
    axes.set_xlabel(below, fontsize=8)
    if len(drawn) > 1:
        # Beside the picture it covers nothing; on axes of somebody else there may be no room made for it.
        beside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False}
        axes.legend(fontsize=8, **(beside if axes.figure.get_layout_engine() is not None else {}))
    axes.axhline(0, color="#888888", linewidth=0.8)
    if frame is not None:
        axes.set_ylim(*frame)


def frame_of(answer: Tabular, outputs: list[int]) -> tuple[float, float] | None:
    """The ends of the picture where groups that are beside the point would flatten the rest; None where none would.

    Beside the point are NULL, other, totals, and what there may be nobody in: how far their bars reach says little.
    """
    unsure = set(answer.unsure)
    ends: dict[bool, list[float]] = {True: [], False: []}
    for line, label in enumerate(answer.labels):
        for place in outputs:
            apart = (line, place) in unsure or any(part in STRAYS for part in label)
            if (value := answer.values[line][place]) is not None:
                ends[apart] += [value, answer.low[line][place], answer.high[line][place]]
    central, aside = ([end for end in group if math.isfinite(end)] for group in (ends[False], ends[True]))
    low, high = min([0.0, *central]), max([0.0, *central])
    room = (FLATTENED - 1) * (high - low)
    if (
        not central
        or low == high
        or (min(aside, default=low) >= low - room and max(aside, default=high) <= high + room)
    ):
        return None
    reach = MARGIN * (high - low)
    return (low - reach if low < 0 or min(aside, default=0.0) < 0 else 0.0), high + reach


def _ticks(axes: Axes, places: list[str], apart: set[int]) -> None:
    """Labels below, fewer than there are places where these are many; what stands apart always has its own."""
    step = -(-len(places) // MOST_TICKS) or 1
    ends = [number for number in range(0, len(places), step) if not any(0 < abs(number - a) < step for a in apart)]
    shown = sorted({*ends, *apart})
    axes.set_xticks(shown, [plain(places[number]) for number in shown])
    if sum(len(places[number]) for number in shown) > 60:
        for label in axes.get_xticklabels():
            label.set(rotation=60, ha="right", va="center", rotation_mode="anchor")


def _text_of_stray(label: str | None) -> str:
    return "NULL" if label is None else label


def plain(text: str) -> str:
    """Text that matplotlib shows as it is: `$` would begin mathematics."""
    return text.replace("$", r"\$")


def _draw_series(
    answer: Tabular,
    axes: Axes,
    x: Reals,
    lines: list[int],
    output: int,
    legend: str,
    among: tuple[int, int, int],
    frame: tuple[float, float] | None,
) -> None:
    number, series, places = among
    value, low, high = (
        np.array([table[line][output] for line in lines], dtype=float)
        for table in (answer.values, answer.low, answer.high)
    )
    with np.errstate(invalid="ignore"):
        reach = np.stack([np.maximum(value - low, 0), np.maximum(high - value, 0)])
    reach[~np.isfinite(reach)] = np.nan  # an interval without end has no end to draw
    color = f"C{number % 10}"
    if places * series <= MOST_BARS:
        width = 0.8 / series
        x = x + (number - (series - 1) / 2) * width
        axes.bar(x, value, width, yerr=reach, capsize=3, label=legend, color=color, alpha=0.75, ecolor="#333333")
    else:
        apart = np.array([any(label in STRAYS for label in answer.labels[line]) for line in lines], dtype=bool)
        joined = "o-" if any(map(_ordered, zip(*answer.labels, strict=True))) else "o"
        for some, fmt, name in ((~apart, joined, legend), (apart, "o", None if np.any(~apart) else legend)):
            if np.any(some):
                axes.errorbar(
                    x[some],
                    value[some],
                    yerr=reach[:, some],
                    fmt=fmt,
                    label=name,
                    markersize=3,
                    linewidth=1,
                    elinewidth=0.8,
                    capsize=1.5,
                    color=color,
                )
    if frame is not None:
        drawn = ~np.isnan(value)
        for edge, mark, cut in ((frame[0], "v", drawn & (low < frame[0])), (frame[1], "^", drawn & (high > frame[1]))):
            axes.plot(x[cut], np.full(int(cut.sum()), edge), mark, color="#c44e52", markersize=7, clip_on=False)


def _ordered(values: Sequence[Value]) -> bool:
    """Whether a line from group to group means something: of days, numbers and bins, and not of listed texts."""
    known = [value for value in values if value not in STRAYS]
    return not any(isinstance(value, bool) or (isinstance(value, str) and value[:1] != "[") for value in known)


def _texts(values: Sequence[Value]) -> list[str]:
    """What stands below for each value of a group column; the first days of months or years are these."""
    days = {value for value in values if isinstance(value, date)}
    size = 10
    if len(days) > 1 and all(day.day == 1 for day in days):
        size = 4 if all(day.month == 1 for day in days) else 7
    return ["NULL" if each is None else str(each)[:size] if isinstance(each, date) else str(each) for each in values]


def _series(answer: Tabular) -> Series:
    """The lines by series and place: dates and numbers stand below, or else the first column, and the rest beside.

    Edge cases: too many series, or two lines at one place, and every line of the answer gets a place of its own.
    """
    if not answer.keys:
        return {"": {"": 0}}
    columns = [[label[place] for label in answer.labels] for place in range(len(answer.keys))]
    kinds = [typed("", [value for value in column if value not in STRAYS]).kind for column in columns]
    ordered = [
        place for place, kind in enumerate(kinds) if kind in (ColumnKind.DATE, ColumnKind.INTEGER, ColumnKind.NUMBER)
    ]
    below = ordered[0] if ordered else 0
    texts = list(zip(*map(_texts, columns), strict=True))
    series: Series = {}
    for line, label in enumerate(texts):
        beside = ", ".join(text for place, text in enumerate(label) if place != below)
        series.setdefault(beside, {})[label[below]] = line
    if len(series) <= MOST_SERIES and sum(map(len, series.values())) == len(texts):
        return series
    return {"": {", ".join(label): line for line, label in enumerate(texts)}}
