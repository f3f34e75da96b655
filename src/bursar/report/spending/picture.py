"""The budget as a picture: what is left, what it went into, and whose budget is used most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bursar.report.files import written
from bursar.report.libraries import library
from bursar.report.plots import plain
from bursar.report.spending.overview import MOST_QUESTIONS, Spending
from bursar.report.status import BudgetStatus

MOST_BARS = 10
GONE, LEFT, HELD = "#c44e52", "#8fbf8f", "#e0c060"


def draw(status: BudgetStatus, spending: Spending, path: Path) -> None:
    """Write the picture."""
    library("matplotlib", extra="plot", what="a picture")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 8), layout="constrained")
    last = "asked" if spending.saved is None else "saved"
    panels: dict[str, Any] = figure.subplot_mosaic(
        [["whole"] * 2, ["columns", "people"], ["bought", "from"], [last] * 2]
    )
    _whole(panels["whole"], status)
    whose = "" if spending.analyst is None else f" (questions of {spending.analyst})"
    _bars(panels["columns"], f"spent on{whose}", [(p.name, p.charge) for p in spending.by_columns])
    _bars(panels["bought"], "bought", [(p.name, p.charge) for p in spending.by_way])
    _bars(panels["from"], "by way of answering", [(p.name, p.charge) for p in spending.by_proposer])
    most = [
        (f"any {used.column}" if used.alike else f"{used.column} = {used.top[0][0]}", used.top[0][1])
        for used in spending.people
    ]
    _bars(panels["people"], "most learnt about people with", sorted(most, key=lambda each: -each[1]))
    saved = spending.saved
    if saved is None:
        _bars(panels[last], "by question", [(p.name, p.charge) for p in spending.by_question[:MOST_QUESTIONS]])
    else:
        _bars(panels[last], f"{saved.questions} questions", [("as paid", saved.paid), ("one by one", saved.direct)])
    with written(path):
        figure.savefig(path, dpi=120)


def _whole(axes: Any, status: BudgetStatus) -> None:
    rows = [("data set", status.spent, status.held, status.left)]
    rows += [(account.analyst, account.spent, account.held, account.left) for account in status.accounts]
    for place, (_, spent, held, left) in enumerate(rows):
        start = 0.0
        for amount, color, name in ((spent, GONE, "spent"), (held, HELD, "set aside"), (left, LEFT, "left")):
            axes.barh(place, amount, left=start, color=color, label=name if place == 0 and amount else None)
            start += amount
    axes.set_yticks(range(len(rows)), [_short(name) for name, *_ in rows])
    axes.invert_yaxis()
    axes.set_title(f"budget: {status.description}", fontsize=10)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _bars(axes: Any, title: str, bars: list[tuple[str, float]]) -> None:
    shown = bars[:MOST_BARS]
    axes.barh(range(len(shown)), [amount for _, amount in shown], color="#4c72b0")
    axes.set_yticks(range(len(shown)), [_short(name) for name, _ in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)
    axes.margins(y=0.2)


def _short(name: str) -> str:
    return plain(name if len(name) <= 28 else f"{name[:27]}…")
