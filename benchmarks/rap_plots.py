"""Lines and heat maps for the figures of RAP's evaluation."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.sheet import looks, readable, sheet


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a panel, perhaps with half the width of an interval around each point."""

    x: Sequence[float]
    y: Sequence[float]
    half: Sequence[float] | None = None
    joined: bool = True  # points that are no curve, such as single runs, are not joined
    points: bool = True  # what is known everywhere, such as a model, is a line without points


Panels = Mapping[str, Mapping[str, Line]]


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What the axes of all panels are."""

    x: str
    y: str  # empty where each panel has another, which its title then is
    log: str = "xy"  # which of them are logarithmic


def titled(file: Path) -> str:
    """What a figure shows; files are named rap-DATA-FIGURE."""
    from benchmarks.claims import FIGURES  # not needed where nothing is drawn

    _, data, name = file.stem.split("-", 2)
    figure = FIGURES.get(("rap", name))
    return f"RAP {name}, {data}" + ("" if figure is None else f": {figure.title}")


def lines(file: Path, panels: Panels, axes: Axes) -> None:
    """A panel for each title, a line for each label."""
    with sheet(file, title=titled(file), columns=len(panels), width=4.4) as drawn:
        for place, (title, inside) in zip(drawn, panels.items(), strict=True):
            for label, line in inside.items():
                how = looks(label) | ({} if line.joined else {"linestyle": "none"})
                point = "o" if line.points else ""
                place.errorbar(line.x, line.y, line.half, marker=point, markersize=3, capsize=2, label=label, **how)
            place.set(xlabel=axes.x, ylabel=axes.y or title, title=title if axes.y else "")
            place.set_xscale("log" if "x" in axes.log else "linear")
            place.set_yscale("log" if "y" in axes.log else "linear")


def heat(file: Path, panels: Mapping[str, Mapping[tuple[int, int], float]]) -> None:
    """Figs. 3, 4 and 8: present error at each (T, K), white where it was not run; one scale for all panels."""
    from matplotlib.colors import LogNorm

    every = [error for errors in panels.values() for error in errors.values()]
    with sheet(file, title=titled(file), columns=len(panels), width=4.4) as drawn:
        for place, (title, errors) in zip(drawn, panels.items(), strict=True):
            rounds, picks = (sorted({pair[side] for pair in errors}) for side in (0, 1))
            table = grid(errors, rounds, picks)
            image = place.imshow(
                table, cmap="Wistia", origin="lower", aspect="auto", norm=LogNorm(min(every), max(every))
            )
            for (row, column), value in np.ndenumerate(table):
                if not np.isnan(value):
                    place.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize=7)
            place.set(xlabel="K", ylabel="T", title=title)
            place.set_xticks(range(len(picks)), picks)
            place.set_yticks(range(len(rounds)), rounds)
        scale = place.figure.colorbar(image, ax=drawn, label="present error")
        readable([scale.ax])


def grid(errors: Mapping[tuple[int, int], float], rounds: Sequence[int], picks: Sequence[int]) -> NDArray[np.float64]:
    """A line for each T and a column for each K."""
    return np.array([[errors.get((t, k), np.nan) for k in picks] for t in rounds])


def bars(file: Path, panels: Mapping[str, Sequence[float]], axes: Axes) -> None:
    """Fig. 10: a bar for each feature."""
    with sheet(file, title=titled(file), columns=len(panels), width=4.4) as drawn:
        for place, (title, heights) in zip(drawn, panels.items(), strict=True):
            place.bar(range(1, len(heights) + 1), heights)
            place.set(xlabel=axes.x, ylabel=axes.y, title=title)


def write(file: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """The numbers behind a figure."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, names)
        writer.writeheader()
        writer.writerows(rows)


def page(folder: Path | None, name: str, panels: Panels, axes: Axes) -> None:
    """A figure of lines and the numbers behind it, where there is a folder for them."""
    if folder is not None:
        lines(folder / f"{name}.png", panels, axes)
        write(folder / f"{name}.csv", of_panels(panels, axes))


def heat_page(folder: Path | None, name: str, panels: Mapping[str, Mapping[tuple[int, int], float]]) -> None:
    """The same for heat maps."""
    if folder is not None:
        heat(folder / f"{name}.png", panels)
        points = [(title, pair, error) for title, errors in panels.items() for pair, error in errors.items()]
        write(
            folder / f"{name}.csv",
            [{"panel": title, "T": t, "K": k, "present_error": error} for title, (t, k), error in points],
        )


def of_panels(panels: Panels, axes: Axes) -> list[dict[str, object]]:
    """The points of all lines, one below the other."""
    return [
        {"panel": title, "line": label, axes.x: x, axes.y or "value": y}
        | ({} if line.half is None else {"half_interval": line.half[i]})
        for title, inside in panels.items()
        for label, line in inside.items()
        for i, (x, y) in enumerate(zip(line.x, line.y, strict=True))
    ]
