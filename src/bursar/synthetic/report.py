"""How far to believe a synthetic table: its errors marginal by marginal, and what it must not be used for."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bursar.arrays import Codes, Integers, Reals
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import Thresholds
from bursar.report.answer_columns import library
from bursar.report.files import written
from bursar.report.plots import plain
from bursar.synthetic.marginals.estimates import Consistent, DerivedMarginal
from bursar.synthetic.marginals.evidence import Names
from bursar.synthetic.plan.bought import RunProgress
from bursar.synthetic.plan.history import FutureError
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload
from bursar.synthetic.table.fit import cell_numbers
from bursar.tails.marginals import Cells, largest_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONFIDENCE = 0.95
MOST_NAMED = 12
"""Pairs of columns that are named one by one."""


@dataclass(frozen=True, kw_only=True)
class MarginalLine:
    """One marginal of a table, in rows of the data.

    |table - truth| <= |table - noisy| + |noisy - truth| in every cell: `measured` is the first at its largest, and
    `noise` bounds the second with the confidence of the report. Both are None where nothing was measured.
    """

    columns: Names
    cells: int
    asked: bool  # whether it belongs to the workload
    measured: float | None
    noise: float | None

    @property
    def bound(self) -> float | None:
        return None if self.measured is None or self.noise is None else self.measured + self.noise


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnBars:
    """One column: the table's counts beside the noisy ones, and how far the truth can be from these."""

    name: str
    labels: tuple[str, ...]
    table: Reals
    noisy: Reals | None
    noise: float | None

    def to_json(self) -> dict[str, object]:
        """All of it as plain JSON values."""
        noisy = None if self.noisy is None else self.noisy.tolist()
        return {**vars(self), "labels": list(self.labels), "table": self.table.tolist(), "noisy": noisy}


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """How a table was made, and what is known about its errors; all bounds hold together."""

    method: str
    why: str  # which method, and why
    cost: str
    rows: int
    total: float  # rows of the data that the table stands for
    finished: bool
    lines: tuple[MarginalLine, ...]
    apart: tuple[Names, ...]  # pairs of columns that were never measured together
    bars: tuple[ColumnBars, ...]
    future: FutureError | None = None
    confidence: float = CONFIDENCE

    def summary(self) -> str:
        """For a terminal."""
        sure = f"{100 * self.confidence:g}%"
        told = [
            f"table   {counted(self.rows, 'row')}, standing for {self.total:,.0f}",
            f"method  {self.why}",
            f"cost    {self.cost}",
        ]
        told += [f"error   {line}" for line in self._errors(sure)]
        told += [f"future  {line}" for line in self._future()]
        told += [f"not for {line}" for line in self.limits()]
        if not self.finished:
            told.append("stopped what was measured is kept and will not be paid again: run the same command to go on")
        return "\n".join(textwrap.fill(line, 112, subsequent_indent=8 * " ") for line in told)

    def _errors(self, sure: str) -> list[str]:
        """The largest bound of what was asked for, and that of single columns besides."""
        told = []
        for asked, kind in ((True, "marginal"), (False, "other column")):
            lines = [line for line in self.lines if line.asked is asked]
            bounds = {line.bound: line for line in lines if line.bound is not None}
            if bounds:
                worst = max(bounds)
                where = f"every cell of {counted(sum(line.bound is not None for line in lines), kind)}"
                sorely = f"(largest in {', '.join(bounds[worst].columns)})"
                told.append(f"±{worst:,.0f} or less in {where}, with {sure} confidence {sorely}")
            if (without := sum(line.bound is None for line in lines)) > 0:
                told.append(f"no bound for {counted(without, kind)}")
        return told

    def limits(self) -> list[str]:
        """What the table must not be used for."""
        noise = max((line.noise for line in self.lines if line.noise is not None), default=None)
        listed = []
        if self.apart:
            named = "; ".join(" and ".join(pair) for pair in self.apart[:MOST_NAMED])
            more = f"; and {len(self.apart) - MOST_NAMED} more pairs" if len(self.apart) > MOST_NAMED else ""
            listed.append(f"joint questions over columns that were never measured together: {named}{more}")
        if noise is not None:
            listed.append(f"counts below the noise, which is up to ±{noise:,.0f} rows")
        if any(line.bound is None for line in self.lines):
            listed.append("numbers that must be right: where no bound is given, nothing is known about the error")
        listed.append(
            "anything about single rows: they are made up, no row is a person, and rare combinations may not exist"
        )
        return listed

    def markdown(self) -> str:
        """For report.md."""
        sure = f"{100 * self.confidence:g} %"
        text = [
            "# Synthetic table: what to believe of it",
            "",
            f"{counted(self.rows, 'row')}, standing for {self.total:,.0f}. Method: {self.why}",
            "",
            f"Cost: {self.cost}." + ("" if self.finished else " The run was stopped; the same command goes on."),
            "",
            "## Errors",
            "",
            "In rows of the data. *Measured*: the largest distance of the table from the noisy counts. *Bound*: no "
            f"cell is further from the truth, all marginals together, with {sure} confidence; none where nothing was "
            "measured.",
            "",
            "![error of each marginal](errors.png)",
            "",
            "| columns | cells | measured | noise | bound |",
            "|---|---|---|---|---|",
            *(
                f"| {', '.join(line.columns)}{'' if line.asked else ' (not asked for)'} | {line.cells:,} | "
                f"{_rows(line.measured)} | {_rows(line.noise)} | {_rows(line.bound)} |"
                for line in self.lines
            ),
            "",
            "## Columns one by one",
            "",
            "Bars are the table, points the noisy counts, with error bars that hold the truth.",
            "",
            "![the table beside the noisy counts](columns.png)",
            "",
            "## What it must not be used for",
            "",
            *(f"- {line[0].upper()}{line[1:]}." for line in self.limits()),
        ]
        if self.future is not None:
            text += ["", "## Questions to come", "", *self._future()]
        return "\n".join(text) + "\n"

    def _future(self) -> list[str]:
        if self.future is None:
            return []
        future = self.future
        unknown = (
            f"; {future.unknown} more are about columns that were never measured together" if future.unknown else ""
        )
        if future.mean is None:
            return [f"the history is too short to keep any question apart, or none can be judged{unknown}"]
        half = "" if future.half is None else f" ± {future.half:,.0f}"
        return [
            f"{future.mean:,.0f}{half} rows is the mean over {future.questions} later questions of the largest "
            f"distance from what was measured (95% interval){unknown}"
        ]

    def to_json(self) -> dict[str, object]:
        """Everything but the bars, as plain JSON values."""
        lines = [{**asdict(line), "columns": list(line.columns), "bound": line.bound} for line in self.lines]
        plain = ("method", "why", "cost", "rows", "total", "finished", "confidence")
        return {
            **{name: getattr(self, name) for name in plain},
            "marginals": lines,
            "apart": [list(pair) for pair in self.apart],
            "not_for": self.limits(),
            "future": None if self.future is None else asdict(self.future),
        }

    def write(self, folder: Path) -> None:
        """report.md and its pictures."""
        with written(folder / "report.md"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "report.md").write_text(self.markdown(), encoding="utf-8")
        draw(self, folder)


