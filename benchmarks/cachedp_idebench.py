"""The 1:N workflows of IDEBench as linear queries over the flights table.

A workflow makes charts, links charts to the first one, and selects bins of that one. A chart is asked when it is made,
when it is linked, and, filtered by the selection, whenever its source's selection changes. Columns that the table does
not have (TAXI_IN, TAXI_OUT and the two states) are left out of charts and selections; a chart without a column left is
not asked. Averages are asked as the counts below them.

A column has one set of bins in all charts, the narrowest that a chart of it asks for. CacheDP has one strategy tree for
each attribute, whose leaves are the unit values of the attribute (section 7), and says of IDEBench's queries that they
were simplified (8.1.2), though not how. Bins of 225, 376 and 390 miles share a node of one tree by chance only.

Table 4 adds up to 270 workloads, so each of the ten clients asks 27; here all of them ask the same ones, the first of
the five workflows one after the other, each with an error of its own.

A selection of several bins is read in one of two ways. `idebench` asks for each selected bin by itself: a query of
section 7 is one range of each column, and Algorithm 4 takes one range, so this is what CacheDP can ask as printed.
`idebench-summed` asks for the sum over them, as the SQL of the workflows does: each number of a filtered chart is then
a scattered set that a tree has many nodes for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cachedp_data import WIDTHS
from bursar.core.domain import Attribute, Bins, Categories, Domain
from bursar.core.queries import Mask, Product, Steps

Workflow = Sequence[Mapping[str, Any]]
Selection = dict[str, NDArray[np.bool_]]
"""The selected cells of each column that a selection names."""

COLUMNS = {
    "YEAR_DATE": "month",
    "UNIQUE_CARRIER": "carrier",
    "ORIGIN": "origin",
    "DEST": "dest",
    "DEP_DELAY": "dep_delay",
    "ARR_DELAY": "arr_delay",
    "AIR_TIME": "air_time",
    "DISTANCE": "distance",
}
SPAN = re.compile(r"\((\w+) >= (-?[\d.]+) and \w+ < (-?[\d.]+)\)")
VALUE = re.compile(r"\((\w+) = '([^']*)'\)")
MOST_ROWS = 4096
"""A chart of more numbers is not asked; of all charts that is one, and only where selected bins are asked apart."""

STAND_INS = 5
INTERACTIONS = 20


@dataclass
class Chart:
    """A chart as it stands: its columns, its own selection, and whom it is linked to."""

    columns: list[str]
    selection: Selection = field(default_factory=dict)
    source: str | None = None


def workflows(folder: Path | None) -> list[Workflow]:
    """The five generated workflows, or as many drawn in their manner where they are not at hand."""
    files = [] if folder is None else sorted((folder / "idebench").glob("flights_1n_?.json"))
    if files:
        return [json.loads(file.read_text())["interactions"] for file in files]
    return [stand_in_workflow(np.random.default_rng(i)) for i in range(STAND_INS)]


def workflow_questions(domain: Domain, workflow: Workflow, *, apart: bool) -> list[Product]:
    """What a workflow asks, in order; selected bins are asked `apart`, or their sum."""
    charts: dict[str, Chart] = {}
    asked: list[Product | None] = []
    for step in workflow:
        name = step["name"]
        if "binning" in step:
            dimensions = [part["dimension"] for part in step["binning"]]
            charts[name] = Chart([COLUMNS[dimension] for dimension in dimensions if dimension in COLUMNS])
            asked.append(_ask(domain, charts, name, apart))
        elif "source" in step:
            charts[name].source = step["source"]
            asked.append(_ask(domain, charts, name, apart))
        else:
            charts[name].selection = selected(domain, step["selection"])
            asked += [_ask(domain, charts, other, apart) for other, chart in charts.items() if chart.source == name]
    return [queries for queries in asked if queries is not None and queries.rows <= MOST_ROWS]


def selected(domain: Domain, condition: str) -> Selection:
    """Which cells a selection takes, for each column of the table that it names."""
    found: Selection = {}
    for name, low, high in SPAN.findall(condition):
        if (column := COLUMNS.get(name)) is not None:
            cells = found.setdefault(column, np.zeros(domain[column].size, bool))
            starts = _starts(domain[column])
            cells[: len(starts)] |= (starts >= float(low)) & (starts < float(high))
    for name, value in VALUE.findall(condition):
        if (column := COLUMNS.get(name)) is not None:
            cells = found.setdefault(column, np.zeros(domain[column].size, bool))
            attribute = domain[column]
            if isinstance(attribute, Categories) and value in attribute.values:
                cells[attribute.values.index(value)] = True
    return found


def stand_in_workflow(rng: np.random.Generator) -> Workflow:
    """Charts of one or two columns, links to the first of them, and selections in it, as IDEBench's 1:N draws them."""
    steps: list[dict[str, Any]] = [_chart(rng, 0), _chart(rng, 1)]
    while len(steps) < INTERACTIONS:
        made = sum("binning" in step for step in steps)
        kind = rng.choice(["select", "link", "chart"], p=[0.4, 0.4, 0.2])
        if kind == "chart":
            steps.append(_chart(rng, made))
        elif kind == "link":
            steps.append({"name": f"viz_{rng.integers(1, made)}", "source": "viz_0"})
        else:
            steps.append({"name": "viz_0", "selection": _condition(rng, steps[0]["binning"][0])})
    return steps


def _ask(domain: Domain, charts: Mapping[str, Chart], name: str, apart: bool) -> Product | None:
    """The chart as it is now; None where nothing of it can be asked."""
    chart = charts[name]
    filters = {} if chart.source is None else charts[chart.source].selection
    masks: list[Mask] = []
    for column in [*chart.columns, *(other for other in filters if other not in chart.columns)]:
        rows = np.eye(domain[column].declared, domain[column].size, dtype=bool)
        if column in filters:
            rows = rows & filters[column]
            rows = rows[rows.any(axis=1)]
        masks.append(_mask(column, rows if apart or column in chart.columns else filters[column][None]))
    empty = not chart.columns or any(mask.rows == 0 or mask.steps.largest() == 0 for mask in masks)
    return None if empty else Product(tuple(masks))


def _mask(column: str, rows: NDArray[np.bool_]) -> Mask:
    return Mask((column,), (rows.shape[1],), Steps.dense(rows.astype(np.int64)))


def _starts(attribute: Attribute) -> NDArray[np.float64]:
    assert isinstance(attribute, Bins)
    return np.array(attribute.edges[:-1])


def _chart(rng: np.random.Generator, number: int) -> dict[str, Any]:
    picked = rng.choice(list(COLUMNS), 1 + int(rng.random() < 0.35), replace=False)
    return {"name": f"viz_{number}", "binning": [_dimension(str(name)) for name in picked]}


def _dimension(name: str) -> dict[str, Any]:
    width = WIDTHS.get(COLUMNS[name])
    return {"dimension": name} if width is None else {"dimension": name, "width": float(width)}


def _condition(rng: np.random.Generator, part: Mapping[str, Any]) -> str:
    """A few bins, or none where the column is a list, which leaves the chart as it is."""
    name, width = part["dimension"], part.get("width")
    if width is None:
        return ""
    bins = rng.choice(12, int(rng.integers(1, 8)), replace=False)
    return " or ".join(f"({name} >= {i * width} and {name} < {(i + 1) * width})" for i in bins)
