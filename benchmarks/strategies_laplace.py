"""Laplace noise (Eigen-Design, Sec. 3.5): what the best weights of a basis gain, and how far strategies are from L2.

Gains are over the same basis with equal weights (for Fourier without the queries that are not needed); `possible` is
the gain that no weights can exceed, from the dual. The paper says 1.1 and 1.5 for wavelets on all and on random
ranges, and 1.6 for Fourier on low order marginals, and names no sizes: in one column there is less to gain, and with
more columns more. Errors are over the singular value bound, which is one for L2: no such bound is known for L1.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks import strategies_workloads as drawn
from benchmarks.strategies_show import Rows, show
from bursar.arrays import Reals
from bursar.papers.eigen_design import workloads
from bursar.papers.eigen_design.fourier import fourier, fourier_basis, wavelet
from bursar.papers.eigen_design.weights import query_weights
from bursar.strategies.hierarchical import identity, tree
from bursar.strategies.measure import pure_error, svd_bound
from bursar.strategies.p_identity import p_identity

NEEDED = 1e-9


def show_all(folder: Path | None, rng: np.random.Generator) -> None:
    show("Laplace: gains of weighted bases; and error over the L2 bound", gains(rng), folder)
    show("Laplace: all ranges; error over the L2 bound", strategies(), folder)


def gains(rng: np.random.Generator) -> Rows:
    found: Rows = {}
    for sizes in ((2048,), (16, 16, 8), (8, 8, 8, 4), (4,) * 5):
        name, basis = "x".join(map(str, sizes)), wavelet(*sizes)
        found[f"wavelet, all ranges {name}"] = _gain(workloads.all_ranges(*sizes), basis, basis)
        some = workloads.gram_of(drawn.random_ranges(sizes, rng))
        found[f"wavelet, random ranges {name}"] = _gain(some, basis, basis)
    for sizes, ways in (((16, 16, 8), 2), ((8, 8, 8, 4), 3), ((2,) * 11, 3)):
        name = "2^11" if len(sizes) == 11 else "x".join(map(str, sizes))
        low = workloads.marginals(sizes, [s for k in range(ways + 1) for s in workloads.ways(len(sizes), k)])
        found[f"fourier, up to {ways}-way {name}"] = _gain(low, fourier(low, sizes), fourier_basis(*sizes))
    return found


def strategies() -> Rows:
    found: Rows = {}
    for cells in (64, 256, 512):
        V = workloads.all_ranges(cells)
        made = {"p-identity": p_identity(V), "tree": tree(V, power=1), "wavelet": wavelet(cells)}
        made["identity"] = identity(cells)
        found[f"{cells} cells"] = {name: pure_error(V, A) / svd_bound(V) for name, A in made.items()}
    return found


def _gain(gram: Reals, even: Reals, basis: Reals) -> dict[str, float]:
    costs = np.einsum("ij,ij->i", basis @ gram, basis) / np.square(np.square(basis).sum(axis=1))  # orthogonal rows
    used = costs > NEEDED * costs.max()
    weights = query_weights(costs[used], np.abs(basis[used]), power=1, gap=1e-3)
    before, after = pure_error(gram, even), math.sqrt(weights.value)
    return {"gain": before / after, "possible": before / math.sqrt(weights.bound), "weighted": after / svd_bound(gram)}
