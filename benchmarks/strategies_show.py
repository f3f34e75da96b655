"""Tables of the strategy benchmark: printed, and written as CSV and PNG where a folder is given."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.sheet import sheet

Rows = dict[str, dict[str, float]]


def show(title: str, rows: Rows, folder: Path | None, *, plain: tuple[str, ...] = ("cpu_s",)) -> None:
    """One table; `plain` columns are printed and written, and not drawn. A cell without a number stays empty."""
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    width = max(34, *(len(name) + 2 for name in rows))
    print(title)
    wide = {column: max(14, len(column) + 2) for column in columns}
    print(" " * width + "".join(f"{column:>{wide[column]}}" for column in columns))
    for name, row in rows.items():
        print(f"{name:{width}}" + "".join(f"{_number(row.get(c)):>{wide[c]}}" for c in columns))
    print(flush=True)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"strategies-{_slug(title)}"
    lines = [["", *columns], *([name, *(_plain(row.get(c)) for c in columns)] for name, row in rows.items())]
    text = "\n".join(",".join(f'"{cell}"' if "," in cell else cell for cell in line) for line in lines)
    file.with_suffix(".csv").write_text(text + "\n")
    _draw(title, rows, [c for c in columns if c not in plain], file.with_suffix(".png"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}" if 0.1 <= value < 1e6 else f"{value:.4g}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _slug(title: str) -> str:
    return re.sub("[^a-z0-9]+", "-", title.split(";")[0].lower()).strip("-")


def _draw(title: str, rows: Rows, columns: list[str], file: Path) -> None:
    with sheet(file, title=title, width=max(6.0, 0.9 * len(rows)), height=4.5) as (axes,):
        for number, column in enumerate(columns):
            places = [i + number * 0.8 / len(columns) for i, row in enumerate(rows.values()) if column in row]
            axes.bar(places, [row[column] for row in rows.values() if column in row], 0.8 / len(columns), label=column)
        middle = [i + 0.4 - 0.4 / len(columns) for i in range(len(rows))]
        axes.set_xticks(middle, list(rows), rotation=35, ha="right", rotation_mode="anchor")
        axes.set_yscale("log")
