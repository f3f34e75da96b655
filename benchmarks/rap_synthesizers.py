"""Our synthetic tables beside those of AIM and MST: six columns of Adult, ten marginals over three of them.

All have the same rho, that of epsilon 1 or 10, and a row may be added or removed. `aim` is AIM as `rap_aim` has it;
`aim-package` and `mst` are those of SmartNoise, in an environment of their own, as in `benchmarks.peers`. `tv`,
`mean_error` and `table_max_error` are of the workload; `others_tv` is of the ten sets of three that nobody asked for,
`pairs_tv` of all pairs. `auc` is that of a logistic regression for income that was trained on the table and is tested
on the last third of the real rows; `real` is trained on the first two thirds.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata

from benchmarks.harness import Figures
from benchmarks.peers_run import ONE_THREAD, SCRIPTS, Installed, System, install
from benchmarks.rap_aim import aim
from benchmarks.rap_bench import Bench
from benchmarks.rap_data import DATA, Coded, Codes
from benchmarks.rap_measures import Reals, of_table
from benchmarks.rap_run import own_peak_mb
from benchmarks.rap_workloads import Sets, uniform
from benchmarks.rap_world import World, budget_of
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours

COLUMNS = ("workclass", "education", "marital-status", "relationship", "sex", "income")
LABEL = "income"
EPSILONS, MARGINALS = (1.0, 10.0), 10

SYNTH = System(
    name="smartnoise_synth",
    package="smartnoise-synth",
    module="snsynth.aim",
    wants=("mbi<2", "disjoint-set", "smartnoise-sql", "Faker", "pytz"),
    alone=("smartnoise-synth",),
)
"""Without what it requires for neural networks, which neither AIM nor MST uses."""

CPU_SECONDS = {"mst": 60.0, "aim-package": 1200.0}
"""What a run of a package may take; where the benchmark's limit is lower, it is not begun."""


Made = tuple[Codes, float, float]
"""A table, and the seconds and megabytes that it took."""


def synthesizers(bench: Bench) -> Figures:
    """Means over the seeds, each of which has a workload of its own."""
    if bench.data != "adult":
        return {}
    data = six_columns(DATA["adult"]())
    makers = {"default": _default, "aim": _aim, **_packages(bench.seconds)}
    figures: Figures = {}
    for epsilon in EPSILONS:
        for name, make in makers.items():
            runs = []
            for seed in bench.seeds:
                sets = uniform(data, 3, MARGINALS, seed)
                runs.append(_judged(data, sets, *make(data, sets, budget_of(epsilon, data.rows), seed)))
            figures[f"six columns eps={epsilon:g} {name}"] = {key: fmean(run[key] for run in runs) for key in runs[0]}
    return figures | {"six columns real": {"auc": auc(data, data.codes[: _trained(data)])}}


def _packages(limit: float) -> dict[str, Callable[[Coded, Sets, Budget, int], Made]]:
    """Those that can be installed and may take as long as they do."""
    found = {}
    for name, seconds in CPU_SECONDS.items():
        installed = install(SYNTH) if seconds <= limit else f"it takes up to {seconds:g} seconds of CPU"
        if isinstance(installed, str):
            print(f"{name} is left out: {installed}")
        else:
            found[name] = partial(_package, installed, name)
    return found


def six_columns(data: Coded) -> Coded:
    """The columns of this comparison."""
    at = [data.names.index(name) for name in COLUMNS]
    sizes = tuple(data.sizes[place] for place in at)
    return Coded(name=data.name, names=COLUMNS, sizes=sizes, codes=data.codes[:, at], real=data.real)


def auc(data: Coded, table: Codes) -> float:
    """The chance that of two real people with different labels the model of a table ranks the right one higher."""
    label = data.names.index(LABEL)
    features = [place for place in range(data.features) if place != label]
    sizes = [data.sizes[place] for place in features]
    model = _logistic(_one_hot(table[:, features], sizes), table[:, label] == 1, sum(sizes))
    tested = data.codes[_trained(data) :]
    ranks = rankdata(model[_one_hot(tested[:, features], sizes)].sum(axis=1))
    rich = tested[:, label] == 1
    pairs = int(rich.sum()) * int((~rich).sum())
    return float((ranks[rich].sum() - rich.sum() * (rich.sum() + 1) / 2) / pairs)


def _trained(data: Coded) -> int:
    return 2 * data.rows // 3


def _one_hot(codes: Codes, sizes: Sequence[int]) -> Codes:
    """For every row the places of its ones among all values of all columns."""
    starts: Codes = codes + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return starts


def _logistic(ones: Codes, labels: np.ndarray, values: int, ridge: float = 1.0) -> Reals:
    """The coefficients of a logistic regression, of every value one."""

    def loss(coefficients: Reals) -> tuple[float, Reals]:
        scores = coefficients[ones].sum(axis=1)
        slope = 1 / (1 + np.exp(-scores)) - labels
        gradient = np.bincount(ones.ravel(), np.repeat(slope, ones.shape[1]), minlength=values)
        fit = float(np.logaddexp(0, scores).sum() - scores[labels].sum())
        return fit + ridge / 2 * float(coefficients @ coefficients), gradient + ridge * coefficients

    found: Reals = minimize(loss, np.zeros(values), jac=True, method="L-BFGS-B").x
    return found


def _default(data: Coded, sets: Sets, budget: Budget, seed: int) -> Made:
    from bursar.synthetic.marginals.answers import Allowance
    from bursar.synthetic.table.table import synthesize

    neighbours = Neighbours.ADD_REMOVE
    world = World(data, budget, sequential=False, neighbours=neighbours)
    start = time.process_time()
    with world.grant() as grant:
        allowance = Allowance(spend=world.spend, neighbours=neighbours)
        made = synthesize(world.names(sets), grant, world.domain, budget=allowance, rows=data.rows)
    return made.codes.astype(np.int64), time.process_time() - start, own_peak_mb()


def _aim(data: Coded, sets: Sets, budget: Budget, seed: int) -> Made:
    start = time.process_time()
    made = aim(data, sets, budget.amount, np.random.default_rng(seed))
    return made, time.process_time() - start, own_peak_mb()


def _package(installed: Installed, name: str, data: Coded, sets: Sets, budget: Budget, seed: int) -> Made:
    with tempfile.TemporaryDirectory() as folder:
        job, table = Path(folder) / "job.npz", Path(folder) / "table.npy"
        np.savez(job, codes=data.codes, sizes=np.array(data.sizes), sets=np.array(sets), rho=budget.amount)
        script = SCRIPTS / f"table_{installed.system.name}.py"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [str(installed.python), str(script), name.partition("-")[0], str(job), str(table)]
        subprocess.run(command, check=True, capture_output=True, env=ONE_THREAD)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return np.load(table), cpu, after.ru_maxrss / 1024


def _judged(data: Coded, sets: Sets, table: Codes, cpu: float, peak: float) -> dict[str, float]:
    asked = of_table(data, sets, 3, table)
    others = tuple(features for features in combinations(range(data.features), 3) if features not in sets)
    return {
        "table_max_error": asked.max_error,
        "mean_error": asked.mean_error,
        "tv": asked.tv,
        "others_tv": of_table(data, others, 3, table).tv,
        "pairs_tv": of_table(data, tuple(combinations(range(data.features), 2)), 2, table).tv,
        "auc": auc(data, table),
        "cpu_s": cpu,
        "peak_mb": peak,
    }
