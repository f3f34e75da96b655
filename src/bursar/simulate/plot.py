"""The figures of a comparison as a picture: one panel per measure, one bar per policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bursar.errors import Unsupported
from bursar.simulate.compare import Figures

PANELS = (
    ("answered", "questions answered", None),
    ("ratio_error", "maximum ratio error", 1.0),
    ("interference", "interference", 1.0),
    ("steps", "time to completion", None),
)


def check_matplotlib() -> None:
    """Refuse before anything is computed, where no picture can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise Unsupported("a picture needs matplotlib\ntry: pip install matplotlib, or leave --plot out") from None


def plot(figures: Sequence[Figures], path: Path) -> None:
    """Write the picture. Where a measure is infinite its bar ends at the top, and says so."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(12, 3.4), layout="constrained")
    names = [one.policy for one in figures]
    for axis, (measure, title, limit) in zip(picture.subplots(1, len(PANELS)), PANELS, strict=True):
        values = [float(getattr(one, measure)) for one in figures]
        top = 1.15 * max([value for value in values if math.isfinite(value)] + [limit or 0.0, 1.0])
        axis.bar(range(len(names)), [min(value, top) for value in values], color="#4c72b0")
        for place, value in enumerate(values):
            text = f"{value:.4g}" if math.isfinite(value) else "infinite"
            axis.annotate(text, (place, min(value, top)), ha="center", va="bottom", fontsize=8)
        if limit is not None:
            axis.axhline(limit, color="#c44e52", linewidth=1)
        axis.set_ylim(0, 1.1 * top)
        axis.set_title(title, fontsize=10)
        axis.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    try:
        picture.savefig(path, dpi=120)
    except (OSError, ValueError) as fault:
        raise Unsupported(f"the picture cannot be written: {getattr(fault, 'strerror', None) or fault}") from None
