"""The strategies that are compared, each as its information matrix X = A^T A, so that products stay small."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.papers.eigen_design.eigen_design import eigen_design
from bursar.papers.eigen_design.fourier import datacube, fourier, wavelet
from bursar.strategies.hierarchical import hierarchical
from bursar.strategies.measure import trace_error
from bursar.strategies.optimal import optimum

Reals = NDArray[np.float64]
QUOTED = 1e-4
"""The duality gap where figures are quoted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A workload, the sizes of its columns, and the sets of columns where it is about marginals."""

    gram: Reals
    sizes: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...] = ()


def _rows(strategy: Reals) -> Reals:
    return strategy.T @ strategy


def _product(sizes: Sequence[int], factor: Callable[[int], Reals]) -> Reals:
    made = np.ones((1, 1))
    for size in sizes:
        made = np.kron(made, _rows(factor(size)))
    return made


SYSTEMS: dict[str, Callable[[Case], Reals]] = {
    "default": lambda case: _rows(optimum(case.gram, gap=QUOTED).strategy),
    "eigen": lambda case: _rows(eigen_design(case.gram)),
    "wavelet": lambda case: _product(case.sizes, wavelet),
    "hierarchical": lambda case: _product(case.sizes, hierarchical),
    "identity": lambda case: np.eye(len(case.gram)),
    "fourier": lambda case: _rows(fourier(case.gram, case.sizes)),
    "datacube": lambda case: _rows(datacube(case.sizes, case.sets)),
}


def error(gram: Reals, information: Reals) -> float:
    """`measure.rms_error` from A^T A: its diagonal holds the squared column norms."""
    return math.sqrt(float(information.diagonal().max()) * trace_error(gram, information))


def deviations(queries: Reals, information: Reals) -> Reals:
    """The standard deviation of each query at noise one, per unit of sensitivity; X may have low rank."""
    values, vectors = np.linalg.eigh(information)
    kept = values > 1e-11 * values[-1]
    seen = queries @ (vectors[:, kept] / np.sqrt(values[kept]))
    return math.sqrt(float(information.diagonal().max())) * np.asarray(np.linalg.norm(seen, axis=1))
