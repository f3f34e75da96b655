"""Answers as pictures: bars or lines with error bars, drawn by matplotlib."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bursar.errors import QueryError
from bursar.show.columns import Kind, Tabular, columns_of
from bursar.show.libraries import library
from bursar.workload.compile import ALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SERIES = 8
"""More groups than this side by side, and each line of the answer is a place of its own."""

MOST_BARS = 40
"""More places than this are points instead of bars."""

MOST_TICKS = 20

STRAYS = (None, "other", ALL)
"""Groups that stand beside the others and not after the last of them: no line leads there."""

Reals = NDArray[np.float64]
Series = dict[str, dict[str, int]]
"""What the legend says -> what stands below -> the line of the answer."""


def picture_of(answer: Tabular, *, output: str | None = None) -> Figure:
    """A figure of its own, for a file."""
    library("matplotlib", extra="plot", what="a picture")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    draw(answer, figure.subplots(), output=output)
    return figure


def plot(answer: Tabular, axes: Any = None, *, output: str | None = None) -> Axes:
    """On the given axes, or on new ones that a notebook or `pyplot.show()` shows."""
    pyplot = library("matplotlib.pyplot", extra="plot", what="a picture")
    drawn: Axes = pyplot.subplots(layout="constrained")[1] if axes is None else axes
    draw(answer, drawn, output=output)
    return drawn


def draw(answer: Tabular, axes: Any, *, output: str | None = None) -> None:
    """One place per group, one colour per series, an error bar on each number."""
    if output is not None and output not in answer.outputs:
        raise QueryError(f"the answer has no {output!r}; it has {', '.join(answer.outputs)}")
    outputs = [place for place, name in enumerate(answer.outputs) if output in (None, name)]
    series = _series(answer)
    places = list(dict.fromkeys(place for line in series.values() for place in line))
    at = {place: number for number, place in enumerate(places)}
    drawn = [(name, line, place) for name, line in series.items() for place in outputs]
    for number, (name, line, place) in enumerate(drawn):
        legend = ", ".join(part for part in (name, answer.outputs[place] if len(outputs) > 1 else "") if part)
        x = np.array([at[each] for each in line], dtype=float)
        _draw_series(answer, axes, x, list(line.values()), place, plain(legend), (number, len(drawn), len(places)))
    step = -(-len(places) // MOST_TICKS) or 1
    axes.set_xticks(range(0, len(places), step), [plain(place) for place in places[::step]])
    if sum(map(len, places[::step])) > 60:
        axes.tick_params(axis="x", rotation=60)
    axes.set_ylabel(plain(answer.outputs[outputs[0]]) if len(outputs) == 1 else "")
    axes.set_title("\n".join(textwrap.wrap(answer.question, 80)[:3]), fontsize=9, parse_math=False)
    axes.set_xlabel(f"error bars: {100 * answer.confidence:g}% for all together ({answer.contract})", fontsize=8)
    if len(drawn) > 1:
        axes.legend(fontsize=8)
    axes.axhline(0, color="#888888", linewidth=0.8)


def plain(text: str) -> str:
    """Text that matplotlib shows as it is: `$` would begin mathematics."""
    return text.replace("$", r"\$")


def _draw_series(
    answer: Tabular, axes: Any, x: Reals, lines: list[int], output: int, legend: str, among: tuple[int, int, int]
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
        place = x + (number - (series - 1) / 2) * width
        axes.bar(place, value, width, yerr=reach, capsize=3, label=legend, color=color, alpha=0.75, ecolor="#333333")
    else:
        style = {"markersize": 3, "linewidth": 1, "elinewidth": 0.8, "capsize": 1.5, "color": color}
        apart = np.array([any(label in STRAYS for label in answer.labels[line]) for line in lines], dtype=bool)
        for some, fmt, name in ((~apart, "o-", legend), (apart, "o", None if np.any(~apart) else legend)):
            if np.any(some):
                axes.errorbar(x[some], value[some], yerr=reach[:, some], fmt=fmt, label=name, **style)


def _series(answer: Tabular) -> Series:
    """The lines by series and place: dates and numbers stand below, or else the first column, and the rest beside.

    Edge cases: too many series, or two lines at one place, and every line of the answer gets a place of its own.
    """
    if not answer.keys:
        return {"": {"": 0}}
    columns = columns_of(answer)[: len(answer.keys)]
    ordered = [place for place, column in enumerate(columns) if column.kind in (Kind.DATE, Kind.INTEGER, Kind.NUMBER)]
    below = ordered[0] if ordered else 0
    texts = [line[: len(columns)] for line in answer.cells()]
    found: Series = {}
    for line, label in enumerate(texts):
        beside = ", ".join(text for place, text in enumerate(label) if place != below)
        found.setdefault(beside, {})[label[below]] = line
    if len(found) <= MOST_SERIES and sum(map(len, found.values())) == len(texts):
        return found
    return {"": {", ".join(label): line for line, label in enumerate(texts)}}
