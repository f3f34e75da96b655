"""A black-box audit: does the whole engine, as it stands, keep the loss that it charges?

Two tables that differ by one person are made up over the public domain of a config; the real data are not touched. The
same question is asked many times on each, each time as if for the first time, and from the answers alone a lower bound
on the true epsilon is computed. If it exceeds what the ledger charged for one answer, something is wrong.
"""

from __future__ import annotations

import csv
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from bursar.config import Config
from bursar.domain import Attribute, Bins, Dates, Integers, Unit
from bursar.engine import Bursar
from bursar.kernel.accounting import Mode, epsilon_at, epsilon_of
from bursar.kernel.budget import Budget, charter_of
from bursar.kernel.curator import declare_version
from bursar.kernel.ledger import MemoryLedger
from bursar.kernel.randomness import Randomness, SystemRandomness
from bursar.kernel.seals import Axis
from bursar.kernel.sources.duckdb import DuckDBSource
from bursar.kernel.sources.source import Source
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.planner.offer import Offer, Views
from bursar.planner.request import Request
from bursar.proposers.direct import Direct
from bursar.queries import Predicate

PER_LEDGER = 400
"""Answers per scratch ledger, whose budget is then used up."""

ROWS = 30
DELTA = 1e-5

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What was claimed and what was seen."""

    question: str
    trials: int  # answers per table
    confidence: float  # that `seen` is at most the true epsilon
    claimed: float  # epsilon of one answer, from the ledger (at delta 1e-5 in concentrated mode)
    seen: float  # lower bound on the true epsilon of one answer

    @property
    def passed(self) -> bool:
        return self.seen <= self.claimed

    def __str__(self) -> str:
        verdict = "nothing wrong was found" if self.passed else "MORE IS REVEALED THAN IS CHARGED"
        return (
            f"{self.trials} answers on each of two made-up tables that differ by one person\n"
            f"question  {self.question}\n"
            f"charged   epsilon {self.claimed:.4f} for one answer\n"
            f"seen      at least epsilon {self.seen:.4f}, with {100 * self.confidence:.4f}% confidence\n"
            f"{verdict}"
        )


def audit(
    config: Config,
    *,
    trials: int = 20_000,
    epsilon: float = 1.0,
    alpha: float = 1e-6,
    question: str | None = None,
    randomness: Randomness | None = None,
    progress: Progress = lambda done, of: None,
) -> Audit:
    """Ask one question `trials` times on each of two neighbouring made-up tables, and compare.

    The first half of the answers chooses the event that tells the tables apart best; the second half, which the choice
    has not seen, gives the Clopper-Pearson bounds. alpha is the chance of a false alarm.
    """
    text = question or default_question(config)
    with tempfile.TemporaryDirectory() as folder:
        tables = write_neighbours(config, Path(folder))
        answers, charge = [], 0.0
        for side, table in enumerate(tables):
            asked = _ask_again_and_again(config, table, text, epsilon, randomness or SystemRandomness())
            seen: list[NDArray[np.float64]] = []
            while len(seen) < trials:
                values, charge = next(asked)
                seen.append(values)
                progress(side * trials + len(seen), 2 * trials)
            answers.append(np.stack(seen))
    slack = 0.0 if config.budget.mode is Mode.PURE else DELTA
    return Audit(
        question=text,
        trials=trials,
        confidence=1 - alpha,
        claimed=_claimed(config.budget, charge),
        seen=lower_bound(answers[0], answers[1], alpha=alpha, delta=slack),
    )


def _claimed(budget: Budget, charge: float) -> float:
    """What a charge is in epsilon, at `DELTA` where that is not 0."""
    if budget.mode is Mode.PURE:
        return charge
    return epsilon_of(charge, DELTA) if budget.order is None else epsilon_at(charge, DELTA, budget.order)


def lower_bound(left: NDArray[np.float64], right: NDArray[np.float64], *, alpha: float, delta: float = 0.0) -> float:
    """A number that is at most the true epsilon with probability 1 - alpha; both arrays are (trials, numbers)."""
    half = len(left) // 2
    best = (0.0, 0, 0.0, 1, False)
    for column in range(left.shape[1]):
        for threshold in np.unique(np.quantile(left[:half, column], np.linspace(0.02, 0.98, 49))):
            for sign in (1, -1):
                a = float(np.mean(sign * left[:half, column] >= sign * threshold))
                b = float(np.mean(sign * right[:half, column] >= sign * threshold))
                score = abs(math.log((a + 1 / half) / (b + 1 / half))) * math.sqrt(min(a, b) + 1 / half)
                best = max(best, (score, column, float(threshold), sign, b > a))
    _, column, threshold, sign, swap = best
    likely, unlikely = (right, left) if swap else (left, right)
    hits = [int(np.sum(sign * side[half:, column] >= sign * threshold)) for side in (likely, unlikely)]
    count = len(left) - half
    low = betaincinv(hits[0], count - hits[0] + 1, alpha / 2) if hits[0] else 0.0
    high = betaincinv(hits[1] + 1, count - hits[1], 1 - alpha / 2) if hits[1] < count else 1.0
    return max(0.0, math.log(max(low - delta, 1e-300) / high))


def default_question(config: Config) -> str:
    """A histogram of the first column that is small enough to look at."""
    small = [a.name for a in config.domain.attributes if a.size <= 64] or [config.domain.names[0]]
    return f'SELECT "{small[0]}", COUNT(*) AS n FROM "{config.table}" GROUP BY "{small[0]}"'


def write_neighbours(config: Config, folder: Path) -> tuple[Path, Path]:
    """Two CSV files over the public domain; the second has one more person, or one person with other values."""
    spread = [[(row * (7 + place)) % a.size for place, a in enumerate(config.domain.attributes)] for row in range(ROWS)]
    person = [0 for _ in config.domain.attributes]
    replaced = config.unit.neighbours.value == "replace-one"
    without = [*spread, [a.size - 1 for a in config.domain.attributes]] if replaced else spread
    tables = (without, [*spread, person])
    paths = (folder / "without.csv", folder / "with.csv")
    for path, rows in zip(paths, tables, strict=True):
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*config.domain.names, "unit"])
            for number, cells in enumerate(rows):
                raw = [raw_value(a, cell) for a, cell in zip(config.domain.attributes, cells, strict=True)]
                writer.writerow([*raw, number])
    return paths


def raw_value(attribute: Attribute, cell: int) -> object:
    """A value that falls into the given cell; empty for NULL."""
    if attribute.has_null and cell == attribute.null_cell:
        return ""
    if cell == attribute.other:
        if isinstance(attribute, Integers):
            return attribute.upper + 1
        if isinstance(attribute, Bins):
            return attribute.edges[-1] + 1
        return attribute.start(attribute.declared) + timedelta(days=1) if isinstance(attribute, Dates) else "\u2205"
    if isinstance(attribute, Bins):
        return attribute.edges[cell]
    return attribute.label(cell)


def _ask_again_and_again(
    config: Config, table: Path, text: str, epsilon: float, randomness: Randomness
) -> Iterator[tuple[NDArray[np.float64], float]]:
    """Answers to the question on one table with their charges, each as if nothing had been asked before."""
    pure = config.budget.mode is Mode.PURE
    unit = Unit(neighbours=config.unit.neighbours)
    budget = Budget(mode=config.budget.mode, amount=900.0, order=config.budget.order)
    scratch = replace(config, budget=budget, unit=unit, max_rows=10 * ROWS, goal=None, family=None, pace=0.0)
    source = _Kept(DuckDBSource(table, config.domain, unit, key=bytes(32), max_rows=10 * ROWS))
    spend = Wanted(epsilon=epsilon) if pure else Wanted(rho=epsilon**2 / 2)
    preset = Preset("again", (_Again(),))
    while True:
        rows = scratch.max_rows
        charter = charter_of(dataset="audit", domain=config.domain, unit=unit, budget=budget, max_rows=rows)
        ledger = MemoryLedger(charter)
        axis, last = Axis.of(config.domain, unit), config.domain.partitions - 1
        declare_version(ledger, lambda key: source, randomness, axis=axis, through=last)
        db = Bursar(scratch, ledger, open_source=lambda key: source, randomness=randomness, preset=preset)
        request = db.prepare(text, spend, None)
        for _ in range(PER_LEDGER):
            answer = db.ask(request)
            yield np.array([value for line in answer.values for value in line]), answer.charge


class _Again:
    """Measures afresh every time, with the noise that the first question was found to need."""

    name = "again"

    def __init__(self) -> None:
        self._first: Offer | None = None

    def offers(self, request: Request, views: Views) -> list[Offer]:
        if self._first is None:
            self._first = Direct().offers(request, views)[-1]
        return [self._first]


@dataclass(frozen=True)
class _Kept:
    """A source that stays open although engines come and go."""

    inner: Source

    def fingerprint(self) -> str:
        return self.inner.fingerprint()

    def content(self) -> tuple[str, ...]:
        return self.inner.content()

    def table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        return self.inner.table(attrs)

    def count(self, predicate: Predicate) -> int:
        return self.inner.count(predicate)

    def close(self) -> None:
        """Kept open on purpose."""
