"""What a config promises, in plain words, what it does to the stored values, and what questions would cost under it."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from bursar.config.load import Config, label
from bursar.core.accounting import Mode
from bursar.core.budget import epsilon_of
from bursar.core.domain import Neighbours
from bursar.curate.changes import ColumnChange, changes
from bursar.curate.prices import ExamplePrice, prices
from bursar.goal import Contract

USUAL_DELTA = 1e-6
WIDTH = 100
WEAK = math.log(1000)


@dataclass(frozen=True, kw_only=True)
class Check:
    """The promise of a config, point by point, example prices, and for the owner alone what the declarations change."""

    dataset: str
    promise: dict[str, str]
    not_promised: tuple[str, ...]
    prices: tuple[ExamplePrice, ...]
    unconfirmed: tuple[str, ...]  # guesses: while there are any, nothing can be asked
    changes: tuple[ColumnChange, ...] | None = None  # exact numbers from the rows; None: nobody looked at them

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"What {self.dataset} promises", ""]
        lines += [_wrapped(f"{topic:<12}{text}", 12) for topic, text in self.promise.items()]
        lines += ["", "What it does not promise", "", *(_wrapped(f"- {text}", 2) for text in self.not_promised)]
        lines += ["", "What questions cost, by the planner, if nothing was asked before", ""]
        lines += [str(price) for price in self.prices] or ["no example fits this config"]
        if self.changes is not None:
            changed = [_wrapped(f"{change.name}: {change.text}", 4) for change in self.changes if change.text]
            lines += ["", "What the columns change. These numbers are exact: keep them to yourself", ""]
            lines += changed or ["every value counts as what it is"]
        if self.unconfirmed:
            open_ = f"Not confirmed yet, so that nothing can be asked: {', '.join(self.unconfirmed)}"
            lines += ["", _wrapped(open_, 0), "try: bursar confirm"]
        return "\n".join(lines)


def check(config: Config, *, data: object | None = None) -> Check:
    """The promise and the prices of a config, or of a draft of one.

    With `data`, a file or a data frame, also how many of its values each declaration changes: exact numbers, which the
    data owner keeps. Nothing is looked at without it.
    """
    return Check(
        dataset=config.dataset,
        promise={
            "protected": protected(config),
            **_promised_by_owner(config),
            "against": "anybody who sees every answer ever given, whatever else they know, and alone or together",
            "in total": in_total(config),
            "neighbours": _neighbours(config),
            "public": _public(config),
            "errors": _errors(config),
        },
        not_promised=tuple(_gaps(config)),
        prices=prices(config),
        unconfirmed=tuple(label(place) for place in config.unconfirmed),
        changes=None if data is None else changes(config, data),
    )


def protected(config: Config) -> str:
    """Who is protected."""
    unit = config.unit
    if unit.column is None:
        return "each row by itself: somebody with two rows could lose twice as much"
    rows = f"{unit.max_contributions} rows of each are" if unit.max_contributions > 1 else "1 row of each is"
    return f"each {unit.column}, with all its rows; at most {rows} counted, and rows without one are not"


def _promised_by_owner(config: Config) -> dict[str, str]:
    """What the data owner promises, because no program can know it."""
    if config.view is None:
        return {}
    unit = config.unit.column
    return {
        "your part": f"{config.table} is a view, and all this holds only if each of its rows is made from rows of the "
        f"one {unit} that it names, and from public tables: whether somebody is there changes no other {unit}'s rows"
    }


def in_total(config: Config) -> str:
    """The cap, and what it means for somebody who guesses."""
    budget, sure = config.budget, ""
    epsilon = budget.epsilon
    if epsilon is None:
        epsilon, sure = epsilon_of(budget.amount, USUAL_DELTA), f", but for a chance of {USUAL_DELTA:g}"
    elif budget.mode is not Mode.PURE:
        sure = f", but for a chance of {budget.delta:g}"
    times = f"{math.exp(epsilon):.3g}" if epsilon < WEAK else "more than a thousand, which protects hardly anybody"
    guess = "the odds that somebody is in the data, with the values they have,"
    if config.unit.neighbours is Neighbours.REPLACE_ONE:
        guess = "the odds between any two guesses about somebody's values"
    return f"{budget.describe()}: all answers ever given together shift {guess} by a factor of at most {times}{sure}"


def _neighbours(config: Config) -> str:
    if config.unit.neighbours is Neighbours.ADD_REMOVE:
        return "add-remove: it stays hidden whether somebody is in the data at all"
    return "replace-one: it stays hidden which values somebody has; not that they are there, nor the number of rows"


def _public(config: Config) -> str:
    size = "" if config.public_size is None else f", that there are {config.public_size:,} rows"
    names = ", ".join(config.domain.names)
    return (
        f"everything in the config: the columns ({names}) with their values and ranges, that there are at most "
        f"{config.max_rows:,} rows{size}, the budget; and what was asked, and what it cost"
    )


def _errors(config: Config) -> str:
    if config.contract is Contract.SIMULTANEOUS:
        return "simultaneous: all answers keep their errors together, whatever was asked after seeing others"
    return "per-query: each answer keeps its error, if the question was not chosen by looking at noisy answers"


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def _gaps(config: Config) -> list[str]:
    gaps = [
        "that nothing is learnt about groups: that smokers fall ill more often can be found with or without one smoker",
        "anything about columns that the config does not declare: they cannot be asked about, and that is all",
        "anything against people who can read the data or the ledger folder themselves",
        "that a second data set, or a second ledger, about the same people does not add to what is learnt",
    ]
    if config.unit.column is None:
        gaps.append("the full protection of people with several rows; unit = { column = ... } would give it")
    else:
        gaps.append(f"the full protection of people who appear under several values of {config.unit.column}")
        rows = f"{config.unit.max_contributions} rows are" if config.unit.max_contributions > 1 else "1 row is"
        gaps.append(f"that every row is counted: of each {config.unit.column}, at most {rows} in any answer")
    if not config.pace:
        gaps.append("that the time an answer takes says nothing; privacy.pace makes it say less")
    return gaps
