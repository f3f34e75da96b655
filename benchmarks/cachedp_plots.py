"""The figures of CacheDP's evaluation: Fig. 6 (curves), Fig. 7 (attributes) and Fig. 8 (ablation)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cachedp_run import Trace
from benchmarks.sheet import looks, sheet

Runs = Mapping[str, Sequence[Trace]]

WITHOUT = "cachedp-no-"
"""Begins the name of cachedp without one of its modules."""


def curves(file: Path, by_system: Runs) -> None:
    """Fig. 6: what is spent after each workload, mean and 95 % band; a run that has ended keeps what it has spent.

    Variants without a module are in Fig. 8.
    """
    with sheet(file, title=f"Epsilon spent after each workload ({file.stem})") as (axes,):
        for system, runs in by_system.items():
            if WITHOUT in system:
                continue
            spent = _padded([run.epsilon for run in runs])
            middle, at = spent.mean(axis=0), np.arange(1, spent.shape[1] + 1)
            (line,) = axes.plot(at, middle, label=system, **looks(system))
            if len(runs) > 1:
                band = 1.96 * spent.std(axis=0, ddof=1) / math.sqrt(len(runs))
                axes.fill_between(at, middle - band, middle + band, color=line.get_color(), alpha=0.2)
        axes.set(xlabel="workloads", ylabel="epsilon", yscale="log")


def by_attributes(file: Path, runs: Mapping[str, Trace]) -> None:
    """Fig. 7: rows in the log and runtime of the workloads with at most so many columns, one client."""
    with sheet(file, title="Rows in the log and time, by how many columns a workload has", columns=2) as axes:
        for system, run in runs.items():
            rows, seconds, columns = totals(run)
            axes[0].plot(columns, rows, marker="o", label=system, **looks(system))
            axes[1].plot(columns, seconds, marker="o", label=system, **looks(system))
        axes[0].set(xlabel="columns", ylabel="rows")
        axes[1].set(xlabel="columns", ylabel="CPU seconds")


def totals(run: Trace) -> tuple[list[int], list[float], list[int]]:
    """Rows bought and seconds taken by the workloads with at most 1, 2, ... columns, and these numbers."""
    columns = np.array(run.attributes)
    bought, seconds = np.diff(run.rows, prepend=0), np.array(run.cpu_s)
    numbers = list(range(1, int(columns.max()) + 1))
    within = [columns <= number for number in numbers]
    return [int(bought[some].sum()) for some in within], [float(seconds[some].sum()) for some in within], numbers


def ablation(file: Path, by_system: Runs) -> None:
    """Fig. 8: what cachedp and its variants without a module spend; nothing is drawn where there are none."""
    variants = {name: runs for name, runs in by_system.items() if name == "cachedp" or WITHOUT in name}
    if len(variants) < 2:
        return
    with sheet(file, title=f"Epsilon spent with and without a module ({file.stem})") as (axes,):
        spent = [float(np.mean([run.epsilon[-1] for run in runs])) for runs in variants.values()]
        axes.bar(range(len(variants)), spent)
        axes.set_xticks(range(len(variants)), list(variants), rotation=20, ha="right", rotation_mode="anchor")
        axes.set(ylabel="epsilon")


def _padded(series: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    longest = max(len(values) for values in series)
    return np.array([[*values, *[values[-1]] * (longest - len(values))] for values in series])
