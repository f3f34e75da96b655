"""Runs that are done in processes of their own, and not twice where a folder remembers them."""

from __future__ import annotations

import csv
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from benchmarks.harness import at_once
from benchmarks.rap_data import is_real
from benchmarks.rap_run import KEY, MEASURED, Outcome, Setting, run


class Runs:
    """What has been run; with a folder, it is kept there, and a run that is there is not run again."""

    def __init__(self, folder: Path | None, data: str) -> None:
        self._known: dict[tuple[str, ...], Outcome] = {}
        kind = "real" if is_real(data) else "stand-in"
        self._file = None if folder is None else folder / f"rap-{data}-{kind}-runs.csv"
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._read(self._file)

    def __call__(self, settings: Sequence[Setting]) -> dict[Setting, Outcome]:
        """The outcomes of all settings; those that are not known yet are run now, and kept one by one."""
        missing = [setting for setting in dict.fromkeys(settings) if _key(setting) not in self._known]
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        with ThreadPoolExecutor(at_once()) as pool:
            jobs = {pool.submit(_alone, setting): setting for setting in missing}
            for done in as_completed(jobs):
                if done.exception() is None:
                    self._keep(jobs[done], done.result())
            for done in jobs:
                done.result()  # a run that failed says so when all others are kept
        return {setting: self._known[_key(setting)] for setting in settings}

    def _keep(self, setting: Setting, outcome: Outcome) -> None:
        self._known[_key(setting)] = outcome
        if self._file is not None:
            new = not self._file.exists()
            with self._file.open("a", newline="") as file:
                writer = csv.DictWriter(file, [*KEY, *MEASURED])
                if new:
                    writer.writeheader()
                writer.writerow(asdict(setting) | {name: repr(value) for name, value in outcome.items()})

    def _read(self, file: Path) -> None:
        if not file.exists():
            return
        with file.open(newline="") as opened:
            reader = csv.DictReader(opened)
            if reader.fieldnames != [*KEY, *MEASURED]:
                raise SystemExit(f"{file} has other columns than this program writes; use another folder")
            for row in reader:
                found = {name: float(row[name]) for name in MEASURED if row[name]}
                self._known[tuple(row[name] for name in KEY)] = found


def averaged(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean over seeds, of the figures that all of them have; memory is the largest."""
    names = [name for name in MEASURED if all(name in outcome for outcome in outcomes)]
    mean = {name: fmean(outcome[name] for outcome in outcomes) for name in names}
    return mean | {"peak_mb": max(outcome["peak_mb"] for outcome in outcomes)}


def _alone(setting: Setting) -> Outcome:
    """In a process that is made for it: so its memory is its own, and is given back."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run, setting).result()


def _key(setting: Setting) -> tuple[str, ...]:
    return tuple(str(value) for value in asdict(setting).values())
