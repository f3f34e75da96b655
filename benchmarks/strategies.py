"""How close strategies come to the least possible error: `python -m benchmarks.strategies [--quick] [--out DIR]`.

Each figure is a root mean square error over that of the singular value bound, which no strategy can beat; 1 is
perfect. `cpu_s_1024` is the CPU time, with one thread, to find the optimum for all ranges over 1024 cells to a gap of
1e-3. `union_1` and on: the error of a count at epsilon one, over marginals with Laplace noise (`strategies_marginals`).
`online_rho` and the figures beside it, for questions one at a time, are explained in `strategies_online`. Without
--quick also Figs. 1, 3, 4, 5 and Table 2 of the Eigen-Design paper are computed, and plotted into --out.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from benchmarks.harness import Figures, options, report
from benchmarks.strategies_marginals import unions
from benchmarks.strategies_online import in_one_thread
from benchmarks.strategies_systems import SYSTEMS, Case, error
from benchmarks.strategies_workloads import predicates, two_way
from bursar.papers.eigen_design import workloads
from bursar.strategies.measure import svd_bound

CUBE = (8, 8, 8, 4)
EVERYWHERE = ("default", "eigen", "wavelet", "hierarchical", "identity")
TIMED = """
import time
from bursar.strategies.optimal import optimum
from bursar.strategies.universal import all_ranges
V = all_ranges({cells})
start = time.process_time()
optimum(V, gap=1e-3)
print(time.process_time() - start)
"""


def cases(seed: int) -> dict[str, tuple[Case, tuple[str, ...]]]:
    """The workloads, and which strategies apply to them."""
    sets = tuple(two_way(CUBE))
    drawn = workloads.gram_of(predicates(512, np.random.default_rng(seed)))
    marginals = Case(gram=workloads.marginals(CUBE, sets), sizes=CUBE, sets=sets)
    return {
        "range_1024": (Case(gram=workloads.all_ranges(1024), sizes=(1024,)), EVERYWHERE),
        "range_32x32": (Case(gram=workloads.all_ranges(32, 32), sizes=(32, 32)), EVERYWHERE),
        "cdf_1024": (Case(gram=workloads.prefix(1024), sizes=(1024,)), EVERYWHERE),
        "marginals": (marginals, (*EVERYWHERE, "fourier", "datacube")),
        "predicates": (Case(gram=drawn, sizes=(512,)), (*EVERYWHERE, "fourier")),
    }


def ratios(seed: int) -> Figures:
    """Error over the bound, for every strategy on every workload it is for."""
    figures: Figures = {system: {} for system in SYSTEMS}
    for name, (case, applying) in cases(seed).items():
        bound = svd_bound(case.gram)
        for system in applying:
            figures[system][name] = error(case.gram, SYSTEMS[system](case)) / bound
    return figures


def cpu_seconds(cells: int) -> float:
    """In a process of its own: the number of threads is fixed when numpy is loaded."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    code = TIMED.format(cells=cells)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(ran.stdout)


def main() -> None:
    args = options(__doc__ or "")
    seed = args.seeds[0]
    figures = ratios(seed)
    figures["default"]["cpu_s_1024"] = cpu_seconds(1024)
    for system, found in (*unions(seed).items(), *in_one_thread(args).items()):
        figures.setdefault(system, {}).update(found)
    if not args.quick:
        from benchmarks.strategies_figures import paper_figures

        for cells in (512, 2048):
            figures["default"][f"cpu_s_{cells}"] = cpu_seconds(cells)
        paper_figures(args.out, np.random.default_rng(seed))
    report("strategies", args, figures, data="none needed")


if __name__ == "__main__":
    main()
