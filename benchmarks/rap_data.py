"""The two tables of RAP's evaluation as codes, one column per feature.

Adult is real where $BURSAR_DATA has it, otherwise a stand-in of the same domain and size. Loans is always a stand-in:
42,535 rows, 48 features, 4,427 values together; the paper's Table 2 states no more, so the split is ours, and small
enough for every marginal over three features to be one measurement.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import data_folder

Codes = NDArray[np.int64]

ADULT_ROWS, LOANS_ROWS = 48_842, 42_535

ADULT: dict[str, int] = {
    "age": 85,
    "workclass": 9,
    "fnlwgt": 100,
    "education": 16,
    "marital-status": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital-gain": 100,
    "capital-loss": 100,
    "hours-per-week": 99,
    "native-country": 42,
    "income": 2,
}
"""How many values each feature has. `education-num` is left out: it repeats `education`."""

STEPS: dict[str, tuple[float, float]] = {
    "age": (16, 1),
    "fnlwgt": (0, 15_000),
    "capital-gain": (0, 1_000),
    "capital-loss": (0, 50),
    "hours-per-week": (1, 1),
}
"""Numbers fall into bins of equal width: the lower end of the first bin, and the width. Values beyond are clipped."""

_LOANS_LISTS = (150, 140, 130, 115, 110, 55, 50, 35, 14, 12, 9, 7)
LOANS: dict[str, int] = {f"list{i:02}": size for i, size in enumerate(_LOANS_LISTS)} | {
    f"number{i:02}": 100 for i in range(36)
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Coded:
    """A table whose cells are numbers below the sizes of their features."""

    name: str
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: Codes  # a row per person, a column per feature
    real: bool

    @property
    def rows(self) -> int:
        return len(self.codes)

    @property
    def features(self) -> int:
        return len(self.sizes)

    def cells(self, features: Sequence[int]) -> int:
        """How many joint values the features have: the number of queries of a marginal, or of a threshold."""
        return math.prod(self.sizes[f] for f in features)

    def counts(self, features: Sequence[int]) -> NDArray[np.int64]:
        """People by joint value, one axis per feature."""
        return joint(self.codes, self.sizes, features)


def joint(codes: Codes, sizes: Sequence[int], features: Sequence[int]) -> NDArray[np.int64]:
    """How many rows have each joint value of the features, one axis per feature; of no features, all rows."""
    if not features:
        return np.array(len(codes), np.int64)
    shape = tuple(sizes[f] for f in features)
    flat = np.ravel_multi_index(tuple(codes[:, f] for f in features), shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape)


def adult() -> Coded:
    """UCI Adult, 588 values of 14 features."""
    files = _adult_files()
    codes = _encoded(files) if files else stand_in(ADULT.values(), ADULT_ROWS)
    return Coded(name="adult", names=tuple(ADULT), sizes=tuple(ADULT.values()), codes=codes, real=bool(files))


def loans() -> Coded:
    """The stand-in for the loans of Lending Club."""
    codes = stand_in(LOANS.values(), LOANS_ROWS)
    return Coded(name="loans", names=tuple(LOANS), sizes=tuple(LOANS.values()), codes=codes, real=False)


def is_real(name: str) -> bool:
    """Whether the table would be the real one; nothing is read."""
    return name == "adult" and bool(_adult_files())


DATA: Mapping[str, Callable[[], Coded]] = {"adult": adult, "loans": loans}

KINDS = 12
"""Kinds of people in a stand-in."""


def stand_in(sizes: Iterable[int], rows: int, seed: int = 0) -> Codes:
    """Skewed features that depend on each other: people are of a few kinds, and each kind has its own favourites.

    A feature with s values has Zipf shares (exponent between 1 and 2, drawn for the feature) over an order of its own;
    a third of the people of a kind take the favourite of their kind instead.
    """
    rng = np.random.default_rng([seed, rows])
    kinds = rng.choice(KINDS, rows, p=_zipf(KINDS, 1.0))
    columns = []
    for size in sizes:
        shares = _zipf(size, rng.uniform(1.0, 2.0))
        order = rng.permutation(size)
        drawn = order[np.searchsorted(np.cumsum(shares), rng.random(rows), side="right").clip(max=size - 1)]
        favourites = rng.integers(0, size, KINDS)
        columns.append(np.where(rng.random(rows) < 1 / 3, favourites[kinds], drawn))
    return np.stack(columns, axis=1).astype(np.int64)


def _adult_files() -> list[Path]:
    home = data_folder()
    files = [] if home is None else [home / "adult" / name for name in ("adult.data", "adult.test")]
    return files if all(file.is_file() for file in files) else []


def _zipf(size: int, exponent: float) -> NDArray[np.float64]:
    shares = 1 / np.arange(1, size + 1) ** exponent
    return shares / shares.sum()


def _encoded(files: Sequence[Path]) -> Codes:
    """Lists are numbered in alphabetical order; labels of the second file end with a full stop."""
    read: dict[str, list[str]] = {name: [] for name in ADULT}
    for file in files:
        with file.open(newline="") as opened:
            for row in csv.DictReader(opened, skipinitialspace=True):
                for name, values in read.items():
                    value = row["Y"].rstrip(".") if name == "income" else row[name]
                    values.append(sys.intern(value))  # a text once, however many people have it
    return np.stack([_codes(name, values) for name, values in read.items()], axis=1)


def _codes(name: str, values: Sequence[str]) -> Codes:
    if name not in STEPS:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    low, width = STEPS[name]
    binned: Codes = np.floor((np.array(values, float) - low) / width).clip(0, ADULT[name] - 1).astype(np.int64)
    return binned
