"""Runs one system of `benchmarks.peers` in an environment of its own: its first answer, and a list of questions."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bursar
from benchmarks.peers_setting import CONFIDENCE, SPANS, VALUES, WITHIN, Question, config

SCRIPTS = Path(__file__).with_name("peers_scripts")
BUDGET = 1000.0
"""Enough for every list of questions: what is compared is what they cost."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
MINUTES_TO_INSTALL = 10


@dataclass(frozen=True, kw_only=True)
class System:
    """A library that answers. The scripts are named after it; `wants` is what pip installs, nothing for Bursar.

    `alone` is installed beside that without what it requires itself.
    """

    name: str
    package: str
    module: str
    wants: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[Path, ...]:
        """What a user writes for a first answer."""
        files = (SCRIPTS / f"first_{self.name}{ending}" for ending in (".py", ".toml"))
        return tuple(file for file in files if file.is_file())


SYSTEMS = (
    System(name="bursar", package="bursar", module="bursar"),
    System(name="smartnoise", package="smartnoise-sql", module="snsql", wants=("smartnoise-sql",)),
    System(name="opendp_polars", package="opendp", module="opendp.prelude", wants=("opendp[polars]",)),
    System(name="opendp_vector", package="opendp", module="opendp.prelude", wants=("opendp[polars]",)),
    System(
        name="diffprivlib",
        package="diffprivlib",
        module="diffprivlib",
        wants=("diffprivlib", "scikit-learn<1.7", "pandas"),
    ),
)
"""diffprivlib 0.6.6 cannot be imported beside the newest scikit-learn, which its own requirements admit."""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A system that can be run."""

    system: System
    python: Path
    version: str


def install(system: System) -> Installed | str:
    """The system in its environment, which is kept in the user's cache; or why it cannot be installed or imported."""
    if not system.wants:
        return Installed(system=system, python=Path(sys.executable), version=bursar.__version__)
    home = _cache() / system.package
    stamp, wanted = home / "installed.txt", "\n".join([sys.version.split()[0], *system.wants, *system.alone])
    python = home / "bin" / "python"
    try:
        if not stamp.is_file() or stamp.read_text() != wanted:
            shutil.rmtree(home, ignore_errors=True)
            _quiet(sys.executable, "-m", "venv", str(home))
            _quiet(str(python), "-m", "pip", "install", "--quiet", *system.wants)
            if system.alone:
                _quiet(str(python), "-m", "pip", "install", "--quiet", "--no-deps", *system.alone)
            stamp.write_text(wanted)
        asked = f"import importlib.metadata as m, {system.module}; print(m.version({system.package!r}))"
        return Installed(system=system, python=python, version=_quiet(str(python), "-c", asked).strip())
    except subprocess.CalledProcessError as error:
        return (error.stderr.strip() or "no reason given").splitlines()[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def first_answer(installed: Installed, table: Path) -> dict[str, float]:
    """A new process that runs the user's script: seconds of processor and clock, imports included, and its charge."""
    with tempfile.TemporaryDirectory() as folder:
        _lay_out(Path(folder), table, SCRIPTS / "first_bursar.toml")
        start, before = time.perf_counter(), _seconds_of_children()
        printed = _run(installed, Path(folder), SCRIPTS / f"first_{installed.system.name}.py")
        spent = {"first_s": _seconds_of_children() - before, "first_wall_s": time.perf_counter() - start}
        return {**spent, "epsilon_first": charged(printed)}


def charged(printed: str) -> float:
    """The epsilon that a script for a first answer prints that it was charged."""
    found = re.search(r"\bepsilon +([0-9][0-9.e+-]*)", printed)
    if found is None:
        raise ValueError(f"no epsilon in what was printed:\n{printed}")
    return float(found[1])


def ask(installed: Installed, table: Path, asked: Sequence[Question]) -> dict[str, Any]:
    """What `loop.py` found: for each question, fresh and repeated, its time, charge and counts; and epsilon in all."""
    job = {
        "within": WITHIN,
        "confidence": CONFIDENCE,
        "budget": BUDGET,
        "values": VALUES,
        "spans": SPANS,
        "questions": [question.as_job() for question in asked],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "all.toml").write_text(config(BUDGET))
        _lay_out(folder, table, folder / "all.toml")
        (folder / "job.json").write_text(json.dumps(job))
        _run(installed, folder, SCRIPTS / "loop.py", installed.system.name, "job.json", "results.json")
        found: dict[str, Any] = json.loads((folder / "results.json").read_text())
        return found


def _lay_out(folder: Path, table: Path, toml: Path) -> None:
    shutil.copy(table, folder / "people.csv")
    shutil.copy(toml, folder / "bursar.toml")


def _run(installed: Installed, folder: Path, *words: str | Path) -> str:
    ours = {} if installed.system.wants else {"PYTHONPATH": str(Path(bursar.__file__).parents[1])}
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    command = [str(installed.python), *map(str, words)]
    ran = subprocess.run(command, cwd=folder, env={**clean, **ONE_THREAD, **ours}, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{ran.stderr}")
    return ran.stdout


def _quiet(*command: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    limit = 60 * MINUTES_TO_INSTALL
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=clean, timeout=limit)
    return done.stdout


def _cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "bursar-benchmarks"


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
