"""The picture of `benchmarks.peers`: time, price and length of the script, by system."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness import Figures
from benchmarks.sheet import sheet

PANELS = {
    "processor ms per question": ("fresh_ms", "repeated_ms"),
    "seconds to the first answer": ("first_s", "first_wall_s"),
    "epsilon, all questions": ("epsilon_fresh", "epsilon_again"),
    "lines to write": ("lines",),
}


def bars(file: Path, figures: Figures) -> None:
    """One panel per subject, one group of bars per system; time per question on a logarithmic scale."""
    with sheet(file, title="Time, price and length of the script, by system", columns=len(PANELS)) as axes:
        for each, (title, keys) in zip(axes, PANELS.items(), strict=True):
            width = 0.8 / len(keys)
            for number, key in enumerate(keys):
                places = [place + number * width for place in range(len(figures))]
                each.bar(places, [row[key] for row in figures.values()], width=width, label=key)
            middle = (len(keys) - 1) * width / 2
            each.set_title(title, fontsize=9)
            ticks = [place + middle for place in range(len(figures))]
            each.set_xticks(ticks, list(figures), rotation=20, ha="right", rotation_mode="anchor")
        axes[0].set_yscale("log")