def counted(number: int, thing: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _rows(number: float | None) -> str:
    return "none" if number is None or not math.isfinite(number) else f"{number:,.0f}"


MOST_MARGINALS = 40
MOST_COLUMNS = 24
MOST_BARS = 30
"""Columns of more values are drawn as lines."""

BAR, POINT = "#7aa6c2", "#333333"


def check_pictures() -> None:
    """Refuse pictures that could not be drawn, before anything is paid for."""
    library("matplotlib", extra="plot", what="a picture")


def draw(report: Report, folder: Path) -> None:
    """errors.png and columns.png."""
    check_pictures()
    from matplotlib.figure import Figure

    for name, drawn in (("errors.png", _errors), ("columns.png", _columns)):
        figure = Figure(layout="constrained")
        drawn(report, figure)
        with written(folder / name):
            figure.savefig(folder / name, dpi=110)


def _errors(report: Report, figure: Figure) -> None:
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
            axes.text(0, float(place), " no bound", va="center", fontsize=7)
    axes.set_yticks(places, [plain(", ".join(line.columns)) for line in lines], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(
        f"rows; no cell is further from the truth, with {100 * report.confidence:g}% confidence", fontsize=8
    )
    axes.legend(fontsize=7)


def _columns(report: Report, figure: Figure) -> None:
    bars = report.bars[:MOST_COLUMNS]
    across = min(3, max(len(bars), 1))
    down = math.ceil(len(bars) / across) or 1
    figure.set_size_inches(4 * across, 2.6 * down)
    panels = np.atleast_1d(figure.subplots(down, across)).ravel()
    for panel, column in zip(panels, bars, strict=False):
        _column(panel, column)
    for panel in panels[len(bars) :]:
        panel.set_axis_off()


def _column(axes: Axes, bars: ColumnBars) -> None:
    places = np.arange(len(bars.labels))
    if len(places) <= MOST_BARS:
        axes.bar(places, bars.table, color=BAR)
    else:
        axes.fill_between(places, bars.table, step="mid", color=BAR)
    if bars.noisy is not None:
        axes.errorbar(places, bars.noisy, yerr=bars.noise, fmt=".", markersize=3, elinewidth=0.7, color=POINT)
    step = -(-len(places) // 10)
    axes.set_xticks(places[::step], [plain(label) for label in bars.labels[::step]], rotation=60, fontsize=6)
    axes.tick_params(axis="y", labelsize=6)
    axes.set_title(plain(bars.name) + ("" if bars.noisy is not None else " (not measured)"), fontsize=8)


NoisyCells = tuple[Integers, Integers]
"""Numbers of cells of a marginal, and their noisy counts."""

MOST_CELLS = 2**22
"""Marginals of more cells are not compared."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableComparison:
    """A table beside what was measured: whole marginals, and such as follow from other rows."""

    domain: Domain
    codes: Codes
    total: float
    consistent: Consistent
    derived: Sequence[DerivedMarginal] = ()
    picked: Mapping[Names, NoisyCells] = field(default_factory=dict)  # single cells or thresholds that were measured
    agree: int | None = None  # r of these thresholds; None for cells

    def lines(self, workload_sets: Iterable[Names], others: Iterable[Names]) -> tuple[MarginalLine, ...]:
        """One for each set, those asked for first; all bounds together have the confidence of a report."""
        workload = dict.fromkeys(workload_sets)
        sets = [*workload, *(columns for columns in dict.fromkeys(others) if columns not in workload)]
        beta = (1 - CONFIDENCE) / max(len(sets), 1)
        return tuple(self._line(columns, columns in workload, beta) for columns in sets)

    def distance(self, columns: Names) -> float | None:
        """The largest distance of the table from noisy counts; None where there are none."""
        noisy = self.noisy(columns, 1 - CONFIDENCE)
        return None if noisy is None else float(np.abs(self.counts(columns) - noisy[0]).max(initial=0.0))

    def unmeasured_pairs(self) -> tuple[Names, ...]:
        """Pairs of columns that nothing was measured about together."""
        varying = [column.name for column in self.domain.attributes if column.size > 1]
        derived = {marginal.columns for marginal in self.derived}
        together = {frozenset(pair) for columns in self.picked for pair in combinations(columns, 2)}
        pairs = (self.domain.ordered(pair) for pair in combinations(varying, 2))
        return tuple(
            pair
            for pair in pairs
            if self.consistent.variance(pair) is None and pair not in derived and frozenset(pair) not in together
        )

    def bars(self) -> tuple[ColumnBars, ...]:
        """Every column that has more than one value."""
        varying = [column for column in self.domain.attributes if column.size > 1]
        bars = []
        for column in varying:
            name = column.name
            estimate = self.noisy((name,), (1 - CONFIDENCE) / len(varying))
            noisy, noise = (None, None) if estimate is None else estimate
            labels = (column.label(cell) for cell in range(column.size))
            texts = tuple("NULL" if label is None else str(label) for label in labels)
            bars.append(ColumnBars(name=name, labels=texts, table=self.counts((name,)), noisy=noisy, noise=noise))
        return tuple(bars)

    def counts(self, columns: Names) -> Reals:
        """The table's counts, in rows of the data."""
        cells = np.bincount(cell_numbers(self.domain, self.codes, columns), minlength=self.domain.cells(columns))
        return cells.astype(np.float64) * np.float64(self.total / len(self.codes))

    def noisy(self, columns: Names, beta: float) -> tuple[Reals, float] | None:
        """Unbiased counts, and what none of them is wrong by but with probability beta."""
        if self.domain.cells(columns) > MOST_CELLS:
            return None
        estimate, variance = self.consistent.estimate(columns), self.consistent.variance(columns)
        if estimate is not None and variance is not None:
            cells = Cells(count=estimate.size, variance=variance)
            return estimate.ravel(), largest_error([cells], heavy=self.consistent.heavy, beta=beta)
        for marginal in self.derived:
            if marginal.columns == columns:
                return marginal.estimate.values, float(marginal.estimate.law.half_widths(beta).max(initial=0.0))
        return None

    def _line(self, columns: Names, asked: bool, beta: float) -> MarginalLine:
        estimate, cells = self.noisy(columns, beta), self.domain.cells(columns)
        if estimate is None:
            return MarginalLine(
                columns=columns, cells=cells, asked=asked, measured=self._picked_distance(columns), noise=None
            )
        noisy, noise = estimate
        measured = float(np.abs(self.counts(columns) - noisy).max(initial=0.0))
        return MarginalLine(columns=columns, cells=cells, asked=asked, measured=measured, noise=noise)

    def _picked_distance(self, columns: Names) -> float | None:
        """The largest distance from those cells or thresholds that were measured, where not all of them were."""
        if columns not in self.picked:
            return None
        places, noisy = self.picked[columns]
        counts = self.counts(columns)[places] if self.agree is None else self._agreeing(columns, self.agree, places)
        return float(np.abs(counts - noisy).max(initial=0.0))

    def _agreeing(self, columns: Names, least: int, places: Integers) -> Reals:
        """How many rows agree with joint values of the columns in at least `least` of them, in rows of the data."""
        sizes = self.domain.sizes(columns)
        cells = np.bincount(cell_numbers(self.domain, self.codes, columns), minlength=self.domain.cells(columns))
        rows = Thresholds(columns, sizes, least, places).apply(lambda names: cells.reshape(sizes).astype(np.int64))
        return rows.astype(np.float64) * np.float64(self.total / len(self.codes))


def measured_cells(workload: ThresholdWorkload, records: Sequence[Record]) -> dict[Names, NoisyCells]:
    """The single cells that a run has picked and measured, set by set."""
    rounds = RunProgress.of(workload, records).rounds
    if not rounds:
        return {}
    queries = np.concatenate([bought.queries for bought in rounds])
    counts = np.concatenate([bought.counts for bought in rounds])
    owner = np.searchsorted(workload.starts, queries, side="right") - 1
    return {
        workload.sets[number]: (queries[owner == number] - int(workload.starts[number]), counts[owner == number])
        for number in np.unique(owner).tolist()
    }
