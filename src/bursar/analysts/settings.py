"""What the data owner decides about analysts: the [analysts] section of a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from bursar.analysts.shares import Shares
from bursar.core.queries import LinearMap

POLICIES = ("shared", "independent", "seeded-cache")
SCHEDULERS = ("none", "round-robin", "randomized")
BASES = ("histogram", "hierarchical", "wavelet", "best")


@dataclass(frozen=True, kw_only=True)
class Seed:
    """What is measured once for everyone: a strategy on some columns, for a fraction of the whole budget.

    With a `workload` the strategy is the best one known for it, and `columns` are those that it looks at.
    """

    fraction: Fraction
    basis: str = "histogram"  # one of BASES
    columns: tuple[str, ...]
    workload: LinearMap | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How one budget is shared. The default: one budget, everybody sees what anybody has bought, no queue."""

    policy: str = "shared"  # one of POLICIES
    scheduler: str = "none"  # one of SCHEDULERS
    probabilities: Mapping[str, Fraction] | None = None  # of "randomized"; None: by share
    idle: float | None = None  # seconds without a question after which turns pass somebody over; None: turns wait
    shares: Shares = field(default_factory=Shares)
    seed: Seed | None = None  # where the policy is "seeded-cache"

    @property
    def accounts(self) -> Shares:
        """The shares as the ledger keeps them: where there is a seed, `everyone` has its fraction."""
        return self.shares if self.seed is None else self.shares.beside(self.seed.fraction)
