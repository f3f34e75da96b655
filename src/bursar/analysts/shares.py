"""Shares: which fraction of the budget each analyst may cause to be spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from fractions import Fraction

from bursar.core.queries import LinearMap
from bursar.errors import ConfigError
from bursar.lazy_dataclass import dataclass

LONGEST_NAME = 200

EVERYONE = "everyone"
"""Whose account pays for what is measured once for all analysts; nobody can ask under this name."""


@dataclass(frozen=True)
class Shares(Mapping[str, Fraction]):
    """Fractions by analyst, in the order of their names; public. No shares at all: everybody spends the one budget.

    Guarantees: each is above 0, together they are at most 1, exactly: a decimal number stands for the fraction it
    names, so ten shares of 0.1 are 1.
    """

    fractions: Mapping[str, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, fraction in self.fractions.items():
            check_analyst(name)
            if not 0 < fraction <= 1:
                raise ConfigError(f"the share of {name} must lie above 0 and at most 1, not {in_words(fraction)}")
        if self.total > 1:
            raise ConfigError(f"the shares are {in_words(self.total)} together, and there is one budget only")
        object.__setattr__(self, "fractions", dict(sorted(self.fractions.items())))

    @staticmethod
    def of(numbers: Mapping[str, float]) -> Shares:
        """Shares as a config writes them."""
        return Shares({name: Fraction(str(number)) for name, number in numbers.items()})

    @property
    def total(self) -> Fraction:
        """The sum of all shares."""
        return sum(self.fractions.values(), Fraction(0))

    def beside(self, fraction: Fraction) -> Shares:
        """The same shares of what is left when `everyone` has been given a fraction of the whole budget."""
        smaller = {name: share * (1 - fraction) for name, share in self.fractions.items()}
        return Shares({EVERYONE: fraction, **smaller})

    def __getitem__(self, name: str) -> Fraction:
        return self.fractions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fractions)

    def __len__(self) -> int:
        return len(self.fractions)

    def __hash__(self) -> int:
        return hash(tuple(self.fractions.items()))

    def __str__(self) -> str:
        return ", ".join(f"{name} {in_words(fraction)}" for name, fraction in self.items()) or "none"


def check_analyst(name: str) -> None:
    """Names are shown in tables and messages: short, visible, without stray spaces."""
    if not name or name != name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
        raise ConfigError(
            f"the name of an analyst is printable text of 1 to {LONGEST_NAME} characters without spaces around it"
        )


def in_words(fraction: Fraction) -> str:
    """A fraction as people write it: 0.3, or 0.333333 where it has no short decimal form."""
    return f"{float(fraction):.6g}"


POLICIES = ("shared", "independent", "seeded-cache")
SCHEDULERS = ("none", "round-robin", "randomized")
LOGS = ("own", "all")
SEARCHERS = ("all", "owner")
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
class AnalystSettings:
    """How one budget is shared. The default: one budget, everybody sees what anybody has bought, no queue."""

    policy: str = "shared"  # one of POLICIES
    scheduler: str = "none"  # one of SCHEDULERS
    probabilities: Mapping[str, Fraction] | None = None  # of "randomized"; None: by share
    idle: float | None = None  # seconds without a question after which turns pass somebody over; None: turns wait
    shares: Shares = field(default_factory=Shares)
    seed: Seed | None = None  # where the policy is "seeded-cache"
    log: str = "own"  # one of LOGS: whose questions an analyst sees in the log
    discover: str = "all"  # one of SEARCHERS: whose questions may look for texts of open columns
    names: int | None = None  # texts of an open column that one analyst may be the first to name; None: half of all

    def names_of(self, capacity: int) -> int:
        """How many texts of an open column of this capacity one analyst may be the first to name."""
        return (capacity + 1) // 2 if self.names is None else self.names

    @property
    def accounts(self) -> Shares:
        """The shares as the ledger keeps them: where there is a seed, `everyone` has its fraction."""
        return self.shares if self.seed is None else self.shares.beside(self.seed.fraction)
