"""The pictures of a report: the error of each marginal, and every column beside its noisy counts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.report.files import written
from bursar.report.libraries import library
from bursar.report.plots import plain

if TYPE_CHECKING:
    from bursar.synthetic.report.report import ColumnBars, Report

MOST_MARGINALS = 40
MOST_COLUMNS = 24
MOST_BARS = 30
"""Columns of more values are drawn as lines."""

BAR, POINT = "#7aa6c2", "#333333"


def check() -> None:
    """Refuse pictures that could not be drawn, before anything is paid for."""
    library("matplotlib", extra="plot", what="a picture")


def draw(report: Report, folder: Path) -> None:
    """errors.png and columns.png."""
    check()
    from matplotlib.figure import Figure

    for name, drawn in (("errors.png", _errors), ("columns.png", _columns)):
        figure = Figure(layout="constrained")
        drawn(report, figure)
        with written(folder / name):
            figure.savefig(folder / name, dpi=110)


def _errors(report: Report, figure: Any) -> None:
    """The marginals with the largest bounds: the distance that was measured, and what noise can add to it."""
    lines = sorted(report.lines, key=lambda line: -(line.bound or 0.0))[:MOST_MARGINALS]
    figure.set_size_inches(8, 1.4 + 0.24 * len(lines))
    axes = figure.subplots()
    places = np.arange(len(lines))
    measured = np.array([line.measured or 0.0 for line in lines])
    noise = np.array([line.noise or 0.0 for line in lines])
    axes.barh(places, measured, color=BAR, label="distance from the noisy counts")
    axes.barh(places, noise, left=measured, color="#d9d9d9", label="noise on top of that")
    for place, line in zip(places, lines, strict=True):
        if line.bound is None:
            axes.text(0, place, " no bound", va="center", fontsize=7)
    axes.set_yticks(places, [plain(", ".join(line.columns)) for line in lines], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(
        f"rows; no cell is further from the truth, with {100 * report.confidence:g}% confidence", fontsize=8
    )
    axes.legend(fontsize=7)


def _columns(report: Report, figure: Any) -> None:
    bars = report.bars[:MOST_COLUMNS]
    across = min(3, max(len(bars), 1))
    down = math.ceil(len(bars) / across) or 1
    figure.set_size_inches(4 * across, 2.6 * down)
    panels = np.atleast_1d(figure.subplots(down, across)).ravel()
    for panel, own in zip(panels, bars, strict=False):
        _column(panel, own)
    for panel in panels[len(bars) :]:
        panel.set_axis_off()


def _column(axes: Any, own: ColumnBars) -> None:
    places = np.arange(len(own.labels))
    if len(places) <= MOST_BARS:
        axes.bar(places, own.table, color=BAR)
    else:
        axes.fill_between(places, own.table, step="mid", color=BAR)
    if own.noisy is not None:
        axes.errorbar(places, own.noisy, yerr=own.noise, fmt=".", markersize=3, elinewidth=0.7, color=POINT)
    step = -(-len(places) // 10)
    axes.set_xticks(places[::step], [plain(label) for label in own.labels[::step]], rotation=60, fontsize=6)
    axes.tick_params(axis="y", labelsize=6)
    axes.set_title(plain(own.name) + ("" if own.noisy is not None else " (not measured)"), fontsize=8)
