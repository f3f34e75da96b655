"""The figures of Boost's evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.boost_run import Trace
from benchmarks.harness import Figures
from benchmarks.sheet import looks, sheet

Runs = Mapping[str, Sequence[Trace]]


def curves(file: Path, by_system: Runs) -> None:
    """Figs. 3, 7, 8, 9 and 10: epsilon, a mean over the blocks, as questions come in; each line a mean over seeds."""
    with sheet(file, title=f"Epsilon spent as questions come in ({file.stem})") as (axes,):
        for system, runs in by_system.items():
            axes.plot(runs[0].at, np.mean([run.epsilon for run in runs], axis=0), label=system, **looks(system))
        axes.set(xlabel="questions", ylabel="epsilon", yscale="log")


def path_times(file: Path, by_system: Runs) -> None:
    """Fig. 10d: CPU time of an answer by the way it came."""
    bars = {
        f"{system}\n{path}": 1000 * seconds
        for system, runs in by_system.items()
        for path, seconds in per_path(runs).items()
    }
    with sheet(file, title=f"Time of an answer by its way ({file.stem})", height=0.3 * len(bars) + 1.2) as (axes,):
        axes.barh(list(bars), list(bars.values()))
        axes.set(xlabel="ms of CPU per question", xscale="log")
        axes.tick_params(axis="y", labelsize=6)


def per_path(runs: Sequence[Trace]) -> dict[str, float]:
    """Mean CPU seconds of a question, path by path."""
    paths = sorted({path for run in runs for path in run.paths})
    return {path: sum(run.cpu_s[path] for run in runs) / sum(run.paths[path] for run in runs) for path in paths}


def lines(file: Path, found: Figures, title: str, unit: str) -> None:
    """Fig. 7d and Question 5: the numbers of a table, a line for each of its columns."""
    with sheet(file, title=title) as (axes,):
        for column in dict.fromkeys(key for row in found.values() for key in row if "_over_" not in key):
            axes.plot(list(found), [row.get(column, np.nan) for row in found.values()], marker="o", label=column)
        axes.set_xticks(range(len(found)), list(found), rotation=60, ha="right", rotation_mode="anchor")
        axes.set(ylabel=unit)


def shares(runs: Sequence[Trace]) -> dict[str, float]:
    """How many questions went which way, a mean over the seeds."""
    paths = sorted({path for run in runs for path in run.paths})
    return {path: fmean(run.paths[path] for run in runs) for path in paths}
