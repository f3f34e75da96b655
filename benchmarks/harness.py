"""What all benchmarks share: options, tables, one JSON line at the end, and where data come from."""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Figures = dict[str, dict[str, float]]


def options(description: str, **extra: Mapping[str, Any]) -> argparse.Namespace:
    """The options that every benchmark has, and its own (`name={argparse keywords}`)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a smaller setting that ends within 50 seconds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="seeds of the workload, never of the noise")
    parser.add_argument("--out", type=Path, default=None, help="folder for CSV and PNG files")
    for name, keywords in extra.items():
        parser.add_argument(f"--{name}", **keywords)
    return parser.parse_args()


def data_folder() -> Path | None:
    """Where real data are: in $BURSAR_DATA, or, where that is not set, in `shared/data` beside the project.

    Edge cases: None where there is no such folder; benchmarks then generate a stand-in.
    """
    named = os.environ.get("BURSAR_DATA")
    home = Path(named) if named is not None else Path(__file__).parents[2] / "shared" / "data"
    return home if named != "" and home.is_dir() else None


def at_once() -> int:
    """How many runs are worked on side by side: two, or one where this process is bound to one processor."""
    return min(2, len(os.sched_getaffinity(0)))


def report(bench: str, args: argparse.Namespace, figures: Figures, *, data: str = "stand-in", grid: str = "") -> None:
    """Print which data were used and the table, write the CSV where a folder is given, end with the JSON line.

    `grid` says what a run on a smaller grid than the paper's has; it stands above the table and in the JSON line.
    """
    print(f"data: {data}")
    if grid:
        print(f"grid: {grid}")
    print("\n\n".join(_aligned(_table(block)) for block in _alike(figures)))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        text = "\n".join(",".join(line) for line in _table(figures))
        (args.out / f"{bench.replace('/', '-')}.csv").write_text(text + "\n")
    stated = {"grid": grid} if grid else {}
    told = {"bench": bench, "quick": args.quick, "seeds": args.seeds, "data": data, **stated}
    print(json.dumps({**told, "figures": figures}))


def _alike(figures: Figures) -> list[Figures]:
    """Rows one after the other that have a figure in common: others are another table."""
    blocks: list[Figures] = []
    for name, row in figures.items():
        if not blocks or not any(key in earlier for earlier in blocks[-1].values() for key in row):
            blocks.append({})
        blocks[-1][name] = row
    return blocks


def _table(figures: Figures) -> list[list[str]]:
    columns = list(dict.fromkeys(key for row in figures.values() for key in row))
    return [["", *columns], *([name, *(_number(row.get(c)) for c in columns)] for name, row in figures.items())]


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    first, *others = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([line[0].ljust(first), *map(str.rjust, line[1:], others)] for line in lines)
    return "\n".join("  ".join(line) for line in padded)


def per_second(work: Callable[[int], object], items: Sequence[int]) -> float:
    """How many of the items are done per second of wall clock."""
    start = time.perf_counter()
    for item in items:
        work(item)
    return len(items) / (time.perf_counter() - start)


def peak_mb() -> float:
    """The most memory this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
