"""The sheet that figures of benchmarks are drawn on: it has a title, and legends stand beside the panels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def sheet(file: Path, *, title: str, columns: int = 1, width: float = 5.0, height: float = 3.6) -> Iterator[Any]:
    """The panels to draw on, in a row; written when they are drawn, with legends that cover nothing.

    Panels that say the same share one legend, beside the last of them.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, columns, figsize=(width * columns, height), squeeze=False, layout="constrained")
    try:
        yield axes[0]
        wider = legends(axes[0])
        figure.suptitle(title, fontsize=10)
        figure.set_size_inches(width * columns + 1.8 * wider, figure.get_size_inches()[1])
        figure.savefig(file, dpi=120)
    finally:
        pyplot.close(figure)


def legends(panels: Sequence[Any]) -> int:
    """A legend beside each panel that says something else than the next one; how many there are."""
    labels = [panel.get_legend_handles_labels()[1] for panel in panels]
    drawn = [
        panel for panel, own, after in zip(panels, labels, [*labels[1:], None], strict=True) if own and own != after
    ]
    for panel in drawn:
        panel.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return len(drawn)
