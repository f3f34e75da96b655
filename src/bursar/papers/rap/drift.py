"""How a synthetic table does when questions drift away from those that it was made for (RAP, section 5.3).

Questions are column sets. What was asked before gives every column a mass; drift gives the masses to other columns
(Def. 5.2), and new questions are drawn by them. For every amount of drift the table's worst count is picked and
measured, as in a round of RAP, and paid for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Event, Measured, NoiseKind, Selected
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.errors import QueryError
from bursar.planner.grant import Verbs
from bursar.synthetic.entropy import repeated
from bursar.synthetic.plan.history import draws, drifted
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.plan.workload import fitting_sets
from bursar.synthetic.rap.rounds import Round
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload
from bursar.synthetic.store import TableAnswers
from bursar.tails.marginals import Cells, largest_error

Names = tuple[str, ...]

GAMMAS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The amounts of drift of the paper."""

DRAWN = 16
"""Column sets that are drawn for each of them."""

MISSED = 0.05
"""How often a measured error may be further off than its noise says."""

NO_ROOM = (
    "nothing that a table could be judged by: the counts of these column sets are too many to be looked at together"
)


@dataclass(frozen=True, kw_only=True)
class DriftLine:
    """One amount of drift, in rows of the data; None for the sets that the table was made for."""

    gamma: float | None
    moved: float  # total variation: the part of the masses that went to other columns
    sets: int
    error: float  # of the table, in the count that was found to be the worst
    noise: float  # how far that can be off, with 95% confidence
    unseen: float  # errors below about this do not stand out, and may be larger than the one that was found

    @property
    def label(self) -> str:
        return "as made for" if self.gamma is None else f"drift {self.gamma:g}"


@dataclass(frozen=True, kw_only=True)
class DriftReport:
    """The errors of a table by how far questions have drifted."""

    lines: tuple[DriftLine, ...]
    unit: str
    charge: float

    def summary(self) -> str:
        """For a terminal."""
        head = ("", "masses moved", "sets", "largest error found", "not seen below")
        rows = [head] + [
            (
                line.label,
                f"{100 * line.moved:.0f}%",
                f"{line.sets}",
                f"{line.error:,.0f} ± {line.noise:,.0f} rows",
                f"{line.unseen:,.0f} rows",
            )
            for line in self.lines
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        told = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        cost = f"{self.unit} {self.charge:.6g}" if self.charge else "free"
        return "\n".join([*told, "", f"cost  {cost}"])

    def __str__(self) -> str:
        return self.summary()

    def to_json(self) -> dict[str, object]:
        """All of it as plain JSON values."""
        return {"unit": self.unit, "charge": self.charge, "lines": [asdict(line) for line in self.lines]}


@dataclass(frozen=True, kw_only=True, eq=False)
class DriftedSets:
    """The questions of one amount of drift."""

    gamma: float | None
    moved: float
    workload: ThresholdWorkload


def drifted_sets(
    domain: Domain, made_for: Mapping[Names, float], *, agree: int | None, seed: str
) -> tuple[DriftedSets, ...]:
    """The sets that a table was made for, weighted by how often they are asked, and those of every amount of drift.

    Guarantees: the same for the same arguments; nothing here looks at data.
    """
    names = [column.name for column in domain.attributes if column.size > 1]
    historical = _masses(made_for, names)
    order = np.argsort(-historical, kind="stable")  # drift is about features by falling mass
    sizes = [len(columns) for columns in made_for]
    chosen = [DriftedSets(gamma=None, moved=0.0, workload=ThresholdWorkload.of(domain, made_for, agree))]
    for gamma in GAMMAS:
        rng = repeated(f"{seed} {gamma}")
        future = np.empty(len(names))
        future[order] = drifted(historical[order], gamma, rng)
        features = int(np.count_nonzero(future))
        sets_by_size = Counter(min(size, features) for size in rng.choice(sizes, DRAWN).tolist())
        drawn = [
            tuple(names[place] for place in places)
            for size, count in sorted(sets_by_size.items())
            for places in draws(future, together=size, count=count, rng=rng)
        ]
        moved = float(np.abs(future - historical).sum() / 2)
        workload = ThresholdWorkload.of(domain, fitting_sets(domain, drawn), agree)
        chosen.append(DriftedSets(gamma=gamma, moved=moved, workload=workload))
    return tuple(chosen)


def asked_digest(made_for: Mapping[Names, float]) -> str:
    """A short name for sets and their weights: with others, it is another report."""
    text = ";".join(f"{','.join(columns)}:{weight:.17g}" for columns, weight in made_for.items())
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _masses(made_for: Mapping[Names, float], names: Sequence[str]) -> Reals:
    """How often each column is asked about, as shares that sum to 1."""
    masses = np.array([sum(weight for columns, weight in made_for.items() if name in columns) for name in names])
    if masses.sum() <= 0:
        raise QueryError(NO_ROOM)
    shares: Reals = masses / masses.sum()
    return shares


@dataclass(frozen=True, kw_only=True, eq=False)
class DriftPlan:
    """What is bought for a report: for each amount of drift, one round of one pick, all for the same."""

    questions: tuple[DriftedSets, ...]
    spend: Spend

    @property
    def round(self) -> Round:
        """All questions in one round, with the whole budget."""
        return Round.of(self.spend, len(self.questions), 1)

    def remaining_events(self, records: Sequence[Record], version: int) -> Iterator[Event]:
        """What will still be bought, at most, when these records of the same report are there."""
        bought = _purchases(records)
        for place, question in enumerate(self.questions):
            if len(bought) < 2 * place + 2:
                picked = len(bought) == 2 * place + 1
                yield from self.round.events(question.workload.candidates, version, picked=picked)

    def carry_out(self, table: TableAnswers, verbs: Verbs, records: Sequence[Record]) -> tuple[DriftLine, ...]:
        """Pick and measure what is missing."""
        bought = _purchases(records)
        return tuple(
            self._line(question, table, verbs, bought[2 * place : 2 * place + 2])
            for place, question in enumerate(self.questions)
        )

    def _line(self, question: DriftedSets, table: TableAnswers, verbs: Verbs, bought: Sequence[Record]) -> DriftLine:
        candidates, half = question.workload.candidates, self.round
        answers = table.answers(candidates)
        if answers is None:
            raise QueryError(NO_ROOM)
        estimates = np.rint(answers).astype(np.int64)
        picked = bought[0].values if bought else verbs.select(candidates, estimates, count=1, scale=half.scale).values
        strategy = question.workload.taken(picked)
        count = bought[1].values if len(bought) > 1 else verbs.measure(strategy, half.noise).values
        heavy = half.noise.kind is NoiseKind.LAPLACE
        return DriftLine(
            gamma=question.gamma,
            moved=question.moved,
            sets=len(question.workload.sets),
            error=abs(float(count[0] - estimates[picked[0]])),
            noise=largest_error([Cells(count=1, variance=half.noise.variance())], heavy=heavy, beta=MISSED),
            unseen=half.scale * math.log(max(question.workload.queries, 2)),
        )


def _purchases(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if isinstance(record.event, Measured | Selected)]
