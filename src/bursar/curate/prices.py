"""Example prices: typical questions, priced by the real planner on a log in which nothing was asked yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from bursar.analysts.shares import AnalystSettings
from bursar.config.load import Config
from bursar.core.budget import charter_of
from bursar.core.curator import declare_version
from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange
from bursar.core.ledger import MemoryLedger
from bursar.core.noise.system import SystemRandomness
from bursar.curate.survey import ROUND, rounded_up
from bursar.errors import GoalError, QueryError
from bursar.goal import GoalKind
from bursar.session import Bursar
from bursar.simulate.trial import Nobody

LARGEST_HISTOGRAM = 500
HISTOGRAMS = 3
LEAST_ERROR = 5.0
FIRST_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class ExamplePrice:
    """One question with an error, and what it would cost."""

    what: str
    sql: str
    within: float
    unit: str
    price: float
    times: int  # how many such questions about the same people the budget buys
    whole: bool = False  # whether the question is what the whole budget was to be spent on

    def __str__(self) -> str:
        buys = f"the budget buys {self.times:,} of these" if self.times else "more than the budget"
        buys = "that is the whole budget" if self.whole else buys
        return f"{self.what} within {self.within:.6g} costs {self.unit} {self.price:.4g}; {buys}\n    {self.sql}"


def prices(config: Config) -> tuple[ExamplePrice, ...]:
    """A count, some histograms, and the most exact histogram that the whole budget buys.

    Edge cases: a question that the config does not allow is left out.
    """
    small = sorted(config.domain.attributes, key=lambda one: one.size)
    columns = [one for one in config.domain.attributes if one.size <= LARGEST_HISTOGRAM][:HISTOGRAMS]
    within, whole = typical_error(config), {config.budget.mode.unit: config.budget.amount}
    found: list[ExamplePrice | None] = []
    with _nothing_asked(config) as db:
        for condition in [text for one in small if (text := _condition(one))][:1]:
            sql = f"SELECT COUNT(*) FROM {_quoted(config.table)} WHERE {condition}"
            found.append(_priced(db, "a count", sql, within=within))
        for one in columns:
            found.append(_priced(db, f"a histogram of {one.name}", _histogram(config, one), within=within))
        for one in columns[:1]:
            found.append(_priced(db, f"one histogram of {one.name}", _histogram(config, one), **whole))
    return tuple(price for price in found if price is not None)


def first_question(config: Config) -> ExamplePrice | None:
    """A count of all rows, with a round error that costs about FIRST_SHARE of the budget; None if it is not allowed."""
    sql = f"SELECT COUNT(*) FROM {_quoted(config.table)}"
    share = {config.budget.mode.unit: FIRST_SHARE * config.budget.amount}
    with _nothing_asked(config) as db:
        exact = _priced(db, "a count", sql, **share)
        return None if exact is None else _priced(db, "a count", sql, within=float(_round(exact.within)))


def _round(error: float) -> Fraction:
    return rounded_up(Fraction(error), ROUND)


def typical_error(config: Config) -> float:
    """The error of the config's goal, if it is one in rows; else a thousandth of what the table may hold.

    The thousandth is taken for each row that a person may have: so many times more noise is needed.
    """
    goal = config.goal
    if goal is not None and goal.kind is GoalKind.ERROR:
        if not goal.percent:
            return goal.amount
        if config.public_size is not None:
            return goal.amount * config.public_size / 100
    return max(float(rounded_up(Fraction(config.max_rows, 1000))), LEAST_ERROR) * config.unit.max_contributions


@contextmanager
def _nothing_asked(config: Config) -> Iterator[Bursar]:
    """The engine over nobody: prices do not depend on rows."""
    config = replace(config, analysts=AnalystSettings(), goal=None, pace=0.0)
    ledger = MemoryLedger(charter_of(dataset=config.dataset, **config.facts))
    door: Any = {"open_source": lambda key: Nobody(config.domain), "randomness": SystemRandomness()}
    declare_version(ledger, **door)
    with Bursar(config, ledger, **door) as db:
        yield db


def _priced(db: Bursar, what: str, sql: str, **wanted: Any) -> ExamplePrice | None:
    try:
        found = db.explain(sql, **wanted)
    except (QueryError, GoalError):
        return None
    fitting = [line for line in found.offers if line.meets] if found.chosen is None else [found.offers[found.chosen]]
    offer = min(fitting, key=lambda line: line.price, default=None)
    if offer is None or not offer.price:
        return None
    return ExamplePrice(
        what=what,
        sql=sql,
        within=wanted.get("within", offer.error),
        unit=found.unit,
        price=offer.price,
        times=int(db.config.budget.amount / offer.price),
        whole="within" not in wanted,
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
        case Bins(edges=edges):
            return f"{name} < {edges[max(middle, 1)]:.15g}" if len(edges) > 2 else ""
        case Dates():
            return f"{name} >= DATE '{attribute.start(middle)}'"
    return ""


def _literal(value: str | int | bool) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).upper()


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else '"' + name.replace('"', '""') + '"'
