"""One try: a collective asks its questions of a real engine, on a ledger in memory and people who do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.analysts.scheduler import RoundRobin, Turns
from bursar.analysts.shares import AnalystSettings, Seed, Shares
from bursar.config import Config
from bursar.core.budget import Budget, charter_of
from bursar.core.curator import declare_version
from bursar.core.domain import Domain
from bursar.core.ledger import MemoryLedger
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Predicate
from bursar.core.seals import PartitionAxis
from bursar.core.source.source import table_shape
from bursar.errors import AnalystError, BudgetError, GoalError, QueryError
from bursar.session import Bursar
from bursar.sql.tokens import questions_of
from bursar.synthetic.plan.workload import PREFIX


@dataclass(frozen=True, kw_only=True)
class TrialPolicy:
    """How a collective would share its budget."""

    name: str
    policy: str = "shared"
    scheduler: str = "none"
    shares: bool = True  # whether each has an own share; else whoever comes first spends the one budget

    def settings(self, shares: Mapping[str, Fraction], seed: Seed | None) -> AnalystSettings:
        """For the engine. Turns are given by the simulation, so that nobody has to wait for them."""
        planted = seed if self.policy == "seeded-cache" else None
        return AnalystSettings(
            policy=self.policy, shares=Shares(dict(shares)) if self.shares else Shares(), seed=planted
        )


class Nobody:
    """A source without a single row. What is answered, and what it costs, does not depend on the rows."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def fingerprint(self) -> str:
        return "nobody"

    def content(self) -> tuple[str, ...]:
        return ("nobody",) * self._domain.partitions

    def table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        return np.zeros(table_shape(self._domain, attrs), np.int64)

    def count(self, predicate: Predicate) -> int:
        return 0

    def close(self) -> None:
        """Nothing is open."""


def utilities(
    config: Config,
    policy: TrialPolicy,
    questions: Sequence[AnalystQuestion],
    *,
    shares: Mapping[str, Fraction],
    seed: Seed | None = None,
    **wanted: Any,
) -> dict[str, int]:
    """How many questions of each member are answered within their goal: U_i(M, Q, epsilon).

    The members are those of `shares`. They bring in their shares of the config's budget, and nobody else's; a question
    is answered within its goal or refused, so answers are what is counted.
    """
    whole = sum(shares.values(), Fraction(0))
    amount = config.budget.amount * float(whole)
    brought = Budget(mode=config.budget.mode, amount=amount, order=config.budget.order)
    own = {who: share / whole for who, share in shares.items()}
    config = replace(config, budget=brought, analysts=policy.settings(own, seed), pace=0.0)
    ledger = MemoryLedger(charter_of(dataset=config.dataset, **config.facts))
    door: Any = {"open_source": lambda key: Nobody(config.domain), "randomness": SystemRandomness()}
    declare_version(
        ledger, **door, axis=PartitionAxis.of(config.domain, config.unit), through=config.domain.partitions - 1
    )
    Bursar(config, ledger, **door).owner.declare_shares()
    engines = {who: Bursar(config, ledger, analyst=who, **door) for who in shares}
    answered = dict.fromkeys(shares, 0)
    for asked in questions:
        try:
            engines[asked.analyst].query(asked.sql, **wanted)
            answered[asked.analyst] += 1
        except BudgetError:
            continue
        except GoalError as error:
            raise GoalError(f"{error}\nin the question of {asked.analyst!r}: {asked.sql}") from None
    ledger.close()
    return answered


@dataclass(frozen=True, kw_only=True)
class AnalystQuestion:
    """One question, and who asks it."""

    analyst: str
    sql: str


class LoggedQuestion(Protocol):
    """What is read of a line of the log."""

    @property
    def analyst(self) -> str: ...

    @property
    def purpose(self) -> str: ...

    @property
    def rows(self) -> int: ...


def expected(
    scripts: Mapping[str, Sequence[str]], often: Mapping[str, Fraction] | None = None
) -> list[AnalystQuestion]:
    """Each analyst's questions in their order, merged: somebody with rate 3 asks three times as often as with rate 1,
    until nothing is left to ask."""
    rates = {who: Fraction(1) for who in scripts} | dict(often or {})
    if unknown := sorted(rates.keys() - scripts.keys()):
        raise AnalystError(f"{unknown[0]!r} has a rate, and no questions")
    left = {who: list(questions) for who, questions in scripts.items()}
    merged: list[AnalystQuestion] = []
    turns: Turns = {}
    while asking := [who for who, questions in left.items() if questions]:
        who, turns = RoundRobin(weights=rates).next(turns, asking)
        merged.append(AnalystQuestion(analyst=who, sql=left[who].pop(0)))
    return merged


def replayed(log: Iterable[LoggedQuestion], analysts: Iterable[str]) -> list[AnalystQuestion]:
    """The questions that these analysts have paid for, in their order; free answers are not in a log.

    Several records that one question paid for in a row are one question. Synthetic tables are none, and
    texts that were erased cannot be asked again.
    """
    known = set(analysts)
    asked_for = [line for line in log if line.rows and line.purpose and not line.purpose.startswith(PREFIX)]
    paid = [(line.analyst, line.purpose) for line in asked_for if line.analyst in known]
    asked = [AnalystQuestion(analyst=who, sql=sql) for (who, text), _ in groupby(paid) for sql in questions_of(text)]
    if not asked:
        raise QueryError("the log has no question of an analyst who has a share\ntry: --mix NAME=FILE")
    return asked
