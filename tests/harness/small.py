"""A small data set and an engine in front of it, in memory, for tests that need a whole engine quickly."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bursar.config import Config
from bursar.core.accounting import Noise
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Neighbours, Unit
from bursar.core.ledger import Ledger
from bursar.core.noise.system import Randomness, SystemRandomness
from bursar.planner.choose import Preset
from bursar.session import Bursar
from bursar.testing import CountsSource, stage

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=9, null=0),
        Categories(name="sex", values=("F", "M"), outside=0, null=0),
        Categories(name="region", values=("north", "south", "east"), outside=0, null=0),
    )
)


class TableSource(CountsSource):
    """Counts of the small data set, or of another one."""

    def __init__(self, counts: np.ndarray, domain: Domain = DOMAIN, content: str = "as it was") -> None:
        super().__init__(counts, domain, content)


class Silence:
    """Randomness without noise, for tests of everything else."""

    def draw(self, noise: Noise, size: int) -> np.ndarray:
        return np.zeros(size, np.int64)

    def refine(self, current: np.ndarray, before: Noise, after: Noise) -> np.ndarray:
        return np.zeros_like(current)

    def select(self, scores: np.ndarray, *, count: int, scale: float) -> np.ndarray:
        return np.argsort(-scores, kind="stable")[:count]

    def secret(self, size: int) -> bytes:
        return SystemRandomness().secret(size)


def counts(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 200, DOMAIN.sizes(DOMAIN.names))


def config(**changes: object) -> Config:
    facts: dict[str, object] = {
        "path": Path("small.toml"),
        "dataset": "small",
        "location": Path("small.csv"),
        "table": "people",
        "domain": DOMAIN,
        "unit": Unit(neighbours=Neighbours.ADD_REMOVE),
        "budget": Budget.of(epsilon=1.0),
        "max_rows": 100_000,
    }
    return Config(**{**facts, **changes})


def charter(settings: Config) -> object:
    return settings.charter


def engine(
    *,
    table: np.ndarray | None = None,
    settings: Config | None = None,
    ledger: Ledger | None = None,
    randomness: Randomness | None = None,
    preset: Preset | None = None,
    analyst: str = "ana",
) -> Bursar:
    """An engine on a memory ledger, with version 1 declared and every partition sealed."""
    settings = settings or config()
    source = TableSource(counts() if table is None else table, settings.domain)
    return stage(settings, lambda key: source, ledger=ledger, randomness=randomness, preset=preset, analyst=analyst)
