"""What the commands print: tables for people, with bars where somebody looks, and JSON for programs."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from bursar.errors import SourceError, Unsupported, Waiting

if TYPE_CHECKING:
    from bursar.analysts.queue import QueueStatus
    from bursar.answer import Answer
    from bursar.audit import Audit
    from bursar.batch import OpenBatch
    from bursar.core.ledger import Health
    from bursar.curate.intake import Taken
    from bursar.planner.explain import Explanation
    from bursar.report.spending import Spending
    from bursar.report.status import BudgetStatus, LogPage


class Result(Protocol):
    """An answer, an explanation or a batch of answers."""

    def to_json(self) -> dict[str, object]: ...


def result(shown: Result, *, as_json: bool) -> None:
    """An answer, an explanation, a batch or a check, as it prints itself."""
    if as_json:
        _json(shown.to_json())
    else:
        print(shown)


def budget_status(status: BudgetStatus, *, as_json: bool) -> None:
    """Spent and left as a bar, and what the budget promises."""
    if as_json:
        _json(asdict(status))
        return
    filled = round(40 * status.spent / status.total)
    lines = [f"{name:<8}{plain(told)}" for name, told in status.lines()]
    lines.insert(3, f"        [{'#' * filled}{'.' * (40 - filled)}]")
    print("\n".join([*lines, *status.promises()]))


LOG_LINES = 100
"""How many lines of a log are shown where nothing else is asked for."""


def second_budget(new: Path, old: Path) -> None:
    """To standard error, where a new ledger is about a table that another one is about already."""
    print(
        f"careful: {old} has a ledger about the same table, so this is a second budget for the same people: what the "
        "two reveal adds up\n"
        f"try: remove the new ledger, and begin with what was spent there: bursar create -d {new} --carry {old}",
        file=sys.stderr,
    )


def key_to_keep(path: Path | None) -> None:
    """Of a ledger in a database: what nobody can use it without."""
    if path is not None:
        print(f"key     {path}: keep a copy elsewhere, since without it nobody can use the ledger")


def log(lines: LogPage, *, unit: str, as_json: bool) -> None:
    """One line per record; to standard error, how many lines are older, and how to see them."""
    if lines and lines.older != 0:
        count = "there are" if lines.older is None else f"{lines.older:,}"
        print(f"{count} older lines; the page before: --before {lines[0].position}", file=sys.stderr)
    if as_json:
        _json([{**asdict(line), "at": _time(line.at)} for line in lines])
        return
    shared = any(line.paid != line.charge for line in lines)
    paid = ("paid",) if shared else ()
    rows = [("#", "time (UTC)", "analyst", *paid, unit, "from", "what", "question")]
    for line in lines:
        what = (
            f"{line.kind}: {line.rows} number{'s' if line.rows != 1 else ''}, {line.noise}" if line.noise else line.kind
        )
        paid = (f"{line.paid:.6g}",) if shared else ()
        cost = f"{line.charge:.6g}"
        rows.append((str(line.position), _time(line.at), line.analyst, *paid, cost, line.proposer, what, line.asked))
    shown = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def health(state: Health, *, as_json: bool) -> None:
    """That the ledger is sound, its head to write down, and notes."""
    if as_json:
        _json(asdict(state))
        return
    print(f"the ledger is sound: {state.records} records, {state.answers} stored answers, {state.holds} open holds")
    print(f"head    {state.records}:{state.head}")
    print("        (write it down elsewhere, to notice if an older ledger is ever put in its place)")
    for note in state.notes:
        print(f"note    {note}")


def taken(outcome: Taken | SourceError, *, as_json: bool = False) -> None:
    """What became of the rows of a file, or why it was refused; for the data owner."""
    if isinstance(outcome, SourceError):
        print(outcome, file=sys.stderr)
    elif as_json:
        _json(asdict(outcome))
    else:
        aside = (
            f"; set aside: {outcome.late} late, {outcome.outside} outside" if outcome.late or outcome.outside else ""
        )
        print(f"{outcome.file}: {outcome.added} rows added{aside}", flush=True)


def audit(report: Audit, *, as_json: bool) -> None:
    """What an audit has found."""
    if as_json:
        played = [{**asdict(session), "passed": session.passed} for session in report.played]
        _json({**asdict(report), "played": played, "passed": report.passed})
    else:
        print(report)


def _json(value: object) -> None:
    print(json.dumps(value, indent=2))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def plain(text: str) -> str:
    """Text by an analyst, on one line and without characters that a terminal would obey."""
    return "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))


def warnings(texts: Iterable[str]) -> None:
    """What the data owner has accepted, told to whoever opens the ledger."""
    for text in texts:
        print(f"warning: {text}", file=sys.stderr, flush=True)


def waiting(situation: str) -> None:
    """On standard error, since an answer is still to come."""
    print(f"waiting: {situation}", file=sys.stderr, flush=True)


@contextmanager
def ticket(*, as_json: bool) -> Iterator[None]:
    """Programs get a ticket as JSON; the exit code is the same."""
    try:
        yield
    except Waiting as error:
        if not as_json:
            raise
        print(json.dumps({"ticket": error.ticket, "situation": error.situation}, indent=2))
        raise typer.Exit(error.exit_code) from None


def queue(status: QueueStatus, *, as_json: bool) -> None:
    """Whose turn it is, the own tickets, and how many others wait."""
    if as_json:
        print(json.dumps(asdict(status), indent=2))
        return
    if status.scheduler == "none":
        print("nobody waits in turn here: questions are answered as they come")
        return
    whose = (
        "yours" if status.yours else "another analyst's, who has not asked" if status.stalled else "another analyst's"
    )
    idle = (
        "turns wait for their owners"
        if status.idle is None
        else f"passed over after {status.idle:g} s without a question"
    )
    print(f"turn    {whose}")
    print(f"had     {status.had} of {status.given} turns ({status.scheduler}; {idle})")
    for ticket in status.own:
        at = datetime.fromtimestamp(ticket.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        print(f"ticket  {ticket.number}, {ticket.state.value}, drawn {at} UTC")
    print(f"others  {status.others} ticket{'s' if status.others != 1 else ''}")
    if status.away:
        print("away    your turns are let go until you ask again")


def check(out: Path | None, kinds: tuple[str, ...] | None = None) -> None:
    """Refuse a file that cannot be written before anything is paid."""
    if out is not None:
        from bursar.report import files

        files.check(out, kinds=tuple(files.WRITERS) if kinds is None else kinds)


def answer(reply: Answer | Explanation, *, as_json: bool, bars: bool | None, out: Path | None = None) -> None:
    """Print, and write where a file is named. The printed answer comes first: it was paid for.

    `bars` is None for the usual: bars where a person is looking.
    """
    from bursar.answer import Answer

    if not isinstance(reply, Answer):
        result(reply, as_json=as_json)
        if out is not None:
            raise Unsupported("there is no answer to write: EXPLAIN only shows what one would cost")
        return
    if not as_json and (sys.stdout.isatty() if bars is None else bars):
        print("\n".join([drawn(reply), "", *reply.footer()]))
    else:
        result(reply, as_json=as_json)
    if out is not None:
        from bursar.report import files

        files.write(reply, out)
        print(f"written to {out}", file=sys.stderr)


def drawn(answer: Answer) -> str:
    """The table with bars that fit the terminal."""
    from bursar.report.bars import ink_for, with_bars

    width = shutil.get_terminal_size().columns
    return with_bars(answer, answer.table(), width=width, ink=ink_for(sys.stdout.encoding))


def price(batch: OpenBatch, status: BudgetStatus, *, as_json: bool) -> float:
    """Say what a batch would cost, and what is left to pay it from."""
    cost, alone = batch.price, batch.one_by_one
    left = status.accounts[0].left if len(status.accounts) == 1 else status.left
    if as_json:
        facts = {
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
        budget_status(status, as_json=False)
        print(spending)
    if png is not None:
        from bursar.report.spending import draw_spending

        draw_spending(status, spending, png)
        print(f"written to {png}", file=sys.stderr)


def presets(listed: Mapping[str, tuple[str, str]], *, as_json: bool) -> None:
    """Names with what each preset does and its paper."""
    if as_json:
        _json([{"name": name, "line": line, "paper": paper} for name, (line, paper) in listed.items()])
        return
    width = max(map(len, listed))
    for name, (line, paper) in listed.items():
        print(f"{name:<{width}}  {line}\n{'':<{width}}  [{paper}]")


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
