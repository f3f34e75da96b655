"""What a config promises, in plain words, what it does to the stored values, and what questions would cost under it.

Example prices are typical questions, priced by the real planner on a log in which nothing was asked yet.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from bursar.analysts.shares import AnalystSettings
from bursar.compile.values import Decimals
from bursar.config.load import Config, label
from bursar.core.accounting import Mode
from bursar.core.accounting.kind import ROOT
from bursar.core.budget import epsilon_of
from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Neighbours
from bursar.curate.changes import ColumnChange, RowsLeftOut, changes, rows_left_out
from bursar.curate.survey import ROUND, rounded_up
from bursar.errors import GoalError, QueryError
from bursar.goal import DEFAULT_CONFIDENCE, Contract, Goal, GoalKind
from bursar.planner.goals import in_counts
from bursar.report.status import budget_words
from bursar.session import Bursar
from bursar.testing import EmptySource, stage

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
    left_out: Mapping[str, RowsLeftOut] = field(default_factory=dict)  # likewise, by private table

    def to_json(self) -> dict[str, object]:
        """All of it as plain JSON values."""
        return asdict(self)

    def changed(self) -> list[tuple[str, str]]:
        """What the declarations change, in words, by table and by column."""
        told = [(f"rows of {table}", rows.text) for table, rows in self.left_out.items()]
        told += [(change.name, change.text) for change in self.changes or ()]
        return [(name, text) for name, text in told if text]

    def __str__(self) -> str:
        lines = [f"What {self.dataset} promises", ""]
        lines += [_wrapped(f"{topic:<12}{text}", 12) for topic, text in self.promise.items()]
        lines += ["", "What it does not promise", "", *(_wrapped(f"- {text}", 2) for text in self.not_promised)]
        lines += ["", "What questions cost, by the planner, if nothing was asked before", ""]
        lines += [str(price) for price in self.prices] or ["no example fits this config"]
        if self.changes is not None:
            changed = [_wrapped(f"{name}: {text}", 4) for name, text in self.changed()]
            lines += ["", "What the declarations change. These numbers are exact: keep them to yourself", ""]
            lines += changed or ["every row counts, and every value as what it is"]
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
        promise=promise(config),
        not_promised=not_promised(config),
        prices=prices(config),
        unconfirmed=tuple(label(place) for place in config.unconfirmed),
        changes=None if data is None else (*changes(config, data), *_further_changes(config)),
        left_out={} if data is None else dict(_left_out(config, data)),
    )


def _further_changes(config: Config) -> Iterator[ColumnChange]:
    """The same for private tables beside the first, whose files can be looked at; their columns have full names."""
    for table, location in _further_files(config):
        for change in changes(table, location):
            yield replace(change, name=f"{table.table}.{change.name}")


def _left_out(config: Config, data: object) -> Iterator[tuple[str, RowsLeftOut]]:
    for table, location in ((config, data), *_further_files(config)):
        if (rows := rows_left_out(table, location)) is not None:
            yield table.table, rows


def _further_files(config: Config) -> Iterator[tuple[Config, Path]]:
    for table in config.further:
        if table.location is not None and table.location.is_file():
            yield table, table.location


def promise(config: Config) -> dict[str, str]:
    """What is promised, point by point."""
    return {
        "protected": protected(config),
        **_promised_by_owner(config),
        "against": "anybody who sees every answer ever given, whatever else they know, and alone or together",
        "in total": in_total(config),
        "neighbours": _neighbours(config),
        "public": _public(config),
        "errors": _errors(config),
    }


def protected(config: Config) -> str:
    """Who is protected."""
    unit = config.unit
    if unit.column is None:
        return "each row by itself: somebody with two rows could lose twice as much"
    if not config.further:
        rows = f"{unit.max_contributions} rows of each are" if unit.max_contributions > 1 else "1 row of each is"
        return f"each {unit.column}, with all its rows; at most {rows} counted, and rows without one are not"
    bounds = ", ".join(f"{table.unit.max_contributions} in {table.table}" for table in config.private)
    return (
        f"each {unit.column}, with all its rows in all tables together; of each, at most so many rows are counted: "
        f"{bounds}; and rows without one are not"
    )


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
    times = (
        f"at most {math.exp(epsilon):.3g}" if epsilon < WEAK else "more than a thousand: hardly anybody is protected"
    )
    guess = "the odds that somebody is in the data, with the values they have,"
    if config.unit.neighbours is Neighbours.REPLACE_ONE:
        guess = "the odds between any two guesses about somebody's values"
    return f"{budget_words(budget)}: all answers ever given together shift {guess} by a factor of {times}{sure}"


def _neighbours(config: Config) -> str:
    if config.unit.neighbours is Neighbours.ADD_REMOVE:
        return "add-remove: it stays hidden whether somebody is in the data at all"
    return "replace-one: it stays hidden which values somebody has; not that they are there, nor the number of rows"


def _public(config: Config) -> str:
    size = "" if config.public_size is None else f", that there are {config.public_size:,} rows"
    named = [f"of {table.table}: " * bool(config.further) + ", ".join(table.domain.names) for table in config.private]
    further = "".join(f", at most {table.max_rows:,} in {table.table}" for table in config.further)
    return (
        f"everything in the config: the columns ({'; '.join(named)}) with their values and ranges, that there are at "
        f"most {config.max_rows:,} rows{size}{further}, the budget; and what was asked, and what it cost"
    )


def _errors(config: Config) -> str:
    if config.contract is Contract.SIMULTANEOUS:
        return "simultaneous: all answers keep their errors together, whatever was asked after seeing others"
    return "per-query: each answer keeps its error, if the question was not chosen by looking at noisy answers"


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def not_promised(config: Config) -> tuple[str, ...]:
    """What somebody might think is promised, and is not."""
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
        for table in config.private:
            where = f" about {table.table}" if config.further else ""
            rows = f"{table.unit.max_contributions} rows are" if table.unit.max_contributions > 1 else "1 row is"
            gaps.append(f"that every row is counted: of each {table.unit.column}, at most {rows} in any answer{where}")
    if not config.pace:
        gaps.append("that the time an answer takes says nothing; privacy.pace makes it say less")
    return tuple(gaps)


LARGEST_HISTOGRAM = 500
HISTOGRAMS = 3
LEAST_ERROR = 5.0
FIRST_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class ExamplePrice:
    """One question with an error, and what it would cost."""

    what: str
    sql: str
    within: float  # the error that is asked for, or that the answer would have
    rmse: float | None = None  # the root mean square error, where that is asked for
    unit: str
    price: float
    times: int  # how many such questions about the same people the budget buys
    whole: bool = False  # whether the question is what the whole budget was to be spent on

    def __str__(self) -> str:
        buys = f"the budget buys {self.times:,} of these" if self.times else "more than the budget"
        buys = "that is the whole budget" if self.whole else buys
        rmse = "" if self.rmse is None else f" with a root mean square error of {self.rmse:.6g},"
        exact = f"{self.what}{rmse} within {self.within:.6g}"
        return f"{exact} costs {self.unit} {self.price:.4g}; {buys}\n    {self.sql}"


def prices(config: Config) -> tuple[ExamplePrice, ...]:
    """A count and some histograms at the config's own goal, and the most exact histogram that the whole budget buys;
    of several private tables, of each.

    Edge cases: a question that the config does not allow is left out.
    """
    return tuple(price for table in config.private for price in _prices(replace(table, relation=ROOT, further=())))


def _prices(config: Config) -> tuple[ExamplePrice, ...]:
    small = sorted(config.domain.attributes, key=lambda attribute: attribute.size)
    columns = [attribute for attribute in config.domain.attributes if attribute.size <= LARGEST_HISTOGRAM][:HISTOGRAMS]
    examples: list[ExamplePrice | None] = []
    with _nothing_asked(config) as db:
        for condition in [text for attribute in small if (text := _condition(attribute))][:1]:
            sql = f"SELECT COUNT(*) FROM {_quoted(config.table)} WHERE {condition}"
            examples.append(_priced(db, "a count", sql))
        for attribute in columns:
            examples.append(_priced(db, f"a histogram of {attribute.name}", _histogram(config, attribute)))
        for attribute in columns[:1]:
            examples.append(
                _priced(
                    db, f"one histogram of {attribute.name}", _histogram(config, attribute), spend=config.budget.amount
                )
            )
    return tuple(price for price in examples if price is not None)


def first_question(config: Config) -> ExamplePrice | None:
    """A count of all rows, with a round error that costs about FIRST_SHARE of the budget; None if it is not allowed."""
    sql = f"SELECT COUNT(*) FROM {_quoted(config.table)}"
    with _nothing_asked(config) as db:
        exact = _priced(db, "a count", sql, spend=FIRST_SHARE * config.budget.amount)
        return None if exact is None else _priced(db, "a count", sql, within=float(_round(exact.within)))


def _round(error: float) -> Fraction:
    return rounded_up(Fraction(error), ROUND)


def example_goal(config: Config) -> Goal:
    """The config's own goal, in rows; where it has none, an error of 1% of the public size.

    Edge cases: where the size is not public, so that no percentage can be priced beforehand, a thousandth of what the
    table may hold, for each row that a person may have, since noise is needed in proportion; at most a fiftieth.
    """
    goal, size = config.goal, config.public_size
    if goal is not None and not goal.percent:
        return goal
    if size is not None:
        percentage = goal or Goal(kind=GoalKind.ERROR, amount=1.0, percent=True)
        return in_counts(percentage, size, lambda beta: None)
    error = max(float(rounded_up(Fraction(config.max_rows, 1000))), LEAST_ERROR) * config.unit.max_contributions
    error = min(error, max(float(rounded_up(Fraction(config.max_rows, 50))), LEAST_ERROR))
    return Goal(kind=GoalKind.ERROR, amount=error, confidence=DEFAULT_CONFIDENCE if goal is None else goal.confidence)


def _nothing_asked(config: Config) -> Bursar:
    """A session over nobody, whose default is the example goal: prices do not depend on rows."""
    alone = replace(config, analysts=AnalystSettings(), goal=example_goal(config), pace=0.0)
    return stage(alone, lambda key: EmptySource(alone.domain))


def _priced(
    db: Bursar, what: str, sql: str, *, within: float | None = None, spend: float | None = None
) -> ExamplePrice | None:
    """A question at an error, or for what may be spent; without both, at the goal of the session."""
    unit, goal = db.config.budget.mode.unit, db.config.goal
    epsilon, rho = (spend, None) if unit == "epsilon" else (None, spend)
    try:
        explanation = db.explain(sql, within=within, epsilon=epsilon, rho=rho)
    except (QueryError, GoalError):
        return None
    offers, chosen = explanation.offers, explanation.chosen
    fitting = [line for line in offers if line.meets] if chosen is None else [offers[chosen]]
    offer = min(fitting, key=lambda line: line.price, default=None)
    if offer is None or not offer.price:
        return None
    rmse = None
    if within is None and spend is None and goal is not None:
        within, rmse = (goal.amount, None) if goal.kind is GoalKind.ERROR else (None, goal.amount)
    return ExamplePrice(
        what=what,
        sql=sql,
        within=offer.error if within is None else within,
        rmse=rmse,
        unit=unit,
        price=offer.price,
        times=int(db.config.budget.amount / offer.price),
        whole=spend is not None and offer.price > 0.9 * spend,  # noise has a least scale, whatever may be spent
    )


def _histogram(config: Config, attribute: Attribute) -> str:
    name = _quoted(attribute.name)
    return f"SELECT {name}, COUNT(*) FROM {_quoted(config.table)} GROUP BY {name}"


def _condition(attribute: Attribute) -> str:
    """A condition that about half of a column's values meet."""
    name, middle = _quoted(attribute.name), attribute.declared // 2
    match attribute:
        case Categories(values=values):
            return f"{name} = {_literal(values[0])}"
        case IntegerRange(lower=lower):
            return f"{name} >= {lower + middle}"
        case Decimals():
            return f"{name} >= {attribute.number(middle)}"
        case Bins(edges=edges):
            return f"{name} < {edges[max(middle, 1)]:.15g}" if len(edges) > 2 else ""
        case Dates():
            return f"{name} >= DATE '{attribute.start(middle)}'"
    return ""


def _literal(value: str | int | bool) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).upper()


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'
