"""The picture of `benchmarks.peers`: time, price and length of the script, by system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.harness import Figures

PANELS = {
    "processor ms per question": ("fresh_ms", "repeated_ms"),
    "seconds to the first answer": ("first_s", "first_wall_s"),
    "epsilon, all questions": ("epsilon_fresh", "epsilon_again"),
    "lines to write": ("lines",),
}


def bars(file: Path, figures: Figures) -> None:
    """One panel per subject, one group of bars per system; time per question on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn: Any = plt.subplots(1, len(PANELS), figsize=(5 * len(PANELS), 3.6))
    figure, axes = drawn
    for each, (title, keys) in zip(axes, PANELS.items(), strict=True):
        width = 0.8 / len(keys)
        for number, key in enumerate(keys):
            places = [place + number * width for place in range(len(figures))]
            each.bar(places, [row[key] for row in figures.values()], width=width, label=key)
        middle = (len(keys) - 1) * width / 2
        ticks = [place + middle for place in range(len(figures))]
        each.set(title=title, xticks=ticks)
        each.set_xticklabels(figures, rotation=20, ha="right")
        each.legend()
    axes[0].set_yscale("log")
    figure.savefig(file, dpi=120, bbox_inches="tight")
    plt.close(figure)
