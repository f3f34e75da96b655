"""Figures that others have published, or that were noted of their code: quoted with their source, not measured here.

`python -m benchmarks.published` prints them.
"""

from __future__ import annotations

from benchmarks.strategies_show import Rows, show

EIGEN_DESIGN = "Li and Miklau, An Adaptive Mechanism for Accurate Query Answering under Differential Privacy"

TABLE_2: Rows = {
    "1-D ranges, permuted": {
        "absolute, best": 9.62,
        "worst": 13.16,
        "bound/error": 0.99,
        "rel., best": 1.51,
        "rel., worst": 2.43,
    },
    "1-way range marginals": {
        "absolute, best": 1.30,
        "worst": 7.69,
        "bound/error": 0.98,
        "rel., best": 1.36,
        "rel., worst": 4.93,
    },
    "2-way range marginals": {
        "absolute, best": 1.63,
        "worst": 3.23,
        "bound/error": 0.95,
        "rel., best": 1.81,
        "rel., worst": 2.38,
    },
    "CDF": {"absolute, best": 1.01, "worst": 1.01, "bound/error": 0.80, "rel., best": 0.46, "rel., worst": 0.54},
    "predicates": {"absolute, best": 1.39, "worst": 1.94, "bound/error": 1.00, "rel., best": 1.42, "rel., worst": 3.55},
}
"""Errors of the best and the worst competitor over that of Eigen-Design, and the bound over its error (Table 2)."""

SECTION_5: Rows = {
    "ranges: Eigen-Design over the best competitor, reduction": {"from": 1.2, "to": 2.1},
    "ranges: the same, relative error": {"from": 1.3, "to": 1.5},
    "marginals: reduction": {"from": 1.3, "to": 2.2},
    "marginals: the same, relative error": {"from": 1.1, "to": 2.7},
    "groups of 16, 8192 cells: ranges, marginals": {"from": 1.05, "to": 1.11},
    "6 % principal vectors, 8192 cells: marginals, ranges": {"from": 1.0, "to": 1.10},
    "wavelet or Fourier as design queries, ranges": {"from": 1.2},
    "the same, permuted ranges: more than": {"from": 4.0},
    "Laplace, weighted wavelet: all ranges, random ranges": {"from": 1.1, "to": 1.5},
    "Laplace, weighted Fourier, low order marginals": {"from": 1.6},
}
"""Stated in Secs. 3.5 and 5."""

SECONDS: Rows = {
    "HDMM, convex template": {"512 cells": 2.6, "1024 cells": 20},
    "jax_privacy": {"512 cells": 11},
    "COA, from": {"512 cells": 51},
    "COA, to": {"512 cells": 148},
    "ResidualPlanner's reference code": {"3-way of 100": 10},
}
"""CPU seconds on a machine that is not named: all ranges, and all marginals over up to 3 of 100 columns.

They are notes of single runs, not figures of the packages' papers, and were not repeated here.
"""


def published() -> dict[str, Rows]:
    """All quoted tables, each with its source in the title."""
    return {
        f"Quoted, not measured here: Table 2; {EIGEN_DESIGN}": TABLE_2,
        f"Quoted, not measured here: Secs. 3.5 and 5; {EIGEN_DESIGN}": SECTION_5,
        "Quoted, not measured here: CPU seconds of other packages; notes of single runs, unpublished": SECONDS,
    }


def main() -> None:
    for title, rows in published().items():
        show(title, rows, None)


if __name__ == "__main__":
    main()
