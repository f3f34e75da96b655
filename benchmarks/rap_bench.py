"""What every part of RAP's evaluation is given, and how it asks for runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.rap_grids import Grid, Pairs
from benchmarks.rap_run import Outcome, Setting
from benchmarks.rap_store import Runs, averaged


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

    def each(self, settings: Sequence[Setting]) -> dict[Setting, list[Outcome]]:
        """The outcomes of every setting, one for each seed."""
        by_seed = {
            setting: [replace(setting, seed=seed, seconds=self.seconds) for seed in self.seeds] for setting in settings
        }
        known = self.runs([one for many in by_seed.values() for one in many])
        return {setting: [known[one] for one in many] for setting, many in by_seed.items()}

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
