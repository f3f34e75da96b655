"""A figure or table of one of the five papers, run here and set beside what the paper says.

    python -m benchmarks.paper cachedp fig6 [table3 ...] [--grid small] [--quick] [--seeds 0 1 2] [--out DIR]
    python -m benchmarks.paper --list

The numbers of the papers are typed in from their texts (`claims/`), as far as these give numbers; curves that are
only drawn cannot be. Each line has what the paper says, what came out here, and `agrees`, or `differs` and why. With
--quick the benchmarks behind a figure run in a smaller setting, where many numbers cannot be the paper's; they are
shown, and the last column says so where they differ. `--grid small` is between the two, for benchmarks that would take
hours: a line above the table says what was run. The parts of RAP, which take days in full, are run on the grid `stated`
unless the small one is asked for. With --out the comparison is drawn as PAPER-FIGURE.png and written
as CSV, beside the pictures of the benchmarks themselves. The last line of a figure is JSON, with the CPU minutes that
it took. Of several figures named together, benchmarks that they share run once.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from benchmarks.claims import FIGURES
from benchmarks.claims.claim import Claim, Found, PaperFigure
from benchmarks.harness import Figures
from benchmarks.sheet import sheet

COLUMNS = ("", "paper", "here", "")
GRIDS = {"cachedp": {"usual": "full", "small": "small"}, "rap": {"usual": "stated", "small": "small"}}
"""What --grid means to the benchmarks that have a choice of grids."""

NO_NUMBERS = "the text gives no numbers; the benchmark's own table and pictures stand for it"


Command = tuple[str, ...]
"""A benchmark with its options, without the systems that take part."""

Printed = dict[str, Any]
"""The JSON line of a benchmark."""


def apart(words: Command) -> tuple[Command, Command]:
    """A benchmark with its options, and the systems that take part in it; none where it has no choice of them."""
    at = words.index("--systems") if "--systems" in words else len(words)
    return words[:at], words[at + 1 :]


def run(figures: Sequence[PaperFigure], args: argparse.Namespace) -> dict[Command, Printed]:
    """What the benchmarks behind figures print, each run once with the systems of all figures that it is behind."""
    systems: dict[Command, dict[str, None]] = {}
    for figure in figures:
        for command, names in map(apart, figure.commands):
            systems.setdefault(command, {}).update(dict.fromkeys(names))
    return {command: run_benchmark(command, tuple(names), args) for command, names in systems.items()}


def run_benchmark(command: Command, systems: Command, args: argparse.Namespace) -> Printed:
    chosen = ["--systems", *systems] if systems else []
    out = [] if args.out is None else ["--out", str(args.out)]
    quick = ["--quick"] if args.quick else []
    grid = ["--grid", GRIDS[command[0]][args.grid]] if command[0] in GRIDS else []
    options = [*chosen, *grid, *quick, "--seeds", *map(str, args.seeds), *out]
    words = ["-m", f"benchmarks.{command[0]}", *command[1:], *options]
    print(f"$ python {' '.join(words)}", file=sys.stderr, flush=True)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True, check=True, env=environment)
    table, _, line = ran.stdout.rstrip().rpartition("\n")
    print(table, file=sys.stderr, flush=True)
    told: Printed = json.loads(line)
    return told


def grids_of(figure: PaperFigure, ran: dict[Command, Printed]) -> dict[str, str]:
    """The benchmarks behind a figure that ran on a part of their grids, and on which."""
    printed = [ran[apart(words)[0]] for words in figure.commands]
    return {told["bench"]: told["grid"] for told in printed if "grid" in told}


def found_for(figure: PaperFigure, ran: dict[Command, Printed], *, quick: bool) -> tuple[Found, list[str]]:
    """What came out here for one figure, and of which kinds its data are."""
    printed = [ran[apart(words)[0]] for words in figure.commands]
    found: Found = {told["bench"]: told["figures"] for told in printed}
    data = {told["data"] for told in printed}
    if figure.compute is not None:
        found["computed"] = figure.compute(quick)
        if figure.real is not None:
            data.add("real" if figure.real() else "stand-in")
    return found, sorted(data)


class Looked(dict[str, Figures]):
    """Figures of benchmarks that know which of them were looked at."""

    def __init__(self, found: Found) -> None:
        super().__init__(found)
        self.at: set[str] = set()

    def __getitem__(self, bench: str) -> Figures:
        self.at.add(bench)
        return super().__getitem__(bench)


def verdict(claim: Claim, here: float | None, *, quick: bool, grid: bool = False) -> str:
    """`agrees`, or `differs` and why; `grid` where what it looks at ran on a part of its grid."""
    if here is None:
        return "not in this run"
    low, high = claim.bounds
    if low <= here <= high:
        return "agrees"
    reasons = ["this is a smaller run"] if quick else [claim.why, "a part of the grid" if grid else ""]
    return f"differs: {'; '.join(filter(None, reasons)) or 'not explained'}"


def compared(
    figure: PaperFigure, found: Found, *, quick: bool, grids: Collection[str] = ()
) -> list[tuple[Claim, float | None, str]]:
    """Each claim with what came out here; `grids` names the benchmarks that ran on a part of theirs."""
    lines = []
    for claim in figure.claims:
        looked = Looked(found)
        try:
            here: float | None = float(claim.here(looked))
        except (KeyError, ZeroDivisionError):
            here = None
        lines.append((claim, here, verdict(claim, here, quick=quick, grid=not looked.at.isdisjoint(grids))))
    return lines


def table(lines: Sequence[tuple[Claim, float | None, str]]) -> list[list[str]]:
    return [[claim.what, claim.told, "" if here is None else f"{here:.4g}", said] for claim, here, said in lines]


def draw(file: Path, figure: PaperFigure, lines: Sequence[tuple[Claim, float | None, str]]) -> None:
    """Every line on a logarithmic axis: what agrees with the paper as a bar, what came out here as a dot.

    A bound on one side goes on: its bar reaches a little beyond itself and what came out, and ends in an arrow.
    """
    shown = [(claim, here) for claim, here, _ in lines if here is not None and here > 0]
    title = f"{figure.paper} {figure.name}: {figure.title}"
    with sheet(file, title=title, width=8, height=1.4 + 0.3 * len(shown)) as (axis,):
        for place, (claim, here) in enumerate(reversed(shown)):
            low, high = claim.bounds
            ends = low if low > 0 else min(here, high) / 2, high if math.isfinite(high) else 2 * max(here, low)
            paper, ours = ("agrees with\nthe paper", "here") if place == 0 else ("", "")
            axis.plot(ends, [place, place], color="silver", linewidth=6, solid_capstyle="butt", label=paper)
            for end, marker, goes_on in ((ends[0], "<", low <= 0), (ends[1], ">", math.isinf(high))):
                if goes_on:
                    axis.plot([end], [place], marker, color="silver", markersize=10, markeredgewidth=0)
            axis.plot([here], [place], "o", color="tab:blue", markersize=5, label=ours)
        axis.set(xscale="log", yticks=range(len(shown)), yticklabels=[claim.what for claim, _ in reversed(shown)])
        axis.set(ylim=(-0.6, len(shown) - 0.4))
        axis.tick_params(labelsize=7, which="both")


def show(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def listed() -> None:
    """One line per figure."""
    show([[figure.paper, figure.name, figure.title] for figure in FIGURES.values()])


def cpu_minutes() -> float:
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in spent) / 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paper", nargs="?", choices=sorted({paper for paper, _ in FIGURES}))
    parser.add_argument("figures", nargs="*", metavar="figure")
    parser.add_argument("--list", action="store_true", help="one line per figure")
    parser.add_argument("--quick", action="store_true", help="a smaller setting")
    parser.add_argument("--grid", choices=["usual", "small"], default="usual", help="how much of a grid is run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, default=None, help="folder for PNG and CSV files")
    args = parser.parse_args()
    if args.list or args.paper is None or not args.figures:
        listed()
        return
    own = [name for paper, name in FIGURES if paper == args.paper]
    if not set(args.figures) <= set(own):
        raise SystemExit(f"{args.paper} has {', '.join(own)}")
    figures = [FIGURES[args.paper, name] for name in args.figures]
    ran = run(figures, args)
    for figure in figures:
        tell(figure, ran, args)


def tell(figure: PaperFigure, ran: dict[Command, Printed], args: argparse.Namespace) -> None:
    """Print a figure beside its paper, and write it where that was asked for."""
    found, data = found_for(figure, ran, quick=args.quick)
    grids = grids_of(figure, ran)
    lines = compared(figure, found, quick=args.quick, grids=grids)
    print(f"{figure.paper} {figure.name}: {figure.title}")
    print(f"data: {' and '.join(data) or 'none needed'}")
    for bench, grid in grids.items():
        print(f"grid of {bench}: {grid}")
    show([COLUMNS, *table(lines)] if lines else [[NO_NUMBERS]])
    stem = f"{figure.paper}-{figure.name}"
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        if lines:
            draw(args.out / f"{stem}.png", figure, lines)
        rows = [",".join(f'"{cell}"' for cell in row) for row in [COLUMNS, *table(lines)]]
        (args.out / f"{stem}.csv").write_text("\n".join(rows) + "\n")
    figures: Figures = {
        claim.what: {"here": here, "low": claim.bounds[0], "high": claim.bounds[1]}
        for claim, here, _ in lines
        if here is not None and all(map(math.isfinite, claim.bounds))
    }
    told = {"bench": f"paper/{stem}", "quick": args.quick, "seeds": args.seeds}
    print(json.dumps({**told, "cpu_minutes": round(cpu_minutes(), 2), "figures": figures}))


if __name__ == "__main__":
    main()
