"""What an analyst gets: values with error bars, what they cost, where they came from, what is left."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, fields
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.domain import Value
from bursar.goal import Contract, Goal
from bursar.inference.estimate import Estimate, error_bars
from bursar.workload.workload import Workload

if TYPE_CHECKING:
    import pandas

Table = tuple[tuple[float, ...], ...]
"""One inner tuple per line of the answer, one number per aggregate."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A table of noisy numbers. Each lies within low..high, all of them together, with the stated confidence."""

    question: str
    keys: tuple[str, ...]
    outputs: tuple[str, ...]
    labels: tuple[tuple[Value, ...], ...]
    values: Table
    low: Table
    high: Table
    goal: str
    confidence: float
    contract: str
    source: str  # the proposer that answered
    note: str
    reused: int  # rows of the log it was computed from
    bought: int  # rows measured for it
    unit: str  # "epsilon" or "rho"
    charge: float  # to whoever pays
    left: float  # of `total`
    total: float  # what whoever pays may spend in all
    payer: str | None = None  # whose share pays; None where it is the data set's budget
    whole_charge: float | None = None  # to the data set's budget, where a share pays
    whole_left: float | None = None  # of the data set's budget, where a share pays

    @staticmethod
    def of(workload: Workload, estimate: Estimate, *, wanted: Goal, **rest: Any) -> Answer:
        """The answer to a workload: labels, values and error bars that hold together with the goal's confidence."""
        widths = np.append(error_bars(estimate.law, wanted), 0.0)
        values = np.append(estimate.values, 0.0)  # row -1: zero by definition
        shown, width = values[workload.index], widths[workload.index]
        tables = {"values": shown, "low": shown - width, "high": shown + width}
        plain: dict[str, Any] = {name: tuple(tuple(line) for line in table.tolist()) for name, table in tables.items()}
        return Answer(keys=workload.keys, outputs=workload.outputs, labels=workload.labels, **plain, **rest)

    @property
    def value(self) -> float:
        """The one number of an answer that has only one."""
        if len(self.values) != 1 or len(self.outputs) != 1:
            raise ValueError("this answer has more than one number; look at .rows")
        return self.values[0][0]

    @property
    def free(self) -> bool:
        """Whether it used up nothing: no share, and not the data set's budget."""
        return self.charge == 0 and self.whole_charge in (None, 0)

    @property
    def error(self) -> float:
        """The widest error bar, to nine digits: its ends are rounded beside values of any size."""
        spans = [
            h - v
            for highs, values in zip(self.high, self.values, strict=True)
            for h, v in zip(highs, values, strict=True)
        ]
        return float(f"{max(spans, default=0.0):.9g}")

    @property
    def rows(self) -> list[dict[str, Value]]:
        """One dictionary per line: the group columns, and per aggregate its value, low and high."""
        lines: list[dict[str, Value]] = []
        for label, values, low, high in zip(self.labels, self.values, self.low, self.high, strict=True):
            line: dict[str, Value] = dict(zip(self.keys, label, strict=True))
            for name, v, lo, hi in zip(self.outputs, values, low, high, strict=True):
                line |= {name: v, f"{name}_low": lo, f"{name}_high": hi}
            lines.append(line)
        return lines

    def df(self) -> pandas.DataFrame:
        """The lines as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self.rows)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        table = ("keys", "labels", "values", "low", "high")
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in table}
        rows = [{k: v.isoformat() if isinstance(v, date) else v for k, v in row.items()} for row in self.rows]
        return {**rest, "outputs": list(self.outputs), "error": self.error, "free": self.free, "rows": rows}

    def to_bytes(self) -> bytes:
        """The stored form; `from_bytes` gives an equal answer."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return json.dumps(plain, default=_tag_date, sort_keys=True).encode()

    @staticmethod
    def from_bytes(body: bytes) -> Answer:
        plain = json.loads(body, object_hook=_untag_date)
        tables = {name: _tuples(plain[name]) for name in ("keys", "outputs", "labels", "values", "low", "high")}
        return Answer(**{**plain, **tables})

    def __str__(self) -> str:
        return "\n".join([self.table(), "", *self.footer()])

    def table(self) -> str:
        """Labels and numbers with their error bars, without the small print."""
        head = [*self.keys, *self.outputs]
        lines = [
            [*map(_text, label), *map(_bar, v, hi)]
            for label, v, hi in zip(self.labels, self.values, self.high, strict=True)
        ]
        widths = [max(len(row[i]) for row in [head, *lines]) for i in range(len(head))]
        left = len(self.keys)
        shown = [
            "  ".join(t.ljust(w) if i < left else t.rjust(w) for i, (t, w) in enumerate(zip(row, widths, strict=True)))
            for row in [head, *lines]
        ]
        return "\n".join([shown[0], "-" * len(shown[0]), *shown[1:]])

    def footer(self) -> list[str]:
        """The small print, in plain words."""
        sure = f"{100 * self.confidence:g}%"
        together = "on every number together"
        if self.contract == Contract.SIMULTANEOUS.value:
            together = "on every number, of this and all answers of the family together"
        cost = "free" if self.free else f"{self.unit} {self.charge:.6g}"
        return [
            f"error  ±{self.error:.4g} or less {together}, with {sure} confidence ({self.contract})",
            f"cost   {cost}; {self.money_left()}",
            f"from   {self.source}: {self.note}",
        ]

    def money_left(self) -> str:
        """What is left, in words."""
        left = f"{self.left:.6g} of {self.total:.6g} is left"
        if self.payer is None:
            return left
        return f"{left} to {self.payer} (data set: {self.whole_charge:.6g}, {self.whole_left:.6g} is left)"

    def _repr_html_(self) -> str:
        cells = [
            [*map(_text, label), *map(_bar, v, hi)]
            for label, v, hi in zip(self.labels, self.values, self.high, strict=True)
        ]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in [*self.keys, *self.outputs])
        body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in line) + "</tr>" for line in cells)
        foot = "<br>".join(html.escape(line) for line in self.footer())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><small>{foot}</small>"


def _text(value: Value) -> str:
    return "NULL" if value is None else str(value)


def _bar(value: float, high: float) -> str:
    whole = value == round(value) and high == round(high)
    return f"{value:,.0f} ± {high - value:,.0f}" if whole else f"{value:,.1f} ± {high - value:,.1f}"


def _tag_date(value: object) -> dict[str, str]:
    if isinstance(value, date):
        return {"date": value.isoformat()}
    raise TypeError(f"an answer cannot hold a {type(value).__name__}")


def _untag_date(plain: dict[str, Any]) -> Any:
    return date.fromisoformat(plain["date"]) if plain.keys() == {"date"} else plain


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
