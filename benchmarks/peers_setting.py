"""What all systems of `benchmarks.peers` get alike: table, questions, error goal, and the noise that reaches it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import data_folder

ROWS = 48_842
WITHIN, CONFIDENCE = 50, 0.95
"""The goal: with this confidence, no group's count is further off than this."""

VALUES: Mapping[str, tuple[str, ...]] = {
    "workclass": (
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
        "Never-worked", "?",
    ),
    "education": (
        "10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc", "Bachelors",
        "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
    ),
    "marital_status": (
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
        "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
        "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
        "Priv-house-serv", "Protective-serv", "Armed-Forces", "?",
    ),
    "relationship": ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
}  # fmt: skip
"""The columns that are grouped by, with the values that the data set's own description lists."""

SPANS: Mapping[str, tuple[int, int]] = {"age": (17, 90), "hours_per_week": (1, 99)}


@dataclass(frozen=True, kw_only=True)
class Question:
    """Counts by one column of those rows where another column lies in a range or has a value."""

    by: str
    where: str
    low: int | None = None
    high: int | None = None
    equals: str | None = None

    @property
    def sql(self) -> str:
        between = f"{self.where} >= {self.low} AND {self.where} <= {self.high}"
        condition = between if self.equals is None else f"{self.where} = '{self.equals}'"
        return f"SELECT {self.by}, COUNT(*) AS n FROM people WHERE {condition} GROUP BY {self.by}"

    def as_job(self) -> dict[str, Any]:
        """What the program that asks it is given; `epsilon` is for the systems that want that instead of an error."""
        keys = VALUES[self.by]
        epsilon = epsilon_for(WITHIN, groups=len(keys), confidence=CONFIDENCE)
        return {**asdict(self), "sql": self.sql, "keys": keys, "epsilon": epsilon}


def questions(number: int, seed: int) -> list[Question]:
    """So many different questions: every second one with a range of numbers, the others with a value."""
    rng, found = np.random.default_rng(seed), dict[Question, None]()
    while len(found) < number:
        by = str(rng.choice(list(VALUES)))
        if len(found) % 2 == 0:
            where = str(rng.choice(list(SPANS)))
            low, high = sorted(int(end) for end in rng.integers(SPANS[where][0], SPANS[where][1] + 1, 2))
            found[Question(by=by, where=where, low=low, high=high)] = None
        else:
            where = str(rng.choice([name for name in VALUES if name != by]))
            found[Question(by=by, where=where, equals=str(rng.choice(VALUES[where])))] = None
    return list(found)


def epsilon_for(within: int, *, groups: int, confidence: float) -> float:
    """The least epsilon with which discrete Laplace noise on `groups` counts stays within the error, all together.

    The noise has P(X = x) = (1 - a)/(1 + a) a^|x| with a = exp(-epsilon), so P(|X| > t) = 2 a^(t + 1) / (1 + a). OpenDP
    (integer Laplace) and diffprivlib (`Geometric`) draw it for counts of which one person changes one, by one.
    SmartNoise calls its noise `discrete_laplace` and draws Laplace noise that it cuts to a whole number: at most half a
    percent more likely to be too large, for the goals here. No other noise that they offer is cheaper for counts under
    pure privacy.
    """
    allowed = -math.expm1(math.log(confidence) / groups)
    low, high = 0.0, 64.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        a = math.exp(-middle)
        low, high = (middle, high) if 2 * a ** (within + 1) / (1 + a) > allowed else (low, middle)
    return high


def people() -> tuple[pd.DataFrame, bool]:
    """UCI Adult, both files of it, and True; or a table of the same columns, values and size, and False."""
    home = data_folder()
    files = [] if home is None else [home / "adult" / name for name in ("adult.data", "adult.test")]
    if not files or not all(file.is_file() for file in files):
        return stand_in(), False
    frame = pd.concat([pd.read_csv(file, skipinitialspace=True) for file in files])
    frame.columns = [name.replace("-", "_") for name in frame.columns]
    return frame[[*SPANS, *VALUES]], True


def stand_in() -> pd.DataFrame:
    """As many people who do not exist: of each listed value ever fewer, most of them young, most working 40 hours."""
    rng = np.random.default_rng(0)
    age = np.clip(17 + rng.gamma(2.9, 7.5, ROWS), *SPANS["age"])
    hours = np.clip(rng.normal(40, 12, ROWS), *SPANS["hours_per_week"])
    table: dict[str, Any] = {"age": age.astype(int), "hours_per_week": hours.astype(int)}
    for name, values in VALUES.items():
        shares = 1.0 / np.arange(1, len(values) + 1)
        table[name] = rng.choice(values, ROWS, p=shares / shares.sum())
    return pd.DataFrame(table)


def truth(frame: pd.DataFrame, question: Question) -> dict[str, int]:
    """The exact counts of all groups."""
    column = frame[question.where]
    chosen = column.between(question.low, question.high) if question.equals is None else column == question.equals
    counts = frame.loc[chosen, question.by].value_counts()
    return {key: int(counts.get(key, 0)) for key in VALUES[question.by]}


def worst_error(exact: Mapping[str, int], released: Mapping[str, float]) -> float:
    """The largest error of any group; a group that is not in an answer was answered by 0."""
    return max(abs(released.get(key, 0.0) - count) for key, count in exact.items())


def config(budget: float) -> str:
    """The config file with which Bursar is asked all questions."""
    lines = ['dataset = "adult"', "[source]", 'path = "people.csv"', 'table = "people"', "max_rows = 100000"]
    lines += ["[privacy]", 'unit = "row"', "[budget]", f"epsilon = {budget}"]
    for name, (low, high) in SPANS.items():
        lines += [f"[columns.{name}]", f"lower = {low}", f"upper = {high}", f"null = {{ as = {low} }}"]
    for name, values in VALUES.items():
        listed, rest = ", ".join(f'"{value}"' for value in values), f'{{ as = "{values[0]}" }}'
        lines += [f"[columns.{name}]", f"values = [{listed}]", f"outside = {rest}", f"null = {rest}"]
    return "\n".join(lines) + "\n"


def lines_of(files: Iterable[Path]) -> int:
    """How many lines a user writes: those that are not blank, comments and docstring included."""
    return sum(1 for file in files for line in file.read_text().splitlines() if line.strip())
