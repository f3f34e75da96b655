"""The same GROUP BY in Bursar and in other libraries: `python -m benchmarks.peers [--quick] [--seeds 0] [--out DIR]`.

Counts by one column of the 48,842 people of Adult, where another column lies in a range or has a value; the goal is
always that no group's count is off by more than 50, with 95 % confidence.

    bursar          SQL and the error; ledger on disk, budget enforced, answers reused
    smartnoise      SmartNoise SQL over a pandas frame, `row_privacy`, groups not censored
    opendp_polars   OpenDP's Context over a Polars frame, the groups given as keys
    opendp_vector   OpenDP's measurements on a list of values; the user filters, and adds up what it cost
    diffprivlib     a histogram of a pandas column; the user filters

The others get the least epsilon that reaches the goal with their noise (`peers_setting.epsilon_for`). Each library
runs in a virtual environment of its own, kept in the user's cache; one that cannot be installed is reported as missing.

    lines           what a user writes for a first answer, `peers_scripts/first_*`: lines that are not blank
    first_s         processor seconds from the start of the process to the first answer, imports included; median
    first_wall_s    the same by the clock
    fresh_ms        processor time of a question that was not asked before, all threads; median
    paid_ms         the same over the questions that were not free: Bursar answers some from what it bought before
    repeated_ms     processor time of the same question again; median
    epsilon_first   charged for the question of the first answer, when nothing was asked before
    epsilon_fresh   charged for all different questions together, mean over seeds
    epsilon_again   charged for asking all of them once more
    failure_rate    share of fresh answers with a group further off than the goal; at most .05 is asked for
    free            share of fresh questions that were free

Lines `bursar / X` are ratios. Targets: at most .5 for `fresh_ms` and .1 for `repeated_ms` against smartnoise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pandas as pd

from benchmarks.harness import Figures, options, report
from benchmarks.peers_plots import bars
from benchmarks.peers_run import SYSTEMS, Installed, ask, first_answer, install
from benchmarks.peers_setting import WITHIN, Question, lines_of, people, questions, truth, worst_error

QUESTIONS, QUICK_QUESTIONS = 40, 6
FIRST_ANSWERS, QUICK_FIRST_ANSWERS = 5, 1

OURS = "bursar"


def figures_of(runs: Sequence[Mapping[str, Any]], asked: Sequence[Sequence[Question]], frame: pd.DataFrame) -> Any:
    """One system's figures from what `ask` found, a run for every list of questions."""
    fresh = [one for run in runs for one in run["fresh"]]
    paid = [one["cpu_ms"] for one in fresh if one["charge"] > 0]
    exact = [truth(frame, question) for questions in asked for question in questions]
    errors = [worst_error(counts, one["counts"]) for counts, one in zip(exact, fresh, strict=True)]
    return {
        "fresh_ms": median(one["cpu_ms"] for one in fresh),
        "paid_ms": median(paid),
        "repeated_ms": median(one["cpu_ms"] for run in runs for one in run["repeated"]),
        "epsilon_fresh": fmean(sum(one["charge"] for one in run["fresh"]) for run in runs),
        "epsilon_again": fmean(sum(one["charge"] for one in run["repeated"]) for run in runs),
        "failure_rate": fmean(error > WITHIN for error in errors),
        "free": 1 - len(paid) / len(fresh),
    }


def ratios(figures: Figures) -> Figures:
    """Bursar over each of the others, wherever there is something to divide by."""
    ours = figures[OURS]
    kept = ("lines", "first_s", "first_wall_s", "fresh_ms", "paid_ms", "repeated_ms", "epsilon_first")
    compared = (*kept, "epsilon_fresh", "epsilon_again")
    return {
        f"{OURS} / {name}": {key: ours[key] / row[key] for key in compared if row.get(key)}
        for name, row in figures.items()
        if name != OURS
    }


def measure(present: Sequence[Installed], args: Any, frame: pd.DataFrame, table: Path) -> Figures:
    """Every system's figures; systems take turns, so that what else the machine does meets all of them."""
    number, firsts = (QUICK_QUESTIONS, QUICK_FIRST_ANSWERS) if args.quick else (QUESTIONS, FIRST_ANSWERS)
    asked = [questions(number, seed) for seed in args.seeds]
    first = [[first_answer(one, table) for one in present] for _ in range(firsts)]
    runs = [[ask(one, table, several) for one in present] for several in asked]
    figures: Figures = {}
    for place, one in enumerate(present):
        figures[one.system.name] = {
            "lines": float(lines_of(one.system.shown)),
            **{key: median(turn[place][key] for turn in first) for key in ("first_s", "first_wall_s", "epsilon_first")},
            **figures_of([turn[place] for turn in runs], asked, frame),
        }
    return figures


def main() -> None:
    args = options(__doc__ or "")
    frame, real = people()
    found = {system.name: install(system) for system in SYSTEMS}
    for name, one in found.items():
        print(f"{name:<14} {f'version {one.version}' if isinstance(one, Installed) else f'missing: {one}'}")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "people.csv"
        frame.to_csv(table, index=False)
        present = [one for one in found.values() if isinstance(one, Installed)]
        figures = measure(present, args, frame, table)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        bars(args.out / "peers.png", figures)
    missing: Figures = {f"{name} (missing)": {} for name, one in found.items() if isinstance(one, str)}
    report("peers", args, {**figures, **missing, **ratios(figures)}, data="real" if real else "stand-in")


if __name__ == "__main__":
    main()
