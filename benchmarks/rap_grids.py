"""What Tables 3 to 5 of the RAP paper vary, and the smaller grids of `--grid stated`, `--grid small` and `--quick`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

SYSTEMS = ("all-zero", "gaussian-naive", "gaussian", "rap-nonadaptive", "rap", "default")
"""In the order of the tables."""

Pairs = tuple[tuple[int, int], ...]


def pairs(rounds: Sequence[int], picks: Sequence[int]) -> Pairs:
    """Every (T, K)."""
    return tuple(product(rounds, picks))


EVERY_PAIR = pairs((1, 4, 16, 64), (4, 16, 64, 256))
FEW_PAIRS: Pairs = ((4, 4), (16, 4), (4, 16))
BAND: Pairs = ((1, 16), (1, 64), (4, 4), (4, 16), (4, 64), (16, 4), (16, 16))
"""Where the best (T, K) of all of Table 3 are: the diagonal band and its neighbours."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The values that a part runs through."""

    sizes: tuple[int, ...]  # |W|, or |W_H|
    epsilons: tuple[float, ...] = (0.1,)
    pairs: Pairs = EVERY_PAIR
    rows: tuple[int, ...] = (1000,)  # n'
    least: tuple[int, ...] = (3,)  # r
    k: int = 3
    distributions: tuple[str, ...] = ("uniform", "zipf", "geometric")
    future: int = 0  # thresholds drawn for the future

    def __str__(self) -> str:
        """What it varies, for the line above a table."""
        told = {
            "|W|": self.sizes,
            "epsilon": [f"{epsilon:g}" for epsilon in self.epsilons],
            "(T, K)": [f"({t}, {k})" for t, k in self.pairs],
            "n'": self.rows,
        }
        told |= {"thresholds drawn for the future": [self.future]} if self.future else {}
        return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in told.items())


FULL: dict[str, Grid] = {
    "tables": Grid(sizes=(1, 4, 16, 64, 256), epsilons=(0.01, 0.1, 1.0)),
    "filter": Grid(sizes=(1, 2, 4, 8, 16, 32, 64), epsilons=(0.01, 0.1, 1.0)),
    "thresholds": Grid(sizes=(1, 4, 16, 64, 256), epsilons=(0.1, 1.0), rows=(500, 1000, 2000), least=(1, 2, 3, 4), k=4),
    "partial": Grid(sizes=(1, 4, 16, 64, 256, 1024), least=(1,), future=1024),
    "runtime": Grid(sizes=(1, 4, 16, 64, 256, 364), pairs=((16, 4),)),
    "training": Grid(sizes=(4,), pairs=((4, 16),), least=(1,), distributions=("uniform", "geometric"), future=64),
    "rounding": Grid(sizes=(4, 16, 64), epsilons=(0.1, 1.0), pairs=((16, 4),)),
}
"""Table 3 (tables, filter), Table 4 (thresholds) and Table 5 (partial), and the settings of single figures."""

STATED: dict[str, Grid] = {
    "tables": Grid(sizes=(1, 4, 16, 64), epsilons=(0.1, 1.0), pairs=BAND),
    "filter": Grid(sizes=(1, 2, 4, 8, 16), epsilons=(0.1, 1.0), pairs=((4, 16), (16, 4))),
    "thresholds": Grid(sizes=(1, 4), epsilons=(0.1,), pairs=FEW_PAIRS, rows=(500, 1000, 2000), least=(1, 2, 3, 4), k=4),
    "partial": Grid(sizes=(1, 4, 16, 64), pairs=((4, 4), (4, 16)), least=(1,), future=16),
    "runtime": Grid(sizes=(1, 4, 16, 64, 364), pairs=((16, 4),)),
    "training": FULL["training"],
    "rounding": FULL["rounding"],
}
"""What ends within ten minutes for each part and seed on two processors that do nothing else."""

STATED_LOANS: dict[str, Grid] = STATED | {
    "tables": Grid(sizes=(1, 4, 16), epsilons=(0.1, 1.0), pairs=((4, 4), (4, 16), (4, 64), (16, 4))),
    "filter": Grid(sizes=(1, 2, 4, 8), epsilons=(0.1, 1.0), pairs=((4, 16),)),
    "thresholds": Grid(sizes=(1,), epsilons=(0.1,), pairs=((4, 4), (4, 16)), rows=(500, 1000), least=(1, 2, 3, 4), k=4),
    "partial": Grid(
        sizes=(1, 4, 16), pairs=((4, 4), (4, 16)), least=(1,), distributions=("uniform", "geometric"), future=8
    ),
    "runtime": Grid(sizes=(1, 4, 16), pairs=((16, 4),)),
    "rounding": Grid(sizes=(4, 16), epsilons=(0.1, 1.0), pairs=((16, 4),)),
}
"""The same for the larger table, whose marginals have a million cells each."""

SMALL: dict[str, Grid] = {
    "tables": Grid(sizes=(1, 64), epsilons=(0.1, 1.0), pairs=((4, 4), (4, 16))),
    "filter": Grid(sizes=(1, 2, 4, 8), epsilons=(0.1, 1.0), pairs=((4, 4),)),
    "thresholds": Grid(
        sizes=(4,), epsilons=(0.1,), pairs=((4, 16), (16, 4)), rows=(500, 1000), least=(1, 2, 3, 4), k=4
    ),
    "partial": Grid(sizes=(4, 16), pairs=((4, 4),), least=(1,), future=16),
    "runtime": Grid(sizes=(1, 64), pairs=((16, 4),)),
    "training": FULL["training"],
    "rounding": Grid(sizes=(4, 16), epsilons=(0.1, 1.0), pairs=((16, 4),)),
}
"""What a single processor ends within five minutes for each part and seed."""

QUICK: dict[str, Grid] = {
    "tables": Grid(sizes=(1, 4), epsilons=(1.0,), pairs=FEW_PAIRS),
    "filter": Grid(sizes=(1, 2, 4, 8), epsilons=(1.0,), pairs=((4, 4),)),
    "thresholds": Grid(sizes=(2,), epsilons=(1.0,), pairs=((4, 4),), rows=(500, 1000), least=(1, 2, 3, 4), k=4),
    "partial": Grid(sizes=(1, 4), pairs=((4, 4), (4, 16)), least=(1,), future=8),
    "runtime": Grid(sizes=(1, 4, 16), pairs=((16, 4),)),
    "training": Grid(sizes=(4,), pairs=((2, 4),), least=(1,), distributions=("uniform", "geometric"), future=8),
    "rounding": Grid(sizes=(4, 16), pairs=((4, 4),), epsilons=(1.0,)),
}
