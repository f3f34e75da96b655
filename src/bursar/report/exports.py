"""The part of an answer that hands it over to other tools."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.report.answer_columns import Tabular

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes


class Shown:
    """Exports have one column for each group column, and for each aggregate its value, `_low` and `_high`."""

    def to_pandas(self: Tabular) -> pandas.DataFrame:
        """A pandas data frame; `frame.attrs` says goal, confidence, cost and source. Needs `pandas`."""
        from bursar.report import answer_columns as frames

        return frames.to_pandas(self)

    def df(self: Tabular) -> pandas.DataFrame:
        """The same, as DuckDB calls it."""
        from bursar.report import answer_columns as frames

        return frames.to_pandas(self)

    def to_polars(self: Tabular) -> polars.DataFrame:
        """A polars data frame. Needs `polars`."""
        from bursar.report import answer_columns as frames

        return frames.to_polars(self)

    def to_arrow(self: Tabular) -> pyarrow.Table:
        """An Arrow table; its metadata say goal, confidence, cost and source. Needs `pyarrow`."""
        from bursar.report import answer_columns as frames

        return frames.to_arrow(self)

    def to_csv(self: Tabular, path: str | Path | None = None) -> str:
        """The table as CSV, also written to a file where one is named."""
        from bursar.report import files

        if path is not None:
            files.write_csv(self, Path(path))
        return files.csv_text(self)

    def to_parquet(self: Tabular, path: str | Path) -> None:
        """Write a Parquet file. Needs `pyarrow`."""
        from bursar.report import files

        files.write_parquet(self, Path(path))

    def plot(self: Tabular, ax: Axes | None = None, *, output: str | None = None) -> Axes:
        """Draw the numbers with their error bars, on axes of your own or on new ones. Needs `matplotlib`.

        `output` names the aggregate to draw; all of them share the axes unless it is given.
        """
        from bursar.report import plots as picture

        return picture.plot(self, ax, output=output)

    def _repr_html_(self: Tabular) -> str:
        from bursar.report import exports as notebook

        return notebook.table(self)


MOST_LINES = 200
"""Longer tables are cut; data frames have all of it."""

WIDTH = 120
"""Of a bar, in pixels."""


def table(answer: Tabular) -> str:
    """HTML, with all text escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in [*answer.keys, *answer.outputs])
    keys = len(answer.keys)
    tops = [_top(answer, place) for place in range(len(answer.outputs))]
    lines: list[str] = []
    for texts, *ends in list(zip(answer.cells(), answer.values, answer.low, answer.high, strict=True))[:MOST_LINES]:
        drawn = [_bar(*three) for three in zip(*ends, tops, strict=True)]
        cells = [f"<td>{escape(text)}</td>" for text in texts[:keys]]
        cells += [f"<td>{escape(text)}{bar}</td>" for text, bar in zip(texts[keys:], drawn, strict=True)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    foot = [escape(line) for line in answer.footer()]
    if len(answer.values) > MOST_LINES:
        foot.append(f"{len(answer.values) - MOST_LINES:,} more lines; .to_pandas() has all of them")
    body, small = "".join(lines), "<br>".join(foot)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><small>{small}</small>"


def page(head: Sequence[str], lines: Iterable[Sequence[str]], foot: Iterable[str], *, marked: int | None = None) -> str:
    """HTML of a table of plain text, with all text escaped; the marked line is bold."""
    body = ""
    for place, line in enumerate(lines):
        style = ' style="font-weight:bold"' if place == marked else ""
        body += f"<tr{style}>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>"
    top = f"<thead><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr></thead>" if head else ""
    small = "<br>".join(escape(line) for line in foot)
    return f"<table>{top}<tbody>{body}</tbody></table><small>{small}</small>"


def _bar(value: float | None, low: float, high: float, top: float) -> str:
    """A bar from zero to the number, and a thin line from its low to its high.

    Edge cases: nothing where no number is positive, and for what is NULL.
    """
    if top <= 0 or value is None:
        return ""

    def pixels(number: float) -> float:
        return round(WIDTH * min(max(number, 0.0), top) / top, 1) if not math.isnan(number) else 0.0

    start, end = pixels(low), pixels(high)
    return (
        f'<svg width="{WIDTH}" height="6" style="display:block">'
        f'<rect width="{pixels(value)}" height="6" fill="#9db4d3"/>'
        f'<rect x="{start}" y="2" width="{round(end - start, 1)}" height="2" fill="#c44e52"/></svg>'
    )


def _top(answer: Tabular, output: int) -> float:
    """The highest end of an interval, but for what is NULL."""
    highs = zip((line[output] for line in answer.values), (line[output] for line in answer.high), strict=True)
    return max((high for value, high in highs if value is not None and math.isfinite(high)), default=0.0)
