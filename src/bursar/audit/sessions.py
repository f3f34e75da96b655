"""The sessions that an audit plays: what an analyst could do, short and with one thing in each that can go wrong.

Each session is one script, played again and again on a ledger that is new every time. A transcript is all that came
out: the answers, and the numbers in the log. Goals are set from public prices, so that the loss that is charged is one
at which a fault shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bursar.config import Config
from bursar.core.accounting import Measured, Mode, Noise, NoiseKind, Opened, Refined, Selected
from bursar.core.domain import Attribute, Bins, IntegerRange
from bursar.core.extensions.open_keys import OpenText
from bursar.core.queries import Mask, Product, Steps
from bursar.core.source.source import Source
from bursar.errors import BursarError, Stale, Unsupported
from bursar.planner.grant import Grant
from bursar.session import Bursar

Script = Callable[[Bursar], list[float]]
"""One session: what it lets an analyst see."""

LEAST_CELLS = 3
"""One for the unit on either table, and one for others alone."""

TIGHTER = (1.0, 1.0, 0.8, 0.64)
"""A question, the same again, and twice with a tighter goal."""

PAIRS = 150
"""Tests of one sparse vector, in pairs, if it stays open so long."""

RIVALS = 39
"""Candidates that the one unit makes less likely to be picked, beside one that it makes more likely."""

STEPS = 12
"""Most attempts to find the goal of a price."""


@dataclass(frozen=True, kw_only=True)
class SessionSetting:
    """What a session is prepared for: public facts, and the made-up table without the unit."""

    config: Config
    table: Source
    loss: float  # to be charged, about, in the unit of the budget

    @property
    def target_loss(self) -> float:
        """What questions are to cost: at one order, what Laplace noise of this epsilon costs at most.

        Under a loss that is much larger, counts come out exact, and no goal costs more than another.
        """
        order = self.config.budget.order
        return self.loss if order is None else min(self.loss, math.sqrt(2 * self.loss) / order)

    @property
    def shortest_column(self) -> Attribute:
        """The shortest column that has a declared cell which the unit is in on neither table, if there is one."""
        closed = [a for a in self.config.domain.attributes if not isinstance(a, OpenText)]
        values = [a for a in closed if a.name != self.config.unit.column]
        if not closed:
            raise Unsupported("an audit asks about cells, and the cells of open columns have no texts to begin with")
        return min(values or closed, key=lambda a: (a.declared < LEAST_CELLS, a.size))

    @property
    def cut(self) -> int:
        """A distance from 0 so large that no unit changes the sign of a distance."""
        return 1000 + 4 * self.config.unit.max_contributions

    def count(self, cell: int) -> int:
        """Rows of the made-up table without the unit in a cell of the shortest column."""
        return int(self.table.table((self.shortest_column.name,))[cell])


@dataclass(frozen=True, kw_only=True)
class Session:
    """A script with what it looks for; `loss` in epsilon, and in rho half its square."""

    name: str
    finds: str
    loss: float
    often: int = 1  # how many times as often it is played: more where it is quick and takes many to find a fault
    prepare: Callable[[SessionSetting, Bursar], Script | None]  # None where the config has no room for it


def transcript(db: Bursar, seen: list[float]) -> list[float]:
    """What a session showed, and what it left in the log."""
    records = [record for record in db.ledger.records() if isinstance(record.event, Measured | Refined | Selected)]
    values = [float(value) for record in records for value in record.values]
    return [*seen, float(len(records)), *values]


# -- questions -----------------------------------------------------------------------------------------------------


def _answers(db: Bursar, text: str, within: float) -> list[float]:
    return [float(value or 0.0) for line in db.query(text, within=within).values for value in line]


def _within(db: Bursar, text: str, loss: float) -> float | None:
    """The error at which a question costs about `loss`; None where there is none."""
    within, power = 1e4, 1 if db.config.budget.mode is Mode.PURE else 2
    tried: list[tuple[float, float]] = []
    for _ in range(STEPS):
        price = db.explain(text, within=within).price
        if not 0 < price < math.inf:
            break
        tried.append((abs(math.log(price / loss)), within))
        if tried[-1][0] < 0.02:
            break
        within *= (price / loss) ** (1 / power)
    off, best = min(tried, default=(math.inf, 0.0))  # prices rise in steps where noise is small
    return best if off < math.log(1.9) else None


def _histogram(setting: SessionSetting) -> str:
    name = setting.shortest_column.name
    return f'SELECT "{name}", COUNT(*) AS n FROM "{setting.config.table}" GROUP BY "{name}"'


def _question(text: str | None, goals: tuple[float, ...], setting: SessionSetting, db: Bursar) -> Script | None:
    """The question with a goal, and with parts of it; the last one costs what the session is to cost."""
    if text is None:
        return None
    last = _within(db, text, setting.target_loss)
    if last is None:
        return None
    errors = [last * goal / goals[-1] for goal in goals]
    return lambda played: [value for error in errors for value in _answers(played, text, error)]


def _groups(setting: SessionSetting, db: Bursar) -> Script | None:
    return _question(_histogram(setting), (1.0,), setting, db)


def _tighter(setting: SessionSetting, db: Bursar) -> Script | None:
    return _question(_histogram(setting), TIGHTER, setting, db)


def _sums(setting: SessionSetting, db: Bursar) -> Script | None:
    columns = setting.config.domain.attributes
    numeric = [a for a in columns if isinstance(a, IntegerRange | Bins) and a.name != setting.config.unit.column]
    if not numeric:
        return None
    text = f'SELECT SUM("{min(numeric, key=lambda a: a.size).name}") AS s FROM "{setting.config.table}"'
    return _question(text, (1.0,), setting, db)


# -- verbs that questions reach only on large tables, under a grant as a proposer would use them ----------------------


def _cell(attribute: Attribute, cell: int, times: int = 1) -> Product:
    """The row that counts a cell, `times` times."""
    rows = np.zeros((times, attribute.size), np.int64)
    rows[:, cell] = 1
    return Product((Mask((attribute.name,), (attribute.size,), Steps.dense(rows)),))


def _granted(db: Bursar, *events: Opened) -> Grant:
    db.engine.plant_seed()
    return Grant(db.kernel, db.analyst, "audit", events, db.kernel.account(db.analyst).left)


def _rate(setting: SessionSetting) -> float:
    """epsilon per row that a unit can have, for the loss of the setting."""
    pure = setting.config.budget.mode is Mode.PURE
    return (setting.loss if pure else math.sqrt(2 * setting.loss)) / setting.config.unit.max_contributions


def _tests(setting: SessionSetting, db: Bursar) -> Script | None:
    """One sparse vector, tested in turn on a count that the unit changes and on one that it does not."""
    column = setting.shortest_column
    unit_cell, other_cell = column.declared - 1, 1 if column.declared >= LEAST_CELLS else 0
    queries = [_cell(column, cell) for cell in (unit_cell, other_cell)]
    estimates = [setting.count(cell) - setting.cut for cell in (unit_cell, other_cell)]
    noise = Noise(kind=NoiseKind.LAPLACE, scale=3 / _rate(setting))
    scope = Product((Mask((column.name,), (column.size,), Steps.dense(np.ones((1, column.size), np.int64))),))
    opened = Opened(scope=scope, cut=setting.cut, threshold=noise, test=noise, version=db.kernel.version())

    def script(played: Bursar) -> list[float]:
        outcomes = np.zeros((PAIRS, 2))
        done = 0
        with _granted(played, opened) as grant:
            instance: Opened | int = opened
            while done < 2 * PAIRS:
                try:
                    tested = grant.above(instance, queries[done % 2], estimates[done % 2])
                except Stale:
                    break
                instance, outcomes[divmod(done, 2)] = tested.instance, tested.above
                done += 1
        first, second = outcomes.sum(axis=0).tolist()
        return [float(done), first, second, first - second]

    return script


def _picks(setting: SessionSetting, db: Bursar) -> Script | None:
    """One pick: with the unit there, one candidate is farther from its estimate, and all others are nearer."""
    column = setting.shortest_column
    unit_cell = column.declared - 1
    candidates = _cell(column, unit_cell, 1 + RIVALS)
    estimates = np.full(1 + RIVALS, setting.count(unit_cell) + setting.cut, np.int64)
    estimates[0] -= 2 * setting.cut
    scale = 2 / _rate(setting) if setting.config.budget.mode is Mode.PURE else 1 / _rate(setting)

    def script(played: Bursar) -> list[float]:
        with _granted(played) as grant:
            grant.select(candidates, estimates.copy(), count=1, scale=scale)
        return []

    return script


SESSIONS = (
    Session(name="groups", finds="noise and bounded contributions", loss=1.0, prepare=_groups),
    Session(name="sum", finds="noise on sums over declared ranges", loss=1.0, prepare=_sums),
    Session(name="tighter", finds="reuse of answers and refined noise", loss=1.5, prepare=_tighter),
    Session(name="tests", finds="sparse vectors", loss=1.5, often=2, prepare=_tests),
    Session(name="picks", finds="selection by score", loss=2.0, often=4, prepare=_picks),
)


def prepare(session: Session, setting: SessionSetting, db: Bursar) -> Script | None:
    """The session for this config; None where it cannot be played."""
    try:
        return session.prepare(setting, db)
    except BursarError:
        return None
