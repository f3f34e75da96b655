"""A figure or table of one of the five papers, run here and set beside what the paper says.

    python -m benchmarks.paper cachedp fig6 [--quick] [--seeds 0 1 2] [--out DIR]
    python -m benchmarks.paper --list

The numbers of the papers are typed in from their texts (`paper_claims`), as far as these give numbers; curves that are
only drawn cannot be. Each line has what the paper says, what came out here, and `agrees`, or `differs` and why. With
--quick the benchmarks behind a figure run in a smaller setting, where many numbers cannot be the paper's; they are
shown, and the last column says so where they differ. With --out the comparison is drawn as PAPER-FIGURE.png and written
as CSV, beside the pictures of the benchmarks themselves. The last line is JSON, with the CPU minutes that it took.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Figures
from benchmarks.paper_claims import FIGURES, Claim, Found, PaperFigure
from benchmarks.sheet import sheet

COLUMNS = ("", "paper", "here", "")
WIDE = 30
"""Ends of an axis that are so many times apart have room for powers of ten alone."""

NO_NUMBERS = "the text gives no numbers; the benchmark's own table and pictures stand for it"


def run(figure: PaperFigure, args: argparse.Namespace) -> Found:
    """What the benchmarks behind a figure found, by the name of each."""
    found: Found = {}
    for words in figure.commands:
        out = [] if args.out is None else ["--out", str(args.out)]
        quick = ["--quick"] if args.quick else []
        seeds = ["--seeds", *map(str, args.seeds)]
        command = [sys.executable, "-m", f"benchmarks.{words[0]}", *words[1:], *quick, *seeds, *out]
        print(f"$ python {' '.join(command[1:])}", file=sys.stderr, flush=True)
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        table, _, line = ran.stdout.rstrip().rpartition("\n")
        print(table, file=sys.stderr, flush=True)
        told = json.loads(line)
        found[told["bench"]] = told["figures"]
        found.setdefault("data", {})[told["bench"]] = {told["data"]: 1.0}
    if figure.compute is not None:
        found["computed"] = figure.compute(args.quick)
        if figure.real is not None:
            found.setdefault("data", {})["computed"] = {"real" if figure.real() else "stand-in": 1.0}
    return found


def verdict(claim: Claim, here: float | None, *, quick: bool) -> str:
    """`agrees`, or `differs` and why."""
    if here is None:
        return "not in this run"
    low, high = claim.bounds
    if low <= here <= high:
        return "agrees"
    why = "this is a smaller run" if quick else claim.why or "not explained"
    return f"differs: {why}"


def compared(figure: PaperFigure, found: Found, *, quick: bool) -> list[tuple[Claim, float | None, str]]:
    lines = []
    for claim in figure.claims:
        try:
            here: float | None = float(claim.here(found))
        except (KeyError, ZeroDivisionError):
            here = None
        lines.append((claim, here, verdict(claim, here, quick=quick)))
    return lines


def table(lines: Sequence[tuple[Claim, float | None, str]]) -> list[list[str]]:
    return [[claim.what, claim.told, "" if here is None else f"{here:.4g}", said] for claim, here, said in lines]


def draw(file: Path, figure: PaperFigure, lines: Sequence[tuple[Claim, float | None, str]]) -> None:
    """Every line on a logarithmic axis: what the paper says as a bar or an arrow, what came out here as a dot."""
    from matplotlib.ticker import NullFormatter

    shown = [(claim, here) for claim, here, _ in lines if here is not None and here > 0]
    with sheet(file, title=f"{figure.paper} {figure.name}: {figure.title}", width=8, height=1.2 + 0.3 * len(shown)) as (
        axis,
    ):
        for place, (claim, here) in enumerate(reversed(shown)):
            low, high = claim.bounds
            # A bound on one side goes on: it is drawn a little further than what came out.
            ends = low if low > 0 else here / 2, high if math.isfinite(high) else 2 * max(here, low)
            paper, ours = ("paper", "here") if place == 0 else ("", "")
            axis.plot(ends, [place, place], color="tab:gray", linewidth=5, alpha=0.4, label=paper)
            axis.plot([here], [place], "o", color="tab:blue", label=ours)
        axis.set(xscale="log", yticks=range(len(shown)), yticklabels=[claim.what for claim, _ in reversed(shown)])
        axis.tick_params(labelsize=7, which="both")
        low, high = axis.get_xlim()
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter("{x:g}" if high / low < WIDE else NullFormatter())


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
    parser.add_argument("figure", nargs="?")
    parser.add_argument("--list", action="store_true", help="one line per figure")
    parser.add_argument("--quick", action="store_true", help="a smaller setting")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--out", type=Path, default=None, help="folder for PNG and CSV files")
    args = parser.parse_args()
    if args.list or args.paper is None or args.figure is None:
        listed()
        return
    if (args.paper, args.figure) not in FIGURES:
        own = ", ".join(name for paper, name in FIGURES if paper == args.paper)
        raise SystemExit(f"{args.paper} has {own}")
    figure = FIGURES[args.paper, args.figure]
    found = run(figure, args)
    lines = compared(figure, found, quick=args.quick)
    print(f"{figure.paper} {figure.name}: {figure.title}")
    data = sorted({kind for kinds in found.pop("data", {}).values() for kind in kinds})
    print(f"data: {' and '.join(data) or 'none needed'}")
    show([COLUMNS, *table(lines)] if lines else [[NO_NUMBERS]])
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        stem = f"{args.paper}-{args.figure}"
        if lines:
            draw(args.out / f"{stem}.png", figure, lines)
        rows = [",".join(f'"{cell}"' for cell in row) for row in [COLUMNS, *table(lines)]]
        (args.out / f"{stem}.csv").write_text("\n".join(rows) + "\n")
    figures: Figures = {
        claim.what: {"here": here, "low": claim.bounds[0], "high": claim.bounds[1]}
        for claim, here, _ in lines
        if here is not None and all(map(math.isfinite, claim.bounds))
    }
    told = {"bench": f"paper/{args.paper}-{args.figure}", "quick": args.quick, "seeds": args.seeds}
    print(json.dumps({**told, "cpu_minutes": round(cpu_minutes(), 2), "figures": figures}))


if __name__ == "__main__":
    main()
