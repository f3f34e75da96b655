"""The sheet that figures of benchmarks are drawn on: it has a title, and legends stand beside the panels.

A system has the same colour in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLOURS = {
    "default": "tab:brown",
    "default-many": "rosybrown",
    "laplace": "tab:gray",
    "exact-cache": "tab:olive",
    "exact-cache-window": "tab:olive",
    "exact-cache-tree": "darkkhaki",
    "apex": "tab:blue",
    "apex-cache": "tab:orange",
    "pioneer": "tab:green",
    "cachedp": "tab:red",
    "cachedp-profile": "tab:purple",
    "cachedp-quads": "tab:pink",
    "pmw": "tab:cyan",
    "pmw-bypass": "navy",
    "boost": "navy",
    "boost-cold": "cornflowerblue",
    "boost-warm-all": "teal",
    "boost-printed": "mediumorchid",
    "package-boost": "black",
    "package-boost-cold": "slategray",
    "package-boost-profile": "deeppink",
    "independent": "tab:gray",
    "seeded-cache": "tab:red",
    "round-robin": "tab:green",
    "randomized": "tab:olive",
    "rap": "tab:blue",
    "rap (opt)": "tab:orange",
    "all-zero": "tab:green",
    "gaussian-naive": "tab:red",
    "gaussian": "tab:purple",
    "rap-nonadaptive": "tab:pink",
    "unfiltered, runs": "tab:blue",
    "unfiltered, model": "tab:blue",
    "filtered, runs": "tab:orange",
    "filtered, model": "tab:orange",
}
"""Of systems, the same in every figure; two papers may use one colour for systems that never meet."""

UNDER = {"all-zero", "rap (opt)", "cachedp-profile", "exact-cache-tree", "package-boost", "package-boost-profile"}
"""Systems that often lie upon another one, and are dashed so that both can be seen."""

FEWEST, MOST = 4, 8
"""Labels on a logarithmic axis."""


def looks(system: str) -> dict[str, str]:
    """How the line of a system is drawn; what is no system takes the next colour."""
    colour = {"color": COLOURS[system]} if system in COLOURS else {}
    return colour | {"linestyle": "--" if system in UNDER else "-"}


def places(low: float, high: float) -> list[float]:
    """Round numbers within the ends of a logarithmic axis, as few as tell its scale."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)):
        inside = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
        if len(inside) >= FEWEST:
            return inside[:: math.ceil(len(inside) / MOST)]
    from matplotlib.ticker import MaxNLocator

    return [place for place in MaxNLocator(5).tick_values(low, high).tolist() if low <= place <= high]


def readable(panels: Sequence[Any]) -> None:
    """Plain numbers on logarithmic axes: 0.5 instead of 5 x 10^-1, and none upon another."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    for panel in panels:
        for axis, ends in ((panel.xaxis, panel.get_xlim()), (panel.yaxis, panel.get_ylim())):
            if axis.get_scale() == "log":
                axis.set_major_locator(FixedLocator(places(*sorted(ends))))
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter(NullFormatter())


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
        readable(axes[0])
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
