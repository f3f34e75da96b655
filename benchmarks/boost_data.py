"""The two tables of Boost's evaluation, cut into 50 blocks by time, as counts of cells.

Covid is real where $BURSAR_DATA has it, otherwise a stand-in of the same domain and size. The rides of CitiBike are
always a stand-in: 82 % subscribers; 70, 22 and 8 % male, female and unknown; skewed stations and hours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import data_folder

BLOCKS = 50
COVID_COLUMNS = {"positive": 2, "gender": 2, "age": 4, "ethnicity": 8}
COVID_ROWS = 1_008_532
CITIBIKE_COLUMNS = {
    "weekday": 7,
    "hour": 6,
    "duration": 6,
    "start": 10,
    "end": 10,
    "usertype": 2,
    "gender": 3,
    "age": 4,
}
CITIBIKE_ROWS = 421_925
"""Rows of one block."""

Reals = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """A table in blocks of one public size. `counts` has a row per block and a column per cell of the domain."""

    name: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    counts: NDArray[np.int64]
    real: bool

    @property
    def size(self) -> int:
        """Rows of one block."""
        return int(self.counts[0].sum())

    @property
    def number(self) -> int:
        return len(self.counts)


def covid(blocks: int = BLOCKS) -> Blocks:
    """Tests by result, gender, age and ethnicity: 128 cells, 1,008,532 rows in each block."""
    home = data_folder()
    file = None if home is None else home / "covid" / "derived_covid_counts_50x128.csv"
    real = file is not None and file.is_file()
    if real:
        listed = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)  # type: ignore[arg-type]
        counts = np.zeros((BLOCKS, *COVID_COLUMNS.values()), np.int64)
        counts[tuple(listed[:, :-1].T)] = listed[:, -1]
        counts = counts.reshape(BLOCKS, -1)[:blocks]
    else:
        counts = np.stack([_stand_in_tests(block) for block in range(blocks)])
    return Blocks(
        name="covid", columns=tuple(COVID_COLUMNS), shape=tuple(COVID_COLUMNS.values()), counts=counts, real=real
    )


def citibike(blocks: int = BLOCKS) -> Blocks:
    """Rides by weekday, hours, duration, two districts, kind of customer, gender and age: 604,800 cells."""
    counts = np.stack([_stand_in_rides(block) for block in range(blocks)])
    return Blocks(
        name="citibike",
        columns=tuple(CITIBIKE_COLUMNS),
        shape=tuple(CITIBIKE_COLUMNS.values()),
        counts=counts,
        real=False,
    )


WORKLOADS: dict[str, Callable[[int], Blocks]] = {"covid": covid, "citibike": citibike}


def _stand_in_tests(block: int) -> NDArray[np.int64]:
    """One test in twelve is positive, more of them in the wave around the 40th block."""
    positive = 0.05 + 0.08 * math.exp(-(((block - 40) / 8) ** 2))
    ages = np.array([[0.12, 0.50, 0.22, 0.16], [0.10, 0.55, 0.22, 0.13]])
    groups = np.array([0.005, 0.13, 0.06, 0.45, 0.02, 0.005, 0.28, 0.05])
    genders = np.array([0.53, 0.47])
    results = np.array([1 - positive, positive])
    chances = np.einsum("r,g,ra,e->rgae", results, genders, ages, groups / groups.sum()).ravel()
    return np.random.default_rng([block, 1]).multinomial(COVID_ROWS, chances)


def _stand_in_rides(block: int) -> NDArray[np.int64]:
    """When, who with which duration, and from where to where are drawn independently of each other."""
    rng = np.random.default_rng([block, 2])
    drawn: dict[str, NDArray[np.int64]] = {}
    for names, chances in (_when(), _who(block), _where()):
        edges = np.cumsum(chances.ravel())
        cells = np.searchsorted(edges / edges[-1], rng.random(CITIBIKE_ROWS), side="right")
        drawn |= dict(zip(names, np.unravel_index(cells, chances.shape), strict=True))
    shape = tuple(CITIBIKE_COLUMNS.values())
    cells = np.ravel_multi_index([drawn[name] for name in CITIBIKE_COLUMNS], shape)
    return np.bincount(cells, minlength=math.prod(shape))


def _when() -> tuple[tuple[str, ...], Reals]:
    """Commuters on five days of the week, outings on two."""
    working, free = [0.02, 0.14, 0.22, 0.20, 0.31, 0.11], [0.05, 0.05, 0.22, 0.34, 0.25, 0.09]
    days = [0.147, 0.155, 0.158, 0.157, 0.153, 0.120, 0.110]
    return ("weekday", "hour"), np.array([day * np.array(working if i < 5 else free) for i, day in enumerate(days)])


def _who(block: int) -> tuple[tuple[str, ...], Reals]:
    """Subscribers are fewer in the middle of the year, 82 % on average; others ride longer and say less."""
    subscribers = 0.82 + 0.06 * math.cos(2 * math.pi * block / BLOCKS)
    kinds = np.array([subscribers, 1 - subscribers])
    genders = np.array([[0.750, 0.230, 0.020], [0.470, 0.175, 0.355]])
    ages = np.array([[0.22, 0.45, 0.24, 0.09], [0.30, 0.25, 0.40, 0.05]])
    durations = np.array([[0.22, 0.32, 0.22, 0.14, 0.08, 0.02], [0.05, 0.12, 0.15, 0.22, 0.30, 0.16]])
    chances = np.einsum("u,ug,ua,ud->ugad", kinds, genders, ages, durations)
    return ("usertype", "gender", "age", "duration"), chances


def _where() -> tuple[tuple[str, ...], Reals]:
    """Few districts see most of the rides, and four rides in ten end where they began."""
    busy = 1 / np.arange(1, 11) ** 0.9
    busy /= busy.sum()
    return ("start", "end"), busy[:, None] * (0.4 * np.eye(10) + 0.6 * busy)
