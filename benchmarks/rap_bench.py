"""What every part of RAP's evaluation is given, and how it asks for runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from benchmarks.rap_data import DATA, Coded
from benchmarks.rap_grids import Grid, Pairs
from benchmarks.rap_run import Outcome, Setting, sets_of
from benchmarks.rap_store import Runs, averaged
from benchmarks.rap_workloads import queries

MOST_QUERIES = {"rap": 2**25, "rap-nonadaptive": 2**25}
"""What the kernel picks from; and what can be projected onto in a few gigabytes."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One call of the program."""

    data: str
    grid: Grid
    seeds: tuple[int, ...]
    out: Path | None
    runs: Runs
    seconds: float = math.inf  # see `Setting`

    def figure(self, name: str) -> str:
        """The name of a figure's files."""
        return f"rap-{self.data}-{name}"

    @cached_property
    def table(self) -> Coded:
        return DATA[self.data]()

    def can(self, setting: Setting) -> bool:
        """Whether the system takes so many queries, for every seed."""
        most = MOST_QUERIES.get(setting.system)
        return most is None or all(
            queries(self.table, sets_of(replace(setting, seed=seed), self.table)) <= most for seed in self.seeds
        )

    def each(self, settings: Sequence[Setting]) -> dict[Setting, list[Outcome]]:
        """The outcomes of every setting, one for each seed."""
        by_seed = {setting: [self._seeded(setting, seed) for seed in self.seeds] for setting in settings}
        known = self.runs([one for many in by_seed.values() for one in many])
        return {setting: [known[one] for one in many] for setting, many in by_seed.items()}

    def _seeded(self, setting: Setting, seed: int) -> Setting:
        """Only what is stopped has a time limit: other runs are the same on every grid."""
        limit = self.seconds if setting.system == "rap-nonadaptive" else math.inf
        return replace(setting, seed=seed, seconds=limit)

    def mean(self, settings: Sequence[Setting]) -> dict[Setting, Outcome]:
        """The mean over the seeds of every setting."""
        return {setting: averaged(outcomes) for setting, outcomes in self.each(settings).items()}


def over_pairs(setting: Setting, pairs: Pairs) -> list[Setting]:
    """The setting at every (T, K)."""
    return [replace(setting, rounds=rounds, picks=picks) for rounds, picks in pairs]


def best(found: Mapping[Setting, Outcome], settings: Sequence[Setting], by: str = "max_error") -> Setting:
    """The (T, K) with the least error, chosen with hindsight as in the paper."""
    return min(settings, key=lambda setting: found[setting][by])


def shown(outcome: Outcome) -> dict[str, float]:
    """The figures of a table; those that a system does not have are left out."""
    names = ("max_error", "mean_error", "table_max_error", "tv", "cpu_s", "peak_mb", "queries_per_s", "answers_per_s")
    return {name: outcome[name] for name in names if name in outcome}
