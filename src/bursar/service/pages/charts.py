"""Charts as plain geometry, in percent of the room that a screen has; templates/charts.html draws them as SVG.

Drawing on the server needs no script in the browser, prints, is read aloud, and follows the colours of the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from bursar.answer import Answer
from bursar.core.domain import Value

MOST_BARS = 60
"""Longer answers are lines where their groups have an order, and else cut; the table has all of it."""

MOST_SERIES = 8
"""As many as there are colours that can be told apart."""

LINE_FROM = 13
"""From this many ordered groups on a line is easier to read than bars."""

BOX = 1000.0
"""The side of the box that paths are drawn in; it is stretched to the room there is."""

Scale = Callable[[float], float]
"""From a number to percent of an axis."""


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A mark on an axis."""

    at: float  # percent
    text: str


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A number from zero to its value, and the range it lies in, in percent."""

    label: str
    text: str
    series: int
    begin: float
    width: float
    low: float | None  # None: nothing is known, and nothing is drawn
    high: float | None


@dataclass(frozen=True, kw_only=True)
class BarChart:
    """One bar per line of an answer."""

    title: str
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    zero: float
    hidden: int  # lines that are not drawn
    series: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Point:
    """A number on a line; x and y in percent, y from the top."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """Numbers in an order, with the band they lie in; paths are in the stretched box."""

    name: str
    path: str
    band: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class LineChart:
    """One line for each series."""

    title: str
    lines: tuple[Line, ...]
    x: tuple[Tick, ...]
    y: tuple[Tick, ...]
    x_title: str
    marks: tuple[Tick, ...] = ()  # heights worth a line of their own


Chart = BarChart | LineChart


def charts_of(answer: Answer) -> list[Chart]:
    """One chart for each number that an answer has per line; none where nothing is known of all of them."""
    known = [any(line[place] is not None for line in answer.values) for place in range(len(answer.outputs))]
    return [_chart(answer, place) for place, drawn in enumerate(known) if drawn]


def _chart(answer: Answer, output: int) -> Chart:
    labels = [tuple(label) for label in answer.labels]
    unsure = {line for line, place in answer.unsure if place == output}
    # A line through what may be the average of nobody would show a trend that there is not.
    values = [None if n in unsure else line[output] for n, line in enumerate(answer.values)]
    ends = [(line[output], other[output]) for line, other in zip(answer.low, answer.high, strict=True)]
    texts = [cells[len(answer.keys) + output] for cells in answer.cells()]
    title = answer.outputs[output]
    ordered = len(answer.keys) in (1, 2) and len({label[0] for label in labels}) >= LINE_FROM
    places = [_number(label[0]) for label in labels] if ordered else []
    series = list(dict.fromkeys(_text(label[1]) for label in labels)) if len(answer.keys) == 2 else [""]
    long = ordered and sum(place is not None for place in places) >= LINE_FROM and len(series) <= MOST_SERIES
    if long and sum(place is not None and value is not None for place, value in zip(places, values, strict=True)) > 1:
        return _lines(title, answer.keys[0], labels, places, series, values, ends, texts)
    return _bars(title, labels, series, values, ends, texts)


def _bars(
    title: str,
    labels: Sequence[tuple[Value, ...]],
    series: Sequence[str],
    values: Sequence[float | None],
    ends: Sequence[tuple[float, float]],
    texts: Sequence[str],
) -> BarChart:
    shown = slice(0, MOST_BARS)
    numbers = [
        number for value, pair in zip(values[shown], ends[shown], strict=True) for number in _finite(value, pair)
    ]
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    high = high if high > low else low + 1.0
    ticks = [number for number in _round_numbers(low, high) if low <= number <= high]
    scale = _linear(low, high)
    colours = len(series) if 1 < len(series) <= MOST_SERIES else 1
    bars = []
    for label, value, pair, text in zip(labels[shown], values[shown], ends[shown], texts[shown], strict=True):
        start, end = sorted((scale(0.0), scale(value or 0.0)))
        near, far = (scale(min(max(number, low), high)) for number in pair)
        bars.append(
            Bar(
                label=" · ".join(map(_text, label)) or title,
                text=text,
                series=series.index(_text(label[1])) if colours > 1 else 0,
                begin=start,
                width=end - start,
                low=near if value is not None else None,
                high=far if value is not None else None,
            )
        )
    return BarChart(
        title=title,
        bars=tuple(bars),
        ticks=tuple(Tick(at=scale(number), text=_short(number)) for number in ticks),
        zero=scale(0.0),
        hidden=max(0, len(labels) - MOST_BARS),
        series=tuple(series) if colours > 1 else (),
    )


def _lines(
    title: str,
    x_title: str,
    labels: Sequence[tuple[Value, ...]],
    places: Sequence[float | None],
    series: Sequence[str],
    values: Sequence[float | None],
    ends: Sequence[tuple[float, float]],
    texts: Sequence[str],
) -> LineChart:
    drawn = [n for n, place in enumerate(places) if place is not None and values[n] is not None]
    numbers = [number for n in drawn for number in _finite(values[n], ends[n])]
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    high = high if high > low else low + 1.0
    heights = [number for number in _round_numbers(low, high) if low <= number <= high]
    up = _linear(low, high)
    along = _linear(min(places[n] or 0.0 for n in drawn), max(places[n] or 0.0 for n in drawn))
    lines = []
    for name in series:
        points = [n for n in drawn if len(series) == 1 or _text(labels[n][1]) == name]
        points.sort(key=lambda n: places[n] or 0.0)
        xs = [along(places[n] or 0.0) for n in points]
        tops = [100 - up(min(ends[n][1], max(numbers))) for n in points]
        bottoms = [100 - up(max(ends[n][0], min(numbers))) for n in points]
        ys = [100 - up(values[n] or 0.0) for n in points]
        lines.append(
            Line(
                name=name,
                path=_path(xs, ys),
                band=_path([*xs, *reversed(xs)], [*tops, *reversed(bottoms)]) + "Z" if points else "",
                points=tuple(
                    Point(x=x, y=y, text=f"{' · '.join(map(_text, labels[n]))}: {texts[n]}")
                    for x, y, n in zip(xs, ys, points, strict=True)
                ),
            )
        )
    firsts = sorted({(places[n] or 0.0, _text(labels[n][0])) for n in drawn})
    step = max(1, math.ceil(len(firsts) / 6))
    return LineChart(
        title=title,
        lines=tuple(lines),
        x=tuple(Tick(at=along(place), text=text) for place, text in firsts[::step]),
        y=tuple(Tick(at=100 - up(number), text=_short(number)) for number in heights),
        x_title=x_title,
    )


def curve(title: str, x_title: str, points: Sequence[tuple[float, float]], *, mark: tuple[float, str]) -> LineChart:
    """Prices by error, both on logarithmic axes, and a height that no price may exceed."""
    shown = [(x, y) for x, y in points if y > 0]
    xs, ys = [math.log10(x) for x, _ in points], [math.log10(y) for _, y in shown]
    floor = min([*ys, math.log10(mark[0])] if mark[0] > 0 else ys, default=0.0) - 0.2
    roof = max([*ys, math.log10(mark[0])] if mark[0] > 0 else ys, default=1.0) + 0.2
    along, up = _linear(min(xs), max(xs)), _linear(floor, roof)
    at = [(along(math.log10(x)), 100 - (up(math.log10(y)) if y > 0 else 0.0)) for x, y in points]
    return LineChart(
        title=title,
        lines=(
            Line(
                name="",
                path=_path([x for x, _ in at], [y for _, y in at]),
                band="",
                points=tuple(
                    Point(x=x, y=y, text=f"±{_short(error)}: {price:.3g}" if price else f"±{_short(error)}: free")
                    for (x, y), (error, price) in zip(at, points, strict=True)
                ),
            ),
        ),
        x=tuple(Tick(at=x, text=f"±{_short(error)}") for (x, _), (error, _) in zip(at[::2], points[::2], strict=True)),
        y=tuple(
            Tick(at=100 - up(power), text=f"{10.0**power:g}") for power in range(math.ceil(floor), math.floor(roof) + 1)
        ),
        x_title=x_title,
        marks=(Tick(at=100 - up(math.log10(mark[0])), text=mark[1]),) if mark[0] > 0 else (),
    )


def steps(title: str, times: Sequence[float], totals: Sequence[float], *, cap: float, end: float) -> LineChart:
    """What was spent in all, as it grew with time, below what may be spent."""
    first = times[0] if times else end - 1.0
    begin = first - 0.02 * max(end - first, 60.0)
    along, up = _linear(begin, end), _linear(0.0, cap)
    xs, ys, total = [0.0], [100.0], 0.0
    points = []
    for at, after in zip(times, totals, strict=True):
        xs += [along(at), along(at)]
        ys += [100 - up(total), 100 - up(after)]
        total = after
        points.append(Point(x=along(at), y=100 - up(after), text=f"{_moment(at, end - begin)}: {after:.4g}"))
    xs.append(100.0)
    ys.append(100 - up(total))
    marks = [begin + (end - begin) * part / 2 for part in range(3)]
    heights = _round_numbers(0.0, cap)
    return LineChart(
        title=title,
        lines=(Line(name="", path=_path(xs, ys), band=_path([0.0, *xs, 100.0], [100.0, *ys, 100.0]) + "Z",
                    points=tuple(points)),),
        x=tuple(Tick(at=along(at), text=_moment(at, end - begin)) for at in marks),
        y=tuple(Tick(at=100 - up(number), text=_short(number)) for number in heights if number <= cap),
        x_title="",
    )  # fmt: skip


def _moment(at: float, span: float) -> str:
    form = "%Y-%m-%d" if span > 3 * 86_400 else "%d %b %H:%M" if span > 3600 else "%H:%M:%S"
    return datetime.fromtimestamp(at, UTC).strftime(form)


def _path(xs: Sequence[float], ys: Sequence[float]) -> str:
    pairs = [f"{BOX * x / 100:.2f} {BOX * y / 100:.2f}" for x, y in zip(xs, ys, strict=True)]
    return "M" + "L".join(pairs) if pairs else ""


def _linear(low: float, high: float) -> Scale:
    span = high - low or 1.0
    return lambda number: round(100 * (number - low) / span, 3)


def _finite(value: float | None, ends: tuple[float, float]) -> list[float]:
    return [] if value is None else [number for number in (value, *ends) if math.isfinite(number)]


def _round_numbers(low: float, high: float) -> list[float]:
    """About five round numbers from below `low` to above `high`."""
    span = (high - low) or 1.0
    raw = span / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= raw)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _short(number: float) -> str:
    """A number in a few characters."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            return f"{number / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{number:,.4g}" if number else "0"


def _number(value: Value) -> float | None:
    """The place of a value on an axis; None where it has none, as "other" has."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, date):
        return float(value.toordinal())
    if isinstance(value, str):  # the lower end of a bin
        try:
            return float(value[1:].split(",")[0]) if value.startswith("[") else None
        except ValueError:
            return None
    return float(value)


def _text(value: Value) -> str:
    return "NULL" if value is None else str(value)
