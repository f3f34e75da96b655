"""What `query`, `release` and `budget` print and write: tables with bars, prices, the budget at a glance."""

from __future__ import annotations

import json
import math
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bursar.errors import Unsupported
from bursar.report.text import commands as show

if TYPE_CHECKING:
    from bursar.answer import Answer
    from bursar.batch import OpenBatch
    from bursar.planner.explain import Explanation
    from bursar.report.spending import Spending
    from bursar.report.status import BudgetStatus


def check(out: Path | None, kinds: tuple[str, ...] | None = None) -> None:
    """Refuse a file that cannot be written before anything is paid."""
    if out is not None:
        from bursar.report import files

        files.check(out, kinds=tuple(files.WRITERS) if kinds is None else kinds)


def answer(found: Answer | Explanation, *, as_json: bool, bars: bool | None, out: Path | None = None) -> None:
    """Print, and write where a file is named. The printed answer comes first: it was paid for.

    `bars` is None for the usual: bars where a person is looking.
    """
    from bursar.answer import Answer

    if not isinstance(found, Answer):
        show.result(found, as_json=as_json)
        if out is not None:
            raise Unsupported("there is no answer to write: EXPLAIN only shows what one would cost")
        return
    if not as_json and (sys.stdout.isatty() if bars is None else bars):
        print("\n".join([drawn(found), "", *found.footer()]))
    else:
        show.result(found, as_json=as_json)
    if out is not None:
        from bursar.report import files

        files.write(found, out)
        print(f"written to {out}", file=sys.stderr)


def drawn(found: Answer) -> str:
    """The table with bars that fit the terminal."""
    from bursar.report.bars import ink_for, with_bars

    width = shutil.get_terminal_size().columns
    return with_bars(found, found.table(), width=width, ink=ink_for(sys.stdout.encoding))


def price(batch: OpenBatch, status: BudgetStatus, *, as_json: bool) -> float:
    """Say what a batch would cost, and what is left to pay it from."""
    cost, alone = batch.price, batch.one_by_one
    left = status.accounts[0].left if len(status.accounts) == 1 else status.left
    if as_json:
        facts: dict[str, Any] = {
            "price": _finite(cost),
            "one_by_one": _finite(alone),
            "unit": status.unit,
            "left": left,
        }
        print(json.dumps(facts, indent=2))
        return cost
    if math.isinf(cost):
        print("price   nothing meets the goal for what may be spent")
        return cost
    told = f"{status.unit} {cost:.6g} for all" if cost else "free"
    one_by_one = f"{alone:.6g}" if math.isfinite(alone) else "more than may be spent"
    print(f"price   {told} (one by one, each with a confidence of its own: {one_by_one}); {left:.6g} is left")
    return cost


def agreed(batch: OpenBatch, status: BudgetStatus) -> bool:
    """Whether the person at the terminal wants to pay. A script is not asked, and neither is anybody if it is free."""
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    cost = price(batch, status, as_json=False)
    if cost == 0 or math.isinf(cost):
        return True  # a price that nothing can pay is refused with what would fit
    try:
        said = input("pay? [y/N] ")
    except EOFError:
        said = ""
    return said.strip().casefold() in ("y", "yes")


def budget(status: BudgetStatus, spending: Spending, *, as_json: bool, png: Path | None) -> None:
    """The budget at a glance."""
    if as_json:
        print(json.dumps({**asdict(status), "spending": spending.to_json()}, indent=2))
    else:
        show.budget(status, as_json=False)
        print(spending)
    if png is not None:
        from bursar.report.spending.picture import draw

        draw(status, spending, png)
        print(f"written to {png}", file=sys.stderr)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
