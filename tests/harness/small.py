"""A small data set and an engine in front of it, in memory, for tests that need a whole engine quickly."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bursar import presets
from bursar.config import Config
from bursar.core.accounting import Noise
from bursar.core.budget import Budget, charter_of
from bursar.core.curator import declare_version
from bursar.core.domain import Categories, Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.extensions.predicate import check_columns
from bursar.core.ledger import Ledger, MemoryLedger
from bursar.core.noise.system import Randomness, SystemRandomness
from bursar.core.queries import Predicate
from bursar.planner.choose import Preset
from bursar.session import Bursar

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=9, null=0),
        Categories(name="sex", values=("F", "M"), outside=0, null=0),
        Categories(name="region", values=("north", "south", "east"), outside=0, null=0),
    )
)


class TableSource:
    """A source over a full table of counts: the exact answers are known to the test."""

    def __init__(self, counts: np.ndarray, domain: Domain = DOMAIN, content: str = "as it was") -> None:
        self.counts, self.domain, self.stamp = counts, domain, content

    def fingerprint(self) -> str:
        return self.stamp

    def content(self) -> tuple[str, ...]:
        if self.domain.partition is None:
            return (self.stamp,)
        parts = np.moveaxis(self.counts, self.domain.place(self.domain.partition), 0)
        return tuple(f"{self.stamp} {part.ravel().tolist()}" for part in parts)

    def table(self, attrs: tuple[str, ...]) -> np.ndarray:
        gone = tuple(i for i, name in enumerate(self.domain.names) if name not in attrs)
        kept = [name for name in self.domain.names if name in attrs]
        return np.transpose(self.counts.sum(axis=gone), [kept.index(name) for name in attrs])

    def count(self, predicate: Predicate) -> int:
        check_columns(self.domain, predicate)
        return int(predicate.apply(self.table)[0])

    def close(self) -> None:
        pass


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
    return charter_of(
        dataset=settings.dataset,
        domain=settings.domain,
        unit=settings.unit,
        budget=settings.budget,
        max_rows=settings.max_rows,
    )


def engine(
    *,
    table: np.ndarray | None = None,
    settings: Config | None = None,
    ledger: Ledger | None = None,
    randomness: Randomness | None = None,
    preset: Preset = presets.default,
    analyst: str = "ana",
) -> Bursar:
    """An engine on a memory ledger, with version 1 declared and every partition sealed."""
    settings = settings or config()
    source = TableSource(counts() if table is None else table, settings.domain)
    randomness = randomness or SystemRandomness()
    if ledger is None:
        ledger = MemoryLedger(charter(settings))
        axis, last = PartitionAxis.of(settings.domain, settings.unit), settings.domain.partitions - 1
        declare_version(ledger, lambda key: source, randomness, axis=axis, through=last)
    return Bursar(
        settings, ledger, open_source=lambda key: source, randomness=randomness, analyst=analyst, preset=preset
    )
