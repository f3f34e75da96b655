"""The figures of Pujol et al.: Fig. 1 (two analysts) and Fig. 3 (ten analysts, epsilon 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sheet import COLOURS, sheet

SHOWN = 1.0
"""The epsilon of Fig. 3, where it is among those that were run; else the middle one."""


def two_people(file: Path, chances: Sequence[float], found: Mapping[str, Sequence[tuple[float, float, float]]]) -> None:
    """Fig. 1: how many of Alice's and Bob's questions are answered, and the larger ratio error, by p."""
    with sheet(file, title="Two analysts: what each gets, by how often Bob asks what Alice does", columns=2) as axes:
        for name, points in found.items():
            alice, bob, worst = zip(*points, strict=True)
            colour = COLOURS[name]
            axes[0].plot(chances, alice, color=colour, label=f"{name}, Alice")
            axes[0].plot(chances, bob, linestyle="--", color=colour, label=f"{name}, Bob")
            axes[1].plot(chances, worst, color=colour, label=name)
        axes[0].set(xlabel="p", ylabel="answered")
        axes[1].set(xlabel="p", ylabel="max ratio error")


def by_chance(file: Path, chances: Sequence[float], found: Mapping[str, Sequence[Any]]) -> None:
    """Fig. 3: utility, max ratio error, interference and time to completion, by p."""
    measures = {
        "utility": lambda cell: float(cell.fairness.utility.sum()),
        "max ratio error": lambda cell: cell.fairness.ratio_error,
        "interference": lambda cell: cell.fairness.interference,
        "time to completion": lambda cell: cell.steps,
    }
    epsilons = sorted({cell.epsilon for cells in found.values() for cell in cells})
    shown = SHOWN if SHOWN in epsilons else epsilons[len(epsilons) // 2]
    with sheet(file, title=f"Ten analysts, epsilon {shown:g}", columns=4) as axes:
        for number, (system, cells) in enumerate(found.items()):
            for (label, measure), each in zip(measures.items(), axes, strict=True):
                own = [[measure(c) for c in cells if (c.epsilon, c.chance) == (shown, p)] for p in chances]
                places = [place + 0.13 * number for place in range(len(chances))]
                each.bar(
                    places,
                    [sum(values) / len(values) for values in own],
                    width=0.12,
                    color=COLOURS[system],
                    label=system,
                )
                each.set(title=label, xlabel="p", xticks=range(len(chances)), xticklabels=[f"{p:g}" for p in chances])
