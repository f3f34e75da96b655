"""One try: a collective asks its questions of a real engine, on a ledger in memory and people who do not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.analysts.settings import Seed, Settings
from bursar.analysts.shares import Shares
from bursar.config import Config
from bursar.core.domain import Domain
from bursar.engine import Bursar
from bursar.errors import BudgetError, GoalError
from bursar.core.budget import Budget, charter_of
from bursar.core.curator import declare_version
from bursar.core.ledger import MemoryLedger
from bursar.core.noise.system import SystemRandomness
from bursar.core.seals import Axis
from bursar.core.source.source import table_shape
from bursar.core.queries import Predicate
from bursar.simulate.mix import Asked


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How a collective would share its budget."""

    name: str
    policy: str = "shared"
    scheduler: str = "none"
    shares: bool = True  # whether each has an own share; else whoever comes first spends the one budget

    def settings(self, shares: Mapping[str, Fraction], seed: Seed | None) -> Settings:
        """For the engine. Turns are given by the simulation, so that nobody has to wait for them."""
        planted = seed if self.policy == "seeded-cache" else None
        return Settings(policy=self.policy, shares=Shares(dict(shares)) if self.shares else Shares(), seed=planted)


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
    policy: Policy,
    questions: Sequence[Asked],
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
    declare_version(ledger, **door, axis=Axis.of(config.domain, config.unit), through=config.domain.partitions - 1)
    Bursar(config, ledger, **door).declare_shares()
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
